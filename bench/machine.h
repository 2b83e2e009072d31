/* Describes the machine under a measurement: its environment sheet, its limits of speed (roofs), and whether it was
 * quiet.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"

/* ------------------------------------------------------------------------------------------------------------ roofs */

enum { MACHINE_MAX_ROOFS = 64 };

/* Measured limits of some number of threads. 0: not measured. */
typedef struct machine_roof {
    size_t threads;
    double gflops[DEBERTA_ISA_COUNT]; /* float32 multiply-adds in registers, by tier */
    double gops[DEBERTA_ISA_COUNT];   /* products of bytes, added, in registers: what integer kernels there use */
    double read_gbs, triad_gbs;       /* a sum over memory; a = b + s c, counted as STREAM does: 12 bytes an element */
    double typical_share; /* of the best rate, what every other count of the fastest tier reached. Near 1 on processors
                             that are ours alone; a busy hyper-thread of somebody else's halves what it shares */
} machine_roof;

typedef struct machine_roofs {
    size_t count;
    machine_roof roof[MACHINE_MAX_ROOFS];
    size_t stream_bytes; /* that the bandwidths went over */
} machine_roofs;

/* Measures in a child process, so that its memory is not counted as a model's. isa_mask: bits 1 << deberta_isa; tiers
 * that this machine lacks stay 0. bandwidth false: only multiply-adds. Takes about a second. */
deberta_status machine_measure_roofs(machine_roofs *roofs, const size_t *threads, size_t count, unsigned isa_mask,
                                     bool bandwidth, deberta_error *err);
/* Slices of the same loops between encodes: what the machine does in that minute, under that load, rather than at its
 * best. */
typedef struct machine_slices {
    executor *by;                         /* the threads that encode */
    const struct peak_kernel *kernels[2]; /* of float32, and of what integer kernels multiply; NULL: none */
    size_t rounds[2];                     /* of a task */
    size_t busy;                          /* of the threads, those that have a core */
} machine_slices;

void machine_slices_prepare(machine_slices *slices, deberta_isa isa, executor *by, size_t cores);
/* Returns the rate of two milliseconds of products on all threads, in GFLOP/s or GOP/s, and adds its time. 0: there is
 * no such loop. */
double machine_slice_products(const machine_slices *slices, bool of_integers, double *seconds);

/* Memory larger than all caches, read piece by piece. */
typedef struct machine_stream machine_stream;
/* NULL where there is no memory for it. */
machine_stream *machine_stream_new(const topology_info *machine);
void machine_stream_free(machine_stream **stream);
/* Returns the bandwidth of reading the next so many pieces of 3 MiB, in GB/s, and adds its time. */
double machine_slice_reading(machine_stream *stream, executor *by, double *seconds);

/* The clock rate in GHz that a thread has right behind two milliseconds of the widest products: a processor lowers it
 * for them, and scalar code alone does not show it. 0: not known on this architecture. */
double machine_wide_clock_ghz(void);
/* Of floats, or of bytes; int16 takes three of those for one product. */
double machine_rate_of(double gflops, double gops, deberta_precision precision);
/* Upper limit of useful products of a precision; int16 takes three products of bytes for one. 0: not measured. */
double machine_peak_of(const machine_roofs *roofs, deberta_isa isa, size_t threads, deberta_precision precision);
/* The limit of float32. */
double machine_peak_gflops(const machine_roofs *roofs, deberta_isa isa, size_t threads);
const machine_roof *machine_find_roof(const machine_roofs *roofs, size_t threads);

/* --------------------------------------------------------------------------------------------------------- activity */

/* Use of the machine by others between two moments, in cores: 0.5 is half of one core. */
typedef struct machine_activity {
    double others; /* other processes */
    double stolen; /* taken by the hypervisor */
} machine_activity;

typedef struct machine_counters {
    double wall, busy, stolen, own; /* seconds */
} machine_counters;

machine_counters machine_read_counters(void);
machine_activity machine_activity_between(const machine_counters *before, const machine_counters *after);

/* ------------------------------------------------------------------------------------------------ environment sheet */

enum { MACHINE_MAX_NOTES = 16 };

typedef struct machine_sheet {
    char version[32], commit[64], date[32]; /* date: when the sheet was made, UTC */
    bool dirty;                             /* built from files that were not committed */
    char compiler[96], flags[512];
    char cpu[96], architecture[32], system[128];
    bool virtual_machine;
    char hypervisor[32], microcode[32]; /* empty: unknown */
    char huge_pages[16];     /* how the system gives huge pages to who does not ask: always, madvise, never */
    size_t huge_page_bytes;  /* anonymous memory of this process in huge pages, while it measured */
    char tiers[64], isa[16]; /* tiers: names separated by blanks */
    topology_info topology;
    size_t memory_bytes;
    char governor[32];
    double load;                                 /* one-minute average when the sheet was made */
    double clock_ghz, clock_ghz_after;           /* measured, at the beginning and at the end; 0: unknown */
    double clock_wide_ghz, clock_wide_ghz_after; /* the same behind products of the widest registers */
    machine_activity activity;                   /* while measuring */
    machine_roofs roofs;
    size_t note_count;
    char notes[MACHINE_MAX_NOTES][192]; /* why this machine was not quiet; none if it was */
} machine_sheet;

/* Everything but roofs, and what is only known at the end. */
deberta_status machine_read_sheet(machine_sheet *sheet, deberta_error *err);
/* Clock and activity of the end, and the notes that follow from them. */
void machine_finish_sheet(machine_sheet *sheet, const machine_counters *before);
/* Adds a reason to doubt the numbers; the same text only once. */
void machine_note(machine_sheet *sheet, const char *format, ...) __attribute__((format(printf, 2, 3)));
