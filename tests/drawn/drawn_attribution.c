/* Checks attributions of drawn texts: along drawn directions against central differences of the reference model, which
 * is moved along the same way in float64, and the same bits from every tier and number of threads.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/status.h"
#include "core/model/positions.h"
#include "output/scope.h"
#include "tests/drawn/drawn_run.h"
#include "train/attribution/gauss_legendre.h"

/* A text of more tokens takes the reference too long. */
enum { MOST_TOKENS = 40, STEPS = 5 };

/* Errors are in units of a share of all attributions' sizes and of the answer's; a gradient may cancel. */
static const double attribution_limit = 2e-5, value_limit = 1e-5;
static const double difference_step = 1e-4, nearer_difference = 1e-5, kink_limit = 1e-4;

/* ---------------------------------------------------------------------------------------------------- what is asked for */

typedef struct asked_attribution {
    deberta_attribution_options options;
    scope memory;
    int64_t *reference_ids, *reference_baseline; /* [n]: as the reference model wants them; no word is word 0 */
    reference_input input;
} asked_attribution;

static deberta_task head_of(exact_task task)
{
    switch (task) {
    case EXACT_WORDS: return DEBERTA_TASK_MLM;
    case EXACT_WORDS_DECODED: return DEBERTA_TASK_MLM_EMD;
    case EXACT_REPLACED: return DEBERTA_TASK_RTD;
    case EXACT_TOKENS: return DEBERTA_TASK_TOKEN;
    case EXACT_ANSWERS: return DEBERTA_TASK_QA;
    default: return DEBERTA_TASK_SEQUENCE;
    }
}

static bool drawn_attribution_applies(const drawn_run *run)
{
    const drawn_case *drawn = run->drawn;
    return !drawn->model.config.talking_heads && drawn->batch.task != EXACT_ANSWERS &&
           exact_length(&drawn->batch, 0) <= MOST_TOKENS;
}

static int32_t draw_baseline(const drawn_case *drawn, int32_t id, uint64_t *state)
{
    switch (random_below(state, 4)) {
    case 0: return id;
    case 1: return -1;
    default: return (int32_t)random_below(state, drawn->model.config.vocabulary_size);
    }
}

static size_t draw_token(const exact_batch *batch, size_t n, uint64_t *state)
{
    size_t token = random_below(state, n);
    while (!batch->mask[token]) token = (token + 1) % n;
    return token;
}

static void fill_texts(asked_attribution *asked, const drawn_case *drawn, uint64_t *state)
{
    const exact_batch *batch = &drawn->batch;
    const size_t n = exact_length(batch, 0);
    int32_t *ids = scope_take(&asked->memory, n, sizeof *ids), *types = scope_take(&asked->memory, n, sizeof *types),
            *positions = scope_take(&asked->memory, n, sizeof *positions),
            *baseline = scope_take(&asked->memory, n, sizeof *baseline);
    asked->reference_baseline = scope_take(&asked->memory, n, sizeof *asked->reference_baseline);
    for (size_t t = 0; t < n; t++) {
        ids[t] = (int32_t)batch->ids[t];
        if (batch->types) types[t] = (int32_t)batch->types[t];
        if (batch->positions) positions[t] = (int32_t)batch->positions[t];
        baseline[t] = draw_baseline(drawn, ids[t], state);
        asked->reference_baseline[t] = baseline[t] < 0 ? 0 : baseline[t];
    }
    deberta_attribution_options *o = &asked->options;
    o->tokens = n;
    o->ids = ids;
    o->baseline_ids = baseline;
    o->token_types = batch->types ? types : NULL;
    o->position_ids = batch->positions ? positions : NULL;
    o->mask = batch->mask;
}

