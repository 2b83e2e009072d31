/* Backward pass of an encoder layer (docs/training.md): from the gradient of its output, in carried.output, to that of
 * its input, in carried.input of the memory, and to those of its weights.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/products.h"
#include "train/state/step_state.h"

/* Sets rows of holes to 0, because no code reads them. */
void clear_holes(const learner *learner, float *rows, size_t ld, size_t columns);

void layer_backward(const step_state *step, size_t layer);

/* Runs the Enhanced Mask Decoder's two passes through the last layer backward, from passes[1].d_output, which has a row
 * for each of `rows` labelled tokens, to the gradient of H[L - 1]. positions: the tokens of these rows. */
void decoder_backward(const step_state *step, const size_t *positions, size_t rows, const size_t *bounds);

/* Adds the gradients of a matrix and its bias. a [rows][lda]: gradients of its outputs; b [rows][ldb]: its inputs. */
void matrix_gradient(const step_state *step, const packed_matrix *matrix, const float *a, size_t lda, const float *b,
                     size_t ldb, row_parts parts);
/* Computes dx = dy W; `transposed` is W', packed. */
void input_gradient(const learner *learner, const packed_matrix *transposed, size_t rows, const float *dy, size_t lddy,
                    float *dx, size_t lddx);
/* Computes dx of a norm, from the norm's input `sum`, which it overwrites with x̂, the output before the gain. dx may
 * be dy. */
void norm_backward(const learner *learner, size_t rows, size_t columns, const layer_norm *norm, float *sum,
                   size_t ld_sum, const float *dy, size_t lddy, float *dx, size_t lddx);
/* Adds the gradients of a norm's gain and bias. normal: x̂, the norm's output before the gain. */
void norm_gradient(const step_state *step, const layer_norm *norm, size_t columns, const float *normal,
                   size_t ld_normal, const float *dy, size_t lddy, row_parts parts);
