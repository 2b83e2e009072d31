/* Computes disentangled attention of one head for a block of queries: c2c, c2p and p2c (strips of products with the
 * relative table), the logits tile by tile, softmax, P V. The kernels that it calls are in simd/tmpl.
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/attention.h"

#include <string.h>

/* Number of queries that share a trimmed strip, because their reach differs little. With 256 buckets a query of 512
 * tokens reaches 342 of 511 rows on average, 24 neighbours together 353. */
enum { STRIP_ROWS = 24 };

unsigned attention_terms_of(const deberta_session *s)
{
    return 1u << DEBERTA_C2C | (s->has_c2p ? 1u << DEBERTA_C2P : 0) | (s->has_p2c ? 1u << DEBERTA_P2C : 0);
}

/* ------------------------------------------------------------------------------------------------------------ clock */

static double part_start(const deberta_session *s) { return profile_start(session_profiling(s)); }

/* Ends a lap of a part of attention; the time counts for the thread that owns the scratch. */
static double part_lap(const deberta_session *s, const worker_scratch *scratch, profile_part part, double start)
{
    const profile *times = session_profiling(s);
    return times ? profile_lap_part(times, (size_t)(scratch - s->workers), part, start) : 0;
}

/* ---------------------------------------------------------------------------------------------------------- queries */

size_t attention_tokens_of_block(const size_t *tokens, size_t count, size_t most)
{
    size_t rows = 1;
    while (rows < count && tokens[rows] > tokens[rows - 1] && tokens[rows] - tokens[0] < most) rows++;
    return rows;
}

/* Returns the place of a row in the sequence. */
static size_t query_place(const attention_queries *queries, size_t row)
{
    return queries->first + (queries->tokens ? queries->tokens[row] - queries->tokens[0] : row);
}

/* Returns the first row from `row` on whose place is more than `most` after that of the row before it. */
static size_t queries_together(const attention_queries *queries, size_t row, size_t end, size_t most)
{
    if (!queries->tokens) return end;
    for (row++; row < end && queries->tokens[row] - queries->tokens[row - 1] <= most;) row++;
    return row;
}

/* Counts the rows before a place. */
static size_t queries_before(const attention_queries *queries, ptrdiff_t place)
{
    const ptrdiff_t behind = place - (ptrdiff_t)queries->first;
    size_t rows = behind <= 0 ? 0 : minimum((size_t)behind, queries->count);
    while (queries->tokens && rows > 0 && query_place(queries, rows - 1) >= (size_t)place) rows--;
    return rows;
}

/* Returns the queries of a term: the head's own, another sequence's (patch), or an ablation's replacement of each.
 * Integers quantized from them stay valid until the next call. */
static row_operand query_operand(const deberta_session *s, const attention_head *head, deberta_component term,
                                 const attention_queries *queries, const worker_scratch *scratch)
{
    const float *instead = term == DEBERTA_C2C ? head->c2c_query : head->c2p_query,
                *own = queries->rows + head->rows_behind[term] * (ptrdiff_t)queries->ld;
    row_operand rows = {.floats = instead ? instead : own, .ld = instead ? 0 : queries->ld};
    if (!s->model->integer_attention) return rows;
    integer_rows_fill(&scratch->query_integers, &s->kernels, rows.floats, rows.ld, queries->count, s->model->head_size);
    return (row_operand){.integers = scratch->query_integers};
}

/* ------------------------------------------------------------------------------------------------------------ strip */

/* Finds the panels [*first, *end) of the reversed table that hold every row of the distances low ... high. */
static void reversed_panels(const position_map *map, ptrdiff_t low, ptrdiff_t high, size_t *first, size_t *end)
{
    size_t first_row, last_row;
    position_map_rows(map, low, high, &first_row, &last_row);
    *first = ((size_t)map->last_row - last_row) / PANEL;
    *end = ((size_t)map->last_row - first_row) / PANEL + 1;
}

/* Adds row_bias to strip entries of some rows, which begin at reversed place `first`. */
static void add_row_bias(const deberta_session *s, const float *row_bias, float *strip, size_t rows, size_t first,
                         size_t count)
{
    size_t last_row = (size_t)s->positions.last_row;
    for (size_t i = 0; i < rows; i++) {
        for (size_t x = 0; x < count && first + x <= last_row; x++)
            strip[i * s->strip_stride + x] += row_bias[last_row - first - x];
    }
}

