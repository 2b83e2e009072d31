/* Interventions: engine against float64 on every tier present, where the paths differ (far tiles, holes, the decoder),
 * and what must not depend on them. SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "tests/unit/model_helpers.h"

#include "analysis/reference/reference.h"
#include "check/verify.h"
#include "core/encode/session_internal_options.h"

enum { LONG = 150, SHORT = 31 };

/* Distances of 150 tokens saturate in all of them; the second has a convolution, the third the decoder. */
static const char *const models[] = {
    "synthetic:v1-base,layers=2,hidden=48,heads=4,intermediate=64,vocab=97,distance=16",
    "synthetic:v2-xlarge,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40",
    "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40,lm=1",
};
enum { MODELS = sizeof models / sizeof *models };

static const deberta_ablation mixed[] = {
    {.term = DEBERTA_P2C, .layer = 1, .head = DEBERTA_EVERY, .kind = DEBERTA_ABLATE_ZERO},
    {.term = DEBERTA_C2C, .layer = 0, .head = 1, .kind = DEBERTA_ABLATE_MEAN},
    {.term = DEBERTA_C2P, .layer = DEBERTA_EVERY, .head = 0, .kind = DEBERTA_ABLATE_MEAN},
    {.term = DEBERTA_P2C, .layer = 1, .head = 1, .kind = DEBERTA_ABLATE_MEAN}, /* takes over from the first */
    {.term = DEBERTA_C2C, .layer = 1, .head = 0, .kind = DEBERTA_ABLATE_ZERO},
};
enum { MIXED = sizeof mixed / sizeof *mixed };

static void make_ids(int32_t *ids, size_t count)
{
    for (size_t t = 0; t < count; t++) ids[t] = (int32_t)((t * 37 + 11) % 97);
}

/* Components, hidden states and head logits, the decoder's among them. */
TEST(test_equals_the_reference)
{
    int32_t ids[LONG];
    make_ids(ids, LONG);
    for (size_t m = 0; m < MODELS; m++) {
        verify_options options = {.seed = 1, .threads = 2, .ablations = mixed, .ablation_count = MIXED};
        verify_report report = {0};
        deberta_error error = {0};
        for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++)
            options.tiers[t] = !deberta_isa_missing((deberta_isa)t);
        if (verify_model(&report, &options, models[m], "", ids, (const size_t[]){0, LONG}, 1, &error) != DEBERTA_OK)
            fail_msg("%s", error.message);
        for (size_t k = 0; k < report.count; k++)
            if (!report.rows[k].passed)
                fail_msg("%s: %s, %s: %s", models[m], report.rows[k].subject, deberta_isa_name(report.rows[k].tier),
                         report.rows[k].where);
        assert_true(report.count > 10);
        scope_free(&report.memory);
    }
}

typedef struct run_request {
    const char *model;
    const deberta_ablation *ablations;
    size_t ablation_count, threads;
    const uint8_t *mask;
    term_selection terms;
    bool in_company; /* behind another sequence */
} run_request;

/* The last hidden states of the long sequence, [LONG][h]; to be freed. */
static float *encode(const run_request *request, size_t *h)
{
    OWN_MODEL *model = open_model(request->model);
    OWN_SESSION *session = NULL;
    deberta_error error = {0};
    const session_internal_options internal = {.terms = request->terms};
    const deberta_session_options options = {.struct_size = sizeof options,
                                             .max_tokens = LONG + SHORT,
                                             .threads = request->threads,
                                             .ablations = request->ablations,
                                             .ablation_count = request->ablation_count};
    if (session_create_internal(&session, model, &options, &internal, &error) != DEBERTA_OK)
        fail_msg("%s", error.message);
    int32_t ids[SHORT + LONG];
    const size_t before = request->in_company ? SHORT : 0;
    make_ids(ids, before);
    make_ids(ids + before, LONG);
    const size_t company[] = {0, SHORT, SHORT + LONG}, alone[] = {0, LONG};
    deberta_batch batch = request->in_company ? batch_of(ids, company, 2) : batch_of(ids, alone, 1);
    batch.mask = request->mask;
    const deberta_outputs outputs = encode_batch(session, &batch);
    *h = deberta_model_describe(model)->hidden_size;
    float *copy = malloc(LONG * *h * sizeof *copy);
    assert_non_null(copy);
    copy_rows(copy, &outputs, before, LONG, *h);
    return copy;
}

static void assert_same_bits(const run_request *a, const run_request *b)
{
    size_t h;
    FREED_BY(free_memory) float *x = encode(a, &h), *y = encode(b, &h);
    assert_memory_equal(x, y, LONG * h * sizeof *x);
}

TEST(test_threads_and_company)
{
    for (size_t m = 0; m < MODELS; m++) {
        const run_request one = {.model = models[m], .ablations = mixed, .ablation_count = MIXED, .threads = 1};
        run_request other = one;
        other.threads = 3;
        other.in_company = true;
        assert_same_bits(&one, &other);
    }
}

