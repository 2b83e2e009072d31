/* Edits of hidden states against the float64 reference with the same edits, a bias by table row against the c2p that an
 * observer sees, the relative table as it is read back, and what none of these may depend on.
 *
 * The cases are drawn; TEST_SEED in the environment draws others, and a failure prints it.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "tests/unit/model_helpers.h"

#include "analysis/reference/reference.h"
#include "analysis/reference/reference_math.h"
#include "analysis/reference/reference_weights.h"
#include "core/base/numbers.h"
#include "include/deberta_unstable.h"

enum { LAYERS = 2, TOKENS = 90, SHORT = 31, VOCABULARY = 97, WIDEST = 64, MOST_LOGITS = VOCABULARY, CASES = 12 };

/* 90 tokens are beyond the tables of all; the second has a convolution, the third the decoder, the last no positions.
 */
static const char *const models[] = {
    "synthetic:v1-base,layers=2,hidden=48,heads=4,intermediate=64,vocab=97,distance=16",
    "synthetic:v2-xlarge,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40",
    "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40,lm=1",
    "synthetic:v3-base,layers=2,hidden=56,heads=2,intermediate=64,vocab=97,terms=none",
};
enum { MODELS = sizeof models / sizeof *models, WITH_DECODER = 2, WITHOUT_POSITIONS = 3 };

static uint64_t first_seed(void)
{
    const char *given = getenv("TEST_SEED");
    return given ? strtoull(given, NULL, 10) : 1;
}

static void make_ids(int32_t *ids, size_t count)
{
    for (size_t t = 0; t < count; t++) ids[t] = (int32_t)((t * 37 + 11) % VOCABULARY);
}

/* -------------------------------------------------------------------------------------------------------- the edits */

/* Which layers are edited, and by how much: row t of a sequence becomes factor x row + a number of the column. */
typedef struct edit_plan {
    bool edits[LAYERS + 1];
    float factor, added;
    size_t from, to;                /* tokens of the sequence */
    size_t begin, seen[LAYERS + 1]; /* of the sequence in the batch; times called */
    deberta_status stop;            /* what the last layer's edit returns */
    deberta_session *session;       /* to be called in vain, or NULL */
} edit_plan;

static float added_to(const edit_plan *plan, size_t column) { return plan->added * (float)(column % 5); }

static deberta_status edit_floats(void *context, const deberta_hidden_edit *edit)
{
    edit_plan *plan = context;
    plan->seen[edit->layer]++;
    if (plan->session) assert_int_equal(deberta_session_intervene(plan->session, NULL, NULL), DEBERTA_E_ARGUMENT);
    for (size_t t = plan->from; plan->edits[edit->layer] && t < plan->to; t++) {
        float *row = edit->values + (plan->begin + t) * edit->stride;
        for (size_t c = 0; c < edit->columns; c++) row[c] = row[c] * plan->factor + added_to(plan, c);
    }
    return edit->layer == LAYERS ? plan->stop : DEBERTA_OK;
}

static size_t exact_width;

static void edit_doubles(void *context, size_t layer, double *hidden)
{
    const edit_plan *plan = context;
    for (size_t t = plan->from; plan->edits[layer] && t < plan->to; t++)
        for (size_t c = 0; c < exact_width; c++) {
            double *value = hidden + t * exact_width + c;
            *value = *value * (double)plan->factor + (double)added_to(plan, c);
        }
}

/* ------------------------------------------------------------------------------------------------------- the engine */

typedef struct run_request {
    const char *model;
    edit_plan *plan; /* NULL: nothing is set */
    const float *row_bias;
    deberta_precision precision;
    deberta_isa isa;
    size_t threads;
    bool in_company; /* behind another sequence, and before a third */
} run_request;

/* Of the sequence that is looked at: H[L] and the logits of the decoder, where there is one; and all that on_hidden
 * saw. */
typedef struct run_result {
    size_t width, logit_width;
    float hidden[TOKENS * WIDEST], logits[TOKENS * MOST_LOGITS], shown[LAYERS + 1][TOKENS * WIDEST];
    size_t begin;
} run_result;

static deberta_status keep_shown(void *context, const deberta_hidden_block *block)
{
    run_result *result = context;
    for (size_t t = 0; t < TOKENS; t++)
        memcpy(result->shown[block->layer] + t * block->columns, block->values + (result->begin + t) * block->stride,
               block->columns * sizeof(float));
    return DEBERTA_OK;
}

