/* The position-to-position term against float64 projections of the reference, the bias by table row against what an
 * observer sees, and bins of distance. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"

#include "core/model/session_internal_options.h"
#include "analysis/capture.h"
#include "analysis/component_share.h"
#include "analysis/reference/reference_math.h"
#include "analysis/reference/reference_weights.h"

enum { TOKENS = 70, LAYERS = 2, HEADS = 2, HEAD_SIZE = 24, HIDDEN = 48 };

static const char *const paths[] = {
    "synthetic:v1-base,layers=2,hidden=48,heads=2,intermediate=64,vocab=97,distance=16",
    "synthetic:v3-base,layers=2,hidden=48,heads=2,intermediate=64,vocab=97,buckets=16,distance=40",
};

/* x . w' + b of one table row; w [H][h]. */
static double project(const double *x, const double *w, const double *b, size_t column)
{
    double sum = b ? b[column] : 0;
    for (size_t c = 0; c < HIDDEN; c++) sum += x[c] * w[column * HIDDEN + c];
    return sum;
}

static double expected_term(const reference_model *m, const layer_weights *w, size_t head, size_t query_row,
                            size_t key_row)
{
    double sum = 0;
    for (size_t k = head * HEAD_SIZE; k < (head + 1) * HEAD_SIZE; k++)
        sum += project(m->relative + query_row * HIDDEN, w->position_query_weight, w->position_query_bias, k) *
               project(m->relative + key_row * HIDDEN, w->position_key_weight, w->position_key_bias, k);
    return sum / sqrt(3.0 * HEAD_SIZE);
}

static size_t row_of(const reference_model *m, ptrdiff_t r)
{
    return reference_table_row(&m->config, DEBERTA_REFERENCE_MICROSOFT, (long)r);
}

TEST(test_term)
{
    for (size_t p = 0; p < 2; p++) {
        deberta_model *model = NULL;
        reference_model *reference = NULL;
        position_term code, paper;
        assert_int_equal(deberta_model_open(&model, paths[p], NULL, NULL), DEBERTA_OK);
        assert_int_equal(reference_open(&reference, paths[p], DEBERTA_REFERENCE_MICROSOFT, NULL), DEBERTA_OK);
        assert_int_equal(position_term_make(&code, model, POSITION_TERM_CODE, TOKENS, NULL), DEBERTA_OK);
        assert_int_equal(position_term_make(&paper, model, POSITION_TERM_PAPER, TOKENS, NULL), DEBERTA_OK);
        for (size_t layer = 0; layer < LAYERS; layer++) {
            layer_weights w;
            assert_int_equal(layer_weights_read(reference, layer, &w, NULL), DEBERTA_OK);
            for (size_t head = 0; head < HEADS; head++)
                for (ptrdiff_t r = -30; r <= 30; r += 3) {
                    const double same = expected_term(reference, &w, head, row_of(reference, r), row_of(reference, r));
                    assert_true(fabs((double)position_term_by_distance(&code, layer, head)[r] - same) < 1e-4);
                    const double found = (double)position_term_by_distance(&paper, layer, head)[r];
                    const double mirrored =
                        expected_term(reference, &w, head, row_of(reference, -r), row_of(reference, r));
                    if (labs(r) < 8) assert_true(fabs(found - mirrored) < 1e-4);
                }
            shelf_clear(&w.shelf);
        }
        position_term_free(&code);
        position_term_free(&paper);
        reference_free(&reference);
        deberta_model_free(&model);
    }
}

