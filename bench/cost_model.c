/* Counts FLOPs and bytes of each stage from the shape and precision of a model and the distances of its texts.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/cost_model.h"

#include <math.h>
#include <stdlib.h>

#include "core/integer_kernels.h"
#include "core/model/pack.h"
#include "core/model/positions.h"
#include "output/scope.h"

#define FLOAT_BYTES ((double)sizeof(float))
/* Bytes beside an integer operand of attention: a scale, and a sum or zero point. */
#define SCALED_BYTES ((double)(sizeof(float) + sizeof(int32_t)))

const char *cost_stage_name(profile_stage stage)
{
    static const char *const names[PROFILE_STAGES] = {
        [PROFILE_EMBED] = "embed",
        [PROFILE_POSITIONS] = "positions",
        [PROFILE_QKV] = "qkv",
        [PROFILE_PACK] = "pack",
        [PROFILE_ATTENTION] = "attention",
        [PROFILE_ATTENTION_OUTPUT] = "attention_output",
        [PROFILE_FEED_FORWARD] = "feed_forward",
        [PROFILE_CONVOLUTION] = "convolution",
        [PROFILE_TASKS] = "heads",
    };
    return (unsigned)stage < PROFILE_STAGES ? names[stage] : "unknown";
}

const char *cost_part_name(profile_part part)
{
    static const char *const names[PROFILE_PARTS] = {
        [PROFILE_QK] = "qk",     [PROFILE_C2P] = "c2p",         [PROFILE_P2C] = "p2c",
        [PROFILE_BIAS] = "bias", [PROFILE_SOFTMAX] = "softmax", [PROFILE_PV] = "pv"};
    return (unsigned)part < PROFILE_PARTS ? names[part] : "unknown";
}

bool cost_stage_is_of_integers(profile_stage stage, deberta_precision precision)
{
    if (precision == DEBERTA_PRECISION_FLOAT32) return false;
    if (stage == PROFILE_ATTENTION) return precision == DEBERTA_PRECISION_INT8;
    return stage == PROFILE_QKV || stage == PROFILE_ATTENTION_OUTPUT || stage == PROFILE_FEED_FORWARD;
}

/* ------------------------------------------------------------------------------------------------------------ bytes */

static double digits_of(deberta_precision precision)
{
    return precision == DEBERTA_PRECISION_INT8 ? 1 : precision == DEBERTA_PRECISION_INT16 ? 2 : 0;
}

/* Returns the bytes of a weight matrix of the encoder's linear layers, with its scales (packed_matrix). */
static double matrix_bytes(const deberta_model_info *m, double outputs, size_t depth)
{
    const double digits = digits_of(m->precision), inputs = (double)depth;
    if (digits == 0) return outputs * inputs * FLOAT_BYTES;
    const size_t block = packed_block_depth(depth);
    const double scales = sizeof(float) + digits * sizeof(int32_t); /* bytes of an output in a block */
    double bytes = inputs * sizeof(float);
    for (size_t start = 0; start < depth; start += block)
        bytes += outputs * (digits * (double)round_up(minimum(block, depth - start), DIGIT_TILE_INPUTS) + scales);
    return bytes;
}

static bool attends_in_integers(const deberta_model_info *m)
{
    return cost_stage_is_of_integers(PROFILE_ATTENTION, m->precision) && m->head_size <= MAX_INTEGER_DEPTH;
}

/* Returns the bytes of a vector of all heads, as keys or rows of a position table: scaled in each head. */
static double operand_bytes(const deberta_model_info *m)
{
    const double h = (double)m->hidden_size;
    return attends_in_integers(m) ? h + (double)m->heads * SCALED_BYTES : h * FLOAT_BYTES;
}

/* Returns the bytes of the values of n tokens: scaled in each column of a chunk. */
static double values_bytes(const deberta_model_info *m, double n)
{
    const double h = (double)m->hidden_size, chunks = ceil(n / KEY_CHUNK);
    return attends_in_integers(m) ? h * (n + chunks * SCALED_BYTES) : n * h * FLOAT_BYTES;
}

/* Returns the bytes of a row of the word table. */
static double word_bytes(const deberta_model_info *m)
{
    const bool integers = m->precision != DEBERTA_PRECISION_FLOAT32 && m->packed == DEBERTA_PACKED_MAPPED;
    const double e = (double)m->embedding_size;
    return integers ? e * digits_of(m->precision) + sizeof(float) : e * FLOAT_BYTES;
}

/* ------------------------------------------------------------------------------------------------------- table rows */

typedef struct row_counts {
    /* rows used by all distances below n; mean over the queries of the rows that one reaches */
    double in_use, reachable;
} row_counts;

/* Counts table rows. Query i sees the distances i - n + 1 ... i. Rows grow with the distance, so the number of rows
 * among neighbouring distances is the number of changes between them plus one. changes[x] counts those up to distance
 * x - (n - 1). */
static void count_rows(row_counts *counts, const position_rule *rule, size_t n)
{
    size_t distances = 2 * n - 1;
    size_t *changes = memory_take(distances, sizeof *changes);
    ptrdiff_t first = -(ptrdiff_t)(n - 1);
    size_t before = position_row(rule, first);
    for (size_t x = 1; x < distances; x++) {
        size_t row = position_row(rule, first + (ptrdiff_t)x);
        changes[x] = changes[x - 1] + (row != before);
        before = row;
    }
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)(changes[i + n - 1] - changes[i] + 1);
    counts->in_use = (double)(changes[distances - 1] + 1);
    counts->reachable = sum / (double)n;
    free(changes);
}

/* ----------------------------------------------------------------------------------------------------------- stages */

