/* Implements deberta_attribute by integrated gradients or gradient times input: runs the points of a path from a
 * baseline to the text, a batch at a time, and sums the shares that their gradients give.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "train/attribution/attribution_parts.h"
#include "train/attribution/gauss_legendre.h"

/* Neither number depends on the machine, because batches are part of the arithmetic. Each sequence of a batch is a
 * shard. */
enum { BATCH_POINTS = DEFAULT_SHARDS, BATCH_TOKENS = 512, FIRST_STEPS = 32 };

typedef struct deberta_attribution_owned {
    deberta_attribution shown;
    double *words, *positions, *types;
    deberta_attribution_distance *distances;
} deberta_attribution_owned;

/* ----------------------------------------------------------------------------------------------------------- checking */

static deberta_status check_number(const char *what, size_t token, int32_t value, int32_t least, size_t count,
                                   deberta_error *err)
{
    if (value >= least && (value < 0 || (size_t)value < count)) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s %d at token %zu, expected %d to %zu", what, (int)value, token, (int)least,
                 count - 1);
}

static deberta_status check_tokens(const deberta_model *model, const deberta_attribution_options *o, deberta_error *err)
{
    const model_config *config = &model->config;
    const bool reads_positions = config->position_biased_input || o->task == DEBERTA_TASK_MLM_EMD;
    for (size_t t = 0; t < o->tokens; t++) {
        DEBERTA_TRY(check_number("id", t, o->ids[t], 0, config->vocabulary_size, err));
        DEBERTA_TRY(check_number("id of the baseline", t, o->baseline_ids[t], -1, config->vocabulary_size, err));
        if (model->type_table && o->token_types)
            DEBERTA_TRY(check_number("token type", t, o->token_types[t], 0, config->token_types, err));
        if (reads_positions)
            DEBERTA_TRY(check_number("position", t, o->position_ids ? o->position_ids[t] : (int32_t)t, 0,
                                     config->max_positions, err));
    }
    return DEBERTA_OK;
}

static deberta_status check_attributed_answer(const deberta_model *model, const deberta_attribution_options *o,
                                              deberta_error *err)
{
    const size_t width = deberta_task_width(model, o->task);
    if (o->task == DEBERTA_TASK_QA)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "attributions of the head 'qa' are not computed");
    if (width == 0)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no head '%s'", model->name, deberta_task_name(o->task));
    if (o->answer >= width || (o->contrast != DEBERTA_NO_CONTRAST && o->contrast >= width))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "logit %zu does not exist: head '%s' has %zu",
                     o->answer >= width ? o->answer : o->contrast, deberta_task_name(o->task), width);
    if (o->task != DEBERTA_TASK_SEQUENCE && (o->token >= o->tokens || (o->mask && !o->mask[o->token])))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "token %zu of %zu cannot answer: it is %s", o->token, o->tokens,
                     o->token >= o->tokens ? "beyond the text" : "a hole of the mask");
    if (o->log_probability && o->contrast != DEBERTA_NO_CONTRAST)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a log-probability has no contrast");
    if (o->log_probability && o->task == DEBERTA_TASK_SEQUENCE && model->config.problem == DEBERTA_PROBLEM_REGRESSION)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: a regression has values, not probabilities", model->name);
    return DEBERTA_OK;
}

static deberta_status attribution_check(const deberta_model *model, const deberta_attribution_options *o,
                                        deberta_error *err)
{
    enum { MOST_STEPS = 1 << 16 };
    if (o->tokens == 0 || !o->ids || !o->baseline_ids)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "an attribution needs a text of at least one token, and a baseline");
    if (o->parts & ~(unsigned)DEBERTA_ATTRIBUTE_ALL)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "parts %u: expected a sum of DEBERTA_ATTRIBUTE_WORDS, _DISTANCES, "
                     "_POSITIONS",
                     o->parts);
    if (o->steps > MOST_STEPS || o->most_steps > MOST_STEPS)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu steps, expected at most %d", maximum(o->steps, o->most_steps),
                     (int)MOST_STEPS);
    DEBERTA_TRY(check_attributed_answer(model, o, err));
    return check_tokens(model, o, err);
}

