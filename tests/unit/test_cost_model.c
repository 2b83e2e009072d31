/* The cost model against figures worked out by hand for published shapes. SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "bench/cost_model.h"
#include "core/load/model.h"
#include "core/model/quantized.h"
#include "tests/unit/model_helpers.h"

static const deberta_model_info v3_base = {
    .vocabulary_size = 128100,
    .hidden_size = 768,
    .intermediate_size = 3072,
    .layers = 12,
    .heads = 12,
    .head_size = 64,
    .embedding_size = 768,
    .max_relative_positions = 512,
    .position_buckets = 256,
    .relative_rows = 512,
    .has_c2p = 1,
    .has_p2c = 1,
};

static cost cost_of(const deberta_model_info *model, size_t n, size_t layers, term_selection terms)
{
    cost c;
    cost_point point = {.lengths = &n, .sequences = 1, .layers = layers, .terms = terms};
    cost_model_compute(&c, model, DEBERTA_REFERENCE_MICROSOFT, &point);
    return c;
}

/* 12 (2 n (4 h^2 + 2 h f) + 4 n^2 h + 4 n S h), S as in the second column. */
TEST(test_useful_work_of_v3_base)
{
    const struct {
        size_t n;
        double rows, reachable, gflop;
    } expected[] = {
        {16, 31, 16, 2.7455},   {40, 79, 40, 6.970},     {128, 255, 128, 23.555}, {256, 385, -1, 49.52},
        {512, 511, 342, 106.3}, {1024, 511, 427, 231.9}, {2048, 511, 469, 541.2}, {4096, 511, 490, 1391},
    };
    FOR_ROWS(i, expected) {
        cost c = cost_of(&v3_base, expected[i].n, 12, TERM_SELECTION_FULL);
        assert_close(c.table_rows, expected[i].rows, 0);
        if (expected[i].reachable > 0) assert_close(c.reachable_rows, expected[i].reachable, 0.6);
        assert_close(1e-9 * c.total.flops, expected[i].gflop, 6e-4 * expected[i].gflop);
        double unreached = 12 * 4 * (double)expected[i].n * 768 * (c.table_rows - c.reachable_rows);
        assert_close(c.total.flops - c.total.reachable_flops, unreached, 1e-9 * c.total.flops);
        double parts = 0; /* what can be reached, or c2p and p2c would stand above the machine's limit */
        for (int part = 0; part < PROFILE_PARTS; part++) parts += c.part_flops[part];
        assert_close(parts, c.stage[PROFILE_ATTENTION].reachable_flops, 1e-9 * parts);
    }
}

TEST(test_rows_without_buckets)
{
    deberta_model_info v1_base = v3_base;
    v1_base.position_buckets = 0;
    v1_base.relative_rows = 1024;
    assert_close(cost_of(&v1_base, 1, 1, TERM_SELECTION_FULL).table_rows, 1, 0);
    assert_close(cost_of(&v1_base, 512, 1, TERM_SELECTION_FULL).table_rows, 1023, 0);
    assert_close(cost_of(&v1_base, 512, 1, TERM_SELECTION_FULL).reachable_rows, 512, 0);
    assert_close(cost_of(&v1_base, 2000, 1, TERM_SELECTION_FULL).table_rows, 1024, 0);
}

TEST(test_terms_that_are_left_out_cost_nothing)
{
    double n = 128, h = 768, strip = 2 * n * 255 * h;
    double full = cost_of(&v3_base, 128, 1, TERM_SELECTION_FULL).stage[PROFILE_ATTENTION].flops;
    assert_close(full, 4 * n * n * h + 2 * strip, 0);
    assert_close(cost_of(&v3_base, 128, 1, TERM_SELECTION_C2C_C2P).stage[PROFILE_ATTENTION].flops, full - strip, 0);
    assert_close(cost_of(&v3_base, 128, 1, TERM_SELECTION_C2C_P2C).stage[PROFILE_ATTENTION].flops, full - strip, 0);
    assert_close(cost_of(&v3_base, 128, 1, TERM_SELECTION_C2C).stage[PROFILE_ATTENTION].flops, full - 2 * strip, 0);
    deberta_model_info plain = v3_base;
    plain.relative_rows = 0;
    assert_close(cost_of(&plain, 128, 1, TERM_SELECTION_FULL).stage[PROFILE_ATTENTION].flops, full - 2 * strip, 0);
}

