/* Lays out the straight line from the baseline to the text, puts embeddings and tables of positions at its points, and
 * multiplies their gradients by the difference of both ends.
 *
 * All changed inputs move together, so that the attributions add up over words, distances and positions. The
 * relative table moves as layers read it: its projections are linear in it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/model/linear.h"
#include "train/attribution/attribution_parts.h"

/* ------------------------------------------------------------------------------------------------------- embeddings */

/* Rows of the tables' width, before the projection: sums that begin with the baseline's word, and take up the word, the
 * position and the type one after the other. */
enum { SUM_BASELINE, SUM_WORD, SUM_POSITION, SUM_TYPE, SUMS };

static void add_table_row(float *to, const float *row, size_t width)
{
    for (size_t e = 0; e < width; e++) to[e] += row[e];
}

/* Computes the sums [SUMS][stride] of one token. */
static deberta_status sum_rows_of_token(const attribution_run *run, size_t t, float *sums, size_t stride,
                                        deberta_error *err)
{
    const deberta_attribution_options *o = run->options;
    const deberta_model *model = run->learner->model;
    const model_config *config = &model->config;
    const size_t width = config->embedding_size, table_stride = row_stride(width);
    float *word = sums + SUM_WORD * stride, *position = sums + SUM_POSITION * stride, *type = sums + SUM_TYPE * stride;
    if (o->baseline_ids[t] >= 0)
        DEBERTA_TRY(word_table_read(&model->words, &model->source, (size_t)o->baseline_ids[t], 1, sums, err));
    DEBERTA_TRY(word_table_read(&model->words, &model->source, (size_t)o->ids[t], 1, word, err));
    memcpy(position, word, width * sizeof *word);
    if (config->position_biased_input)
        add_table_row(position,
                      model->position_table + (o->position_ids ? (size_t)o->position_ids[t] : t) * table_stride, width);
    memcpy(type, position, width * sizeof *type);
    if (model->type_table)
        add_table_row(type, model->type_table + (o->token_types ? (size_t)o->token_types[t] : 0) * table_stride, width);
    return DEBERTA_OK;
}

static void take_difference(float *to, const float *from, const float *before, size_t width)
{
    for (size_t e = 0; e < width; e++) to[e] = from[e] - before[e];
}

/* Computes a token's differences from its sums, which a projection brings to the hidden size. rows: [SUMS][stride]
 * each. */
static void ways_of_token(attribution_run *run, size_t t, const float *sums, float *projected, size_t stride)
{
    attribution_path *path = &run->path;
    const deberta_model *model = run->learner->model;
    const size_t at = t * path->width;
    if (model->embedding_projection.panels) {
        const linear_product product =
            linear_plain(&model->embedding_projection, SUMS, sums, stride, projected, stride);
        linear_run(learner_kernels(run->learner), &product);
        sums = projected;
    }
    take_difference(path->words + at, sums + SUM_WORD * stride, sums, path->width);
    take_difference(path->positions + at, sums + SUM_POSITION * stride, sums + SUM_WORD * stride, path->width);
    take_difference(path->types + at, sums + SUM_TYPE * stride, sums + SUM_POSITION * stride, path->width);
    const bool words = attribution_changes(run, DEBERTA_ATTRIBUTE_WORDS),
               positions = attribution_changes(run, DEBERTA_ATTRIBUTE_POSITIONS);
    for (size_t e = 0; e < path->width; e++) {
        const float of_positions = path->positions[at + e] + path->types[at + e];
        path->start[at + e] = sums[(words ? SUM_BASELINE : SUM_WORD) * stride + e] + (positions ? 0 : of_positions);
        path->way[at + e] = (words ? path->words[at + e] : 0) + (positions ? of_positions : 0);
    }
}

static deberta_status find_ways(attribution_run *run, deberta_error *err)
{
    const deberta_attribution_options *o = run->options;
    const size_t stride = run->learner->session->normed_stride;
    deberta_status status = DEBERTA_OK;
    float *rows = large_floats(2 * SUMS * stride);
    if (!rows) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the way of an attribution");
    for (size_t t = 0; status == DEBERTA_OK && t < run->path.tokens; t++) {
        if (o->mask && !o->mask[t]) continue; /* A hole has no embedding. */
        memset(rows, 0, 2 * SUMS * stride * sizeof *rows);
        status = sum_rows_of_token(run, t, rows, stride, err);
        if (status == DEBERTA_OK) ways_of_token(run, t, rows, rows + SUMS * stride, stride);
    }
    free(rows);
    return status;
}

/* Computes a point from the nearer end, so that both ends are exact, which matters where rows are small before a norm.
 */
