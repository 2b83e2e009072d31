/* Tests a hard window: tokens outside must not change the output, the outermost token inside must.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/behaviour_work.h"
#include "core/base/status.h"
#include "output/scope.h"

enum { MARGIN = 4 }; /* number of tokens of the text beyond the reach of a window, on each side */
/* A single token's share falls with every layer to about 1 / width of it; below this float32 cannot show it. */
static const double visible_share = 1e-6;

/* The set of displacements around 0 that n steps of unambiguous distances can make. */
typedef struct composed_set {
    uint8_t *has; /* [2 reach + 1] */
    ptrdiff_t reach, lowest, highest;
} composed_set;

static bool is_step(const receptive_field *field, bool run_only, size_t k)
{
    return !run_only ||
           (field->unique[k] <= (ptrdiff_t)field->run_left && -field->unique[k] <= (ptrdiff_t)field->run_right);
}

/* Composes the set step by step, independently of receptive_field_compose, so that both can be compared. */
static void compose_set(composed_set *set, const receptive_field *field, bool run_only, size_t layers)
{
    const ptrdiff_t widest = largest(field->unique_max, -field->unique_min);
    *set = (composed_set){.reach = widest * (ptrdiff_t)layers};
    const size_t size = 2 * (size_t)set->reach + 1;
    uint8_t *from = memory_take(size, 1), *to = memory_take(size, 1);
    from[set->reach] = 1;
    for (size_t n = 0; n < layers; n++) {
        memset(to, 0, size);
        for (size_t a = 0; a < size; a++)
            for (size_t k = 0; from[a] && k < field->unique_count; k++)
                if (is_step(field, run_only, k)) to[(ptrdiff_t)a + field->unique[k]] = 1;
        uint8_t *swap = from;
        from = to;
        to = swap;
    }
    free(to);
    set->has = from;
    for (size_t a = 0; a < size; a++) {
        if (!from[a]) continue;
        set->lowest = smallest(set->lowest, (ptrdiff_t)a - set->reach);
        set->highest = largest(set->highest, (ptrdiff_t)a - set->reach);
    }
}

static bool has_nan(const float *row, size_t h)
{
    for (size_t c = 0; c < h; c++)
        if (isnan(row[c])) return true;
    return false;
}

static size_t differing_values(const float *a, const float *b, size_t h)
{
    size_t count = 0;
    for (size_t c = 0; c < h; c++) count += memcmp(&a[c], &b[c], sizeof *a) != 0;
    return count;
}

/* State shared by the tests of one window and number of layers. */
typedef struct window_case {
    behaviour_work *work;
    deberta_session *session;
    poison *poison;
    const composed_set *set;
    size_t tokens, query, layers;
    double share; /* approximate share of the outermost token in the output */
    const char *name;
    float *before, *after; /* [h] */
} window_case;

/* Tests the outside of the set: other tokens, then NaN, everywhere. */
static deberta_status test_outside(window_case *c, deberta_error *err)
{
    behaviour_work *w = c->work;
    const size_t h = w->info.hidden_size;
    const poison outside = {.query = c->query, .set = c->set->has, .set_reach = c->set->reach, .active = true};
    size_t changed = 0;
    for (size_t t = 0; t < c->tokens; t++) {
        if (behaviour_is_inside(&outside, (ptrdiff_t)c->query - (ptrdiff_t)t)) continue;
        w->ids[t] = behaviour_other_token(w, w->ids[t], t);
        changed++;
    }
    behaviour_test *test = behaviour_add_test(w, "window_%s_layers_%zu_outside", c->name, c->layers);
    DEBERTA_TRY(behaviour_output_of(c->session, w, c->tokens, c->query, c->after, err));
    behaviour_add_number(test, "layers", (double)c->layers);
    behaviour_add_number(test, "changed_tokens", (double)changed);
    behaviour_add_number(test, "differing_values", (double)differing_values(c->before, c->after, h));
    behaviour_conclude(w, test, differing_values(c->before, c->after, h) == 0 && changed >= 2 * MARGIN);

    test = behaviour_add_test(w, "window_%s_layers_%zu_nan_outside", c->name, c->layers);
    *c->poison = outside;
    DEBERTA_TRY(behaviour_output_of(c->session, w, c->tokens, c->query, c->after, err));
    c->poison->active = false;
    behaviour_add_number(test, "layers", (double)c->layers);
    behaviour_add_number(test, "nan_tokens", (double)changed);
    behaviour_add_number(test, "differing_values", (double)differing_values(c->before, c->after, h));
    behaviour_conclude(w, test, differing_values(c->before, c->after, h) == 0);
    behaviour_make_text(w, c->tokens);
    return DEBERTA_OK;
}

