/* The cost model against figures worked out by hand for published shapes. SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "bench/cost_model.h"

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

static const deberta_model_info v1_base = {
    .hidden_size = 768,
    .intermediate_size = 3072,
    .layers = 12,
    .heads = 12,
    .head_size = 64,
    .embedding_size = 768,
    .max_relative_positions = 512,
    .relative_rows = 1024,
    .has_c2p = 1,
    .has_p2c = 1,
};

static void assert_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance)) fail_msg("found %.12g, expected %.12g", found, expected);
}

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
        assert_near(c.table_rows, expected[i].rows, 0);
        if (expected[i].reachable > 0) assert_near(c.reachable_rows, expected[i].reachable, 0.6);
        assert_near(1e-9 * c.total.flops, expected[i].gflop, 6e-4 * expected[i].gflop);
        double unreached = 12 * 4 * (double)expected[i].n * 768 * (c.table_rows - c.reachable_rows);
        assert_near(c.total.flops - c.total.reachable_flops, unreached, 1e-9 * c.total.flops);
        double parts = 0; /* what can be reached, or c2p and p2c would stand above the machine's limit */
        for (int part = 0; part < PROFILE_PARTS; part++) parts += c.part_flops[part];
        assert_near(parts, c.stage[PROFILE_ATTENTION].reachable_flops, 1e-9 * parts);
    }
}

TEST(test_rows_without_buckets)
{
    assert_near(cost_of(&v1_base, 1, 1, TERM_SELECTION_FULL).table_rows, 1, 0);
    assert_near(cost_of(&v1_base, 512, 1, TERM_SELECTION_FULL).table_rows, 1023, 0);
    assert_near(cost_of(&v1_base, 512, 1, TERM_SELECTION_FULL).reachable_rows, 512, 0);
    assert_near(cost_of(&v1_base, 2000, 1, TERM_SELECTION_FULL).table_rows, 1024, 0);
}

TEST(test_terms_that_are_left_out_cost_nothing)
{
    double n = 128, h = 768, strip = 2 * n * 255 * h;
    double full = cost_of(&v3_base, 128, 1, TERM_SELECTION_FULL).stage[PROFILE_ATTENTION].flops;
    assert_near(full, 4 * n * n * h + 2 * strip, 0);
    assert_near(cost_of(&v3_base, 128, 1, TERM_SELECTION_C2C_C2P).stage[PROFILE_ATTENTION].flops, full - strip, 0);
    assert_near(cost_of(&v3_base, 128, 1, TERM_SELECTION_C2C_P2C).stage[PROFILE_ATTENTION].flops, full - strip, 0);
    assert_near(cost_of(&v3_base, 128, 1, TERM_SELECTION_C2C).stage[PROFILE_ATTENTION].flops, full - 2 * strip, 0);
    deberta_model_info plain = v3_base;
    plain.relative_rows = 0;
    assert_near(cost_of(&plain, 128, 1, TERM_SELECTION_FULL).stage[PROFILE_ATTENTION].flops, full - 2 * strip, 0);
}

TEST(test_a_batch_is_the_sum_but_reads_weights_once)
{
    const size_t lengths[] = {16, 40};
    cost_point point = {.lengths = lengths, .sequences = 2, .layers = 3};
    cost both, one = cost_of(&v3_base, 16, 3, TERM_SELECTION_FULL), two = cost_of(&v3_base, 40, 3, TERM_SELECTION_FULL);
    cost_model_compute(&both, &v3_base, DEBERTA_REFERENCE_MICROSOFT, &point);
    assert_near(both.total.flops, one.total.flops + two.total.flops, 1e-6 * both.total.flops);
    double weights = 4 * 3 * (2 * 768.0 * 3072);
    cost_stage ff = both.stage[PROFILE_FEED_FORWARD];
    assert_near(ff.bytes, one.stage[PROFILE_FEED_FORWARD].bytes + two.stage[PROFILE_FEED_FORWARD].bytes - weights, 1);
    /* the shorter sequence's rows of PK and PQ are among the longer one's */
    double tables = 4 * 3 * 2 * 31 * 768.0;
    cost_stage attention = both.stage[PROFILE_ATTENTION];
    assert_near(attention.bytes, one.stage[PROFILE_ATTENTION].bytes + two.stage[PROFILE_ATTENTION].bytes - tables, 1);
    assert_near(both.table_rows, (16 * 31 + 40 * 79) / 56.0, 1e-9);
}

TEST(test_recomputed_positions_are_work_but_not_useful)
{
    size_t n = 40;
    cost c;
    cost_point point = {.lengths = &n, .sequences = 1, .layers = 12, .recompute_positions = true};
    cost_model_compute(&c, &v3_base, DEBERTA_REFERENCE_MICROSOFT, &point);
    assert_near(c.stage[PROFILE_POSITIONS].flops, 12 * 2 * 2 * 512 * 768.0 * 768, 0);
    assert_near(c.total.flops, cost_of(&v3_base, 40, 12, TERM_SELECTION_FULL).total.flops, 1);
}

TEST(test_convolution_and_embedding_projection)
{
    deberta_model_info info = v3_base;
    info.convolution_width = 3;
    info.embedding_size = 128;
    cost c = cost_of(&info, 10, 2, TERM_SELECTION_FULL);
    assert_near(c.stage[PROFILE_CONVOLUTION].flops, 2 * 10 * 3 * 768.0 * 768, 0);
    assert_near(c.stage[PROFILE_EMBED].flops, 2 * 10 * 128 * 768.0, 0);
    double sum = 0;
    for (int s = 0; s < PROFILE_STAGES; s++) sum += c.stage[s].bytes;
    assert_near(c.total.bytes, sum, 1e-6 * sum);
}
