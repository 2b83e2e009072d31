/* Propagates the spreads of channels through norms, products and activations, and computes a factor per channel.
 *
 * SPDX-License-Identifier: MIT */
#include "core/load/smoothing.h"

#include <math.h>

#include "core/model/activation.h"

enum { DEVIATIONS = 3 };

void spread_of_unknown(const channel_spread *spread, size_t channels)
{
    for (size_t j = 0; j < channels; j++) {
        spread->mean[j] = 0;
        spread->deviation[j] = 1;
    }
}

void spread_of_norm(const channel_spread *spread, const float *gamma, const float *beta, size_t channels)
{
    for (size_t j = 0; j < channels; j++) {
        spread->mean[j] = beta[j];
        spread->deviation[j] = fabsf(gamma[j]);
    }
}

void spread_of_sum_norm(const channel_spread *hidden, const channel_spread *added, const float *gamma,
                        const float *beta, double epsilon, size_t channels)
{
    double sum = 0, squares = 0;
    for (size_t j = 0; j < channels; j++) {
        const double mean = (double)hidden->mean[j] + (double)added->mean[j];
        const double a = (double)hidden->deviation[j], b = (double)added->deviation[j], variance = a * a + b * b;
        sum += mean;
        squares += mean * mean + variance;
        hidden->mean[j] = (float)mean;
        hidden->deviation[j] = (float)sqrt(variance);
    }
    const double middle = sum / (double)channels;
    const double scale = 1 / sqrt(squares / (double)channels - middle * middle + epsilon);
    for (size_t j = 0; j < channels; j++) {
        const double gain = (double)gamma[j] * scale;
        hidden->mean[j] = (float)((double)beta[j] + gain * ((double)hidden->mean[j] - middle));
        hidden->deviation[j] = (float)(fabs(gain) * (double)hidden->deviation[j]);
    }
}

/* Number of outputs that are summed at once, as independent chains of additions. */
enum { OUTPUTS_AT_ONCE = 4 };

static void spread_of_some(const channel_spread *output, size_t first, size_t count, const float *const *w,
                           const float *bias, const channel_spread *inputs, size_t channels)
{
    double mean[OUTPUTS_AT_ONCE] = {0}, variance[OUTPUTS_AT_ONCE] = {0};
    for (size_t i = 0; i < count; i++) mean[i] = (double)bias[i];
    for (size_t j = 0; j < channels; j++) {
        const double middle = (double)inputs->mean[j], deviation = (double)inputs->deviation[j];
        for (size_t i = 0; i < OUTPUTS_AT_ONCE; i++) {
            const double weight = (double)w[i][j], d = weight * deviation;
            mean[i] += weight * middle;
            variance[i] += d * d;
        }
    }
    for (size_t i = 0; i < count; i++) {
        output->mean[first + i] = (float)mean[i];
        output->deviation[first + i] = (float)sqrt(variance[i]);
    }
}

void spread_of_outputs(const channel_spread *output, size_t first, size_t count, const float *w, size_t ldw,
                       const float *bias, const channel_spread *inputs, size_t channels)
{
    for (size_t done = 0; done < count; done += OUTPUTS_AT_ONCE) {
        const size_t here = count - done < OUTPUTS_AT_ONCE ? count - done : OUTPUTS_AT_ONCE;
        const float *rows[OUTPUTS_AT_ONCE];
        /* Missing outputs repeat the first one, whose extra sums are dropped. */
        for (size_t i = 0; i < OUTPUTS_AT_ONCE; i++) rows[i] = w + (done + (i < here ? i : 0)) * ldw;
        spread_of_some(output, first + done, here, rows, bias + done, inputs, channels);
    }
}

/* Gauss-Hermite nodes of a standard normal variable and their weights: exact for polynomials up to degree 9. */
enum { QUADRATURE_POINTS = 5 };
static const double quadrature_at[QUADRATURE_POINTS] = {0, 1.355626179974266, -1.355626179974266, 2.856970013872806,
                                                        -2.856970013872806};
static const double quadrature_weight[QUADRATURE_POINTS] = {0.5333333333333333, 0.2220759220056126, 0.2220759220056126,
                                                            0.01125741132772069, 0.01125741132772069};

void spread_activate(const channel_spread *spread, const kernels *table, activation function, size_t channels)
{
    for (size_t j = 0; j < channels; j++) {
        float values[QUADRATURE_POINTS];
        double mean = 0, square = 0;
        for (int k = 0; k < QUADRATURE_POINTS; k++)
            values[k] = (float)((double)spread->mean[j] + quadrature_at[k] * (double)spread->deviation[j]);
        activate_rows(table, function, values, QUADRATURE_POINTS, 1, QUADRATURE_POINTS);
        for (int k = 0; k < QUADRATURE_POINTS; k++) {
            mean += quadrature_weight[k] * (double)values[k];
            square += quadrature_weight[k] * (double)values[k] * (double)values[k];
        }
        spread->mean[j] = (float)mean;
        spread->deviation[j] = (float)sqrt(fmax(square - mean * mean, 0));
    }
}

void usual_amplitudes(float *amplitudes, const channel_spread *spread, size_t channels)
{
    for (size_t j = 0; j < channels; j++) amplitudes[j] = fabsf(spread->mean[j]) + DEVIATIONS * spread->deviation[j];
}

void largest_amplitudes(float *amplitudes, const channel_spread *spread, const kernels *table, activation function,
                        size_t channels, size_t h)
{
    const float reach = sqrtf((float)h);
    for (size_t j = 0; j < channels; j++) {
        const float away = reach * spread->deviation[j];
        float ends[] = {spread->mean[j] - away, spread->mean[j] + away};
        activate_rows(table, function, ends, 2, 1, 2);
        amplitudes[j] = fmaxf(fabsf(ends[0]), fabsf(ends[1]));
    }
}

void smoothing_factors(float *factors, float *largest_weights, const float *amplitudes, size_t channels)
{
    const float least = 1 / 4096.0f;
    float top_amplitude = 0, top_weight = 0;
    for (size_t j = 0; j < channels; j++) {
        top_amplitude = fmaxf(top_amplitude, amplitudes[j]);
        top_weight = fmaxf(top_weight, largest_weights[j]);
    }
    for (size_t j = 0; j < channels; j++) {
        float a = fmaxf(amplitudes[j], least * top_amplitude), w = fmaxf(largest_weights[j], least * top_weight);
        float factor = sqrtf(w / a);
        /* Damaged or empty weights get no factor: encoding reports them. */
        factors[j] = factor > 0x1p-40f && factor < 0x1p40f ? factor : 1;
    }
}
