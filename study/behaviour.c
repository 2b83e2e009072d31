/* SPDX-License-Identifier: MIT */
#include "study/behaviour.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/model/session_internal_options.h"
#include "study/receptive_field.h"

enum {
    TRIALS = 4, /* pairs of tokens that change places: aliases must hide all of them, a distinction shows with one */
    MARGIN = 4, /* tokens of the text beyond what a window reaches, on each side */
};
/* Rounding of a layer in eps times the largest magnitude, as `verify` allows it; and how far above it a change must be
 * to count. */
static const double rounding_of_a_layer = 64, distinct_factor = 8;
/* A single token's share falls with every layer to about 1 / width of it; below this float32 cannot show it. */
static const double visible_share = 1e-6;

typedef struct behaviour_work {
    const behaviour_options *options;
    behaviour_report *report;
    deberta_model *model;
    deberta_model_info info;
    position_rule rule;
    receptive_field field;
    size_t done, total;
    int32_t *ids, *positions; /* [capacity]; positions are all 0: the same for every token */
    size_t capacity;
} behaviour_work;

/* ---------------------------------------------------------------------------------------------------------- report */

static behaviour_test *add_test(behaviour_work *w, deberta_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static behaviour_test *add_test(behaviour_work *w, deberta_error *err, const char *format, ...)
{
    behaviour_report *report = w->report;
    if (report->count == report->capacity) {
        const size_t capacity = report->capacity ? 2 * report->capacity : 16;
        behaviour_test *grown = realloc(report->tests, capacity * sizeof *grown);
        if (!grown) {
            status_fail(err, DEBERTA_E_MEMORY, "no memory for %zu tests", capacity);
            return NULL;
        }
        report->tests = grown;
        report->capacity = capacity;
    }
    behaviour_test *test = &report->tests[report->count++];
    *test = (behaviour_test){0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(test->name, sizeof test->name, format, arguments);
    va_end(arguments);
    if (w->options->progress) w->options->progress(w->options->context, w->done, w->total, test->name);
    w->done++;
    return test;
}

static void add_number(behaviour_test *test, const char *name, double value)
{
    if (test->number_count < BEHAVIOUR_NUMBERS) test->numbers[test->number_count++] = (behaviour_number){name, value};
}

static void conclude(behaviour_work *w, behaviour_test *test, bool passed)
{
    test->passed = passed;
    w->report->failures += !passed;
}

static void skip(behaviour_test *test, const char *why)
{
    test->skipped = why;
    test->passed = true;
}

void behaviour_report_free(behaviour_report *report)
{
    free(report->tests);
    *report = (behaviour_report){0};
}

/* ----------------------------------------------------------------------------------------------------------- texts */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int32_t token_at(const behaviour_work *w, uint64_t place)
{
    return (int32_t)(mix(w->options->seed * 0x9e3779b97f4a7c15u + place) % w->info.vocabulary_size);
}

/* Another token than the one there. */
static int32_t other_token(const behaviour_work *w, int32_t token, uint64_t trial)
{
    const int32_t other = token_at(w, 1000000007u * (trial + 1));
    return other != token ? other : (int32_t)(((size_t)token + 1) % w->info.vocabulary_size);
}

static deberta_status make_text(behaviour_work *w, size_t tokens, deberta_error *err)
{
    if (tokens > w->capacity) {
        int32_t *ids = realloc(w->ids, tokens * sizeof *ids), *positions = NULL;
        if (ids) w->ids = ids;
        if (ids) positions = realloc(w->positions, tokens * sizeof *positions);
        if (!positions) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a text of %zu tokens", tokens);
        w->positions = positions;
        w->capacity = tokens;
    }
    for (size_t t = 0; t < tokens; t++) w->ids[t] = token_at(w, t);
    memset(w->positions, 0, tokens * sizeof *w->positions);
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- encoding */

/* Tokens whose H[0] becomes NaN: one, or all that a set of displacements from `query` leaves out. */
typedef struct poison {
    size_t query;
    ptrdiff_t only;      /* a displacement i - j, if set is NULL */
    const uint8_t *set;  /* by displacement; the ones outside are poisoned */
    ptrdiff_t set_reach; /* set covers -set_reach ... set_reach */
    bool active;
} poison;

static bool is_inside(const poison *p, ptrdiff_t displacement)
{
    return displacement >= -p->set_reach && displacement <= p->set_reach && p->set[displacement + p->set_reach];
}

static void apply_poison(void *context, float *rows, size_t tokens, size_t stride)
{
    const poison *p = context;
    for (size_t t = 0; p->active && t < tokens; t++) {
        const ptrdiff_t displacement = (ptrdiff_t)p->query - (ptrdiff_t)t;
        if (p->set ? is_inside(p, displacement) : displacement != p->only) continue;
        for (size_t c = 0; c < stride; c++) rows[t * stride + c] = NAN;
    }
}

static deberta_status open_session(deberta_session **session, const behaviour_work *w, size_t tokens, size_t layers,
                                   const key_window *window, poison *p, deberta_error *err)
{
    const deberta_session_options options = {.struct_size = sizeof options,
                                             .isa = w->options->isa,
                                             .max_tokens = tokens,
                                             .threads = w->options->threads,
                                             .memory_limit_bytes = w->options->memory_limit_bytes};
    session_internal_options internal = {.layers = layers};
    if (window) internal.window = *window;
    if (p) {
        internal.edit_input = apply_poison;
        internal.edit_context = p;
    }
    return session_create_internal(session, w->model, &options, &internal, err);
}

/* The output of one token into row [h]. */
static deberta_status output_of(deberta_session *session, const behaviour_work *w, size_t tokens, size_t query,
                                float *row, deberta_error *err)
{
    const size_t starts[2] = {0, tokens};
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = w->ids,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .position_ids = w->positions};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(deberta_encode(session, &batch, &outputs, err));
    memcpy(row, outputs.hidden + query * outputs.hidden_stride, w->info.hidden_size * sizeof *row);
    return DEBERTA_OK;
}

/* Largest difference in eps times the largest magnitude. */
static double change_between(const float *a, const float *b, size_t h)
{
    double change = 0, largest = 1e-30;
    for (size_t c = 0; c < h; c++) {
        change = fmax(change, fabs((double)a[c] - (double)b[c]));
        largest = fmax(largest, fabs((double)a[c]));
    }
    return change / largest / (double)FLT_EPSILON;
}

/* ----------------------------------------------------------------------------------------------------- changing places */

/* Two distances whose tokens change places. */
typedef struct distance_pair {
    ptrdiff_t first, second;
} distance_pair;

static ptrdiff_t smallest(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static ptrdiff_t largest(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

/* Changes of the query's output over some trials, in rounding units: the least and the greatest. The text is as short
 * as the distances allow. */
static deberta_status swap_tokens(behaviour_work *w, distance_pair pair, size_t layers, double *least, double *greatest,
                                  deberta_error *err)
{
    const ptrdiff_t left = largest(largest(pair.first, pair.second), 0),
                    right = -smallest(smallest(pair.first, pair.second), 0);
    const size_t tokens = (size_t)(left + right) + 1, query = (size_t)left, h = w->info.hidden_size;
    deberta_session *session = NULL;
    deberta_status status;
    float *before = malloc(2 * h * sizeof *before), *after = before ? before + h : NULL;
    if (!before) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    *least = INFINITY;
    *greatest = 0;
    DEBERTA_TRY_OR_FAIL(status, make_text(w, tokens, err));
    DEBERTA_TRY_OR_FAIL(status, open_session(&session, w, tokens, layers, NULL, NULL, err));
    int32_t *one = &w->ids[(ptrdiff_t)query - pair.first], *two = &w->ids[(ptrdiff_t)query - pair.second];
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        const int32_t token = *one = token_at(w, 77777 + trial), other = *two = other_token(w, token, trial);
        DEBERTA_TRY_OR_FAIL(status, output_of(session, w, tokens, query, before, err));
        *one = other;
        *two = token;
        DEBERTA_TRY_OR_FAIL(status, output_of(session, w, tokens, query, after, err));
        const double change = change_between(before, after, h);
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
    add_number(test, "first_distance", (double)pair.first);
    add_number(test, "second_distance", (double)pair.second);
}

/* Same row: no trial may show a difference, in one layer. With more layers it must, and that is the expected result. */
static deberta_status test_alias(behaviour_work *w, const char *name, distance_pair pair, size_t layers,
                                 deberta_error *err)
{
    double least, greatest;
    const double limit = rounding_of_a_layer * (double)layers;
    behaviour_test *test = add_test(w, err, layers == 1 ? "alias_%s" : "global_alias_%s_layers_%zu", name, layers);
    if (!test) return DEBERTA_E_MEMORY;
    note_pair(test, pair);
    if ((size_t)labs(pair.first) + 2 > w->options->most_tokens) {
        skip(test, "the text would be too long");
        return DEBERTA_OK;
    }
    DEBERTA_TRY(swap_tokens(w, pair, layers, &least, &greatest, err));
    add_number(test, "layers", (double)layers);
    add_number(test, "change_in_eps", greatest);
    add_number(test, layers == 1 ? "at_most" : "more_than", layers == 1 ? limit : distinct_factor * limit);
    conclude(w, test, layers == 1 ? greatest <= limit : greatest > distinct_factor * limit);
    return DEBERTA_OK;
}

/* Rows of their own: some trial must show a difference well above rounding. */
static deberta_status test_distinct(behaviour_work *w, const char *name, distance_pair pair, deberta_error *err)
{
    double least, greatest;
    behaviour_test *test = add_test(w, err, "distinct_%s", name);
    if (!test) return DEBERTA_E_MEMORY;
    note_pair(test, pair);
    if ((size_t)labs(pair.first) + (size_t)labs(pair.second) + 2 > w->options->most_tokens) {
        skip(test, "the text would be too long");
        return DEBERTA_OK;
    }
    DEBERTA_TRY(swap_tokens(w, pair, 1, &least, &greatest, err));
    add_number(test, "layers", 1);
    add_number(test, "change_in_eps", greatest);
    add_number(test, "more_than", distinct_factor * rounding_of_a_layer);
    conclude(w, test, greatest > distinct_factor * rounding_of_a_layer);
    return DEBERTA_OK;
}

/* The alias nearest to 0 on a side, and the endless one at the table's end (the same in v1). */
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

static deberta_status test_side(behaviour_work *w, bool left, deberta_error *err)
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
        /* The last distance of the run against the first that is not unique. */
        snprintf(name, sizeof name, "%s_end_of_run", side);
        if (run > 0) DEBERTA_TRY(test_distinct(w, name, (distance_pair){sign * run, sign * (run + 1)}, err));
    }
    snprintf(name, sizeof name, "%s_inside_run", side);
    if (run > 1) DEBERTA_TRY(test_distinct(w, name, (distance_pair){sign * (run - 1), sign * run}, err));
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------- hard window */

/* Which displacements n steps of unambiguous distances can make, around 0. */
typedef struct composed_set {
    uint8_t *has; /* [2 reach + 1] */
    ptrdiff_t reach, lowest, highest;
} composed_set;

static bool is_step(const receptive_field *field, bool run_only, size_t k)
{
    return !run_only ||
           (field->unique[k] <= (ptrdiff_t)field->run_left && -field->unique[k] <= (ptrdiff_t)field->run_right);
}

/* By steps, not as in receptive_field_compose: a second way to the same set. */
static deberta_status compose_set(composed_set *set, const receptive_field *field, bool run_only, size_t layers,
                                  deberta_error *err)
{
    const ptrdiff_t widest = largest(field->unique_max, -field->unique_min);
    *set = (composed_set){.reach = widest * (ptrdiff_t)layers};
    const size_t size = 2 * (size_t)set->reach + 1;
    uint8_t *from = calloc(size, 1), *to = calloc(size, 1);
    if (!from || !to) {
        free(from);
        free(to);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu displacements", size);
    }
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
    return DEBERTA_OK;
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

/* What the tests of one window and number of layers share. */
typedef struct window_case {
    behaviour_work *work;
    deberta_session *session;
    poison *poison;
    const composed_set *set;
    size_t tokens, query, layers;
    double share; /* of the outermost token in the output, about */
    const char *name;
    float *before, *after; /* [h] */
} window_case;

/* Other tokens, then NaN, everywhere outside the set. */
static deberta_status test_outside(window_case *c, deberta_error *err)
{
    behaviour_work *w = c->work;
    const size_t h = w->info.hidden_size;
    const poison outside = {.query = c->query, .set = c->set->has, .set_reach = c->set->reach, .active = true};
    size_t changed = 0;
    for (size_t t = 0; t < c->tokens; t++) {
        if (is_inside(&outside, (ptrdiff_t)c->query - (ptrdiff_t)t)) continue;
        w->ids[t] = other_token(w, w->ids[t], t);
        changed++;
    }
    behaviour_test *test = add_test(w, err, "window_%s_layers_%zu_outside", c->name, c->layers);
    if (!test) return DEBERTA_E_MEMORY;
    DEBERTA_TRY(output_of(c->session, w, c->tokens, c->query, c->after, err));
    add_number(test, "layers", (double)c->layers);
    add_number(test, "changed_tokens", (double)changed);
    add_number(test, "differing_values", (double)differing_values(c->before, c->after, h));
    conclude(w, test, differing_values(c->before, c->after, h) == 0 && changed >= 2 * MARGIN);

    test = add_test(w, err, "window_%s_layers_%zu_nan_outside", c->name, c->layers);
    if (!test) return DEBERTA_E_MEMORY;
    *c->poison = outside;
    DEBERTA_TRY(output_of(c->session, w, c->tokens, c->query, c->after, err));
    c->poison->active = false;
    add_number(test, "layers", (double)c->layers);
    add_number(test, "nan_tokens", (double)changed);
    add_number(test, "differing_values", (double)differing_values(c->before, c->after, h));
    conclude(w, test, differing_values(c->before, c->after, h) == 0);
    return make_text(w, c->tokens, err);
}

/* The outermost token inside on one side: another token there, and a NaN, which no rounding can swallow on its way. */
static deberta_status test_inside(window_case *c, bool left, deberta_error *err)
{
    behaviour_work *w = c->work;
    const size_t h = w->info.hidden_size;
    const ptrdiff_t displacement = left ? c->set->highest : c->set->lowest;
    behaviour_test *test =
        add_test(w, err, "window_%s_layers_%zu_%s_edge", c->name, c->layers, left ? "left" : "right");
    if (!test) return DEBERTA_E_MEMORY;
    int32_t *token = &w->ids[(ptrdiff_t)c->query - displacement];
    const int32_t kept = *token;
    *token = other_token(w, kept, 5);
    DEBERTA_TRY(output_of(c->session, w, c->tokens, c->query, c->after, err));
    *token = kept;
    const size_t differing = differing_values(c->before, c->after, h);
    add_number(test, "layers", (double)c->layers);
    add_number(test, "displacement", (double)displacement);
    add_number(test, "differing_values", (double)differing);
    add_number(test, "change_in_eps", change_between(c->before, c->after, h));
    *c->poison = (poison){.query = c->query, .only = displacement, .active = true};
    DEBERTA_TRY(output_of(c->session, w, c->tokens, c->query, c->after, err));
    c->poison->active = false;
    add_number(test, "nan_arrives", has_nan(c->after, h));
    conclude(w, test, has_nan(c->after, h) && (differing > 0 || c->share < visible_share));
    return DEBERTA_OK;
}

static deberta_status skip_window(behaviour_work *w, const window_case *c, const char *why, deberta_error *err)
{
    behaviour_test *test = add_test(w, err, "window_%s_layers_%zu", c->name, c->layers);
    if (!test) return DEBERTA_E_MEMORY;
    add_number(test, "tokens_needed", (double)c->tokens);
    skip(test, why);
    return DEBERTA_OK;
}

static deberta_status test_window(behaviour_work *w, bool run_only, size_t layers, deberta_error *err)
{
    const char *name = run_only ? "run" : "unique_set";
    const size_t h = w->info.hidden_size;
    composed_set set = {0};
    poison poisoned = {0};
    deberta_session *session = NULL;
    deberta_status status;
    uint8_t *rows = calloc(2 * w->rule.span, 1);
    float *outputs = malloc(2 * h * sizeof *outputs);
    if (!rows || !outputs) {
        status = status_fail(err, DEBERTA_E_MEMORY, "out of memory");
        goto fail;
    }
    DEBERTA_TRY_OR_FAIL(status, compose_set(&set, &w->field, run_only, layers, err));
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
        status = skip_window(w, &c, "the text would be too long", err);
        goto fail;
    }
    for (size_t k = 0; k < w->field.unique_count; k++)
        if (is_step(&w->field, run_only, k)) rows[position_row(&w->rule, w->field.unique[k])] = 1;
    const key_window window = {
        .enabled = true, .left = (ptrdiff_t)c.tokens, .right = (ptrdiff_t)c.tokens, .rows = rows};
    DEBERTA_TRY_OR_FAIL(status, make_text(w, c.tokens, err));
    status = open_session(&session, w, c.tokens, layers, &window, &poisoned, err);
    if (status == DEBERTA_E_UNSUPPORTED) status = skip_window(w, &c, "the window does not cover talking heads", err);
    if (!session) goto fail;
    c.session = session;
    DEBERTA_TRY_OR_FAIL(status, output_of(session, w, c.tokens, c.query, c.before, err));
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

/* ------------------------------------------------------------------------------------------------------------- all */

static deberta_status run_tests(behaviour_work *w, deberta_error *err)
{
    DEBERTA_TRY(receptive_field_make(&w->field, &w->rule, 0, err));
    /* Ordinary distances, near and on both sides, which every model must tell apart. */
    DEBERTA_TRY(test_distinct(w, "neighbours", (distance_pair){1, 2}, err));
    DEBERTA_TRY(test_distinct(w, "sides", (distance_pair){1, -1}, err));
    DEBERTA_TRY(test_side(w, true, err));
    DEBERTA_TRY(test_side(w, false, err));
    for (size_t layers = 1; layers <= w->info.layers; layers *= 2) {
        DEBERTA_TRY(test_window(w, true, layers, err));
        const bool same = w->field.unique_count == w->field.run_left + w->field.run_right + 1;
        if (!same) DEBERTA_TRY(test_window(w, false, layers, err));
    }
    return DEBERTA_OK;
}

/* For the progress only. */
static size_t estimate_tests(const behaviour_options *options)
{
    size_t levels = 0;
    for (size_t layers = 1; layers <= options->most_layers; layers *= 2) levels++;
    return 8 + 2 * levels + 2 * 4 * levels;
}

deberta_status behaviour_run(behaviour_report *report, const behaviour_options *options, deberta_error *err)
{
    behaviour_work w = {.options = options, .report = report, .total = estimate_tests(options)};
    const deberta_model_options model_options = {.struct_size = sizeof model_options,
                                                 .reference = options->reference,
                                                 .threads = options->threads,
                                                 .memory_limit_bytes = options->memory_limit_bytes,
                                                 .layers = options->most_layers};
    deberta_status status = model_open_mutated(&w.model, options->model, &model_options, options->mutation, err);
    if (status == DEBERTA_OK) {
        deberta_model_describe(w.model, &w.info);
        w.rule = (position_rule){.span = w.info.relative_rows / 2,
                                 .buckets = w.info.position_buckets,
                                 .max_distance = w.info.max_relative_positions,
                                 .clamp_distance = options->reference == DEBERTA_REFERENCE_MICROSOFT};
        status = run_tests(&w, err);
    }
    receptive_field_free(&w.field);
    free(w.ids);
    free(w.positions);
    deberta_model_free(&w.model);
    return status;
}