void attention_strip(const deberta_session *s, const attention_head *head, const attention_queries *queries,
                     worker_scratch *scratch)
{
    const deberta_model *model = s->model;
    size_t first_panel, end_panel;
    /* Tiles reach beyond the sequence, to the next multiple of 16 keys. */
    ptrdiff_t first = (ptrdiff_t)queries->first, last_key = (ptrdiff_t)round_up(head->n, PANEL) - 1;
    ptrdiff_t last_query = (ptrdiff_t)query_place(queries, queries->count - 1);
    /* Rows that lie apart have less of their reach in common. */
    const bool apart = last_query - first >= (ptrdiff_t)queries->count;
    const size_t group = apart ? s->row_tile : round_up(STRIP_ROWS, s->row_tile);
    reversed_panels(&s->positions, first - last_key, last_query, &first_panel, &end_panel);
    scratch->strip_first = first_panel * PANEL;
    row_operand query_rows = query_operand(s, head, DEBERTA_C2P, queries, scratch);
    for (size_t row = 0; row < queries->count; row += group) {
        size_t rows = minimum(group, queries->count - row), panel, end;
        reversed_panels(&s->positions, (ptrdiff_t)query_place(queries, row) - last_key,
                        (ptrdiff_t)query_place(queries, row + rows - 1), &panel, &end);
        gemm_task task = {
            .rows = rows,
            .panels = end - panel,
            .c = scratch->strip + row * s->strip_stride + (panel - first_panel) * PANEL,
            .ldc = s->strip_stride,
            .c_panel_stride = PANEL,
        };
        operands_multiply(&s->kernels, model->head_size, &query_rows, row, &head->position_keys, panel, &task);
        if (head->row_bias) add_row_bias(s, head->row_bias, task.c, rows, panel * PANEL, (end - panel) * PANEL);
    }
}

/* ----------------------------------------------------------------------------------------------------------- logits */

/* Data that all steps of one call of attention_logits share. */
typedef struct logits_job {
    const deberta_session *session;
    const attention_head *head;
    const attention_queries *queries;
    worker_scratch *scratch;
    row_operand query_rows;
    bool c2c, c2p, p2c, far;
    float *s;
    size_t lds, first_panel;
} logits_job;

/* Describes the product q . k' of some rows and panels; the caller adds an epilogue. */
static gemm_task content_task(const logits_job *job, size_t row, size_t rows, size_t panel, size_t panels)
{
    return (gemm_task){
        .rows = rows,
        .panels = panels,
        .c = job->s + row * job->lds + (panel - job->first_panel) * PANEL,
        .ldc = job->lds,
        .c_panel_stride = PANEL,
    };
}

static void multiply_content(const logits_job *job, size_t row, size_t panel, const gemm_task *task)
{
    const deberta_session *s = job->session;
    const double time = part_start(s);
    operands_multiply(&s->kernels, s->model->head_size, &job->query_rows, row, &job->head->keys, panel, task);
    part_lap(s, job->scratch, PROFILE_QK, time);
}

enum far_side { FAR_LEFT, FAR_RIGHT };

/* Computes at most a chunk of panels all of whose pairs read one table row: the bias is a column plus a row. Zeros, as
 * many as a chunk has keys, replace a missing term. */
static void far_chunk(const logits_job *job, enum far_side side, size_t row, size_t rows, size_t panel, size_t panels)
{
    static const float zeros[KEY_CHUNK];
    const deberta_session *s = job->session;
    const position_map *map = &s->positions;
    size_t end = (size_t)(map->last_row - map->row_of[side == FAR_LEFT ? map->reach : -map->reach]);
    gemm_task task = content_task(job, row, rows, panel, panels);
    task.outer_column = zeros;
    task.outer_row = zeros;
    if (job->c2p) {
        task.outer_column = job->scratch->strip + row * s->strip_stride + (end - job->scratch->strip_first);
        task.outer_ld = s->strip_stride;
    }
    if (job->p2c) {
        size_t side_floats = round_up(job->head->n, PANEL);
        task.outer_row = job->head->far_p2c + (side == FAR_LEFT ? 0 : side_floats) + panel * PANEL;
    }
    multiply_content(job, row, panel, &task);
}