static void take_results(run_result *result, deberta_session *session, const deberta_model *model,
                         const deberta_outputs *outputs)
{
    size_t places[TOKENS];
    result->logit_width = deberta_task_width(model, DEBERTA_TASK_MLM_EMD);
    for (size_t t = 0; t < TOKENS; t++) places[t] = result->begin + t;
    copy_rows(result->hidden, outputs, result->begin, TOKENS, result->width);
    if (result->logit_width)
        assert_ok(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, places, TOKENS, result->logits,
                                      result->logit_width, NULL));
}

static deberta_status run(const run_request *request, run_result *result, deberta_error *error)
{
    OWN_MODEL *model = open_model_with(request->model, (deberta_model_options){.precision = request->precision});
    OWN_SESSION *session = open_session_with(
        model, (deberta_session_options){.isa = request->isa,
                                         .max_tokens = TOKENS + 2 * SHORT,
                                         .threads = request->threads,
                                         .features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_KEEP_DECODER_INPUT});
    const size_t before = request->in_company ? SHORT : 0;
    const size_t company[] = {0, SHORT, SHORT + TOKENS, TOKENS + 2 * SHORT}, alone[] = {0, TOKENS};
    int32_t ids[TOKENS + 2 * SHORT];
    make_ids(ids, before);
    make_ids(ids + before, TOKENS);
    make_ids(ids + before + TOKENS, SHORT);
    *result = (run_result){.width = deberta_model_describe(model)->hidden_size, .begin = before};
    const deberta_observer observer = {.struct_size = sizeof observer, .context = result, .on_hidden = keep_shown};
    deberta_batch batch = request->in_company ? batch_of(ids, company, 3) : batch_of(ids, alone, 1);
    batch.observer = &observer;
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    deberta_interventions changes = {.row_bias = request->row_bias};
    if (request->plan) {
        changes.context = request->plan;
        changes.edit_hidden = edit_floats;
        request->plan->begin = before;
        if (request->plan->session) request->plan->session = session;
    }
    if (request->plan || request->row_bias) assert_ok(deberta_session_intervene(session, &changes, error));
    const deberta_status status = deberta_encode(session, &batch, &outputs, error);
    if (status == DEBERTA_OK) take_results(result, session, model, &outputs);
    return status;
}

static void assert_same_bits(const run_request *a, const run_request *b)
{
    FREED_BY(free_memory) run_result *x = malloc(2 * sizeof *x);
    assert_non_null(x);
    assert_ok(run(a, &x[0], NULL));
    assert_ok(run(b, &x[1], NULL));
    x[1].begin = x[0].begin;
    if (memcmp(&x[0], &x[1], sizeof *x) != 0)
        fail_msg("%s: other bits (seed %llu)", a->model, (unsigned long long)first_seed());
}

/* ---------------------------------------------------------------------------------------------------------- float64 */

static edit_plan draw_plan(uint64_t *random)
{
    edit_plan plan = {.factor = (float)(0.5 + random_fraction(random)),
                      .added = (float)(random_fraction(random) - 0.5)};
    for (size_t layer = 0; layer <= LAYERS; layer++) plan.edits[layer] = random_below(random, 2);
    plan.edits[random_below(random, LAYERS + 1)] = true;
    plan.from = random_below(random, TOKENS);
    plan.to = plan.from + 1 + random_below(random, TOKENS - plan.from);
    return plan;
}

static void assert_near(const char *what, const char *model, const float *found, const double *expected, size_t count)
{
    double largest = 1;
    for (size_t k = 0; k < count; k++) largest = fmax(largest, fabs(expected[k]));
    for (size_t k = 0; k < count; k++)
        if (!(fabs((double)found[k] - expected[k]) < 2e-5 * largest))
            fail_msg("%s, %s, value %zu: %g, expected %g (seed %llu)", model, what, k, (double)found[k], expected[k],
                     (unsigned long long)first_seed());
}

