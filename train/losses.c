/* SPDX-License-Identifier: MIT */
#include "train/losses.h"

#include <math.h>

#include "train/exact_log.h"

enum { CHUNK = 512 };

/* Exponentials are the kernel's, in float32; sums are double: 16 partials a chunk of 512, chunks in order. */
static double exponentials(const kernels *table, float *logits, size_t n, size_t stride, float maximum)
{
    double total = 0;
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t count = n - first < CHUNK ? n - first : CHUNK;
        float e[CHUNK];
        double partials[PANEL] = {0};
        for (size_t j = 0; j < count; j++) e[j] = logits[(first + j) * stride] - maximum;
        table->activate_f32(e, count, KERNEL_EXP);
        for (size_t j = 0; j < count; j++) {
            logits[(first + j) * stride] = e[j];
            partials[j % PANEL] += (double)e[j];
        }
        for (size_t half = PANEL / 2; half > 0; half /= 2)
            for (size_t l = 0; l < half; l++) partials[l] += partials[l + half];
        total += partials[0];
    }
    return total;
}

double softmax_in_place(const kernels *table, float *logits, size_t n, size_t stride)
{
    float maximum = logits[0];
    for (size_t j = 1; j < n; j++) maximum = maximum < logits[j * stride] ? logits[j * stride] : maximum;
    const double total = exponentials(table, logits, n, stride, maximum);
    const float inverse = (float)(1 / total);
    for (size_t j = 0; j < n; j++) logits[j * stride] = logits[j * stride] * inverse;
    return exact_log(total) + (double)maximum;
}

double cross_entropy(const kernels *table, float *logits, size_t n, size_t stride, size_t label, float scale)
{
    const double wanted = (double)logits[label * stride];
    const double loss = softmax_in_place(table, logits, n, stride) - wanted;
    logits[label * stride] = logits[label * stride] - 1;
    for (size_t j = 0; j < n; j++) logits[j * stride] = logits[j * stride] * scale;
    return loss;
}

double binary_cross_entropy(const kernels *table, float *logit, float target, float scale)
{
    const float a = *logit;
    float e = -fabsf(a);
    table->activate_f32(&e, 1, KERNEL_EXP);
    const double probability = (a < 0 ? (double)e : 1.0) / (1 + (double)e);
    *logit = (float)(probability - (double)target) * scale;
    return (a > 0 ? (double)a : 0.0) - (double)a * (double)target + exact_log(1 + (double)e);
}

double squared_error(float *logit, float target, float scale)
{
    const double difference = (double)*logit - (double)target;
    *logit = (float)(2 * difference) * scale;
    return difference * difference;
}

double sum_of_losses(const double *losses, const size_t *bounds, size_t parts)
{
    double sums[MAX_ROW_TREE] = {0};
    for (size_t part = 0; part < parts; part++) {
        double sum = 0;
        size_t level = 0;
        for (size_t row = bounds[part]; row < bounds[part + 1]; row++) sum += losses[row];
        for (; part >> level & 1; level++) sum = sums[level] + sum;
        sums[level] = sum;
    }
    size_t top = 0;
    while ((size_t)1 << top < parts) top++;
    return parts ? sums[top] : 0;
}
