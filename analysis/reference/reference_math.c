/* Implements the elementary formulas of SPEC in float64, each as SPEC writes it.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/reference/reference_math.h"

#include <math.h>
#include <stdlib.h>

double reference_dot(const double *a, const double *b, size_t count)
{
    double partial[8] = {0};
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (size_t l = 0; l < 8; l++) partial[l] += a[i + l] * b[i + l];
    }
    for (; i < count; i++) partial[0] += a[i] * b[i];
    return ((partial[0] + partial[4]) + (partial[2] + partial[6])) +
           ((partial[1] + partial[5]) + (partial[3] + partial[7]));
}

void reference_linear(double *y, const double *x, size_t rows, size_t in, const double *w, const double *b, size_t out)
{
    for (size_t o = 0; o < out; o++) {
        for (size_t t = 0; t < rows; t++) y[t * out + o] = reference_dot(x + t * in, w + o * in, in) + (b ? b[o] : 0.0);
    }
}

void reference_layer_norm(double *y, const double *x, size_t rows, size_t width, const double *gain, const double *bias,
                          double eps)
{
    for (size_t t = 0; t < rows; t++, x += width, y += width) {
        double mean = 0, variance = 0;
        for (size_t c = 0; c < width; c++) mean += x[c];
        mean /= (double)width;
        for (size_t c = 0; c < width; c++) variance += (x[c] - mean) * (x[c] - mean);
        variance /= (double)width;
        for (size_t c = 0; c < width; c++) y[c] = gain[c] * (x[c] - mean) / sqrt(variance + eps) + bias[c];
    }
}

void reference_softmax(double *row, const unsigned char *mask, size_t keys)
{
    double maximum = -INFINITY, sum = 0;
    for (size_t j = 0; j < keys; j++) {
        if (!mask || mask[j]) maximum = fmax(maximum, row[j]);
    }
    for (size_t j = 0; j < keys; j++) {
        row[j] = !mask || mask[j] ? exp(row[j] - maximum) : 0.0;
        sum += row[j];
    }
    for (size_t j = 0; j < keys && sum != 0; j++) row[j] /= sum;
}

long reference_bucket(long distance, size_t buckets, size_t max_distance, deberta_reference reference)
{
    long mid = (long)buckets / 2, farthest = (long)max_distance - 1;
    if (buckets == 0) return distance;
    if (reference == DEBERTA_REFERENCE_MICROSOFT && labs(distance) > farthest)
        distance = distance < 0 ? -farthest : farthest;
    if (labs(distance) <= mid) return distance;
    /* Both logarithms are the same expression, so that their quotient is exactly 1 at the farthest distance. */
    double ratio = log((double)labs(distance) / (double)mid) / log((double)farthest / (double)mid);
    double steps = ceil(ratio * (double)(mid - 1));
    /* With farthest <= mid the quotient is infinite or negative. Such a configuration has no meaning, so the result is
     * that of the engine. */
    double bucket = isfinite(steps) ? steps + (double)mid : (double)buckets;
    long magnitude = (long)fmax((double)mid, fmin(bucket, 2.0 * (double)buckets));
    return distance < 0 ? -magnitude : magnitude;
}

size_t reference_table_row(const model_config *config, deberta_reference reference, long distance)
{
    long span = (long)config->relative_span;
    long row = reference_bucket(distance, config->position_buckets, config->max_relative_positions, reference) + span;
    return (size_t)(row < 0 ? 0 : row > 2 * span - 1 ? 2 * span - 1 : row);
}
