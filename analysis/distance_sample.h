/* Collects the diagonals of many matrices: curves over the distance i - j from a whole corpus.
 *
 * Means are over everything. Quantiles are over at most DISTANCE_SAMPLE_MOST values per distance: of more values it
 * keeps a random sample, each with the same probability (Vitter 1985, algorithm R). A seed determines the sample.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"
#include "output/scope.h"

enum { DISTANCE_SAMPLE_MOST = 1024 };

typedef struct distance_values {
    size_t count; /* number of all values that were added */
    double sum;   /* of the same */
    float *kept;  /* [min(count, DISTANCE_SAMPLE_MOST)] */
    size_t kept_capacity;
} distance_values;

typedef struct distance_sample {
    scope memory;            /* memory of the values; to be freed */
    size_t reach;            /* distances -reach ... reach */
    distance_values *values; /* [2 reach + 1]; distance r at r + reach */
    uint64_t state;          /* state of the random numbers */
} distance_sample;

void distance_sample_create(distance_sample *sample, size_t reach, uint64_t seed);

/* Adds a matrix [tokens][tokens], query first. mask [tokens] or NULL: 0 names tokens that are neither queries nor keys.
 * Distances beyond the reach are left out. */
void distance_sample_add(distance_sample *sample, const float *matrix, size_t tokens, const unsigned char *mask);

/* Returns the mean; NaN for a distance that no matrix had. */
double distance_sample_mean(const distance_sample *sample, ptrdiff_t distance);
/* Computes the quantiles q[0 ... count - 1] of one distance. */
void distance_sample_quantiles(const distance_sample *sample, ptrdiff_t distance, const double *q, size_t count,
                               double *found);