TEST(test_a_batch_is_the_sum_but_reads_weights_once)
{
    const size_t lengths[] = {16, 40};
    cost_point point = {.lengths = lengths, .sequences = 2, .layers = 3};
    cost both, one = cost_of(&v3_base, 16, 3, TERM_SELECTION_FULL), two = cost_of(&v3_base, 40, 3, TERM_SELECTION_FULL);
    cost_model_compute(&both, &v3_base, DEBERTA_REFERENCE_MICROSOFT, &point);
    assert_close(both.total.flops, one.total.flops + two.total.flops, 1e-6 * both.total.flops);
    double weights = 4 * 3 * (2 * 768.0 * 3072);
    cost_stage ff = both.stage[PROFILE_FEED_FORWARD];
    assert_close(ff.bytes, one.stage[PROFILE_FEED_FORWARD].bytes + two.stage[PROFILE_FEED_FORWARD].bytes - weights, 1);
    /* the shorter sequence's rows of PK and PQ are among the longer one's */
    double tables = 4 * 3 * 2 * 31 * 768.0;
    cost_stage attention = both.stage[PROFILE_ATTENTION];
    assert_close(attention.bytes, one.stage[PROFILE_ATTENTION].bytes + two.stage[PROFILE_ATTENTION].bytes - tables, 1);
    assert_close(both.table_rows, (16 * 31 + 40 * 79) / 56.0, 1e-9);
}

TEST(test_recomputed_positions_are_work_but_not_useful)
{
    size_t n = 40;
    cost c;
    cost_point point = {.lengths = &n, .sequences = 1, .layers = 12, .recompute_positions = true};
    cost_model_compute(&c, &v3_base, DEBERTA_REFERENCE_MICROSOFT, &point);
    assert_close(c.stage[PROFILE_POSITIONS].flops, 12 * 2 * 2 * 512 * 768.0 * 768, 0);
    assert_close(c.total.flops, cost_of(&v3_base, 40, 12, TERM_SELECTION_FULL).total.flops, 1);
}

TEST(test_convolution_and_embedding_projection)
{
    deberta_model_info info = v3_base;
    info.convolution_width = 3;
    info.embedding_size = 128;
    cost c = cost_of(&info, 10, 2, TERM_SELECTION_FULL);
    assert_close(c.stage[PROFILE_CONVOLUTION].flops, 2 * 10 * 3 * 768.0 * 768, 0);
    assert_close(c.stage[PROFILE_EMBED].flops, 2 * 10 * 128 * 768.0, 0);
    double sum = 0;
    for (int s = 0; s < PROFILE_STAGES; s++) sum += c.stage[s].bytes;
    assert_close(c.total.bytes, sum, 1e-6 * sum);
}

/* ------------------------------------------------------------------------------------------- bytes by precision */

/* What a product reads of a matrix: its weights from the first byte to the last, and in low precision what scales
 * them. */
static double packed_bytes(const packed_matrix *matrix)
{
    const char *first = matrix_weights_at(matrix, 0, 0), *end = matrix_weights_end(matrix);
    double bytes = (double)(end - first);
    if (!matrix->digits) return bytes;
    const size_t blocks = ceiling_divide(matrix->depth, matrix->block_depth),
                 lanes = blocks * matrix->panel_count * PANEL;
    bytes += (double)(lanes * sizeof *matrix->scales);
    bytes += (double)(lanes * matrix->digits * sizeof *matrix->sums);
    return bytes + (double)(matrix->depth * sizeof *matrix->factors);
}

/* The stages of the linear layers, of an opened model whose shape has no padding: bytes of its packed matrices, and
 * floats of activations. */
static void check_linear_bytes(const deberta_model *model, size_t tokens)
{
    const size_t layers = model->config.layers;
    const double row = (double)(tokens * model->config.hidden_size * sizeof(float));
    cost c = cost_of(deberta_model_describe(model), tokens, layers, TERM_SELECTION_FULL);
    double qkv = 0, output = 0, feed_forward = 0;
    for (size_t k = 0; k < layers; k++) {
        const model_layer *layer = &model->layers[k];
        qkv += packed_bytes(&layer->qkv) + 4 * row;
        output += packed_bytes(&layer->attention_output) + 3 * row;
        feed_forward += packed_bytes(&layer->intermediate) + packed_bytes(&layer->output) + 2 * row;
    }
    assert_close(c.stage[PROFILE_QKV].bytes, qkv, 0);
    assert_close(c.stage[PROFILE_ATTENTION_OUTPUT].bytes, output, 0);
    assert_close(c.stage[PROFILE_FEED_FORWARD].bytes, feed_forward, 0);
}