static asked_attribution ask(const drawn_case *drawn)
{
    asked_attribution asked = {.options = DEBERTA_ATTRIBUTION_DEFAULTS, .input = exact_input(&drawn->batch, 0)};
    deberta_attribution_options *o = &asked.options;
    uint64_t state = drawn->seed * 0x9E3779B1u + drawn->number;
    fill_texts(&asked, drawn, &state);
    o->task = head_of(drawn->batch.task);
    o->token = draw_token(&drawn->batch, o->tokens, &state);
    const bool words = o->task == DEBERTA_TASK_MLM || o->task == DEBERTA_TASK_MLM_EMD;
    const size_t width = words ? drawn->model.config.vocabulary_size : o->task == DEBERTA_TASK_RTD ? 1 : 0;
    o->answer = width ? random_below(&state, width) : 0;
    o->log_probability = random_below(&state, 3) == 0;
    if (!o->log_probability && width > 1 && random_below(&state, 2)) o->contrast = random_below(&state, width);
    o->parts = random_below(&state, 2) ? DEBERTA_ATTRIBUTE_ALL : 1 + (unsigned)random_below(&state, 7);
    o->method = random_below(&state, 4) ? DEBERTA_INTEGRATED_GRADIENTS : DEBERTA_GRADIENT_INPUT;
    o->steps = o->method == DEBERTA_GRADIENT_INPUT ? 1 : STEPS;
    return asked;
}

/* -------------------------------------------------------------------------------------------------- the way in float64 */

/* Directions that attributions are summed along, each with drawn signs. */
typedef enum direction { ALONG_WORDS, ALONG_POSITIONS, ALONG_TYPES, ALONG_DISTANCES, DIRECTIONS } direction;
static const char *const direction_names[] = {"words", "positions", "token types", "distances"};

typedef struct exact_way {
    const asked_attribution *asked;
    reference_model *model;
    reference_source source;                             /* the model's own */
    double words_factor, positions_factor, types_factor; /* of tables' rows as they are read */
    size_t width, rows;                                  /* h, 2K */
    double *text, *parts[ALONG_DISTANCES];               /* [n][h] */
    double *table, *table_way;                           /* [2K][h]: R, and from the mean to it */
    double *signs, *row_signs;                           /* [n], [2K] */
    double *hidden, *logits;
} exact_way;

static deberta_status read_scaled(void *context, const char *name, size_t first, size_t count, double *values,
                                  deberta_error *err)
{
    const exact_way *way = context;
    double factor = 1;
    DEBERTA_TRY(way->source.read(way->source.context, name, first, count, values, err));
    if (strcmp(name, "embeddings.word_embeddings.weight") == 0) factor = way->words_factor;
    if (strcmp(name, "embeddings.position_embeddings.weight") == 0) factor = way->positions_factor;
    if (strcmp(name, "embeddings.token_type_embeddings.weight") == 0) factor = way->types_factor;
    for (size_t e = 0; e < count; e++) values[e] *= factor;
    return DEBERTA_OK;
}

static bool find_own(void *context, const char *name, size_t *rank, size_t shape[TENSOR_MAX_RANK])
{
    const exact_way *way = context;
    return way->source.find(way->source.context, name, rank, shape);
}

/* What the embeddings lose without one table: its part of them. to: [n][h] */
static deberta_status find_part(exact_way *way, double *factor, double *to, deberta_error *err)
{
    *factor = 0;
    const deberta_status status = reference_embedded(way->model, &way->asked->input, to, err);
    *factor = 1;
    for (size_t e = 0; e < way->asked->options.tokens * way->width; e++) to[e] = way->text[e] - to[e];
    return status;
}

/* From the baseline's words to the text's. */
static deberta_status find_words(exact_way *way, double *memory, deberta_error *err)
{
    reference_input baseline = way->asked->input;
    baseline.ids = way->asked->reference_baseline;
    DEBERTA_TRY(find_part(way, &way->words_factor, way->parts[ALONG_WORDS], err));
    DEBERTA_TRY(reference_embedded(way->model, &baseline, memory, err));
    for (size_t t = 0; t < way->asked->options.tokens; t++)
        for (size_t c = 0; way->asked->options.baseline_ids[t] >= 0 && c < way->width; c++)
            way->parts[ALONG_WORDS][t * way->width + c] = way->text[t * way->width + c] - memory[t * way->width + c];
    return DEBERTA_OK;
}

