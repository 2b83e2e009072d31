/* Estimates from weights alone how large the channels of activations become, so that low precision can even them out.
 *
 * A channel that is 20 times as large as the others costs them their digits, because rows have one scale. So inputs are
 * multiplied by a factor a channel, and weights divided by it (quantized.h), as SmoothQuant does (Xiao et al., ICML
 * 2023, alpha 0.5):
 *
 *     factor[j] = sqrt(max_i |W[i][j]| / a[j]),    a[j] = |mean[j]| + 3 deviation[j]   of hidden states and contexts,
 *                                                 a[j] = max |f(mean[j] +- sqrt(h) deviation[j])|   after an activation
 *
 * SmoothQuant measures a on texts. This code derives it from the weights before the product, channel by channel as if
 * they were independent of each other: a linear layer gives the mean and deviation of its sums; an activation those of
 * f(x) where x is normal; a LayerNorm those of its input, moved and scaled as its whole row is. So it finds channels
 * that grow from layer to layer in the residual stream, and not only those of a large gamma. For the input of the first
 * LayerNorm and the output of a convolution it assumes mean 0, deviation 1. a and max |W| count as at least 1/4096 of
 * the largest of their matrix.
 *
 * An activation of a trained model is far from f of a normal variable: a channel that is 0 nearly everywhere is a
 * hundred times as large as all others at [CLS] and [SEP] (Sun et al., Massive Activations in Large Language Models,
 * COLM 2024), and a factor for its usual size takes the digits of these rows. So a is the channel's upper bound: h
 * outputs of a LayerNorm have the norm sqrt(h), and sum to at most that many deviations.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/kernels.h"
#include "core/model/config.h"

typedef struct channel_spread {
    float *mean, *deviation; /* one value for every channel */
} channel_spread;

/* Sets mean 0 and deviation 1. */
void spread_of_unknown(const channel_spread *spread, size_t channels);
/* Computes the spread after a LayerNorm of inputs with unknown spread. */
void spread_of_norm(const channel_spread *spread, const float *gamma, const float *beta, size_t channels);
/* Computes the spread after a LayerNorm of a sum: hidden states and a sublayer's output. */
void spread_of_sum_norm(const channel_spread *hidden, const channel_spread *added, const float *gamma,
                        const float *beta, double epsilon, size_t channels);
/* Computes the spread of `count` outputs, from their weights w [count][ldw], their bias and the spread of the inputs.
 * Sums are float64, in order. */
void spread_of_outputs(const channel_spread *output, size_t first, size_t count, const float *w, size_t ldw,
                       const float *bias, const channel_spread *inputs, size_t channels);
/* Computes the spread of f(x), by a quadrature of five points. */
void spread_activate(const channel_spread *spread, const kernels *table, activation function, size_t channels);

/* Computes a of hidden states and contexts. */
void usual_amplitudes(float *amplitudes, const channel_spread *spread, size_t channels);
/* Computes a of f(x), from the spread of x, sums of h inputs. */
void largest_amplitudes(float *amplitudes, const channel_spread *spread, const kernels *table, activation function,
                        size_t channels, size_t h);

/* Computes factors[j] from a and the largest |W| of every input, which is overwritten; 1 where there is nothing to
 * smooth. */
void smoothing_factors(float *factors, float *largest_weights, const float *amplitudes, size_t channels);
