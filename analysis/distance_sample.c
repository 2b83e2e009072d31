/* Sums and samples every diagonal of a matrix; Vitter's algorithm R draws the sample.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/distance_sample.h"

#include <math.h>

#include "core/base/numbers.h"

void distance_sample_create(distance_sample *sample, size_t reach, uint64_t seed)
{
    *sample = (distance_sample){.reach = reach, .state = seed};
    sample->values = scope_take(&sample->memory, 2 * reach + 1, sizeof *sample->values);
}

static void add_value(distance_sample *sample, distance_values *v, float value)
{
    v->count++;
    v->sum += (double)value;
    if (v->count > DISTANCE_SAMPLE_MOST) {
        const uint64_t place = random_next(&sample->state) % v->count;
        if (place < DISTANCE_SAMPLE_MOST) v->kept[place] = value;
        return;
    }
    v->kept = scope_grown(&sample->memory, v->kept, &v->kept_capacity, v->count - 1, sizeof *v->kept);
    v->kept[v->count - 1] = value;
}

void distance_sample_add(distance_sample *sample, const float *matrix, size_t tokens, const unsigned char *mask)
{
    for (size_t i = 0; i < tokens; i++) {
        if (mask && !mask[i]) continue;
        for (size_t j = 0; j < tokens; j++) {
            const size_t apart = i > j ? i - j : j - i;
            if ((mask && !mask[j]) || apart > sample->reach) continue;
            distance_values *v = &sample->values[i >= j ? sample->reach + apart : sample->reach - apart];
            add_value(sample, v, matrix[i * tokens + j]);
        }
    }
}

static const distance_values *at(const distance_sample *sample, ptrdiff_t distance)
{
    return &sample->values[(ptrdiff_t)sample->reach + distance];
}

double distance_sample_mean(const distance_sample *sample, ptrdiff_t distance)
{
    const distance_values *v = at(sample, distance);
    return v->count ? v->sum / (double)v->count : NAN;
}

void distance_sample_quantiles(const distance_sample *sample, ptrdiff_t distance, const double *q, size_t count,
                               double *found)
{
    const distance_values *v = at(sample, distance);
    const size_t kept = v->count < DISTANCE_SAMPLE_MOST ? v->count : DISTANCE_SAMPLE_MOST;
    double values[DISTANCE_SAMPLE_MOST];
    for (size_t k = 0; k < kept; k++) values[k] = (double)v->kept[k];
    for (size_t k = 0; k < count; k++) found[k] = quantile(values, kept, q[k]);
}
