/* Declares the elementary formulas of SPEC in float64; the reference model consists of them, and kernel tests may
 * compare with them. Each reads as in SPEC; matrices are row-major, a linear layer has W [out][in].
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "core/model/config.h"

/* Returns sum_i a_i b_i, i < count, by eight partial sums, so that compilers can vectorize it. */
double reference_dot(const double *a, const double *b, size_t count);

/* Computes y = W x + b for `rows` vectors: x [rows][in], W [out][in], b [out] or NULL, y [rows][out]. y is not x. */
void reference_linear(double *y, const double *x, size_t rows, size_t in, const double *w, const double *b, size_t out);

/* Computes y = gain (x - mean) / sqrt(variance + eps) + bias over each row (SPEC 2); the variance is the biased one. y
 * may be x. */
void reference_layer_norm(double *y, const double *x, size_t rows, size_t width, const double *gain, const double *bias,
                          double eps);

/* Computes the softmax in place, over the keys that `mask` keeps; masked keys get 0. mask NULL: all. If nothing is
 * kept, all are 0 (SPEC 5.3). */
void reference_softmax(double *row, const unsigned char *mask, size_t keys);

/* Returns the signed log bucket of a distance (SPEC 4.3) with `buckets` buckets over max_distance. buckets 0: the
 * distance itself. */
long reference_bucket(long distance, size_t buckets, size_t max_distance, deberta_reference reference);

/* Returns the table row of the distance i - j (SPEC 3.3, 4.3), the same for c2p and p2c (SPEC 3.4). Needs relative_span
 * >= 1. */
size_t reference_table_row(const model_config *config, deberta_reference reference, long distance);