/* Computes any number of such panels: where attention is observed, one call covers all keys. */
static void far_tiles(const logits_job *job, enum far_side side, size_t row, size_t rows, size_t panel, size_t panels)
{
    for (size_t end = panel + panels, count; panel < end; panel += count) {
        count = minimum(end - panel, KEY_CHUNK / PANEL);
        far_chunk(job, side, row, rows, panel, count);
    }
}

/* Copies the bias tiles into the result, where the caller wants the component without q . k'. */
static void copy_tiles(const logits_job *job, size_t rows, size_t panel, size_t panels)
{
    for (size_t p = 0; p < panels; p++) {
        const float *tile = job->scratch->bias + p * rows * PANEL;
        float *to = job->s + (panel + p - job->first_panel) * PANEL;
        for (size_t i = 0; i < rows; i++) {
            for (size_t l = 0; l < PANEL; l++) to[i * job->lds + l] = tile[i * PANEL + l];
        }
    }
}

/* Computes the bias tiles of a few neighbouring panels, for rows [begin, end) out of the block's [row, row + rows):
 * those that read neighbouring rows of the table. */
static void bias_tiles(const logits_job *job, size_t row, size_t rows, size_t begin, size_t end, size_t panel,
                       size_t panels)
{
    const deberta_session *s = job->session;
    const position_map *map = &s->positions;
    worker_scratch *scratch = job->scratch;
    size_t first_row = 0, last_row = 0;
    const ptrdiff_t key = (ptrdiff_t)(panel * PANEL);
    /* The last key of the last panel has the smallest distance. */
    position_map_rows(map, (ptrdiff_t)query_place(job->queries, begin) - key - (ptrdiff_t)(panels * PANEL) + 1,
                      (ptrdiff_t)query_place(job->queries, end - 1) - key, &first_row, &last_row);
    first_row -= first_row % operand_row_step(&job->head->position_queries);
    size_t table_rows = last_row - first_row + 1;
    double time = part_start(s);
    if (job->p2c) {
        gemm_task task = {
            .rows = table_rows,
            .panels = panels,
            .c = scratch->transposed,
            .ldc = PANEL,
            .c_panel_stride = table_rows * PANEL,
        };
        operands_multiply(&s->kernels, s->model->head_size, &job->head->position_queries, first_row,
                          &job->head->p2c_keys, panel, &task);
        time = part_lap(s, scratch, PROFILE_P2C, time);
    }
    for (size_t next; begin < end; begin = next) {
        next = queries_together(job->queries, begin, end, 1);
        for (size_t p = 0; p < panels; p++) {
            const ptrdiff_t distance = (ptrdiff_t)query_place(job->queries, begin) - key - (ptrdiff_t)(p * PANEL);
            position_bias_task task = {
                .rows = next - begin,
                .bias = scratch->bias + (p * rows + begin - row) * PANEL,
                .c2p = job->c2p ? scratch->strip + begin * s->strip_stride : NULL,
                .ld_c2p = s->strip_stride,
                .c2p_first = scratch->strip_first,
                .p2c = job->p2c ? scratch->transposed + p * table_rows * PANEL : NULL,
                .p2c_first = first_row,
                .row_of = map->row_of + distance,
                .position_of = map->position_of - distance,
                .last_row = map->last_row,
                .unit_steps = map->unit_steps,
            };
            s->kernels.position_bias_f32(&task);
        }
    }
    part_lap(s, scratch, PROFILE_BIAS, time);
}

/* Computes rows [row, row + rows) of a few neighbouring panels. */
static void general_tiles(const logits_job *job, size_t row, size_t rows, size_t panel, size_t panels)
{
    worker_scratch *scratch = job->scratch;
    for (size_t begin = row, end; begin < row + rows; begin = end) {
        end = queries_together(job->queries, begin, row + rows, panels * PANEL);
        bias_tiles(job, row, rows, begin, end, panel, panels);
    }
    if (!job->c2c) {
        copy_tiles(job, rows, panel, panels);
        return;
    }
    gemm_task task = content_task(job, row, rows, panel, panels);
    task.residual = scratch->bias;
    task.ld_residual = PANEL;
    task.residual_panel_stride = rows * PANEL;
    multiply_content(job, row, panel, &task);
}

