/* Describes problems of single kernels as lines of text.
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
#pragma once

#include <stdio.h>

#include "check/kernels/kernel_slots.h"
#include "core/base/status.h"
#include "output/scope.h"

enum { PROBLEM_LINE_BYTES = 128 };

typedef struct problem_line {
    char text[PROBLEM_LINE_BYTES]; /* line as written, without its comment */
    kernel_problem problem;        /* parsed problem without arrays */
} problem_line;

typedef struct problem_lines {
    scope memory; /* owner of the lines; free it */
    problem_line *lines;
    size_t count, room;
} problem_lines;

/* Parses one line; where: its place in messages, such as "file:12". */
deberta_status problem_line_parse(problem_line *parsed, const char *line, const char *where, deberta_error *err);
/* Appends the problems of a file; empty lines and text after a # are skipped. */
deberta_status problem_lines_read(problem_lines *list, FILE *file, const char *name, deberta_error *err);
