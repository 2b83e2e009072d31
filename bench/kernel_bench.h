/* Single kernels over a list of problems (kernel_problems.h), every tier against the same data.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/kernel_problems.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "output/result.h"

typedef struct kernel_measurement {
    size_t problem;               /* index */
    deberta_isa isa;              /* DEBERTA_ISA_AUTO: none of ours, but SLEEF */
    const char *implementation;   /* what the kernel table says about the slot */
    statistics_summary time;      /* seconds of one call */
    problem_work work;            /* of one call */
    double gflops, peak_fraction; /* of the median; 0: unknown */
    double speed_up;              /* over the first tier of the list */
    double worst_ulp;             /* activate with exp, gelu, tanh: of all elements, in [-1, 1); else 0 */
} kernel_measurement;

typedef struct kernel_measurements {
    scope memory;                     /* of the measurements; to be freed */
    kernel_measurement *measurements; /* problem by problem, tiers in the order given, then SLEEF if it is in the
                                         build and has the function */
    size_t count;
} kernel_measurements;

typedef struct kernel_bench_options {
    const deberta_isa *isas; /* in the order in which they are compared */
    size_t isa_count;
    size_t samples;             /* 0: 15 */
    double min_seconds;         /* of a sample: calls are repeated until it takes as long; 0: 200 us */
    bool cold;                  /* gemm: other weights at every call, more of them than caches hold */
    const machine_roofs *roofs; /* of one thread; may be NULL */
    bool (*progress)(void *context, size_t done, size_t all); /* may be NULL; false: stop */
    void *progress_context;
} kernel_bench_options;

/* Measures kernels on one thread. Tiers take turns sample by sample. */
deberta_status kernel_bench_run(kernel_measurements *found, const problem_lines *problems,
                                const kernel_bench_options *options, deberta_error *err);
/* A row a measurement. */
void kernel_bench_describe(result *r, const kernel_measurements *found, const problem_lines *problems);