static void find_table_way(exact_way *way)
{
    const ptrdiff_t n = (ptrdiff_t)way->asked->options.tokens;
    const position_rule rule = position_rule_make(&way->model->config, way->model->distances);
    for (size_t c = 0; way->rows > 0 && c < way->width; c++) {
        double sum = 0;
        size_t count = 0;
        for (ptrdiff_t distance = 1 - n, last = -1; distance < n; distance++) {
            const size_t row = position_row(&rule, distance);
            if ((ptrdiff_t)row == last) continue; /* rows of neighbours never go down */
            sum += way->table[row * way->width + c];
            count++;
            last = (ptrdiff_t)row;
        }
        for (size_t row = 0; row < way->rows; row++)
            way->table_way[row * way->width + c] = way->table[row * way->width + c] - sum / (double)count;
    }
}

static void take_memory(exact_way *way, scope *memory)
{
    const size_t n = way->asked->options.tokens, cells = n * way->width;
    const size_t width = reference_head_width(way->model, way->asked->options.task);
    way->text = scope_take(memory, cells, sizeof(double));
    for (direction d = ALONG_WORDS; d < ALONG_DISTANCES; d++) way->parts[d] = scope_take(memory, cells, sizeof(double));
    way->table = scope_take(memory, way->rows * way->width + 1, sizeof(double));
    way->table_way = scope_take(memory, way->rows * way->width + 1, sizeof(double));
    way->signs = scope_take(memory, n, sizeof(double));
    way->row_signs = scope_take(memory, way->rows + 1, sizeof(double));
    way->hidden = scope_take(memory, (way->model->config.layers + 1) * cells, sizeof(double));
    way->logits = scope_take(memory, n * width, sizeof(double));
}

static deberta_status begin_way(exact_way *way, scope *memory, uint64_t seed, deberta_error *err)
{
    const size_t n = way->asked->options.tokens;
    uint64_t state = seed;
    way->words_factor = way->positions_factor = way->types_factor = 1;
    way->width = way->model->config.hidden_size;
    way->rows = way->model->relative ? 2 * position_rule_make(&way->model->config, way->model->distances).span : 0;
    way->source = way->model->source;
    way->model->source = (reference_source){way, find_own, read_scaled};
    take_memory(way, memory);
    if (way->rows) memcpy(way->table, way->model->relative, way->rows * way->width * sizeof(double));
    for (size_t t = 0; t < n; t++) way->signs[t] = random_below(&state, 2) ? 1 : -1;
    for (size_t row = 0; row < way->rows; row++) way->row_signs[row] = random_below(&state, 2) ? 1 : -1;
    DEBERTA_TRY(reference_embedded(way->model, &way->asked->input, way->text, err));
    DEBERTA_TRY(find_part(way, &way->positions_factor, way->parts[ALONG_POSITIONS], err));
    DEBERTA_TRY(find_part(way, &way->types_factor, way->parts[ALONG_TYPES], err));
    DEBERTA_TRY(find_words(way, way->hidden, err));
    find_table_way(way);
    return DEBERTA_OK;
}

static unsigned part_of(direction d)
{
    return d == ALONG_WORDS       ? DEBERTA_ATTRIBUTE_WORDS
           : d == ALONG_DISTANCES ? DEBERTA_ATTRIBUTE_DISTANCES
                                  : DEBERTA_ATTRIBUTE_POSITIONS;
}

static bool way_changes(const exact_way *way, direction d) { return way->asked->options.parts & part_of(d); }

/* The answer from its row of logits. */
static double exact_answer(const exact_way *way)
{
    const deberta_attribution_options *o = &way->asked->options;
    const size_t width = reference_head_width(way->model, o->task);
    const double *logits = way->logits + (o->task == DEBERTA_TASK_SEQUENCE ? 0 : o->token * width);
    const bool alone =
        width == 1 || (o->task == DEBERTA_TASK_SEQUENCE && way->model->config.problem == DEBERTA_PROBLEM_MULTI_LABEL);
    if (!o->log_probability) return logits[o->answer] - (o->contrast == DEBERTA_NO_CONTRAST ? 0 : logits[o->contrast]);
    if (!alone) return logits[o->answer] - exact_log_sum(logits, width, 1);
    const double a = logits[o->answer];
    return fmin(a, 0) - log1p(exp(-fabs(a)));
}