void attribution_path_forward(void *context, const step_state *step, float *rows, size_t first, size_t count)
{
    const attribution_run *run = context;
    const attribution_path *path = &run->path;
    const size_t stride = step->learner->session->hidden_stride;
    for (size_t i = 0; i < count; i++) {
        const size_t sequence = (first + i) / path->tokens, t = (first + i) % path->tokens;
        const double at = run->points[sequence].at;
        const bool from_start = at < 0.5;
        const float along = (float)(from_start ? at : at - 1);
        const float *way = path->way + t * path->width, *start = path->start + t * path->width;
        float *row = rows + i * stride;
        for (size_t e = 0; e < path->width; e++) row[e] = (from_start ? start[e] : row[e]) + along * way[e];
    }
}

static double dot_way(const float *gradient, const float *way, size_t width)
{
    double sum = 0;
    for (size_t e = 0; e < width; e++) sum += (double)gradient[e] * (double)way[e];
    return sum;
}

void attribution_path_backward(void *context, const step_state *step, float *d_rows, size_t ld)
{
    attribution_run *run = context;
    const attribution_path *path = &run->path;
    for (size_t i = 0; i < step->learner->session->tokens; i++) {
        const size_t t = i % path->tokens, at = t * path->width;
        const float *gradient = d_rows + i * ld;
        if (attribution_changes(run, DEBERTA_ATTRIBUTE_WORDS))
            run->words[t] += dot_way(gradient, path->words + at, path->width);
        if (!attribution_changes(run, DEBERTA_ATTRIBUTE_POSITIONS)) continue;
        run->positions[t] += dot_way(gradient, path->positions + at, path->width);
        run->types[t] += dot_way(gradient, path->types + at, path->width);
    }
}

void attribution_path_decoded(void *context, const step_state *step, const head_rows *rows, const float *d_rows,
                              size_t ld)
{
    attribution_run *run = context;
    const learner *l = step->learner;
    const size_t stride = row_stride(l->model->config.embedding_size);
    if (!attribution_changes(run, DEBERTA_ATTRIBUTE_POSITIONS)) return;
    for (size_t i = 0; i < rows->count; i++) {
        const float *position = l->model->position_table + (size_t)l->session->position_ids[rows->tokens[i]] * stride;
        run->positions[rows->tokens[i] % run->path.tokens] += dot_way(d_rows + i * ld, position, run->path.width);
    }
}

/* ------------------------------------------------------------------------------------------------- the relative table */

/* Returns number c of a row of a head's table of a layer: of PK, whose panels have reversed rows, or of PQ. */
static size_t table_offset(const deberta_model *model, size_t which, size_t head, size_t row, size_t c)
{
    const size_t rows = model->relative_rows, d = model->head_size, place = rows - 1 - row;
    if (which == TABLE_QUERIES) return (head * rows + row) * model->padded_head + c;
    return (head * ceiling_divide(rows, PANEL) + place / PANEL) * d * PANEL + c * PANEL + place % PANEL;
}

static const float *model_table(const deberta_model *model, size_t which, size_t layer)
{
    return which == TABLE_KEYS ? model->layers[layer].position_keys : model->layers[layer].position_queries;
}

static void find_reads(attribution_run *run)
{
    attribution_path *path = &run->path;
    const position_map *map = &run->learner->session->positions;
    const ptrdiff_t n = (ptrdiff_t)path->tokens;
    path->first_row = run->learner->model->relative_rows;
    for (ptrdiff_t distance = 1 - n; distance < n; distance++) {
        const size_t row = (size_t)map->row_of[distance];
        path->reads[row] = true;
        path->first_row = minimum(path->first_row, row);
        path->end_row = maximum(path->end_row, row + 1);
    }
}

static void find_mean(attribution_run *run, size_t which, size_t layer)
{
    const learner *l = run->learner;
    const deberta_model *model = l->model;
    const float *table = model_table(model, which, layer);
    for (size_t head = 0; table && head < model->config.heads; head++)
        for (size_t c = 0; c < model->head_size; c++) {
            double sum = 0;
            size_t count = 0;
            for (size_t row = run->path.first_row; row < run->path.end_row; row++) {
                if (!run->path.reads[row]) continue;
                sum += (double)table[table_offset(model, which, head, row, c)];
                count++;
            }
            run->path.mean[which][layer * l->heads_width + head * model->padded_head + c] =
                (float)(sum / (double)count);
        }
}

/* Writes a head's tables of a sequence, for the current layer. */
typedef struct table_task {
    const attribution_run *run;
    size_t layer;
} table_task;

