/* Single kernels over a list of problems, every tier against the same data.
 *
 * A problem is a line of text, so that a list of them is a file one can edit and a line is what one quotes:
 *
 *     # projections of a base model, 16 tokens
 *     gemm rows=16 depth=768 columns=2304 bias
 *     gemm rows=16 depth=768 columns=3072 bias gelu
 *     gemm rows=16 depth=3072 columns=768 bias residual
 *     softmax rows=16 columns=16
 *     layernorm rows=16 columns=768
 *     activate columns=3072 function=gelu
 *     pack rows=128 depth=64
 *     position_bias rows=126 distance=40
 *
 * rows and columns default to 1, depth to 64. SPDX-License-Identifier: MIT */
#ifndef BENCH_KERNEL_BENCH_H
#define BENCH_KERNEL_BENCH_H

#include <stdio.h>

#include "bench/machine.h"
#include "bench/statistics.h"
#include "output/text_table.h"

typedef enum kernel_operation {
    KERNEL_GEMM,
    KERNEL_PACK,
    KERNEL_POSITION_BIAS,
    KERNEL_SOFTMAX,
    KERNEL_LAYERNORM,
    KERNEL_ACTIVATE,
    KERNEL_OPERATIONS
} kernel_operation;

typedef struct kernel_problem {
    char text[128]; /* as written, without the comment */
    kernel_operation operation;
    size_t rows, depth, columns;
    ptrdiff_t distance;        /* position_bias: of query 0 and key lane 0 */
    bool bias, gelu, residual; /* gemm's epilogue */
    int function;              /* activate: a kernel_activation */
} kernel_problem;

typedef struct kernel_problems {
    kernel_problem *problems; /* owned */
    size_t count;
} kernel_problems;

/* One line; where: for the message, as "file:12". */
deberta_status kernel_problem_parse(kernel_problem *problem, const char *line, const char *where, deberta_error *err);
/* Appends the problems of a file; empty lines and what follows a # are skipped. */
deberta_status kernel_problems_read(kernel_problems *list, FILE *file, const char *name, deberta_error *err);
void kernel_problems_free(kernel_problems *list);

typedef struct kernel_measurement {
    size_t problem;                /* index */
    deberta_isa isa;               /* DEBERTA_ISA_AUTO: none of ours, but SLEEF */
    const char *implementation;    /* what the kernel table says about the slot */
    statistics_summary time;       /* seconds of one call */
    double gflop, bytes, elements; /* of one call; gflop 0: not counted in those */
    double gflops, peak_fraction;  /* of the median; 0: unknown */
    double speed_up;               /* over the first tier of the list */
    double worst_ulp;              /* activate with exp, gelu, tanh: of all elements, in [-1, 1); else 0 */
} kernel_measurement;

typedef struct kernel_measurements {
    kernel_measurement *measurements; /* owned; problem by problem, tiers in the order given, then SLEEF if it is in the
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

/* One thread. Tiers take turns sample by sample. */
deberta_status kernel_bench_run(kernel_measurements *found, const kernel_problems *problems,
                                const kernel_bench_options *options, deberta_error *err);
void kernel_measurements_free(kernel_measurements *found);
deberta_status kernel_bench_print(const kernel_measurements *found, const kernel_problems *problems, FILE *out,
                                  result_format format, deberta_error *err);

#endif