static void compare_with_float64(const char *path, edit_plan *plan, const run_result *found)
{
    FREED_BY(reference_free) reference_model *reference = NULL;
    int32_t narrow[TOKENS];
    int64_t ids[TOKENS];
    make_ids(narrow, TOKENS);
    for (size_t t = 0; t < TOKENS; t++) ids[t] = narrow[t];
    const reference_input input = {.tokens = TOKENS, .ids = ids, .edit_hidden = edit_doubles, .edit_context = plan};
    const size_t step = TOKENS * found->width;
    double *hidden = malloc((LAYERS + 1) * step * sizeof *hidden),
           *logits = malloc(TOKENS * MOST_LOGITS * sizeof *logits);
    assert_non_null(hidden);
    assert_non_null(logits);
    exact_width = found->width;
    assert_ok(reference_open(&reference, path, DEBERTA_REFERENCE_MICROSOFT, NULL));
    assert_ok(reference_encode(reference, &input, hidden, NULL, NULL));
    for (size_t layer = 0; layer <= LAYERS; layer++)
        assert_near("hidden states", path, found->shown[layer], hidden + layer * step, step);
    assert_near("H[L]", path, found->hidden, hidden + LAYERS * step, step);
    if (found->logit_width) {
        assert_ok(reference_head_logits(reference, DEBERTA_TASK_MLM_EMD, &input, hidden, logits, NULL));
        assert_near("logits after the decoder", path, found->logits, logits, TOKENS * found->logit_width);
    }
    free(hidden);
    free(logits);
}

/* Hidden states of every layer, and the decoder's logits, on the best tier and without vectors. */
TEST(test_edits_equal_float64)
{
    uint64_t random = first_seed();
    FREED_BY(free_memory) run_result *found = malloc(sizeof *found);
    assert_non_null(found);
    for (size_t k = 0; k < CASES; k++) {
        edit_plan plan = draw_plan(&random);
        const run_request request = {.model = models[k % MODELS],
                                     .plan = &plan,
                                     .isa = random_below(&random, 2) ? DEBERTA_ISA_AUTO : DEBERTA_ISA_SCALAR,
                                     .threads = 1 + random_below(&random, 2),
                                     .in_company = random_below(&random, 2)};
        assert_ok(run(&request, found, NULL));
        for (size_t layer = 0; layer <= LAYERS; layer++) assert_int_equal(plan.seen[layer], 1);
        compare_with_float64(request.model, &plan, found);
    }
}

/* ---------------------------------------------------------------------------------------------- what moves no bit */

TEST(test_identity_changes_no_bit)
{
    for (size_t m = 0; m < MODELS; m++)
        for (int precision = 0; precision < DEBERTA_PRECISION_COUNT; precision++) {
            edit_plan nothing = {.factor = 1, .edits = {true, true, true}, .to = TOKENS};
            const run_request plain = {.model = models[m], .precision = (deberta_precision)precision, .threads = 1};
            run_request edited = plain;
            edited.plan = &nothing;
            assert_same_bits(&plain, &edited);
        }
}

/* Of an edit and a bias: threads, tiers, and other sequences in the batch, in every precision. */
TEST(test_threads_tiers_and_company)
{
    static float bias[LAYERS * 4 * 2 * 512];
    uint64_t random = first_seed();
    FOR_ROWS(k, bias) bias[k] = (float)(random_fraction(&random) - 0.5);
    for (size_t m = 0; m < MODELS; m++)
        for (int precision = 0; precision < DEBERTA_PRECISION_COUNT; precision++) {
            edit_plan plan = draw_plan(&random);
            const run_request one = {.model = models[m],
                                     .plan = &plan,
                                     .row_bias = m == WITHOUT_POSITIONS ? NULL : bias,
                                     .precision = (deberta_precision)precision,
                                     .isa = DEBERTA_ISA_SCALAR,
                                     .threads = 1};
            run_request other = one;
            other.isa = DEBERTA_ISA_AUTO;
            other.threads = 3;
            other.in_company = true;
            assert_same_bits(&one, &other);
        }
}

/* -------------------------------------------------------------------------------------------------- the bias by row */

typedef struct kept_terms {
    float c2p[4][TOKENS * TOKENS], logits[4][TOKENS * TOKENS];
} kept_terms;

static int wants_c2p(void *context, size_t layer, size_t head, deberta_component component)
{
    (void)context, (void)head;
    return layer == 0 && (component == DEBERTA_C2P || component == DEBERTA_LOGITS);
}

static deberta_status keep_terms(void *context, const deberta_attention_block *block)
{
    kept_terms *kept = context;
    float *to = block->component == DEBERTA_C2P ? kept->c2p[block->head] : kept->logits[block->head];
    for (size_t i = 0; i < block->rows; i++)
        memcpy(to + (block->first_query + i) * TOKENS, block->values + i * block->stride, TOKENS * sizeof *to);
    return DEBERTA_OK;
}

