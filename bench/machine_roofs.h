/* Measures the machine's limits of speed: at their best before a measurement, and in slices between its encodes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"

enum { MACHINE_MAX_ROOFS = 64 };

/* Measured limits with some number of threads. 0: not measured. */
typedef struct machine_roof {
    size_t threads;
    double gflops[DEBERTA_ISA_COUNT]; /* float32 multiply-adds in registers, by tier */
    double gops[DEBERTA_ISA_COUNT];   /* products of bytes, added, in registers, as in the tier's integer kernels */
    double read_gbs, triad_gbs;       /* a sum over memory; a = b + s c, counted as STREAM does: 12 bytes an
                                       * element */
    /* median count of the fastest tier as a fraction of its best. Near 1 on an exclusive processor; a busy
     * hyper-thread of another guest halves the speed of its core */
    double typical_share;
} machine_roof;

typedef struct machine_roofs {
    size_t count;
    machine_roof roof[MACHINE_MAX_ROOFS];
    size_t stream_bytes; /* memory that the bandwidths were measured over */
} machine_roofs;

/* Measures in a child process, so that its memory is not counted as a model's. isa_mask: bits 1 << deberta_isa; tiers
 * that this machine lacks stay 0. bandwidth false: only multiply-adds. Takes about a second. */
deberta_status machine_measure_roofs(machine_roofs *roofs, const size_t *threads, size_t count, unsigned isa_mask,
                                     bool bandwidth, deberta_error *err);
/* Returns the rate of a precision from those of floats and of bytes; int16 takes three products of bytes for one. */
double machine_rate_of(double gflops, double gops, deberta_precision precision);
/* Returns the upper limit of useful products of a precision; int16 takes three products of bytes for one. 0: not
 * measured. */
double machine_peak_of(const machine_roofs *roofs, deberta_isa isa, size_t threads, deberta_precision precision);
/* Returns the limit of float32. */
double machine_peak_gflops(const machine_roofs *roofs, deberta_isa isa, size_t threads);
const machine_roof *machine_find_roof(const machine_roofs *roofs, size_t threads);

/* --------------------------------------------------------------------------------------------- between the encodes */

/* Slices of the same loops between encodes, which measure the machine at that moment, under that load, rather than at
 * its best. */
typedef struct machine_slices {
    executor *by;                         /* threads that encode */
    const struct peak_kernel *kernels[2]; /* kernels of float32 and of integers; NULL: none */
    size_t rounds[2];                     /* rounds of a task */
    size_t busy;                          /* number of threads that have a core */
} machine_slices;

void machine_slices_prepare(machine_slices *slices, deberta_isa isa, executor *by, size_t cores);
/* Returns the rate of two milliseconds of products on all threads, in GFLOP/s or GOP/s, and adds its time. 0: there
 * is no such loop. */
double machine_slice_products(const machine_slices *slices, bool of_integers, double *seconds);

/* Memory larger than all caches, read block by block. */
typedef struct machine_stream machine_stream;
/* Allocates it; NULL if there is not enough memory. */
machine_stream *machine_stream_new(const topology_info *machine);
void machine_stream_free(machine_stream **stream);
/* Returns the bandwidth of reading the next blocks of 3 MiB, in GB/s, and adds its time. */
double machine_slice_reading(machine_stream *stream, executor *by, double *seconds);

/* Returns the clock rate in GHz of a thread right after two milliseconds of the widest products: a processor lowers
 * it for them, and scalar code alone does not show it. 0: unknown on this architecture. */
double machine_wide_clock_ghz(void);