/* Zeros instead of a term are the same as leaving it out, which is another way through the code. */
TEST(test_zero_is_left_out)
{
    const deberta_ablation no_c2p = {.term = DEBERTA_C2P, .layer = DEBERTA_EVERY, .head = DEBERTA_EVERY};
    const deberta_ablation no_p2c = {.term = DEBERTA_P2C, .layer = DEBERTA_EVERY, .head = DEBERTA_EVERY};
    for (size_t m = 0; m < MODELS; m++) {
        run_request ablated = {.model = models[m], .ablations = &no_c2p, .ablation_count = 1, .threads = 1};
        run_request without = {.model = models[m], .threads = 1, .terms = TERM_SELECTION_C2C_P2C};
        assert_same_bits(&ablated, &without);
        ablated.ablations = &no_p2c;
        without.terms = TERM_SELECTION_C2C_C2P;
        assert_same_bits(&ablated, &without);
    }
}

/* Holes are no part of a mean. */
TEST(test_holes)
{
    uint8_t mask[LONG];
    int64_t ids[LONG];
    int32_t narrow[LONG];
    make_ids(narrow, LONG);
    for (size_t t = 0; t < LONG; t++) {
        mask[t] = t % 7 != 3;
        ids[t] = narrow[t];
    }
    size_t h;
    const run_request request = {
        .model = models[0], .ablations = mixed, .ablation_count = MIXED, .threads = 1, .mask = mask};
    FREED_BY(free_memory) float *found = encode(&request, &h);
    FREED_BY(reference_free) reference_model *model = NULL;
    deberta_error error = {0};
    const reference_input input = {.tokens = LONG,
                                   .ids = ids,
                                   .mask = mask,
                                   .padding = REFERENCE_PADDING_ZERO,
                                   .ablations = mixed,
                                   .ablation_count = MIXED};
    FREED_BY(free_memory) double *hidden = malloc(3 * LONG * h * sizeof *hidden);
    assert_non_null(hidden);
    assert_ok(reference_open(&model, models[0], DEBERTA_REFERENCE_MICROSOFT, &error));
    assert_ok(reference_encode(model, &input, hidden, NULL, &error));
    for (size_t t = 0; t < LONG; t++)
        for (size_t c = 0; c < h && mask[t]; c++) {
            const double expected = hidden[(2 * LONG + t) * h + c];
            if (!(fabs((double)found[t * h + c] - expected) < 1e-5))
                fail_msg("token %zu, column %zu: %g, expected %g", t, c, (double)found[t * h + c], expected);
        }
}

static void assert_refused(const deberta_model *model, const deberta_ablation *ablation, const char *words)
{
    deberta_session *session = NULL;
    deberta_error error = {0};
    const deberta_session_options options = {
        .struct_size = sizeof options, .max_tokens = 8, .threads = 1, .ablations = ablation, .ablation_count = 1};
    check_refused(deberta_session_create(&session, model, &options, &error), &error, DEBERTA_E_ARGUMENT, words);
    assert_null(session);
}

TEST(test_wrong_ones)
{
    static const struct {
        deberta_ablation ablation;
        const char *words;
    } cases[] = {{{.term = DEBERTA_LOGITS}, "component 3 is no term"},
                 {{.term = DEBERTA_P2C}, "has no term p2c; its terms are c2c, c2p"},
                 {{.layer = 2}, "layer 2 is out of range"},
                 {{.head = 2}, "head 2 is out of range"},
                 {{.kind = (deberta_ablation_kind)2}, "kind 2 does not exist"}};
    OWN_MODEL *model = open_model("synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,terms=c2p");
    FOR_ROWS(i, cases) assert_refused(model, &cases[i].ablation, cases[i].words);
    assert_refused(model, NULL, "no list");
}

TEST(test_of_a_text)
{
    deberta_error error = {0};
    deberta_ablation found[3];
    size_t count = 9;
    assert_ok(deberta_ablations_parse(found, &count, "c2p@3:5,p2c=mean@all,c2c=zero@0:all", &error));
    static const deberta_ablation expected[] = {{DEBERTA_C2P, 3, 5, DEBERTA_ABLATE_ZERO},
                                                {DEBERTA_P2C, DEBERTA_EVERY, DEBERTA_EVERY, DEBERTA_ABLATE_MEAN},
                                                {DEBERTA_C2C, 0, DEBERTA_EVERY, DEBERTA_ABLATE_ZERO}};
    assert_int_equal(count, 3);
    for (size_t k = 0; k < count; k++) {
        assert_int_equal(found[k].term, expected[k].term);
        assert_int_equal(found[k].layer, expected[k].layer);
        assert_int_equal(found[k].head, expected[k].head);
        assert_int_equal(found[k].kind, expected[k].kind);
    }
    static const char *const wrong[] = {"",       "c2p",       "c2p@",   "c2p@x",  "p2p@1",
                                        "c2p@-1", "c2p=max@1", "c2p@1:", "c2p@1,", "c2p@1048576"};
    FOR_ROWS(k, wrong) {
        check_refused(deberta_ablations_parse(found, &count, wrong[k], &error), &error, DEBERTA_E_ARGUMENT,
                      "expected term[=zero|=mean]@layer[:head]");
    }
    assert_int_equal(deberta_ablations_parse(NULL, &count, "c2p@1", &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_ablations_parse(found, NULL, "c2p@1", &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_ablations_parse(found, &count, NULL, &error), DEBERTA_E_ARGUMENT);
    deberta_vector_recipe recipe;
    assert_int_equal(deberta_vector_recipe_read(&recipe, NULL, &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_vector_recipe_read(NULL, "folder", &error), DEBERTA_E_ARGUMENT);
}