/* The answer at a point of the way, and a step aside from it along a direction. */
static deberta_status exact_value(exact_way *way, double at, direction aside, double step, double *value,
                                  deberta_error *err)
{
    const deberta_attribution_options *o = &way->asked->options;
    const size_t n = o->tokens, width = way->width;
    double *embedded = memory_take(n * width, sizeof *embedded);
    reference_input input = way->asked->input;
    memcpy(embedded, way->text, n * width * sizeof *embedded);
    for (direction d = ALONG_WORDS; d < ALONG_DISTANCES; d++)
        for (size_t e = 0; e < n * width && way_changes(way, d); e++)
            embedded[e] += way->parts[d][e] * (at - 1 + (d == aside ? step * way->signs[e / width] : 0));
    for (size_t e = 0; e < way->rows * width && way_changes(way, ALONG_DISTANCES); e++)
        way->model->relative[e] =
            way->table[e] +
            way->table_way[e] * (at - 1 + (aside == ALONG_DISTANCES ? step * way->row_signs[e / width] : 0));
    if (way_changes(way, ALONG_POSITIONS))
        way->positions_factor = at + (aside == ALONG_POSITIONS ? step * way->signs[o->token] : 0);
    input.embedded = embedded;
    deberta_status status = reference_encode(way->model, &input, way->hidden, NULL, err);
    if (status == DEBERTA_OK)
        status = reference_head_logits(way->model, o->task, &input, way->hidden, way->logits, err);
    way->positions_factor = 1;
    free(embedded);
    *value = exact_answer(way);
    return status;
}