/* Tests the outermost token inside on one side: puts another token there, and then a NaN, which rounding cannot hide.
 */
static deberta_status test_inside(window_case *c, bool left, deberta_error *err)
{
    behaviour_work *w = c->work;
    const size_t h = w->info.hidden_size;
    const ptrdiff_t displacement = left ? c->set->highest : c->set->lowest;
    behaviour_test *test =
        behaviour_add_test(w, "window_%s_layers_%zu_%s_edge", c->name, c->layers, left ? "left" : "right");
    int32_t *token = &w->ids[(ptrdiff_t)c->query - displacement];
    const int32_t kept = *token;
    *token = behaviour_other_token(w, kept, 5);
    DEBERTA_TRY(behaviour_output_of(c->session, w, c->tokens, c->query, c->after, err));
    *token = kept;
    const size_t differing = differing_values(c->before, c->after, h);
    behaviour_add_number(test, "layers", (double)c->layers);
    behaviour_add_number(test, "displacement", (double)displacement);
    behaviour_add_number(test, "differing_values", (double)differing);
    behaviour_add_number(test, "change_in_eps", behaviour_change_between(c->before, c->after, h));
    *c->poison = (poison){.query = c->query, .only = displacement, .active = true};
    DEBERTA_TRY(behaviour_output_of(c->session, w, c->tokens, c->query, c->after, err));
    c->poison->active = false;
    behaviour_add_number(test, "nan_arrives", has_nan(c->after, h));
    behaviour_conclude(w, test, has_nan(c->after, h) && (differing > 0 || c->share < visible_share));
    return DEBERTA_OK;
}

static void skip_window(behaviour_work *w, const window_case *c, const char *why)
{
    behaviour_test *test = behaviour_add_test(w, "window_%s_layers_%zu", c->name, c->layers);
    behaviour_add_number(test, "tokens_needed", (double)c->tokens);
    behaviour_skip(test, why);
}

deberta_status behaviour_test_window(behaviour_work *w, bool run_only, size_t layers, deberta_error *err)
{
    const char *name = run_only ? "run" : "unique_set";
    const size_t h = w->info.hidden_size;
    composed_set set = {0};
    poison poisoned = {0};
    deberta_session *session = NULL;
    deberta_status status = DEBERTA_OK;
    uint8_t *rows = memory_take(2 * w->rule.span, 1);
    float *outputs = memory_take(2 * h, sizeof *outputs);
    compose_set(&set, &w->field, run_only, layers);
    window_case c = {.work = w,
                     .poison = &poisoned,
                     .set = &set,
                     .layers = layers,
                     .name = name,
                     .before = outputs,
                     .after = outputs + h};
    c.query = (size_t)set.highest + MARGIN;
    c.tokens = c.query + 1 + (size_t)-set.lowest + MARGIN;
    c.share = pow(1 / (double)w->field.unique_count, (double)layers);
    if (c.tokens > w->options->most_tokens) {
        skip_window(w, &c, "the text would be too long");
        goto fail;
    }
    for (size_t k = 0; k < w->field.unique_count; k++)
        if (is_step(&w->field, run_only, k)) rows[position_row(&w->rule, w->field.unique[k])] = 1;
    const key_window window = {.left = (ptrdiff_t)c.tokens, .right = (ptrdiff_t)c.tokens, .rows = rows};
    behaviour_make_text(w, c.tokens);
    status = behaviour_open_session(&session, w, c.tokens, layers, &window, &poisoned, err);
    if (status == DEBERTA_E_UNSUPPORTED) {
        skip_window(w, &c,
                    w->ablation_count ? "the window does not cover ablations"
                                      : "the window does not cover talking heads");
        status = DEBERTA_OK;
    }
    if (!session) goto fail;
    c.session = session;
    DEBERTA_TRY_OR_FAIL(status, behaviour_output_of(session, w, c.tokens, c.query, c.before, err));
    DEBERTA_TRY_OR_FAIL(status, test_outside(&c, err));
    DEBERTA_TRY_OR_FAIL(status, test_inside(&c, true, err));
    DEBERTA_TRY_OR_FAIL(status, test_inside(&c, false, err));
fail:
    deberta_session_free(&session);
    free(set.has);
    free(outputs);
    free(rows);
    return status;
}
