/* Problems of single kernels.
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
 *     # of training: the gradient of a weight [depth][columns] from `rows` tokens, and rows of the backward pass
 *     gemm_tn rows=128 depth=768 columns=3072
 *     sum_rows rows=128 columns=768
 *     dot_rows rows=128 columns=768
 *     layernorm_backward rows=128 columns=768
 *     activate_backward columns=3072 function=gelu
 *     softmax_backward rows=126 columns=512
 *     fold_runs rows=126 columns=512 distance=40
 *     adam columns=65536
 *     dropout rows=128 columns=768
 *
 *     # of low precision, with one digit or two; attention's probabilities and values (core/integer_kernels.h)
 *     quantize_u8 rows=128 depth=768
 *     gemm_u8x2 rows=128 depth=768 columns=768
 *     quantize_u15 rows=126 depth=512
 *     quantize_panels depth=512 columns=64
 *     gemm_u15 rows=126 depth=512 columns=64
 *
 * rows and columns default to 1, depth to 64. SPDX-License-Identifier: MIT */
#ifndef BENCH_KERNEL_PROBLEMS_H
#define BENCH_KERNEL_PROBLEMS_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/status.h"

typedef enum kernel_operation {
    KERNEL_GEMM,
    KERNEL_PACK,
    KERNEL_POSITION_BIAS,
    KERNEL_SOFTMAX,
    KERNEL_LAYERNORM,
    KERNEL_ACTIVATE,
    KERNEL_GEMM_TN,
    KERNEL_SUM_ROWS,
    KERNEL_DOT_ROWS,
    KERNEL_LAYERNORM_BACKWARD,
    KERNEL_ACTIVATE_BACKWARD,
    KERNEL_SOFTMAX_BACKWARD,
    KERNEL_FOLD_RUNS,
    KERNEL_ADAM,
    KERNEL_DROPOUT,
    KERNEL_QUANTIZE_U8,
    KERNEL_QUANTIZE_U8X2,
    KERNEL_QUANTIZE_U15,
    KERNEL_QUANTIZE_PANELS,
    KERNEL_GEMM_U8,
    KERNEL_GEMM_U8X2,
    KERNEL_GEMM_U15,
    KERNEL_OPERATIONS
} kernel_operation;

typedef struct kernel_problem {
    char text[128]; /* as written, without the comment */
    kernel_operation operation;
    size_t rows, depth, columns;
    ptrdiff_t distance;        /* position_bias, fold_runs: of query 0 and key 0 */
    bool bias, gelu, residual; /* gemm's epilogue */
    int function;              /* activate, activate_backward: a kernel_activation */
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

#endif