/* The attributions along a direction: the slopes at the points, added up. *kink: one of them has two slopes. */
static deberta_status exact_sum(exact_way *way, direction along, double *sum, bool *kink, deberta_error *err)
{
    const deberta_attribution_options *o = &way->asked->options;
    double points[STEPS] = {1}, weights[STEPS] = {1}, ends[4];
    if (o->method == DEBERTA_INTEGRATED_GRADIENTS) gauss_legendre(o->steps, points, weights);
    *sum = 0;
    for (size_t i = 0; i < o->steps; i++) {
        const double steps[] = {difference_step, -difference_step, nearer_difference, -nearer_difference};
        for (size_t k = 0; k < 4; k++) DEBERTA_TRY(exact_value(way, points[i], along, steps[k], &ends[k], err));
        const double wide = (ends[0] - ends[1]) / (2 * difference_step),
                     slope = (ends[2] - ends[3]) / (2 * nearer_difference);
        *kink = *kink || fabs(wide - slope) > kink_limit * (fabs(slope) + fabs(ends[0]));
        *sum += weights[i] * slope;
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- comparing */

static double found_sum(const exact_way *way, const deberta_attribution *a, direction along, bool signs)
{
    const double *const by_token[] = {a->words, a->positions, a->token_types};
    double sum = 0;
    for (size_t t = 0; along < ALONG_DISTANCES && t < a->tokens; t++)
        sum += signs ? way->signs[t] * by_token[along][t] : fabs(by_token[along][t]);
    for (size_t k = 0; along == ALONG_DISTANCES && k < a->distance_count; k++) {
        const deberta_attribution_distance *d = &a->distances[k];
        sum += signs ? way->row_signs[d->row] * (d->c2p + d->p2c) : fabs(d->c2p) + fabs(d->p2c);
    }
    return sum;
}

static deberta_status compare_values(drawn_run *run, exact_way *way, const deberta_attribution *a, deberta_error *err)
{
    const double found[] = {a->baseline_value, a->value};
    for (size_t end = 0; end < 2; end++) {
        double exact;
        DEBERTA_TRY(exact_value(way, (double)end, DIRECTIONS, 0, &exact, err));
        drawn_note(run, "attributed answers", "float64",
                   fabs(found[end] - exact) / (value_limit * fmax(fabs(exact), 1)), end ? "the text" : "the baseline");
    }
    return DEBERTA_OK;
}

static deberta_status compare_sums(drawn_run *run, exact_way *way, const deberta_attribution *a, deberta_error *err)
{
    double size = fmax(fmax(fabs(a->value), fabs(a->baseline_value)), 1e-30); /* 0: a word and itself as contrast */
    for (direction d = ALONG_WORDS; d < DIRECTIONS; d++) size += found_sum(way, a, d, false);
    for (direction d = ALONG_WORDS; d < DIRECTIONS; d++) {
        char name[64];
        double exact = 0;
        bool kink = false;
        if (way_changes(way, d)) DEBERTA_TRY(exact_sum(way, d, &exact, &kink, err));
        if (kink) continue;
        snprintf(name, sizeof name, "attributions to %s", direction_names[d]);
        drawn_note(run, name, "float64", fabs(found_sum(way, a, d, true) - exact) / (attribution_limit * size),
                   deberta_task_name(way->asked->options.task));
    }
    return DEBERTA_OK;
}

static deberta_status compare_exactly(drawn_run *run, const asked_attribution *asked, const deberta_attribution *a,
                                      deberta_error *err)
{
    char path[128];
    scope memory = {0};
    exact_way way = {.asked = asked};
    drawn_path(run, "model", path);
    DEBERTA_TRY(reference_open(&way.model, path, run->drawn->options.reference, err));
    deberta_status status = begin_way(&way, &memory, run->drawn->seed + run->drawn->number, err);
    if (status == DEBERTA_OK) status = compare_values(run, &way, a, err);
    if (status == DEBERTA_OK) status = compare_sums(run, &way, a, err);
    way.model->source = way.source;
    reference_free(&way.model);
    scope_free(&memory);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- the same bits */

static bool same_attribution(const deberta_attribution *a, const deberta_attribution *b)
{
    const size_t bytes = a->tokens * sizeof *a->words;
    bool same = a->value == b->value && a->baseline_value == b->baseline_value && a->sum == b->sum &&
                a->distance_count == b->distance_count && memcmp(a->words, b->words, bytes) == 0 &&
                memcmp(a->positions, b->positions, bytes) == 0 && memcmp(a->token_types, b->token_types, bytes) == 0;
    for (size_t k = 0; same && k < a->distance_count; k++)
        same = a->distances[k].row == b->distances[k].row && a->distances[k].c2p == b->distances[k].c2p &&
               a->distances[k].p2c == b->distances[k].p2c;
    return same;
}

static void compare_tiers(drawn_run *run, const deberta_model *model, const asked_attribution *asked,
                          const deberta_attribution *first)
{
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++) {
        deberta_attribution_options options = asked->options;
        deberta_attribution *a;
        deberta_error refusal;
        if (!run->options->verify.tiers[t]) continue;
        options.isa = (deberta_isa)t;
        options.threads = t % 2 ? 1 : 3;
        if (deberta_attribute(&a, model, &options, &refusal) == DEBERTA_OK)
            drawn_note(run, "attributions", "bits", same_attribution(a, first) ? 0 : INFINITY, deberta_isa_name(t));
        else
            drawn_note_refusal(run, "attributions", "bits", &refusal);
        deberta_attribution_free(&a);
    }
}

static deberta_status run_attribution(drawn_run *run, const drawn_feature *feature, deberta_error *err)
{
    const deberta_model_options options = {.struct_size = sizeof options, .reference = run->drawn->options.reference};
    deberta_model *model;
    deberta_attribution *a = NULL;
    deberta_error refusal;
    DEBERTA_TRY(drawn_model_open(&model, &run->drawn->model, &options, err));
    asked_attribution asked = ask(run->drawn);
    if (asked.options.log_probability && deberta_model_describe(model)->problem == DEBERTA_PROBLEM_REGRESSION)
        asked.options.log_probability = 0;
    const size_t width = deberta_task_width(model, asked.options.task);
    uint64_t state = run->drawn->seed + 77 * run->drawn->number;
    if (asked.options.answer == 0) asked.options.answer = random_below(&state, width);
    deberta_status status = DEBERTA_OK;
    if (deberta_attribute(&a, model, &asked.options, &refusal) == DEBERTA_OK) {
        status = compare_exactly(run, &asked, a, err);
        compare_tiers(run, model, &asked, a);
    } else {
        drawn_note_refusal(run, feature->name, "float64", &refusal);
    }
    deberta_attribution_free(&a);
    deberta_model_free(&model);
    scope_free(&asked.memory);
    return status;
}

const drawn_feature drawn_attribution_features[] = {
    {"attributions", drawn_attribution_applies, .run = run_attribution},
    {0},
};
