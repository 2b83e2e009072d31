/* Computes losses from rows of logits, with softmax: cross entropy, binary cross entropy, squared error; and their
 * gradients in place.
 *
 * SPDX-License-Identifier: MIT */
#include "train/backward/heads.h"

#include <math.h>

#include "core/base/numbers.h"
#include "train/state/exact_math.h"

enum { CHUNK = 512 };

/* Returns the sum of 16 partials by their tree. */
static double sum_of_chunk(const float *e, size_t count)
{
    double partials[PANEL] = {0};
    size_t j = 0;
    for (; j + PANEL <= count; j += PANEL)
        for (size_t l = 0; l < PANEL; l++) partials[l] += (double)e[j + l];
    for (size_t l = 0; j < count; j++, l++) partials[l] += (double)e[j];
    for (size_t half = PANEL / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++) partials[l] += partials[l + half];
    return partials[0];
}

/* Exponentials come from the kernel, in float32; sums are double, over chunks of 512 in order. */
static double exponentials(const kernels *table, float *logits, size_t n, size_t stride, float maximum)
{
    double total = 0;
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t count = n - first < CHUNK ? n - first : CHUNK;
        float e[CHUNK], *at = logits + first * stride;
        if (stride == 1) {
            for (size_t j = 0; j < count; j++) at[j] -= maximum;
            table->activate_f32(at, count, ACTIVATION_EXP);
            total += sum_of_chunk(at, count);
            continue;
        }
        for (size_t j = 0; j < count; j++) e[j] = at[j * stride] - maximum;
        table->activate_f32(e, count, ACTIVATION_EXP);
        for (size_t j = 0; j < count; j++) at[j * stride] = e[j];
        total += sum_of_chunk(e, count);
    }
    return total;
}

/* Finds the maximum 16 at a time, because compilers keep the order of a plain loop, which waits for each comparison. */
static float maximum_of(const float *logits, size_t n, size_t stride)
{
    float lanes[PANEL];
    size_t j = 0;
    for (size_t l = 0; l < PANEL; l++) lanes[l] = logits[0];
    for (; stride == 1 && j + PANEL <= n; j += PANEL)
        for (size_t l = 0; l < PANEL; l++) lanes[l] = lanes[l] < logits[j + l] ? logits[j + l] : lanes[l];
    for (; j < n; j++) lanes[0] = lanes[0] < logits[j * stride] ? logits[j * stride] : lanes[0];
    for (size_t l = 1; l < PANEL; l++) lanes[0] = lanes[0] < lanes[l] ? lanes[l] : lanes[0];
    return lanes[0];
}

/* Writes exp(logit - maximum) of the chunk that begins with `first` to other memory. Returns how many there are. */
static size_t chunk_exponentials(const kernels *table, const float *logits, size_t n, size_t first, float maximum,
                                 float e[CHUNK])
{
    const size_t count = n - first < CHUNK ? n - first : CHUNK;
    for (size_t j = 0; j < count; j++) e[j] = logits[first + j] - maximum;
    table->activate_f32(e, count, ACTIVATION_EXP);
    return count;
}

/* Returns the beginning of the first chunk after which the sum exceeds the limit, or n; *sum is the sum before it. */
static size_t find_chunk(const kernels *table, const float *logits, size_t n, float maximum, double limit, double *sum)
{
    float e[CHUNK];
    *sum = 0;
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t count = chunk_exponentials(table, logits, n, first, maximum, e);
        const double behind = *sum + sum_of_chunk(e, count);
        if (behind > limit) return first;
        *sum = behind;
    }
    return n;
}

size_t draw_class(const kernels *table, const float *logits, size_t n, double u)
{
    const float maximum = maximum_of(logits, n, 1);
    double whole, sum;
    size_t last = 0;
    find_chunk(table, logits, n, maximum, INFINITY, &whole);
    const double limit = u * whole;
    size_t first = find_chunk(table, logits, n, maximum, limit, &sum);
    if (first == n) {
        first = 0;
        sum = -INFINITY;
    }
    for (; first < n; first += CHUNK) {
        float e[CHUNK];
        const size_t count = chunk_exponentials(table, logits, n, first, maximum, e);
        for (size_t j = 0; j < count; j++) {
            sum += (double)e[j];
            if (e[j] > 0) last = first + j;
            if (sum > limit && e[j] > 0) return first + j;
        }
    }
    return last; /* Because of rounding no class exceeds the limit: this is the last one with a probability above 0. */
}

/* Replaces logits by exp(l - maximum), and returns the logarithm of their sum plus the maximum. */
static double exponentiate(const kernels *table, float *logits, size_t n, size_t stride, float *inverse)
{
    const float maximum = maximum_of(logits, n, stride);
    const double total = exponentials(table, logits, n, stride, maximum);
    *inverse = (float)(1 / total);
    return exact_log(total) + (double)maximum;
}

double softmax_in_place(const kernels *table, float *logits, size_t n, size_t stride)
{
    float inverse;
    const double log_total = exponentiate(table, logits, n, stride, &inverse);
    for (size_t j = 0; j < n; j++) logits[j * stride] = logits[j * stride] * inverse;
    return log_total;
}

double cross_entropy(const kernels *table, float *logits, size_t n, size_t stride, size_t label, float scale)
{
    float inverse;
    const double wanted = (double)logits[label * stride];
    const double loss = exponentiate(table, logits, n, stride, &inverse) - wanted;
    const float of_label = (logits[label * stride] * inverse - 1) * scale;
    if (stride == 1)
        for (size_t j = 0; j < n; j++) logits[j] = logits[j] * inverse * scale;
    else
        for (size_t j = 0; j < n; j++) logits[j * stride] = logits[j * stride] * inverse * scale;
    logits[label * stride] = of_label;
    return loss;
}

double binary_cross_entropy(const kernels *table, float *logit, float target, float scale)
{
    const float a = *logit;
    float e = -fabsf(a);
    table->activate_f32(&e, 1, ACTIVATION_EXP);
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

void losses_by_part(const double *losses, const size_t *bounds, size_t parts, double *sums)
{
    for (size_t part = 0; part < parts; part++) {
        sums[part] = 0;
        for (size_t row = bounds[part]; row < bounds[part + 1]; row++) sums[part] += losses[row];
    }
}

double sum_of_parts(const double *sums, size_t parts)
{
    double waiting[MAX_ROW_TREE] = {0};
    for (size_t part = 0; part < parts; part++) {
        double sum = sums[part];
        size_t level = 0;
        for (; part >> level & 1; level++) sum = waiting[level] + sum;
        waiting[level] = sum;
    }
    return parts ? waiting[tree_levels(parts)] : 0;
}
