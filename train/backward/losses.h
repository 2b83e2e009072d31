/* Losses from logits, and the gradients of these: cross entropy, squared error, binary cross entropy
 * (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "core/kernels.h"

/* Cross entropy of n logits, `stride` floats apart, against class `label`. They become scale (softmax - onehot). */
double cross_entropy(const kernels *table, float *logits, size_t n, size_t stride, size_t label, float scale);

/* Softmax in place; log(sum exp) is returned. stride as above. */
double softmax_in_place(const kernels *table, float *logits, size_t n, size_t stride);

/* A class drawn from softmax(logits), of n that follow each other: the first whose cumulative sum of exp(logit - max)
 * exceeds u times the whole, u in [0, 1]. docs/training.md has the order of the sums. */
size_t draw_class(const kernels *table, const float *logits, size_t n, double u);

/* max(a, 0) - a y + log(1 + exp(-|a|)); *logit becomes scale (sigmoid(a) - y). */
double binary_cross_entropy(const kernels *table, float *logit, float target, float scale);

/* (a - y)^2; *logit becomes scale 2 (a - y). */
double squared_error(float *logit, float target, float scale);

/* The sum of rows in parts: a chain in each part, the parts in the tree of core/kernels.h. */
void losses_by_part(const double *losses, const size_t *bounds, size_t parts, double *sums);
double sum_of_parts(const double *sums, size_t parts);
