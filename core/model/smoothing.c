/* SPDX-License-Identifier: MIT */
#include "core/model/smoothing.h"

#include <math.h>

#include "core/model/activation.h"

enum { DEVIATIONS = 3 };

void spread_of_norm(const channel_spread *spread, const float *gamma, const float *beta, size_t channels)
{
    for (size_t j = 0; j < channels; j++) {
        spread->mean[j] = beta[j];
        spread->deviation[j] = fabsf(gamma[j]);
    }
}

void spread_of_output(const channel_spread *output, size_t channel, const float *w, float bias,
                      const channel_spread *inputs, size_t channels)
{
    double mean = bias, variance = 0;
    for (size_t j = 0; j < channels; j++) {
        double d = (double)w[j] * (double)inputs->deviation[j];
        mean += (double)w[j] * (double)inputs->mean[j];
        variance += d * d;
    }
    output->mean[channel] = (float)mean;
    output->deviation[channel] = (float)sqrt(variance);
}

void spread_activate(const channel_spread *spread, const kernels *table, activation function, size_t channels)
{
    for (size_t j = 0; j < channels; j++) {
        float width = DEVIATIONS * spread->deviation[j];
        spread->deviation[j] = spread->mean[j] - width;
        spread->mean[j] += width;
    }
    activate_rows(table, function, spread->mean, channels, 1, channels);
    activate_rows(table, function, spread->deviation, channels, 1, channels);
    for (size_t j = 0; j < channels; j++) {
        spread->mean[j] = fmaxf(fabsf(spread->mean[j]), fabsf(spread->deviation[j]));
        spread->deviation[j] = 0;
    }
}

static float amplitude(const channel_spread *inputs, size_t j)
{
    return fabsf(inputs->mean[j]) + DEVIATIONS * inputs->deviation[j];
}

void smoothing_factors(float *factors, float *largest_weights, const channel_spread *inputs, size_t channels)
{
    const float least = 1 / 256.0f;
    float top_amplitude = 0, top_weight = 0;
    for (size_t j = 0; j < channels; j++) {
        top_amplitude = fmaxf(top_amplitude, amplitude(inputs, j));
        top_weight = fmaxf(top_weight, largest_weights[j]);
    }
    for (size_t j = 0; j < channels; j++) {
        float a = fmaxf(amplitude(inputs, j), least * top_amplitude), w = fmaxf(largest_weights[j], least * top_weight);
        float factor = sqrtf(w / a);
        /* Nothing is known of damaged or empty weights: encoding them tells. */
        factors[j] = factor > 0x1p-40f && factor < 0x1p40f ? factor : 1;
    }
}