/* ------------------------------------------------------------------------------------------------------------- batches */

static deberta_training_task task_of(deberta_task head)
{
    switch (head) {
    case DEBERTA_TASK_SEQUENCE: return DEBERTA_TRAIN_SEQUENCE;
    case DEBERTA_TASK_TOKEN: return DEBERTA_TRAIN_TOKEN;
    case DEBERTA_TASK_RTD: return DEBERTA_TRAIN_RTD;
    default: return DEBERTA_TRAIN_MLM;
    }
}

static int32_t *repeated(const int32_t *values, size_t count, size_t times)
{
    int32_t *all = calloc(times * count, sizeof *all);
    for (size_t i = 0; all && i < times; i++) memcpy(all + i * count, values, count * sizeof *all);
    return all;
}

static bool fill_batch(attribution_run *run)
{
    const deberta_attribution_options *o = run->options;
    const size_t n = o->tokens, count = run->capacity;
    step_batch *b = &run->batch;
    b->starts = calloc(count + 1, sizeof *b->starts);
    b->shard_bounds = calloc(DEFAULT_SHARDS + 1, sizeof *b->shard_bounds);
    b->origin = calloc(count, sizeof *b->origin);
    b->ids = repeated(o->ids, n, count);
    b->token_types = o->token_types ? repeated(o->token_types, n, count) : NULL;
    b->positions = o->position_ids ? repeated(o->position_ids, n, count) : NULL;
    b->mask = malloc(count * n);
    b->labels = calloc(count * n, sizeof *b->labels);
    b->sequence_labels = calloc(count, sizeof *b->sequence_labels);
    if (!b->starts || !b->shard_bounds || !b->origin || !b->ids || !b->mask || !b->labels || !b->sequence_labels ||
        (o->token_types && !b->token_types) || (o->position_ids && !b->positions))
        return false;
    for (size_t t = 0; t < count * n; t++) {
        b->mask[t] = !o->mask || o->mask[t % n];
        /* Only the answer's row has a label, so the head computes no other. */
        b->labels[t] = t % n == o->token ? 0 : NOT_LABELLED;
    }
    return true;
}

/* Gives each of the current points a sequence and a shard. */
static void deal_points(attribution_run *run, size_t count)
{
    step_batch *b = &run->batch;
    b->sequences = count;
    b->tokens = count * run->options->tokens;
    for (size_t i = 0; i <= count; i++) b->starts[i] = i * run->options->tokens;
    for (size_t i = 0; i < count; i++) {
        b->origin[i] = i;
        run->absolute[i] = (float)run->points[i].at;
    }
    for (size_t shard = 0; shard <= DEFAULT_SHARDS; shard++) b->shard_bounds[shard] = minimum(shard, count);
}

/* Runs the current points; looks: only their values are needed, not their gradients. */
static deberta_status run_points(attribution_run *run, size_t count, bool looks, deberta_error *err)
{
    const deberta_attribution_options *o = run->options;
    const row_value value = {run, attribution_value};
    const embedding_edit edit = {run, attribution_path_forward, attribution_path_backward, attribution_path_decoded};
    const step_options options = {
        .task = task_of(o->task),
        .decodes = o->task == DEBERTA_TASK_MLM_EMD,
        .rtd_weight = 1,
        .loss_only = looks,
        .activations_only = true,
        .edit = &edit,
        .value = &value,
        .positions = &run->path.change,
    };
    step_result result;
    deal_points(run, count);
    DEBERTA_TRY(step_run(run->learner, &run->batch, &options, &result, err));
    for (size_t i = 0; i < count; i++)
        if (!isfinite(run->values[i]))
            DEBERTA_FAIL(err, DEBERTA_E_NOT_FINITE, "the answer is %f on the way from the baseline to the text",
                         run->values[i]);
    if (!looks) attribution_path_add_distances(run);
    return DEBERTA_OK;
}