/* The rows of position tables that attention reads, of the sizes that they have in the model: all rows are in use. */
static void check_table_bytes(const deberta_model *model)
{
    const deberta_model_info *info = deberta_model_describe(model);
    const size_t heads = info->heads, d = info->head_size, rows = info->relative_rows, n = 2 * rows;
    const double with = cost_of(info, n, 1, TERM_SELECTION_FULL).stage[PROFILE_ATTENTION].bytes,
                 without = cost_of(info, n, 1, TERM_SELECTION_C2C).stage[PROFILE_ATTENTION].bytes;
    const model_layer *layer = model->layers;
    double in_use = cost_of(info, n, 1, TERM_SELECTION_FULL).table_rows,
           bytes = (double)(2 * heads * d * sizeof(float));
    if (model->integer_attention) {
        bytes = (double)(2 * heads * d * sizeof *layer->position_key_integers.digits);
        bytes +=
            (double)(heads * (sizeof *layer->position_key_integers.scale + sizeof *layer->position_key_integers.sum));
        bytes += (double)(heads *
                          (sizeof *layer->position_query_integers.scale + sizeof *layer->position_query_integers.zero));
    }
    assert_int_equal(layer->position_keys == NULL, model->integer_attention);
    assert_close(with - without, in_use * bytes, 0);
}

/* Bytes are those of the memory that an opened model has, not of float32's. */
TEST(test_bytes_are_those_of_the_packed_model)
{
    static const char *const shapes[] = {
        "synthetic:v3-xsmall,layers=2,vocab=50,hidden=128,heads=2,intermediate=256",
        "synthetic:v3-xsmall,layers=1,vocab=50,hidden=192,heads=3,intermediate=1600", /* blocks of inputs */
        "synthetic:v1-base,layers=1,vocab=50,hidden=64,heads=1,intermediate=128"};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        double qkv[DEBERTA_PRECISION_COUNT];
        for (int precision = 0; precision < DEBERTA_PRECISION_COUNT; precision++) {
            deberta_model *model =
                open_model_with(shapes[k], (deberta_model_options){.precision = (deberta_precision)precision});
            check_linear_bytes(model, 16);
            check_table_bytes(model);
            const packed_matrix *matrix = &model->layers[0].qkv;
            qkv[precision] =
                (double)((const char *)matrix_weights_end(matrix) - (const char *)matrix_weights_at(matrix, 0, 0));
            deberta_model_free(&model);
        }
        assert_close(qkv[DEBERTA_PRECISION_INT8], qkv[DEBERTA_PRECISION_FLOAT32] / 4, 0);
        assert_close(qkv[DEBERTA_PRECISION_INT16], qkv[DEBERTA_PRECISION_FLOAT32] / 2, 0);
    }
}

TEST(test_only_what_is_of_integers_is_smaller)
{
    cost c[DEBERTA_PRECISION_COUNT];
    for (int precision = 0; precision < DEBERTA_PRECISION_COUNT; precision++) {
        deberta_model_info info = v3_base;
        info.precision = (deberta_precision)precision;
        info.convolution_width = 3;
        c[precision] = cost_of(&info, 16, 12, TERM_SELECTION_FULL);
        assert_close(c[precision].total.flops, c[0].total.flops, 0);
        for (int stage = 0; stage < PROFILE_STAGES; stage++) {
            const bool smaller = cost_stage_is_of_integers((profile_stage)stage, info.precision);
            if (stage == PROFILE_PACK) continue; /* in int8 it makes the integers of keys and values */
            assert_int_equal(c[precision].stage[stage].bytes < c[0].stage[stage].bytes, smaller);
        }
    }
    /* 12 (768 2304 + 16 4 768 4) and what scales: 8 bytes an output, 4 an input */
    assert_close(c[DEBERTA_PRECISION_INT8].stage[PROFILE_QKV].bytes, 12 * (1769472 + 196608 + 8 * 2304 + 4 * 768), 0);
}
