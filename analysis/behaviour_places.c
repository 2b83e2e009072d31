/* Tests a model by exchanging two tokens under global attention. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/behaviour_work.h"
#include "core/base/status.h"
#include "output/scope.h"

/* Number of pairs of tokens that change places: aliases must hide all exchanges, a distinction must show in one. */
enum { TRIALS = 4 };
/* Rounding of a layer in eps times the largest magnitude, as `verify` allows it, and the multiple of it that counts as
 * a change. */
static const double rounding_of_a_layer = 64, distinct_factor = 8;

/* The length of the shortest text in which a query has keys at both distances, on one side or on both, and the place of
 * that query. */
typedef struct text_room {
    size_t query, tokens;
} text_room;
static text_room room_of(distance_pair pair)
{
    const ptrdiff_t left = largest(largest(pair.first, pair.second), 0),
                    right = -smallest(smallest(pair.first, pair.second), 0);
    return (text_room){.query = (size_t)left, .tokens = (size_t)(left + right) + 1};
}

/* Computes the least and the greatest change of the query's output over some trials, in rounding units. The text is as
 * short as the distances allow. */
static deberta_status swap_tokens(behaviour_work *w, distance_pair pair, size_t layers, double *least, double *greatest,
                                  deberta_error *err)
{
    const text_room room = room_of(pair);
    const size_t tokens = room.tokens, query = room.query, h = w->info.hidden_size;
    deberta_session *session = NULL;
    deberta_status status;
    float *before = memory_take(2 * h, sizeof *before), *after = before ? before + h : NULL;
    *least = INFINITY;
    *greatest = 0;
    behaviour_make_text(w, tokens);
    DEBERTA_TRY_OR_FAIL(status, behaviour_open_session(&session, w, tokens, layers, NULL, NULL, err));
    int32_t *one = &w->ids[(ptrdiff_t)query - pair.first], *two = &w->ids[(ptrdiff_t)query - pair.second];
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        const int32_t token = *one = behaviour_token_at(w, 77777 + trial),
                      other = *two = behaviour_other_token(w, token, trial);
        DEBERTA_TRY_OR_FAIL(status, behaviour_output_of(session, w, tokens, query, before, err));
        *one = other;
        *two = token;
        DEBERTA_TRY_OR_FAIL(status, behaviour_output_of(session, w, tokens, query, after, err));
        const double change = behaviour_change_between(before, after, h);
        *least = fmin(*least, change);
        *greatest = fmax(*greatest, change);
    }
fail:
    deberta_session_free(&session);
    free(before);
    return status;
}

static void note_pair(behaviour_test *test, distance_pair pair)
{
    behaviour_add_number(test, "first_distance", (double)pair.first);
    behaviour_add_number(test, "second_distance", (double)pair.second);
}

/* Tests distances that share a row: in one layer no trial may show a difference; with more layers one must. */
static deberta_status test_alias(behaviour_work *w, const char *name, distance_pair pair, size_t layers,
                                 deberta_error *err)
{
    double least, greatest;
    const double limit = rounding_of_a_layer * (double)layers;
    behaviour_test *test = behaviour_add_test(w, layers == 1 ? "alias_%s" : "global_alias_%s_layers_%zu", name, layers);
    note_pair(test, pair);
    if (room_of(pair).tokens > w->options->most_tokens) {
        behaviour_skip(test, "the text would be too long");
        return DEBERTA_OK;
    }
    DEBERTA_TRY(swap_tokens(w, pair, layers, &least, &greatest, err));
    behaviour_add_number(test, "layers", (double)layers);
    behaviour_add_number(test, "change_in_eps", greatest);
    behaviour_add_number(test, layers == 1 ? "at_most" : "more_than", layers == 1 ? limit : distinct_factor * limit);
    behaviour_conclude(w, test, layers == 1 ? greatest <= limit : greatest > distinct_factor * limit);
    return DEBERTA_OK;
}

/* Tests distances with unshared rows: some trial must show a difference well above rounding. */
deberta_status behaviour_test_distinct(behaviour_work *w, const char *name, distance_pair pair, deberta_error *err)
{
    double least, greatest;
    behaviour_test *test = behaviour_add_test(w, "distinct_%s", name);
    note_pair(test, pair);
    if (room_of(pair).tokens > w->options->most_tokens) {
        behaviour_skip(test, "the text would be too long");
        return DEBERTA_OK;
    }
    DEBERTA_TRY(swap_tokens(w, pair, 1, &least, &greatest, err));
    behaviour_add_number(test, "layers", 1);
    behaviour_add_number(test, "change_in_eps", greatest);
    behaviour_add_number(test, "more_than", distinct_factor * rounding_of_a_layer);
    behaviour_conclude(w, test, greatest > distinct_factor * rounding_of_a_layer);
    return DEBERTA_OK;
}

/* Tests the alias nearest to 0 on a side, and the endless one at the table's end (the same in v1). */
static bool find_aliases(const receptive_field *field, bool left, distance_pair *nearest, distance_pair *outermost)
{
    const field_row *end = left ? &field->rows[field->slots_used - 1] : &field->rows[0], *near = end;
    if (end->count < 2) return false;
    for (size_t k = 0; k < field->slots_used; k++) {
        const field_row *row = &field->rows[k];
        if (row->count < 2) continue;
        if (left && row->lowest > 0 && row->lowest < near->lowest) near = row;
        if (!left && row->highest < 0 && row->highest > near->highest) near = row;
    }
    *nearest =
        left ? (distance_pair){near->lowest, near->lowest + 1} : (distance_pair){near->highest, near->highest - 1};
    *outermost = left ? (distance_pair){end->lowest, end->lowest + 1} : (distance_pair){end->highest, end->highest - 1};
    return true;
}

deberta_status behaviour_test_side(behaviour_work *w, bool left, deberta_error *err)
{
    const char *side = left ? "left" : "right";
    const ptrdiff_t sign = left ? 1 : -1, run = (ptrdiff_t)(left ? w->field.run_left : w->field.run_right);
    char name[24];
    distance_pair nearest, outermost;
    if (find_aliases(&w->field, left, &nearest, &outermost)) {
        snprintf(name, sizeof name, "%s_nearest", side);
        DEBERTA_TRY(test_alias(w, name, nearest, 1, err));
        snprintf(name, sizeof name, "%s_outermost", side);
        if (outermost.first != nearest.first) DEBERTA_TRY(test_alias(w, name, outermost, 1, err));
        for (size_t layers = 2; layers <= w->info.layers; layers *= 2)
            DEBERTA_TRY(test_alias(w, side, nearest, layers, err));
        /* Tests the last distance of the run against the first that is not unique. */
        snprintf(name, sizeof name, "%s_end_of_run", side);
        if (run > 0) DEBERTA_TRY(behaviour_test_distinct(w, name, (distance_pair){sign * run, sign * (run + 1)}, err));
    }
    snprintf(name, sizeof name, "%s_inside_run", side);
    if (run > 1) DEBERTA_TRY(behaviour_test_distinct(w, name, (distance_pair){sign * (run - 1), sign * run}, err));
    return DEBERTA_OK;
}
