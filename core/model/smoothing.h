/* How large the channels of activations become, as far as weights alone tell, so that low precision can even them out.
 *
 * A channel that is 20 times as large as the others takes their digits: rows have one scale. So inputs are multiplied
 * by a factor a channel, and weights divided by it (quantized.h), as SmoothQuant does (Xiao et al., ICML 2023, alpha
 * 0.5):
 *
 *     factor[j] = sqrt(max_i |W[i][j]| / a[j]),    a[j] = |mean[j]| + 3 deviation[j]
 *
 * SmoothQuant measures a on texts. Here it follows from the weights before the product: behind a LayerNorm mean = beta
 * and deviation = |gamma|; behind a linear layer those of independent inputs; behind an activation the larger of f(mean
 * + 3 deviation) and f(mean - 3 deviation). a and max |W| count as at least 1/256 of the largest of their matrix.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_SMOOTHING_H
#define CORE_MODEL_SMOOTHING_H

#include "core/model/config.h"
#include "core/kernels.h"

typedef struct channel_spread {
    float *mean, *deviation; /* of every channel */
} channel_spread;

void spread_of_norm(const channel_spread *spread, const float *gamma, const float *beta, size_t channels);
/* Of one output: weights w [inputs] and bias, from the spread of the inputs. Sums in float64, in order. */
void spread_of_output(const channel_spread *output, size_t channel, const float *w, float bias,
                      const channel_spread *inputs, size_t channels);
/* Of f(x): its amplitude becomes the mean, with deviation 0. */
void spread_activate(const channel_spread *spread, const kernels *table, activation function, size_t channels);

/* factors[j] from the spread of the inputs and the largest |W| of each, which is overwritten; 1 where there is nothing
 * to smooth. */
void smoothing_factors(float *factors, float *largest_weights, const channel_spread *inputs, size_t channels);

#endif