static size_t clamp_count(ptrdiff_t count, size_t most) { return count < 0 ? 0 : minimum((size_t)count, most); }

/* Computes a few neighbouring panels: the first rows may lie far left of all their keys, the last rows far right. */
static void mixed_tiles(const logits_job *job, size_t panel, size_t panels)
{
    const position_map *map = &job->session->positions;
    size_t count = job->queries->count, tile = job->session->row_tile, far_right = 0, far_left = count;
    if (job->far) {
        ptrdiff_t key = (ptrdiff_t)(panel * PANEL), last_key = key + (ptrdiff_t)(panels * PANEL) - 1;
        /* The three ranges are cut at whole register tiles. */
        far_right = queries_before(job->queries, map->far_right + key + 1) / tile * tile;
        far_left = minimum(round_up(queries_before(job->queries, map->far_left + last_key), tile), count);
    }
    if (far_right > 0) far_tiles(job, FAR_RIGHT, 0, far_right, panel, panels);
    if (far_left > far_right) general_tiles(job, far_right, far_left - far_right, panel, panels);
    if (far_left < count) far_tiles(job, FAR_LEFT, far_left, count - far_left, panel, panels);
}

/* Finds the far ones of the panels [first, end): those below *left_end lie far left of all queries, those from *right
 * on far right. */
static void far_panels(const logits_job *job, size_t first, size_t end, size_t *left_end, size_t *right)
{
    const position_map *map = &job->session->positions;
    const ptrdiff_t query = (ptrdiff_t)job->queries->first;
    const ptrdiff_t last_query = (ptrdiff_t)query_place(job->queries, job->queries->count - 1);
    *left_end = first;
    *right = end;
    if (!job->far) return;
    size_t panels_left = clamp_count(query - map->far_left + 1, end * PANEL) / PANEL;
    size_t panel_right = ceiling_divide(clamp_count(last_query - map->far_right, end * PANEL), PANEL);
    *left_end = maximum(first, panels_left);
    *right = maximum(*left_end, panel_right);
}

void attention_logits(const deberta_session *s, const attention_head *head, const attention_queries *queries,
                      size_t first_key, size_t keys, unsigned terms, float *out, size_t lds, worker_scratch *scratch)
{
    logits_job job = {
        .session = s,
        .head = head,
        .queries = queries,
        .scratch = scratch,
        .c2c = terms & 1u << DEBERTA_C2C,
        .c2p = terms & 1u << DEBERTA_C2P,
        .p2c = terms & 1u << DEBERTA_P2C,
        .s = out,
        .lds = lds,
        .first_panel = first_key / PANEL,
    };
    size_t first = job.first_panel, end = ceiling_divide(first_key + keys, PANEL);
    const double time = part_start(s);
    if (job.c2c) job.query_rows = query_operand(s, head, DEBERTA_C2C, queries, scratch);
    part_lap(s, scratch, PROFILE_QK, time);
    if (!job.c2p && !job.p2c) {
        gemm_task task = content_task(&job, 0, queries->count, first, end - first);
        multiply_content(&job, 0, first, &task);
        return;
    }
    job.far = job.c2c && position_map_has_far(&s->positions, head->n);
    size_t left_end, right, step = s->tile_panels;
    far_panels(&job, first, end, &left_end, &right);
    if (left_end > first) far_tiles(&job, FAR_LEFT, 0, queries->count, first, left_end - first);
    for (size_t panel = left_end; panel < right; panel += step) mixed_tiles(&job, panel, minimum(step, right - panel));
    if (right < end) far_tiles(&job, FAR_RIGHT, 0, queries->count, right, end - right);
}

/* ------------------------------------------------------------------------------------------------------- whole block */

/* Replaces totals by their inverses. A row whose keys are all masked has probability 0 everywhere (SPEC 5.3,
 * Microsoft's rule). A NaN stays one. */
static void invert_totals(float *total, size_t rows)
{
    for (size_t i = 0; i < rows; i++) total[i] = total[i] == 0 ? 0 : 1 / total[i];
}

/* Returns the row of the first query among those of all heads. */
static size_t record_row(const deberta_session *s, const attention_queries *queries)
{
    return (size_t)(queries->rows - s->queries) / s->model->padded_head;
}

/* Records the exponentials before dropout. A sequence that keeps them is one chunk, so the maximum is that of all keys.
 */