static void move_tables(void *context, size_t task, size_t worker)
{
    const table_task *job = context;
    const attribution_path *path = &job->run->path;
    const learner *l = job->run->learner;
    const deberta_model *model = l->model;
    const size_t head = task % model->config.heads, sequence = task / model->config.heads;
    const double point = job->run->points[sequence].at;
    const bool from_mean = point < 0.5;
    const float along = (float)(from_mean ? point : point - 1);
    float *const to[POSITION_TABLES] = {path->change.keys + sequence * path->change.keys_stride,
                                        path->change.queries + sequence * path->change.queries_stride};
    (void)worker;
    for (size_t which = 0; which < POSITION_TABLES; which++) {
        const float *from = model_table(model, which, job->layer);
        const float *mean = path->mean[which] + job->layer * l->heads_width + head * model->padded_head;
        for (size_t row = path->first_row; from && row < path->end_row; row++)
            for (size_t c = 0; c < model->head_size; c++) {
                const size_t at = table_offset(model, which, head, row, c);
                to[which][at] = (from_mean ? mean[c] : from[at]) + along * (from[at] - mean[c]);
            }
    }
}

static void begin_layer(void *context, size_t layer)
{
    const attribution_run *run = context;
    const learner *l = run->learner;
    table_task job = {run, layer};
    if (run->path.change.keys)
        parallel_for(l->session->executor, l->session->sequences * l->model->config.heads, move_tables, &job);
}

void attribution_path_add_distances(attribution_run *run)
{
    const learner *l = run->learner;
    const deberta_model *model = l->model;
    const step_state step = {.learner = l, .memory = (step_memory *)&l->memory};
    for (size_t layer = 0; run->path.change.keys && layer < model->config.layers; layer++)
        for (size_t which = 0; which < POSITION_TABLES; which++) {
            const float *sums = step_table_sums(&step, layer) + which * model->relative_rows * l->heads_width;
            const float *table = model_table(model, which, layer),
                        *mean = run->path.mean[which] + layer * l->heads_width;
            for (size_t row = run->path.first_row; table && row < run->path.end_row; row++)
                for (size_t head = 0; head < model->config.heads; head++)
                    for (size_t c = 0; c < model->head_size; c++) {
                        const size_t column = head * model->padded_head + c;
                        const double way =
                            (double)table[table_offset(model, which, head, row, c)] - (double)mean[column];
                        run->rows[which][row] += (double)sums[row * l->heads_width + column] * way;
                    }
        }
}

/* ------------------------------------------------------------------------------------------------------------ opening */

static bool take_tables(attribution_run *run)
{
    attribution_path *path = &run->path;
    const learner *l = run->learner;
    const deberta_model *model = l->model;
    const size_t rows = model->relative_rows;
    path->change.keys_stride = model_position_key_floats(model);
    path->change.queries_stride = rows * l->heads_width;
    path->change.keys = large_floats(run->capacity * path->change.keys_stride);
    path->change.queries = large_floats(run->capacity * path->change.queries_stride);
    path->reads = calloc(rows, sizeof *path->reads);
    for (size_t which = 0; which < POSITION_TABLES; which++)
        path->mean[which] = calloc(model->config.layers * l->heads_width, sizeof(float));
    return path->change.keys && path->change.queries && path->reads && path->mean[TABLE_KEYS] &&
           path->mean[TABLE_QUERIES];
}

deberta_status attribution_path_begin(attribution_run *run, deberta_error *err)
{
    attribution_path *path = &run->path;
    const learner *l = run->learner;
    const bool has_distances = l->model->relative_rows > 0 && attribution_changes(run, DEBERTA_ATTRIBUTE_DISTANCES);
    *path = (attribution_path){.tokens = run->options->tokens, .width = l->model->config.hidden_size};
    const size_t floats = path->tokens * path->width;
    path->change = (position_change){.context = run, .begin_layer = begin_layer};
    path->words = large_floats(floats);
    path->positions = large_floats(floats);
    path->types = large_floats(floats);
    path->start = large_floats(floats);
    path->way = large_floats(floats);
    if (!path->words || !path->positions || !path->types || !path->start || !path->way ||
        (has_distances && !take_tables(run)))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the way of an attribution");
    if (attribution_changes(run, DEBERTA_ATTRIBUTE_POSITIONS)) path->change.absolute = run->absolute;
    if (has_distances) {
        find_reads(run);
        for (size_t layer = 0; layer < l->model->config.layers; layer++)
            for (size_t which = 0; which < POSITION_TABLES; which++) find_mean(run, which, layer);
    }
    return find_ways(run, err);
}

void attribution_path_free(attribution_path *path)
{
    free(path->words);
    free(path->positions);
    free(path->types);
    free(path->start);
    free(path->way);
    free(path->reads);
    free(path->change.keys);
    free(path->change.queries);
    for (size_t which = 0; which < POSITION_TABLES; which++) free(path->mean[which]);
}
