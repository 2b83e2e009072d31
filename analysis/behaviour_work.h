/* Declares the state that the tests of behaviour share: report, texts, and encoding with parts of the input poisoned.
 * Only for behaviour*.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/attention_window.h"
#include "analysis/behaviour.h"
#include "analysis/receptive_field.h"

typedef struct behaviour_work {
    const behaviour_options *options;
    behaviour_report *report;
    deberta_model *model;
    deberta_model_info info;
    position_rule rule;
    receptive_field field;
    size_t done, total;
    deberta_ablation *ablations; /* [ablation_count]: ablations of the options whose layer is open */
    size_t ablation_count;
    int32_t *ids, *positions; /* [capacity]; all positions are 0, the same for every token */
    size_t capacity;
} behaviour_work;

/* Appends the next test to the report, by name. */
behaviour_test *behaviour_add_test(behaviour_work *work, const char *format, ...) __attribute__((format(printf, 2, 3)));
void behaviour_add_number(behaviour_test *test, const char *name, double value);
void behaviour_conclude(behaviour_work *w, behaviour_test *test, bool passed);
void behaviour_skip(behaviour_test *test, const char *why);

/* Draw made-up tokens by the seed, and a token that differs from a given one. */
int32_t behaviour_token_at(const behaviour_work *w, uint64_t place);
int32_t behaviour_other_token(const behaviour_work *w, int32_t token, uint64_t trial);
void behaviour_make_text(behaviour_work *w, size_t tokens);

/* Tokens whose H[0] becomes NaN: one, or all outside a set of displacements from `query`. */
typedef struct poison {
    size_t query;
    ptrdiff_t only;      /* displacement i - j, if set is NULL */
    const uint8_t *set;  /* set of displacements; tokens outside it are poisoned */
    ptrdiff_t set_reach; /* set covers -set_reach ... set_reach */
    bool active;
} poison;

bool behaviour_is_inside(const poison *p, ptrdiff_t displacement);

/* Opens a session; window and p may be NULL, else they must outlive it. */
deberta_status behaviour_open_session(deberta_session **session, const behaviour_work *w, size_t tokens, size_t layers,
                                      const key_window *window, poison *p, deberta_error *err);
/* Encodes, and copies the output of one token to row [h]. */
deberta_status behaviour_output_of(deberta_session *session, const behaviour_work *w, size_t tokens, size_t query,
                                   float *row, deberta_error *err);
/* Returns the largest difference in eps times the largest magnitude. */
double behaviour_change_between(const float *a, const float *b, size_t h);

static inline ptrdiff_t smallest(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static inline ptrdiff_t largest(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

/* Two distances whose tokens change places. */
typedef struct distance_pair {
    ptrdiff_t first, second;
} distance_pair;

/* Tests global attention: tokens at two distances with unshared rows change places; the second function runs all tests
 * of one side. */
deberta_status behaviour_test_distinct(behaviour_work *w, const char *name, distance_pair pair, deberta_error *err);
deberta_status behaviour_test_side(behaviour_work *w, bool left, deberta_error *err);
/* Tests of attention under a hard window. */
deberta_status behaviour_test_window(behaviour_work *w, bool run_only, size_t layers, deberta_error *err);
