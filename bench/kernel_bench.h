/* Measures single kernels over a list of problems (kernel_problems.h), with the same data for every tier.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/kernel_problems.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "output/result.h"

typedef struct kernel_measurement {
    size_t problem;               /* index in the list of problems */
    deberta_isa isa;              /* DEBERTA_ISA_AUTO: SLEEF instead of a tier */
    const char *implementation;   /* name of the slot's implementation in the kernel table */
    statistics_summary time;      /* seconds of one call */
    problem_work work;            /* work of one call */
    double gflops, peak_fraction; /* at the median; 0: unknown */
    double speed_up;              /* relative to the first tier of the list */
    double worst_ulp;             /* activate with exp, gelu, tanh: worst error over all elements in [-1, 1); else
                                   * 0 */
} kernel_measurement;

typedef struct kernel_measurements {
    scope memory; /* owner of the measurements; free it */
    /* by problem, then by tier in the given order, then SLEEF if it is built in and has the function */
    kernel_measurement *measurements;
    size_t count;
} kernel_measurements;

typedef struct kernel_bench_options {
    const deberta_isa *isas; /* tiers in the order of comparison */
    size_t isa_count;
    size_t samples;             /* samples of a measurement; 0: 15 */
    double min_seconds;         /* length of a sample, for which calls are repeated; 0: 200 us */
    bool cold;                  /* gemm: other weights at every call, more of them than the caches hold */
    const machine_roofs *roofs; /* limits of one thread; may be NULL */
    bool (*progress)(void *context, size_t done, size_t all); /* may be NULL; returns false to stop */
    void *progress_context;
} kernel_bench_options;

/* Measures kernels on one thread. The tiers alternate sample by sample. */
deberta_status kernel_bench_run(kernel_measurements *found, const problem_lines *problems,
                                const kernel_bench_options *options, deberta_error *err);
/* Adds a row for each measurement. */
void kernel_bench_describe(result *r, const kernel_measurements *found, const problem_lines *problems);