/* c2p of layer 0, [HEADS][TOKENS][TOKENS]; to be freed. */
static float *observe_c2p(const deberta_model *model, const float *row_bias)
{
    const session_internal_options internal = {.interventions.changes.row_bias = row_bias};
    const deberta_session_options options = {
        .struct_size = sizeof options, .max_tokens = TOKENS, .threads = 1, .features = DEBERTA_OBSERVE_ATTENTION};
    const size_t starts[] = {0, TOKENS};
    deberta_model_info info;
    deberta_session *session = NULL;
    capture kept;
    int32_t ids[TOKENS];
    for (int32_t t = 0; t < TOKENS; t++) ids[t] = (t * 37 + 11) % 97;
    info = *deberta_model_describe(model);
    assert_int_equal(session_create_internal(&session, model, &options, &internal, NULL), DEBERTA_OK);
    assert_int_equal(capture_create(&kept, &info, starts, 1, NULL), DEBERTA_OK);
    kept.heads[0] = kept.heads[1] = true;
    capture_want(&kept, 0, DEBERTA_C2P);
    assert_int_equal(capture_allocate(&kept, NULL), DEBERTA_OK);
    const deberta_observer observer = capture_observer(&kept);
    const deberta_batch batch = {
        .struct_size = sizeof batch, .ids = ids, .sequence_starts = starts, .sequences = 1, .observer = &observer};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    assert_int_equal(deberta_encode(session, &batch, &outputs, NULL), DEBERTA_OK);
    float *copy = malloc(HEADS * TOKENS * TOKENS * sizeof *copy);
    assert_non_null(copy);
    for (size_t head = 0; head < HEADS; head++)
        memcpy(copy + head * TOKENS * TOKENS, capture_matrix(&kept, 0, head, DEBERTA_C2P, 0),
               TOKENS * TOKENS * sizeof *copy);
    capture_free(&kept);
    deberta_session_free(&session);
    return copy;
}

TEST(test_row_bias)
{
    for (size_t p = 0; p < 2; p++) {
        deberta_model *model = NULL;
        position_term term;
        assert_int_equal(deberta_model_open(&model, paths[p], NULL, NULL), DEBERTA_OK);
        assert_int_equal(position_term_make(&term, model, POSITION_TERM_CODE, TOKENS, NULL), DEBERTA_OK);
        float *plain = observe_c2p(model, NULL), *added = observe_c2p(model, term.by_row);
        for (size_t head = 0; head < HEADS; head++)
            for (size_t i = 0; i < TOKENS; i++)
                for (size_t j = 0; j < TOKENS; j++) {
                    const size_t at = (head * TOKENS + i) * TOKENS + j;
                    const float bias = position_term_by_distance(&term, 0, head)[(ptrdiff_t)i - (ptrdiff_t)j];
                    if (plain[at] + bias != added[at]) fail_msg("head %zu, query %zu, key %zu", head, i, j);
                }
        free(plain);
        free(added);
        position_term_free(&term);
        deberta_model_free(&model);
    }
}

TEST(test_lacking)
{
    deberta_model *model = NULL;
    position_term term;
    deberta_error error = {0};
    assert_int_equal(
        deberta_model_open(&model, "synthetic:v3-base,layers=1,hidden=48,heads=2,vocab=97,terms=c2p", NULL, NULL),
        DEBERTA_OK);
    assert_int_equal(position_term_make(&term, model, POSITION_TERM_CODE, TOKENS, &error), DEBERTA_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "not both c2p and p2c"));
    deberta_model_free(&model);
}

TEST(test_bins)
{
    static const struct {
        ptrdiff_t distance;
        const char *name;
    } cases[] = {{0, "itself"},      {1, "left 1"},       {2, "left 2"},       {3, "left 3..4"},   {4, "left 3..4"},
                 {5, "left 5..8"},   {32, "left 17..32"}, {33, "left 33.."},   {500, "left 33.."}, {-1, "right 1"},
                 {-4, "right 3..4"}, {-9, "right 9..16"}, {-600, "right 33.."}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char name[SHARE_NAME_BYTES];
        const size_t bin = share_distance_bin(cases[k].distance);
        assert_true(bin < SHARE_DISTANCES);
        share_distance_name(bin, name);
        assert_string_equal(name, cases[k].name);
    }
}
