/* Tests whether a model behaves as the algebra of receptive_field says, on its real weights, without absolute
 * positions.
 *
 * Global attention, one layer: two different tokens at distances that share a row change places. The query's output
 * must not change beyond rounding; at distances with unshared rows it must. With more layers it changes in any case,
 * because the tokens between see the two from elsewhere.
 *
 * Under a hard window (only keys at unambiguous distances are read), n layers: the output must keep every bit whatever
 * is outside the composed set, even NaN, and must depend on the outermost token inside.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/experiment.h"
#include "output/scope.h"

typedef struct behaviour_options {
    experiment of; /* ablations of layers that a test does not run are ignored */
    /* function that changes the model, which the tests should notice; NULL: none */
    void (*decorate)(deberta_model *model);
    size_t most_layers; /* most layers; tests run over 1, 2, 4 ... up to this, at most as many as the model has */
    size_t most_tokens; /* limit of tokens; tests that need longer texts are skipped */
} behaviour_options;

enum { BEHAVIOUR_NUMBERS = 8 };

typedef struct behaviour_number {
    const char *name; /* static text */
    double value;
} behaviour_number;

typedef struct behaviour_test {
    char name[48];
    bool passed;
    const char *skipped; /* reason why it did not run, or NULL */
    behaviour_number numbers[BEHAVIOUR_NUMBERS];
    size_t number_count;
} behaviour_test;

typedef struct behaviour_report {
    scope memory; /* memory of the tests; to be freed */
    behaviour_test *tests;
    size_t count, capacity, failures;
} behaviour_report;

/* Runs every test that fits the limits. The report contains failing tests; an error means that tests could not run. */
deberta_status behaviour_run(behaviour_report *report, const behaviour_options *options, deberta_error *err);