/* Position terms that are computed: 1 or 0 each. */
typedef struct position_terms {
    double c2p, p2c;
} position_terms;

static position_terms terms_of(const deberta_model_info *model, term_selection terms)
{
    if (model->relative_rows == 0) return (position_terms){0};
    return (position_terms){.c2p = model->has_c2p && term_is_selected(terms, DEBERTA_C2P),
                            .p2c = model->has_p2c && term_is_selected(terms, DEBERTA_P2C)};
}

static void cost_model_add(cost_stage *stage, double flops, double bytes)
{
    stage->flops += flops;
    stage->reachable_flops += flops;
    stage->bytes += bytes;
}

/* Adds the stages that do not relate tokens to each other: proportional to the tokens, with the weights once. */
static void add_linear_stages(cost *c, const deberta_model_info *m, double tokens, double layers)
{
    double h = (double)m->hidden_size, f = (double)m->intermediate_size, e = (double)m->embedding_size;
    double projection = e != h ? e * h : 0, row = h * FLOAT_BYTES; /* bytes of a token's activations */
    cost_model_add(&c->stage[PROFILE_EMBED], 2 * tokens * projection,
                   tokens * (word_bytes(m) + row) + projection * FLOAT_BYTES);
    cost_model_add(&c->stage[PROFILE_QKV], layers * 2 * tokens * 3 * h * h,
                   layers * (matrix_bytes(m, 3 * h, m->hidden_size) + tokens * 4 * row));
    cost_model_add(&c->stage[PROFILE_ATTENTION_OUTPUT], layers * 2 * tokens * h * h,
                   layers * (matrix_bytes(m, h, m->hidden_size) + tokens * 3 * row));
    cost_model_add(
        &c->stage[PROFILE_FEED_FORWARD], layers * 2 * tokens * 2 * h * f,
        layers * (matrix_bytes(m, f, m->hidden_size) + matrix_bytes(m, h, m->intermediate_size) + tokens * 2 * row));
    if (m->convolution_width) {
        double weights = (double)m->convolution_width * h * h;
        cost_model_add(&c->stage[PROFILE_CONVOLUTION], 2 * tokens * weights, weights * FLOAT_BYTES + tokens * 3 * row);
    }
}

/* Adds the attention of one sequence without the position tables, which the batch reads once. Packing reads the keys
 * and, where attention multiplies integers, the values as well, which leave their projection in panels of floats. */
static void add_attention(cost *c, const deberta_model_info *m, double n, double layers, position_terms has,
                          row_counts rows)
{
    cost_stage *stage = &c->stage[PROFILE_ATTENTION];
    const double h = (double)m->hidden_size, pairs = layers * 2 * n * n * h;
    const double reachable = layers * 2 * n * rows.reachable * h;
    const double floats = n * h * FLOAT_BYTES, keys = n * operand_bytes(m), values = values_bytes(m, n);
    /* traffic of the queries and the context */
    cost_model_add(stage, 2 * pairs, layers * (2 * floats + keys + values));
    cost_model_add(&c->stage[PROFILE_PACK], 0,
                   layers * (floats + keys + (attends_in_integers(m) ? floats + values : 0)));
    stage->flops += (has.c2p + has.p2c) * layers * 2 * n * rows.in_use * h;
    stage->reachable_flops += (has.c2p + has.p2c) * reachable;
    c->part_flops[PROFILE_QK] += pairs;
    c->part_flops[PROFILE_PV] += pairs;
    c->part_flops[PROFILE_C2P] += has.c2p * reachable;
    c->part_flops[PROFILE_P2C] += has.p2c * reachable;
}

static void sum_up(cost *c)
{
    for (int s = 0; s < PROFILE_STAGES; s++) {
        c->total.flops += c->stage[s].flops;
        c->total.reachable_flops += c->stage[s].reachable_flops;
        c->total.bytes += c->stage[s].bytes;
    }
}

void cost_model_compute(cost *result, const deberta_model_info *model, deberta_reference reference,
                        const cost_point *point)
{
    *result = (cost){0};
    position_rule rule = position_rule_of(model, reference);
    const position_terms has = terms_of(model, point->terms);
    double layers = (double)point->layers, terms = has.c2p + has.p2c, tokens = 0, most_rows = 0;
    for (size_t s = 0; s < point->sequences; s++) {
        double n = (double)point->lengths[s];
        row_counts rows = {0};
        if (terms > 0) count_rows(&rows, &rule, point->lengths[s]);
        add_attention(result, model, n, layers, has, rows);
        if (rows.in_use > most_rows) most_rows = rows.in_use; /* shorter sequences use a subset of these rows */
        result->table_rows += rows.in_use * n;
        result->reachable_rows += rows.reachable * n;
        tokens += n;
    }
    if (tokens > 0) {
        result->table_rows /= tokens;
        result->reachable_rows /= tokens;
    }
    cost_model_add(&result->stage[PROFILE_ATTENTION], 0, layers * terms * most_rows * operand_bytes(model));
    add_linear_stages(result, model, tokens, layers);
    if (point->recompute_positions) {
        double h = (double)model->hidden_size, rows = (double)model->relative_rows;
        cost_model_add(&result->stage[PROFILE_POSITIONS], layers * terms * 2 * rows * h * h,
                       layers * terms * (h * h + 2 * rows * h) * FLOAT_BYTES);
    }
    sum_up(result);
    /* Useful work is the least that has to be done: work that folding saves is not counted. */
    result->total.flops -= result->stage[PROFILE_POSITIONS].flops;
    result->total.reachable_flops -= result->stage[PROFILE_POSITIONS].reachable_flops;
}