static void record_exponentials_of(const deberta_session *s, const attention_head *head,
                                   const attention_queries *queries, size_t lds, const worker_scratch *scratch)
{
    const layer_record *record = s->recording;
    float *to = record ? record_exponentials(record, record_row(s, queries), head->n) : NULL;
    for (size_t i = 0; to && i < queries->count; i++)
        memcpy(to + i * record->exponentials_stride, scratch->logits + i * lds, head->n * sizeof *to);
}

static void record_softmax(const deberta_session *s, const attention_queries *queries, const worker_scratch *scratch)
{
    const size_t row = record_row(s, queries);
    memcpy(s->recording->maximum + row, scratch->maximum, queries->count * sizeof(float));
    memcpy(s->recording->inverse_total + row, scratch->total, queries->count * sizeof(float));
}

/* Drops probabilities of a recorded pass; the totals stay those of all keys. */
static void drop_probabilities(const deberta_session *s, const attention_head *head, const attention_queries *queries,
                               size_t key, size_t keys, size_t lds, const worker_scratch *scratch)
{
    const layer_record *record = s->recording;
    if (!record || !s->internal.record->dropout) return;
    const dropout_place place = {
        .site = DROPOUT_PROBABILITIES, .layer = record->layer, .pass = record->pass, .head = head->head};
    for (size_t row = 0, next; row < queries->count; row = next) {
        next = queries_together(queries, row, queries->count, 1);
        dropout_probabilities(&s->kernels, s->internal.record->dropout, &place, scratch->logits + row * lds, lds,
                              head->first_token + query_place(queries, row), next - row, key, keys);
    }
}

/* Multiplies the probabilities of a chunk by its values. */
static void mix_values(const deberta_session *s, const attention_head *head, size_t key, size_t keys, size_t lds,
                       const worker_scratch *scratch, const gemm_task *task)
{
    row_operand rows = {.floats = scratch->logits, .ld = lds};
    panel_operand values = attention_head_values(s, head, key);
    if (s->model->integer_attention) {
        integer_rows_fill(&scratch->probabilities, &s->kernels, scratch->logits, lds, task->rows, keys);
        rows = (row_operand){.integers = scratch->probabilities};
    }
    operands_multiply(&s->kernels, keys, &rows, 0, &values, 0, task);
}

void attention_block(const deberta_session *s, const attention_head *head, const attention_queries *queries,
                     float *context, size_t ld_context, worker_scratch *scratch)
{
    size_t rows = queries->count, lds = row_stride(minimum(round_up(head->n, PANEL), KEY_CHUNK));
    unsigned terms = attention_terms_of(s);
    double time = part_start(s);
    if (s->has_c2p) {
        attention_strip(s, head, queries, scratch);
        part_lap(s, scratch, PROFILE_C2P, time);
    }
    for (size_t key = 0; key < head->n; key += KEY_CHUNK) {
        size_t keys = minimum(KEY_CHUNK, head->n - key);
        bool first = key == 0, last = key + keys == head->n;
        attention_logits(s, head, queries, key, keys, terms, scratch->logits, lds, scratch);
        time = part_start(s);
        softmax_task softmax = {
            .rows = rows,
            .keys = keys,
            .s = scratch->logits,
            .lds = lds,
            .key_bias = head->key_bias ? head->key_bias + key : NULL,
            .maximum = scratch->maximum,
            .total = scratch->total,
            .rescale = scratch->rescale,
            .first = first,
        };
        s->kernels.softmax_f32(&softmax);
        time = part_lap(s, scratch, PROFILE_SOFTMAX, time);
        if (last) invert_totals(scratch->total, rows);
        record_exponentials_of(s, head, queries, lds, scratch);
        drop_probabilities(s, head, queries, key, keys, lds, scratch);
        gemm_task mix = {
            .rows = rows,
            .panels = s->model->head_panels,
            .c = context,
            .ldc = ld_context,
            .c_panel_stride = PANEL,
            .c_scale = first ? NULL : scratch->rescale,
            .accumulate = !first,
            .row_scale = last ? scratch->total : NULL,
        };
        mix_values(s, head, key, keys, lds, scratch, &mix);
        part_lap(s, scratch, PROFILE_PV, time);
    }
    if (s->recording) record_softmax(s, queries, scratch);
}