static void observe_terms(const deberta_model *model, const float *row_bias, kept_terms *kept)
{
    OWN_SESSION *session = open_session_with(
        model, (deberta_session_options){.max_tokens = TOKENS, .threads = 1, .features = DEBERTA_OBSERVE_ATTENTION});
    assert_ok(deberta_session_intervene(session, &(deberta_interventions){.row_bias = row_bias}, NULL));
    int32_t ids[TOKENS];
    make_ids(ids, TOKENS);
    const deberta_observer observer = {
        .struct_size = sizeof observer, .context = kept, .wants_attention = wants_c2p, .on_attention = keep_terms};
    deberta_batch batch = batch_of(ids, (const size_t[]){0, TOKENS}, 1);
    batch.observer = &observer;
    encode_batch(session, &batch);
}

TEST(test_bias_is_added_to_c2p)
{
    uint64_t random = first_seed();
    FREED_BY(free_memory) kept_terms *kept = malloc(2 * sizeof *kept);
    assert_non_null(kept);
    for (size_t m = 0; m < WITHOUT_POSITIONS; m++)
        for (int precision = 0; precision < DEBERTA_PRECISION_COUNT; precision++) {
            OWN_MODEL *model =
                open_model_with(models[m], (deberta_model_options){.precision = (deberta_precision)precision});
            const deberta_model_info *info = deberta_model_describe(model);
            FREED_BY(free_memory) float *bias = calloc(info->layers * info->heads, info->relative_rows * sizeof *bias);
            assert_non_null(bias);
            for (size_t k = 0; k < info->layers * info->heads * info->relative_rows; k++)
                bias[k] = (float)(4 * random_fraction(&random) - 2);
            observe_terms(model, NULL, &kept[0]);
            observe_terms(model, bias, &kept[1]);
            for (size_t head = 0; head < info->heads; head++)
                for (size_t at = 0; at < TOKENS * TOKENS; at++) {
                    const ptrdiff_t distance = (ptrdiff_t)(at / TOKENS) - (ptrdiff_t)(at % TOKENS);
                    const size_t row = deberta_position_row(info, DEBERTA_REFERENCE_MICROSOFT, distance);
                    const float own = bias[head * info->relative_rows + row];
                    if (kept[0].c2p[head][at] + own != kept[1].c2p[head][at] ||
                        fabsf(kept[0].logits[head][at] + own - kept[1].logits[head][at]) > 1e-5f)
                        fail_msg("%s, head %zu, distance %td", models[m], head, distance);
                }
        }
}

/* Changes made between an encode and its heads are of the next encode, also where heads run the last layer. */
TEST(test_changes_wait_for_the_next_encode)
{
    static const size_t place[] = {3};
    static const unsigned features[] = {DEBERTA_KEEP_DECODER_INPUT, DEBERTA_KEEP_DECODER_INPUT | DEBERTA_ONLY_HEADS};
    static const deberta_task heads[] = {DEBERTA_TASK_MLM, DEBERTA_TASK_MLM_EMD};
    deberta_error error = {0};
    OWN_MODEL *model = open_model(models[WITH_DECODER]);
    const deberta_model_info *info = deberta_model_describe(model);
    const size_t count = info->layers * info->heads * info->relative_rows;
    FREED_BY(free_memory) float *bias = calloc(count, sizeof *bias);
    assert_non_null(bias);
    for (size_t k = 0; k < count; k++) bias[k] = (float)(k % 7) - 3;
    /* sequences that no batch has */
    const deberta_patch patch = {.place = DEBERTA_PATCH_HEAD, .layer = LAYERS - 1, .sequence = 1u << 20, .from = 1};
    const deberta_interventions later[] = {{.row_bias = bias}, {.patches = &patch, .patch_count = 1}};
    int32_t ids[SHORT];
    make_ids(ids, SHORT);
    const deberta_batch batch = batch_of(ids, (const size_t[]){0, SHORT}, 1);
    FOR_ROWS(f, features)
        FOR_ROWS(k, later)
            FOR_ROWS(head, heads) {
                float first[VOCABULARY], again[VOCABULARY];
                const deberta_session_options options = {
                    .struct_size = sizeof options, .threads = 1, .features = features[f]};
                OWN_SESSION *session = NULL;
                deberta_outputs outputs = {.struct_size = sizeof outputs};
                assert_ok(deberta_session_create(&session, model, &options, &error));
                assert_ok(deberta_encode(session, &batch, &outputs, &error));
                assert_ok(deberta_task_logits(session, heads[head], place, 1, first, VOCABULARY, &error));
                assert_ok(deberta_session_intervene(session, &later[k], &error));
                assert_ok(deberta_task_logits(session, heads[head], place, 1, again, VOCABULARY, &error));
                assert_memory_equal(first, again, sizeof first);
                const deberta_status status = deberta_encode(session, &batch, &outputs, &error);
                assert_int_equal(status, k == 0 ? DEBERTA_OK : DEBERTA_E_ARGUMENT);
                if (status != DEBERTA_OK) continue;
                assert_ok(deberta_task_logits(session, heads[head], place, 1, again, VOCABULARY, &error));
                assert_true(memcmp(first, again, sizeof first) != 0);
            }
}

