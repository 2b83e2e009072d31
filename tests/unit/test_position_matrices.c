/* Matrices of relative positions, and strips: what is gathered from them are the terms that the float64 reference
 * computes pair by pair. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "analysis/position_matrices.h"
#include "analysis/reference/reference.h"
#include "include/deberta_unstable.h"

enum { TOKENS = 30, HEAD = 1, LAYER = 1 };
static const char model_name[] = "synthetic:v3-base,layers=2,hidden=32,heads=2,intermediate=32,vocab=40,buckets=4,"
                                 "distance=16,seed=5";

static void test_distances_and_rows(void **state)
{
    (void)state;
    /* K = 4: distances up to 2 linear, then buckets up to 3, then the ends of the table */
    const deberta_model_info info = {.relative_rows = 8, .position_buckets = 4, .max_relative_positions = 16};
    float distances[9], rows[36];
    position_distances(distances, 3);
    static const float expected[9] = {0, -1, -2, 1, 0, -1, 2, 1, 0};
    for (size_t k = 0; k < 9; k++) assert_true(distances[k] == expected[k]);
    position_rows(rows, &info, DEBERTA_REFERENCE_MICROSOFT, 6);
    for (ptrdiff_t i = 0; i < 6; i++)
        for (ptrdiff_t j = 0; j < 6; j++)
            assert_true(rows[i * 6 + j] == (float)deberta_position_row(&info, DEBERTA_REFERENCE_MICROSOFT, i - j));
    assert_true(rows[0] == 4 && rows[1] == 3 && rows[6] == 5); /* 0 -> K, a key to the right below, to the left above */
}

static void test_gathering(void **state)
{
    (void)state;
    const deberta_model_info info = {.relative_rows = 4,
                                     .max_relative_positions = 2}; /* rows 0 ... 3 of distances -2 ... 1 */
    const double strip[3 * 4] = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
    float out[9];
    position_gather(out, strip, POSITION_STRIP_QUERY, &info, DEBERTA_REFERENCE_MICROSOFT, 3);
    static const float by_query[9] = {2, 1, 0, 13, 12, 11, 23, 23, 22};
    for (size_t k = 0; k < 9; k++) assert_true(out[k] == by_query[k]);
    position_gather(out, strip, POSITION_STRIP_KEY, &info, DEBERTA_REFERENCE_MICROSOFT, 3);
    static const float by_key[9] = {2, 11, 20, 3, 12, 21, 3, 13, 22};
    for (size_t k = 0; k < 9; k++) assert_true(out[k] == by_key[k]);
    position_gather(out, strip, POSITION_STRIP_NONE, &info, DEBERTA_REFERENCE_MICROSOFT, 3);
    static const float by_none[9] = {2, 1, 0, 3, 2, 1, 3, 3, 2};
    for (size_t k = 0; k < 9; k++) assert_true(out[k] == by_none[k]);
}

/* What an observer saw of one layer and head. */
typedef struct seen {
    float c2p[TOKENS * TOKENS], p2c[TOKENS * TOKENS];
} seen;

static void on_row(void *context, const reference_attention_row *row)
{
    seen *all = context;
    if (row->layer != LAYER) return;
    for (size_t j = 0; j < TOKENS; j++) {
        all->c2p[row->query * TOKENS + j] = (float)row->value[DEBERTA_C2P][HEAD * TOKENS + j];
        all->p2c[row->query * TOKENS + j] = (float)row->value[DEBERTA_P2C][HEAD * TOKENS + j];
    }
}

static void assert_same(const float *found, const float *expected)
{
    double largest = 0;
    for (size_t k = 0; k < TOKENS * TOKENS; k++) {
        largest = fmax(largest, fabs((double)expected[k]));
        if (!(fabs((double)found[k] - (double)expected[k]) <= 1e-6))
            fail_msg("cell %zu: found %g, expected %g", k, (double)found[k], (double)expected[k]);
    }
    assert_true(largest > 0.01); /* or nothing was compared */
}

static void test_strips_hold_the_terms(void **state)
{
    (void)state;
    reference_model *model = NULL;
    deberta_error error = {0};
    assert_int_equal(reference_open(&model, model_name, DEBERTA_REFERENCE_MICROSOFT, &error), DEBERTA_OK);
    const size_t h = model->config.hidden_size, rows = 2 * model->config.relative_span;
    int64_t ids[TOKENS];
    for (size_t t = 0; t < TOKENS; t++) ids[t] = (int64_t)(t * 7 % 40);
    double *hidden = calloc(3 * TOKENS * h, sizeof *hidden), *c2p = calloc(TOKENS * rows, sizeof *c2p);
    double *p2c = calloc(TOKENS * rows, sizeof *p2c), *p2p = calloc(rows, sizeof *p2p);
    seen *expected = calloc(1, sizeof *expected);
    assert_true(hidden && c2p && p2c && p2p && expected);
    const reference_input input = {.tokens = TOKENS, .ids = ids};
    const reference_observer observer = {expected, on_row};
    assert_int_equal(reference_encode(model, &input, hidden, &observer, &error), DEBERTA_OK);
    const reference_strips strips = {c2p, p2c, p2p};
    assert_int_equal(
        reference_position_strips(model, LAYER, HEAD, hidden + LAYER * TOKENS * h, TOKENS, &strips, &error),
        DEBERTA_OK);
    const deberta_model_info info = {.relative_rows = rows,
                                     .position_buckets = model->config.position_buckets,
                                     .max_relative_positions = model->config.max_relative_positions};
    float found[TOKENS * TOKENS];
    position_gather(found, c2p, POSITION_STRIP_QUERY, &info, DEBERTA_REFERENCE_MICROSOFT, TOKENS);
    assert_same(found, expected->c2p);
    position_gather(found, p2c, POSITION_STRIP_KEY, &info, DEBERTA_REFERENCE_MICROSOFT, TOKENS);
    assert_same(found, expected->p2c);
    double squares = 0;
    for (size_t r = 0; r < rows; r++) squares += p2p[r] * p2p[r];
    assert_true(squares > 1e-6);

    double words[TOKENS * 32], positions[TOKENS * 32];
    assert_int_equal(reference_embedding_rows(model, &input, words, positions, &error), DEBERTA_OK);
    for (size_t c = 0; c < h; c++) assert_true(words[c] != words[h + c] && positions[c] != positions[h + c]);
    free(hidden);
    free(c2p);
    free(p2c);
    free(p2p);
    free(expected);
    reference_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances_and_rows),
        cmocka_unit_test(test_gathering),
        cmocka_unit_test(test_strips_hold_the_terms),
    };
    return cmocka_run_group_tests_name("position_matrices", tests, NULL, NULL);
}
