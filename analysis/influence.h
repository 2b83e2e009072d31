/* Measures how much an input counts at each distance: |d output_i / d input_j| by finite differences, for every layer
 * at once.
 *
 * The input is H[0], the output H[l]. One token j is moved by +step and -step along a random unit direction u (times
 * the length of its row); the influence on token i is |H[l]_i(+) - H[l]_i(-)| / (2 step |H[0]_j|), an estimate of |J
 * u|. The step is chosen by a sweep: large steps are wrong because the model is not linear, small ones because float32
 * rounds. The noise floor is the result of rounding alone; a comparison with float64 on a short text checks the
 * differences.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "analysis/experiment.h"
#include "output/scope.h"

typedef struct influence_options {
    experiment of;          /* ablations of engine and float64 alike */
    const int32_t *ids;     /* [tokens]: the text; NULL: drawn from the seed */
    size_t tokens, sources; /* length of the text; number of moved tokens, spread over it */
    size_t check_tokens;    /* length of the float64 check's text; 0: no check */
} influence_options;

enum { INFLUENCE_STEPS = 9, INFLUENCE_MOST_BINS = 64, INFLUENCE_MOST_CHECKED = 256 };

/* A range of distances i - j, both ends included; ranges double on both sides of 0. */
typedef struct influence_bin {
    ptrdiff_t from, to;
    size_t count;
    double mean, q10, median, q90;
} influence_bin;

typedef struct influence_layer {
    influence_bin bins[INFLUENCE_MOST_BINS];
    size_t bin_count;
    double self;        /* mean influence of a token on itself */
    double noise_floor; /* influence that rounding alone shows at the chosen step */
    size_t radius95;    /* distance within which 95 % of the influence on other tokens lies */
    bool bounded;       /* whether that is at most half of the text: beyond, it follows the length of the text */
} influence_layer;

typedef struct influence_report {
    scope memory; /* memory of the layers; to be freed */
    size_t tokens, sources, layers;
    influence_layer *layer; /* [layers]: entry k is H[k + 1] */
    double steps[INFLUENCE_STEPS],
        disagreement[INFLUENCE_STEPS]; /* median relative difference to half the step; last: unused */
    double step;
    bool checked;
    double float64_median,
        float64_worst; /* relative error of influences above ten noise floors, all layers and tokens */
    size_t float64_values;
} influence_report;

deberta_status influence_measure(influence_report *report, const influence_options *options, deberta_error *err);