/* x . w' + b, one output; w [H][h]. */
static double project(const double *x, const double *w, const double *b, size_t column, size_t h)
{
    return reference_dot(x, w + column * h, h) + (b ? b[column] : 0);
}

/* The table in a layer's projections, from float64 weights. */
TEST(test_positions_are_read_back)
{
    for (size_t m = 0; m < WITHOUT_POSITIONS; m++) {
        OWN_MODEL *model = open_model(models[m]);
        FREED_BY(reference_free) reference_model *reference = NULL;
        layer_weights w;
        assert_ok(reference_open(&reference, models[m], DEBERTA_REFERENCE_MICROSOFT, NULL));
        assert_ok(layer_weights_read(reference, 1, &w, NULL));
        const deberta_model_info *info = deberta_model_describe(model);
        const size_t h = info->hidden_size, d = info->head_size, rows = info->relative_rows;
        float *keys = malloc(2 * rows * info->heads * d * sizeof *keys), *queries = keys + rows * info->heads * d;
        assert_non_null(keys);
        assert_ok(deberta_model_read_positions(model, 1, keys, queries, NULL));
        for (size_t row = 0; row < rows; row++)
            for (size_t column = 0; column < info->heads * d; column++) {
                const size_t at = (column / d * rows + row) * d + column % d;
                const double *x = reference->relative + row * h;
                const double key = project(x, w.position_key_weight, w.position_key_bias, column, h),
                             query = project(x, w.position_query_weight, w.position_query_bias, column, h);
                if (fabs((double)keys[at] - key) > 1e-4 ||
                    fabs((double)queries[at] - query / sqrt(3.0 * (double)d)) > 1e-4)
                    fail_msg("%s, row %zu, column %zu", models[m], row, column);
            }
        shelf_clear(&w.shelf);
        free(keys);
    }
}

/* --------------------------------------------------------------------------------------------------------- wrong use */

TEST(test_wrong_use)
{
    deberta_error error = {0};
    OWN_MODEL *model = open_model(models[WITHOUT_POSITIONS]);
    OWN_SESSION *session = NULL;
    float values[1];
    assert_int_equal(deberta_session_intervene(NULL, NULL, &error), DEBERTA_E_ARGUMENT);
    assert_ok(deberta_session_create(&session, model, NULL, NULL));
    check_refused(deberta_session_intervene(session, &(deberta_interventions){.row_bias = values}, &error), &error,
                  DEBERTA_E_UNSUPPORTED, "has no c2p");
    assert_int_equal(deberta_model_read_positions(model, 0, values, NULL, &error), DEBERTA_E_UNSUPPORTED);
    assert_int_equal(deberta_model_read_positions(model, LAYERS, NULL, NULL, &error), DEBERTA_E_ARGUMENT);
}

/* Its status is that of the encode; its own session refuses it. */
TEST(test_an_edit_that_stops)
{
    deberta_error error = {0};
    FREED_BY(free_memory) run_result *found = malloc(sizeof *found);
    assert_non_null(found);
    edit_plan plan = {.factor = 1, .stop = 7, .session = (deberta_session *)&error}; /* replaced by the one that runs */
    const run_request request = {.model = models[WITH_DECODER], .plan = &plan, .threads = 2};
    assert_int_equal(run(&request, found, &error), 7);
    assert_string_equal(error.message, "the edit of hidden states 2 stopped the encode with status 7");
}