static deberta_status run_all_points(attribution_run *run, const double *at, const double *weights, size_t count,
                                     deberta_error *err)
{
    const size_t n = run->options->tokens;
    memset(run->words, 0, n * sizeof *run->words);
    memset(run->positions, 0, n * sizeof *run->positions);
    memset(run->types, 0, n * sizeof *run->types);
    for (size_t which = 0; which < POSITION_TABLES; which++)
        memset(run->rows[which], 0, run->learner->model->relative_rows * sizeof(double));
    for (size_t first = 0; first < count; first += run->capacity) {
        const size_t here = minimum(run->capacity, count - first);
        for (size_t i = 0; i < here; i++) run->points[i] = (path_point){at[first + i], weights[first + i]};
        DEBERTA_TRY(run_points(run, here, false, err));
    }
    return DEBERTA_OK;
}

/* Computes the answer at one end of the path. */
static deberta_status find_value(attribution_run *run, double at, double *value, deberta_error *err)
{
    run->points[0] = (path_point){at, 0};
    DEBERTA_TRY(run_points(run, 1, true, err));
    *value = run->values[0];
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------------- steps */

static double sum_of_all(const attribution_run *run)
{
    double sum = 0;
    for (size_t t = 0; t < run->options->tokens; t++) sum += run->words[t] + run->positions[t] + run->types[t];
    for (size_t row = 0; row < run->learner->model->relative_rows; row++)
        sum += run->rows[TABLE_KEYS][row] + run->rows[TABLE_QUERIES][row];
    return sum;
}

static double gap_of(double sum, double difference)
{
    const double gap = fabs(sum - difference);
    return gap > 0 ? gap / fabs(difference) : 0;
}

static deberta_status integrate(attribution_run *run, size_t steps, deberta_error *err)
{
    double *points = calloc(2 * steps, sizeof *points);
    if (!points) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu points", steps);
    if (run->options->method == DEBERTA_GRADIENT_INPUT)
        points[0] = points[1] = 1;
    else
        gauss_legendre(steps, points, points + steps);
    const deberta_status status = run_all_points(run, points, points + steps, steps, err);
    free(points);
    return status;
}

/* Runs the given number of points or, where none is given, doubles it until the gap is small enough. */
static deberta_status run_steps(attribution_run *run, deberta_attribution *found, deberta_error *err)
{
    const deberta_attribution_options *o = run->options;
    const bool once = o->method == DEBERTA_GRADIENT_INPUT || o->steps > 0;
    DEBERTA_TRY(find_value(run, 1, &found->value, err));
    DEBERTA_TRY(find_value(run, 0, &found->baseline_value, err));
    found->steps = o->method == DEBERTA_GRADIENT_INPUT ? 1 : o->steps ? o->steps : FIRST_STEPS;
    for (;; found->steps *= 2) {
        DEBERTA_TRY(integrate(run, found->steps, err));
        found->sum = sum_of_all(run);
        found->gap = gap_of(found->sum, found->value - found->baseline_value);
        if (once || found->gap <= o->tolerance || 2 * found->steps > o->most_steps) return DEBERTA_OK;
    }
}

/* ------------------------------------------------------------------------------------------------------------ results */

/* Lists the rows of the relative table that the text reads, each with its range of distances. */
static deberta_status list_distances(const attribution_run *run, deberta_attribution_owned *a, deberta_error *err)
{
    const attribution_path *path = &run->path;
    const position_map *map = &run->learner->session->positions;
    const ptrdiff_t n = (ptrdiff_t)path->tokens;
    if (!path->reads) return DEBERTA_OK;
    a->distances = calloc(path->end_row - path->first_row, sizeof *a->distances);
    if (!a->distances) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for attributions");
    for (size_t row = path->first_row; row < path->end_row; row++) {
        deberta_attribution_distance *to = &a->distances[a->shown.distance_count];
        if (!path->reads[row]) continue;
        *to = (deberta_attribution_distance){.row = row,
                                             .first = n,
                                             .last = -n,
                                             .c2p = run->rows[TABLE_KEYS][row],
                                             .p2c = run->rows[TABLE_QUERIES][row]};
        for (ptrdiff_t distance = 1 - n; distance < n; distance++) {
            if ((size_t)map->row_of[distance] != row) continue;
            if (distance < to->first) to->first = distance;
            if (distance > to->last) to->last = distance;
        }
        a->shown.distance_count++;
    }
    a->shown.distances = a->distances;
    return DEBERTA_OK;
}

/* Copies the sums over points into the result. */
static void give_sums(attribution_run *run, deberta_attribution_owned *a)
{
    a->words = run->words, a->positions = run->positions, a->types = run->types;
    run->words = run->positions = run->types = NULL;
    a->shown.tokens = run->options->tokens;
    a->shown.words = a->words, a->shown.positions = a->positions, a->shown.token_types = a->types;
}

static deberta_status begin_run(attribution_run *run, const deberta_model *model, deberta_error *err)
{
    const deberta_attribution_options *o = run->options;
    const size_t rows = maximum(model->relative_rows, 1);
    run->capacity = maximum(minimum((size_t)BATCH_POINTS, BATCH_TOKENS / o->tokens), 1);
    const learner_options options = {
        .asked = {.isa = o->isa, .threads = o->threads, .shards = DEFAULT_SHARDS},
        .max_tokens = run->capacity * o->tokens,
        .longest = o->tokens,
        .decodes = o->task == DEBERTA_TASK_MLM_EMD,
        .position_tables = run->capacity,
    };
    DEBERTA_TRY(learner_open_lent(&run->learner, model, &options, err));
    run->points = calloc(run->capacity, sizeof *run->points);
    run->absolute = calloc(run->capacity, sizeof *run->absolute);
    run->values = calloc(run->capacity, sizeof *run->values);
    run->words = calloc(o->tokens, sizeof *run->words);
    run->positions = calloc(o->tokens, sizeof *run->positions);
    run->types = calloc(o->tokens, sizeof *run->types);
    for (size_t which = 0; which < POSITION_TABLES; which++) run->rows[which] = calloc(rows, sizeof(double));
    if (!fill_batch(run) || !run->points || !run->absolute || !run->values || !run->words || !run->positions ||
        !run->types || !run->rows[TABLE_KEYS] || !run->rows[TABLE_QUERIES])
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for attributions");
    return attribution_path_begin(run, err);
}

static void end_run(attribution_run *run)
{
    attribution_path_free(&run->path);
    learner_free(&run->learner);
    step_batch_free(&run->batch);
    free(run->points);
    free(run->absolute);
    free(run->values);
    free(run->words);
    free(run->positions);
    free(run->types);
    for (size_t which = 0; which < POSITION_TABLES; which++) free(run->rows[which]);
}

deberta_status deberta_attribute(deberta_attribution **attribution, const deberta_model *model,
                                 const deberta_attribution_options *given, deberta_error *err)
{
    deberta_attribution_options options;
    attribution_run run = {.options = &options};
    if (!attribution || !model || !given)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_attribute needs a model, options and a place for the result");
    *attribution = NULL;
    DEBERTA_TRY(copy_struct(&options, given, sizeof options, "deberta_attribution_options", err));
    if (options.parts == 0) options.parts = DEBERTA_ATTRIBUTE_ALL;
    DEBERTA_TRY(attribution_check(model, &options, err));
    deberta_attribution_owned *a = calloc(1, sizeof *a);
    if (!a) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for attributions");
    deberta_status status = begin_run(&run, model, err);
    if (status == DEBERTA_OK) status = run_steps(&run, &a->shown, err);
    if (status == DEBERTA_OK) status = list_distances(&run, a, err);
    if (status == DEBERTA_OK) give_sums(&run, a);
    end_run(&run);
    *attribution = &a->shown;
    if (status != DEBERTA_OK) deberta_attribution_free(attribution);
    return status;
}

void deberta_attribution_free(deberta_attribution **attribution)
{
    if (!attribution || !*attribution) return;
    /* the attribution is the first member of this struct */
    deberta_attribution_owned *a = (deberta_attribution_owned *)*attribution;
    free(a->words);
    free(a->positions);
    free(a->types);
    free(a->distances);
    free(a);
    *attribution = NULL;
}
