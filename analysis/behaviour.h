/* Tests whether a model behaves as the algebra of receptive_field says, on its real weights, without absolute
 * positions.
 *
 * Global attention, one layer: two different tokens at distances that share a row change places. The query's output
 * must not change beyond rounding; at distances with unshared rows it must. Beyond one layer it changes in any case, by
 * design: the tokens between see the two from elsewhere.
 *
 * Under a hard window (only keys at unambiguous distances are read at all), n layers: the output must keep every bit
 * whatever happens outside the composed set, also when it is NaN, and must notice the outermost token inside.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/experiment.h"
#include "output/scope.h"

typedef struct behaviour_options {
    experiment of;                          /* ablations of layers that a test does without are left out */
    void (*decorate)(deberta_model *model); /* makes the model another, which the tests should notice; NULL: not */
    size_t most_layers; /* tests run over 1, 2, 4 ... layers up to this; at most what the model has */
    size_t most_tokens; /* leave out what would need longer texts */
} behaviour_options;

enum { BEHAVIOUR_NUMBERS = 8 };

typedef struct behaviour_number {
    const char *name; /* static */
    double value;
} behaviour_number;

typedef struct behaviour_test {
    char name[48];
    bool passed;
    const char *skipped; /* why it did not run, or NULL */
    behaviour_number numbers[BEHAVIOUR_NUMBERS];
    size_t number_count;
} behaviour_test;

typedef struct behaviour_report {
    scope memory; /* of the tests; to be freed */
    behaviour_test *tests;
    size_t count, capacity, failures;
} behaviour_report;

/* Runs everything that fits. Failing tests are in the report; an error is something that kept tests from running. */
deberta_status behaviour_run(behaviour_report *report, const behaviour_options *options, deberta_error *err);
