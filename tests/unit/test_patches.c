/* Activation patches against the float64 reference with the same patches, and what they may not move: a sequence that
 * is not patched, a place that takes its own value, threads, tiers, company, the layer at which an encode begins.
 *
 * The cases are drawn; TEST_SEED in the environment draws others, and a failure prints it.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "tests/unit/model_helpers.h"

#include "analysis/reference/reference.h"
#include "core/base/numbers.h"
#include "core/encode/session.h"
#include "include/deberta_unstable.h"

enum { MOST_TOKENS = 90, COMPANY = 21, VARIANTS = 3, MOST_PATCHES = 4, SEQUENCES = 3 + VARIANTS, CASES = 44 };
enum { COMPANY_AT, CLEAN, CORRUPTED, FIRST_VARIANT };

/* 90 tokens are beyond the tables of the made-up ones; the golden ones have position projections of their own, a
 * convolution, talking heads, a decoder after a convolution. */
static const char *const models[] = {
    "synthetic:v1-base,layers=2,hidden=48,heads=4,intermediate=64,vocab=97,distance=16",
    "synthetic:v2-xlarge,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40",
    "synthetic:v3-base,layers=3,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40,lm=1",
    "synthetic:v3-base,layers=2,hidden=56,heads=2,intermediate=64,vocab=97,terms=none",
    "tests/golden/02-v1-c2p-n7",
    "tests/golden/08-v1-talking-head",
    "tests/golden/11-v2-b4-n33-noshare",
    "tests/golden/13-v2-b8-n33-p2c",
    "tests/golden/20-v2-conv-gelu-b3",
    "tests/golden/33-v3-mlm-emd",
    "tests/golden/34-v2-conv-mlm-emd",
};

static uint64_t first_seed(void)
{
    const char *given = getenv("TEST_SEED");
    return given ? strtoull(given, NULL, 10) : 1;
}

/* --------------------------------------------------------------------------------------------------------- the case */

/* Company, a clean text, a corrupted one, and variants of it, which take some places of the clean text. */
typedef struct drawn_patches {
    size_t n, starts[SEQUENCES + 1];
    int32_t ids[COMPANY + (SEQUENCES - 1) * MOST_TOKENS];
    uint8_t mask[COMPANY + (SEQUENCES - 1) * MOST_TOKENS];
    deberta_patch patches[VARIANTS * MOST_PATCHES];
    size_t patch_count, of[VARIANTS + 1];    /* of: the first patch of each variant */
    size_t places[MOST_TOKENS], place_count; /* that the decoder is asked for, in each sequence */
    size_t positions[SEQUENCES * MOST_TOKENS], position_count;
    deberta_ablation ablations[2];
    size_t ablation_count;
} drawn_patches;

static deberta_patch draw_patch(const deberta_model_info *info, size_t n, size_t sequence, uint64_t *random)
{
    deberta_patch patch = {.place = (deberta_patch_place)random_below(random, 3), .sequence = sequence, .from = CLEAN};
    const bool state = patch.place == DEBERTA_PATCH_STATE;
    patch.layer = random_below(random, info->layers + (state ? 1 : 0));
    patch.index = random_below(random, state ? n : info->heads);
    if (random_below(random, 6) == 0) patch.index = DEBERTA_EVERY;
    if (!state && random_below(random, 6) == 0) patch.layer = DEBERTA_EVERY;
    do patch.term = (deberta_component)random_below(random, 3);
    while ((patch.term == DEBERTA_C2P && !info->has_c2p) || (patch.term == DEBERTA_P2C && !info->has_p2c));
    return patch;
}

static void draw_ablations(drawn_patches *drawn, const deberta_model_info *info, uint64_t *random)
{
    drawn->ablation_count = random_below(random, 3) ? 0 : 1 + random_below(random, 2);
    for (size_t k = 0; k < drawn->ablation_count; k++) {
        const deberta_patch like = draw_patch(info, 1, 0, random);
        drawn->ablations[k] =
            (deberta_ablation){.term = like.term,
                               .layer = DEBERTA_EVERY,
                               .head = random_below(random, info->heads),
                               .kind = random_below(random, 2) ? DEBERTA_ABLATE_MEAN : DEBERTA_ABLATE_ZERO};
    }
}

/* The clean text and the corrupted one share a mask now and then, and have their own else. */
static void draw_texts(drawn_patches *drawn, const deberta_model_info *info, uint64_t *random)
{
    const bool holes = random_below(random, 3) == 0;
    for (size_t s = 0, at = 0; s < SEQUENCES; s++) {
        const size_t length = s == COMPANY_AT ? COMPANY : drawn->n;
        drawn->starts[s] = at;
        for (size_t t = 0; t < length; t++, at++) {
            drawn->ids[at] = (int32_t)random_below(random, info->vocabulary_size);
            drawn->mask[at] = !holes || t == 0 || random_below(random, 4) > 0;
            if (s < FIRST_VARIANT) continue;
            drawn->ids[at] = drawn->ids[drawn->starts[CORRUPTED] + t];
            drawn->mask[at] = drawn->mask[drawn->starts[CORRUPTED] + t];
        }
        drawn->starts[s + 1] = at;
    }
}

static void draw_case(drawn_patches *drawn, const deberta_model_info *info, uint64_t *random)
{
    size_t longest = MOST_TOKENS;
    if (info->has_position_table && info->max_positions < longest) longest = info->max_positions;
    *drawn = (drawn_patches){.n = random_below(random, 4) ? 1 + random_below(random, longest) : 1};
    draw_texts(drawn, info, random);
    draw_ablations(drawn, info, random);
    for (size_t v = 0; v < VARIANTS; v++) {
        drawn->of[v] = drawn->patch_count;
        for (size_t k = 1 + random_below(random, MOST_PATCHES); k > 0; k--)
            drawn->patches[drawn->patch_count++] = draw_patch(info, drawn->n, FIRST_VARIANT + v, random);
    }
    drawn->of[VARIANTS] = drawn->patch_count;
    for (size_t t = 0; t < drawn->n; t++)
        if (t == 0 || random_below(random, 2)) drawn->places[drawn->place_count++] = t;
    for (size_t s = CLEAN; s < SEQUENCES; s++)
        for (size_t k = 0; k < drawn->place_count; k++)
            drawn->positions[drawn->position_count++] = drawn->starts[s] + drawn->places[k];
}

/* ------------------------------------------------------------------------------------------------------- the engine */

typedef struct run_request {
    const drawn_patches *drawn;
    const deberta_patch *patches;
    size_t patch_count;
    deberta_isa isa;
    size_t threads, first_layer;
    const float *states; /* [tokens][h] of H[first_layer] */
    float *seen;         /* [L + 1][tokens][h], or NULL */
} run_request;

typedef struct run_result {
    size_t width, logit_width;
    float *hidden, *logits; /* [tokens][width], [position_count][logit_width] */
} run_result;

static void free_result(run_result *result)
{
    free(result->hidden);
    free(result->logits);
}

typedef struct state_work {
    const run_request *request;
    size_t width;
} state_work;

static deberta_status give_states(void *context, const deberta_hidden_edit *edit)
{
    const state_work *work = context;
    const run_request *request = work->request;
    for (size_t t = 0; t < edit->tokens; t++) {
        float *row = edit->values + t * edit->stride;
        if (request->states && edit->layer == request->first_layer)
            memcpy(row, request->states + t * work->width, work->width * sizeof *row);
        if (request->seen)
            memcpy(request->seen + (edit->layer * edit->tokens + t) * work->width, row, work->width * sizeof *row);
    }
    return DEBERTA_OK;
}

static run_result run(const deberta_model *model, const run_request *request)
{
    const drawn_patches *drawn = request->drawn;
    const size_t tokens = drawn->starts[SEQUENCES];
    OWN_SESSION *session = open_session_with(
        model, (deberta_session_options){.isa = request->isa,
                                         .max_tokens = tokens,
                                         .threads = request->threads,
                                         .ablations = drawn->ablations,
                                         .ablation_count = drawn->ablation_count,
                                         .features = DEBERTA_KEEP_DECODER_INPUT | DEBERTA_PATCH_TERMS});
    state_work work = {.request = request, .width = deberta_model_describe(model)->hidden_size};
    const deberta_interventions changes = {.context = &work,
                                           .edit_hidden = request->seen || request->states ? give_states : NULL,
                                           .patches = request->patches,
                                           .patch_count = request->patch_count,
                                           .first_layer = request->first_layer};
    deberta_batch batch = batch_of(drawn->ids, drawn->starts, SEQUENCES);
    batch.mask = drawn->mask;
    assert_ok(deberta_session_intervene(session, &changes, NULL));
    const deberta_outputs outputs = encode_batch(session, &batch);
    run_result result = {.width = work.width, .logit_width = deberta_task_width(model, DEBERTA_TASK_MLM_EMD)};
    result.hidden = malloc(tokens * result.width * sizeof *result.hidden);
    assert_non_null(result.hidden);
    copy_rows(result.hidden, &outputs, 0, tokens, result.width);
    if (!result.logit_width) return result;
    result.logits = malloc(drawn->position_count * result.logit_width * sizeof *result.logits);
    assert_non_null(result.logits);
    assert_ok(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, drawn->positions, drawn->position_count, result.logits,
                                  result.logit_width, NULL));
    return result;
}

/* Of one sequence of one result and one of another: all rows but those of holes, and the logits. */
static bool same_bits(const drawn_patches *drawn, const run_result *a, size_t of_a, const run_result *b, size_t of_b)
{
    const size_t n = drawn->starts[of_a + 1] - drawn->starts[of_a];
    for (size_t t = 0; t < n; t++)
        if (drawn->mask[drawn->starts[of_a] + t] &&
            memcmp(a->hidden + (drawn->starts[of_a] + t) * a->width, b->hidden + (drawn->starts[of_b] + t) * b->width,
                   a->width * sizeof *a->hidden) != 0)
            return false;
    if (!a->logit_width || of_a == COMPANY_AT) return true;
    for (size_t k = 0; k < drawn->place_count; k++)
        if (drawn->mask[drawn->starts[of_a] + drawn->places[k]] &&
            memcmp(a->logits + ((of_a - CLEAN) * drawn->place_count + k) * a->logit_width,
                   b->logits + ((of_b - CLEAN) * drawn->place_count + k) * a->logit_width,
                   a->logit_width * sizeof *a->logits) != 0)
            return false;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- float64 */

typedef struct exact_run {
    double *hidden, *logits; /* [L + 1][n][h], [n][width] */
} exact_run;

static void assert_near(const drawn_patches *drawn, size_t number, size_t sequence, const run_result *found,
                        const exact_run *exact, size_t layers)
{
    const double *hidden = exact->hidden + layers * drawn->n * found->width;
    double worst = 0, largest = 1;
    for (size_t t = 0; t < drawn->n; t++)
        for (size_t c = 0; c < found->width && drawn->mask[drawn->starts[sequence] + t]; c++) {
            const double expected = hidden[t * found->width + c];
            largest = fmax(largest, fabs(expected));
            worst =
                fmax(worst, fabs((double)found->hidden[(drawn->starts[sequence] + t) * found->width + c] - expected));
        }
    for (size_t k = 0; k < drawn->place_count && found->logit_width; k++)
        for (size_t c = 0; c < found->logit_width && drawn->mask[drawn->starts[sequence] + drawn->places[k]]; c++) {
            const double expected = exact->logits[drawn->places[k] * found->logit_width + c];
            const float value = found->logits[((sequence - CLEAN) * drawn->place_count + k) * found->logit_width + c];
            largest = fmax(largest, fabs(expected));
            worst = fmax(worst, fabs((double)value - expected));
        }
    if (!(worst < 3e-5 * largest))
        fail_msg("case %zu, sequence %zu of %zu tokens: differs by %g of %g (seed %llu)", number, sequence, drawn->n,
                 worst, largest, (unsigned long long)first_seed());
}

static void compare_with_float64(const reference_model *reference, const drawn_patches *drawn, size_t number,
                                 const run_result *found)
{
    int64_t ids[SEQUENCES * MOST_TOKENS];
    reference_record record;
    const size_t layers = reference->config.layers;
    exact_run exact = {calloc((layers + 1) * drawn->n * found->width, sizeof(double)),
                       calloc(drawn->n * found->logit_width + 1, sizeof(double))};
    assert_ok(reference_record_make(&record, reference, drawn->n, NULL));
    for (size_t k = 0; k < drawn->starts[SEQUENCES]; k++) ids[k] = drawn->ids[k];
    for (size_t s = CLEAN; s < SEQUENCES; s++) {
        const size_t v = s - FIRST_VARIANT;
        reference_input input = {.tokens = drawn->n,
                                 .ids = ids + drawn->starts[s],
                                 .mask = drawn->mask + drawn->starts[s],
                                 .padding = REFERENCE_PADDING_KEPT,
                                 .ablations = drawn->ablations,
                                 .ablation_count = drawn->ablation_count,
                                 .record = s == CLEAN ? &record : NULL};
        if (s >= FIRST_VARIANT) {
            input.patches = drawn->patches + drawn->of[v];
            input.patch_count = drawn->of[v + 1] - drawn->of[v];
            input.donor = &record;
        }
        assert_ok(reference_encode(reference, &input, exact.hidden, NULL, NULL));
        if (found->logit_width)
            assert_ok(reference_head_logits(reference, DEBERTA_TASK_MLM_EMD, &input, exact.hidden, exact.logits, NULL));
        assert_near(drawn, number, s, found, &exact, layers);
    }
    free(record.hidden);
    free(exact.hidden);
    free(exact.logits);
}

/* Every case against float64; without patches the other sequences have the same bits, and a place that takes its own
 * value gives the corrupted text's. */
TEST(test_patches_equal_float64)
{
    uint64_t random = first_seed();
    FREED_BY(free_memory) drawn_patches *drawn = malloc(sizeof *drawn);
    assert_non_null(drawn);
    for (size_t k = 0; k < CASES; k++) {
        const char *path = models[k % COUNT_OF(models)];
        OWN_MODEL *model = open_model(path);
        FREED_BY(reference_free) reference_model *reference = NULL;
        assert_ok(reference_open(&reference, path, deberta_model_describe(model)->reference, NULL));
        draw_case(drawn, deberta_model_describe(model), &random);
        const run_request request = {.drawn = drawn,
                                     .patches = drawn->patches,
                                     .patch_count = drawn->patch_count,
                                     .isa = random_below(&random, 2) ? DEBERTA_ISA_AUTO : DEBERTA_ISA_SCALAR,
                                     .threads = 1 + random_below(&random, 3)};
        run_request plain = request, own = request;
        deberta_patch of_itself[VARIANTS * MOST_PATCHES];
        memcpy(of_itself, drawn->patches, sizeof of_itself);
        for (size_t p = 0; p < drawn->patch_count; p++) of_itself[p].from = of_itself[p].sequence;
        plain.patches = NULL;
        plain.patch_count = 0;
        plain.isa = DEBERTA_ISA_AUTO;
        own.patches = of_itself;
        FREED_BY(free_result)
        run_result found = run(model, &request), unpatched = run(model, &plain), itself = run(model, &own);
        compare_with_float64(reference, drawn, k, &found);
        for (size_t s = 0; s < SEQUENCES; s++) {
            assert_true(same_bits(drawn, &itself, s, &unpatched, s));
            if (s < FIRST_VARIANT) assert_true(same_bits(drawn, &found, s, &unpatched, s));
        }
    }
}

/* --------------------------------------------------------------------------------------------- what moves no bit */

/* Threads and tiers; and an encode that begins in the middle, from states that were seen. */
TEST(test_tiers_threads_and_beginnings)
{
    uint64_t random = first_seed() + 1;
    FREED_BY(free_memory) drawn_patches *drawn = malloc(sizeof *drawn);
    assert_non_null(drawn);
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        OWN_MODEL *model = open_model(models[m]);
        const deberta_model_info *info = deberta_model_describe(model);
        draw_case(drawn, info, &random);
        const size_t tokens = drawn->starts[SEQUENCES], step = tokens * info->hidden_size;
        FREED_BY(free_memory) float *seen = calloc((info->layers + 1) * step, sizeof *seen);
        assert_non_null(seen);
        const size_t first = 1 + random_below(&random, info->layers - 1);
        for (size_t p = 0; p < drawn->patch_count; p++) { /* an encode from H[first] makes those from there on */
            deberta_patch *patch = &drawn->patches[p];
            if (patch->layer == DEBERTA_EVERY || patch->layer < first) patch->layer = first;
            if (patch->place != DEBERTA_PATCH_STATE && patch->layer == info->layers) patch->layer--;
        }
        const run_request one = {.drawn = drawn,
                                 .patches = drawn->patches,
                                 .patch_count = drawn->patch_count,
                                 .isa = DEBERTA_ISA_SCALAR,
                                 .threads = 1,
                                 .seen = seen};
        run_request other = one, later = one;
        other.isa = DEBERTA_ISA_AUTO;
        other.threads = 3;
        FREED_BY(free_result) run_result a = run(model, &one);
        later.seen = NULL;
        later.first_layer = first;
        later.states = seen + first * step;
        FREED_BY(free_result) run_result b = run(model, &other), c = run(model, &later);
        for (size_t s = 0; s < SEQUENCES; s++) {
            assert_true(same_bits(drawn, &a, s, &b, s));
            assert_true(same_bits(drawn, &a, s, &c, s));
        }
    }
}

/* All rows of H[l], at any l that something reads, give the clean text's answer, in every precision. */
TEST(test_all_states_give_the_clean_answer)
{
    uint64_t random = first_seed() + 2;
    FREED_BY(free_memory) drawn_patches *drawn = malloc(sizeof *drawn);
    assert_non_null(drawn);
    for (size_t k = 0; k < DEBERTA_PRECISION_COUNT * COUNT_OF(models); k++) {
        const deberta_precision precision = (deberta_precision)(k % DEBERTA_PRECISION_COUNT);
        OWN_MODEL *model =
            open_model_with(models[k / DEBERTA_PRECISION_COUNT], (deberta_model_options){.precision = precision});
        const deberta_model_info *info = deberta_model_describe(model);
        draw_case(drawn, info, &random);
        memcpy(drawn->mask + drawn->starts[CORRUPTED], drawn->mask + drawn->starts[CLEAN], drawn->n);
        memcpy(drawn->mask + drawn->starts[FIRST_VARIANT], drawn->mask + drawn->starts[CLEAN], drawn->n);
        for (size_t layer = 0; layer < info->layers; layer++) {
            /* The convolution after the first layer reads H[0]. */
            if (info->convolution_width > 0 && layer == 1) continue;
            const deberta_patch every[] = {{.place = DEBERTA_PATCH_STATE,
                                            .layer = layer,
                                            .index = DEBERTA_EVERY,
                                            .sequence = FIRST_VARIANT,
                                            .from = CLEAN}};
            const run_request request = {.drawn = drawn, .patches = every, .patch_count = 1, .threads = 1};
            FREED_BY(free_result) run_result found = run(model, &request);
            assert_true(same_bits(drawn, &found, FIRST_VARIANT, &found, CLEAN));
            assert_true(drawn->n < 3 || !same_bits(drawn, &found, CORRUPTED, &found, CLEAN));
        }
    }
}

/* --------------------------------------------------------------------------------------------------------- wrong use */

static void refuse(deberta_session *session, const deberta_patch *patch, const char *words)
{
    static const int32_t ids[] = {1, 2, 3, 4, 5, 6, 7};
    static const size_t starts[] = {0, 2, 4, 7};
    deberta_error error = {0};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    const deberta_batch batch = batch_of(ids, starts, 3);
    const deberta_interventions changes = {.patches = patch, .patch_count = 1};
    deberta_status status = deberta_session_intervene(session, &changes, &error);
    if (status == DEBERTA_OK) status = deberta_encode(session, &batch, &outputs, &error);
    assert_int_equal(status, DEBERTA_E_ARGUMENT);
    if (!strstr(error.message, words)) fail_msg("'%s' does not say '%s'", error.message, words);
    assert_ok(deberta_session_intervene(session, NULL, NULL));
}

TEST(test_wrong_use)
{
    static const struct {
        deberta_patch patch;
        const char *words;
    } cases[] = {
        {{.place = (deberta_patch_place)3}, "patch 0: place 3 does not exist"},
        {{.layer = 4}, "hidden state 4 is out of range"},
        {{.place = DEBERTA_PATCH_HEAD, .layer = 3}, "layer 3 is out of range"},
        {{.place = DEBERTA_PATCH_HEAD, .index = 2}, "head 2 is out of range"},
        {{.place = DEBERTA_PATCH_TERM, .term = DEBERTA_LOGITS}, "term 3 does not exist"},
        {{.sequence = 3}, "the batch has 3 sequences, and no sequence 3"},
        {{.sequence = 1, .from = 2}, "sequence 1 has 2 tokens, and sequence 2, from which it takes, 3"},
        {{.sequence = 1, .index = 2}, "sequence 1 has 2 tokens, and no token 2"},
    };
    OWN_MODEL *model = open_model(models[2]);
    OWN_SESSION *session =
        open_session_with(model, (deberta_session_options){.max_tokens = 9, .features = DEBERTA_PATCH_TERMS});
    OWN_SESSION *without = open_session_with(model, (deberta_session_options){.max_tokens = 9});
    FOR_ROWS(k, cases) refuse(session, &cases[k].patch, cases[k].words);
    refuse(without, &(deberta_patch){.place = DEBERTA_PATCH_TERM, .sequence = 1}, "DEBERTA_PATCH_TERMS");
    OWN_MODEL *positionless = open_model(models[3]);
    OWN_SESSION *plain = open_session_with(positionless, (deberta_session_options){.features = DEBERTA_PATCH_TERMS});
    refuse(plain, &(deberta_patch){.place = DEBERTA_PATCH_TERM, .term = DEBERTA_P2C}, "has no term p2c");
}

/* Two that give to each other; an encode from the middle without states; the decoder without its layer, and without
 * the other sequence's tokens; a term in int8. */
TEST(test_wrong_combinations)
{
    static const int32_t ids[] = {1, 2, 3, 4};
    static const size_t starts[] = {0, 2, 4}, one_of_them[] = {2};
    static const deberta_patch mutual[] = {{.sequence = 0, .from = 1}, {.sequence = 1, .from = 0}},
                               term = {.place = DEBERTA_PATCH_TERM, .layer = 2, .sequence = 1};
    deberta_error error = {0};
    float logits[97];
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    OWN_MODEL *model = open_model(models[2]);
    OWN_SESSION *session = open_session_with(
        model, (deberta_session_options){.features = DEBERTA_PATCH_TERMS | DEBERTA_KEEP_DECODER_INPUT});
    const deberta_batch batch = batch_of(ids, starts, 2);
    assert_ok(deberta_session_intervene(session, &(deberta_interventions){.patches = mutual, .patch_count = 2}, NULL));
    check_refused(deberta_encode(session, &batch, &outputs, &error), &error, DEBERTA_E_ARGUMENT,
                  "takes from sequence 1, which is patched itself");
    check_refused(deberta_session_intervene(session, &(deberta_interventions){.first_layer = 1}, &error), &error,
                  DEBERTA_E_ARGUMENT, "an encode from H[1] needs edit_hidden");
    assert_ok(deberta_session_intervene(session, &(deberta_interventions){.patches = &term, .patch_count = 1}, NULL));
    encode_batch(session, &batch);
    check_refused(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, one_of_them, 1, logits, 97, &error), &error,
                  DEBERTA_E_ARGUMENT, "needs the same tokens of sequences 1 and 0");
    state_work work = {.request = &(run_request){0}};
    assert_ok(deberta_session_intervene(
        session, &(deberta_interventions){.context = &work, .edit_hidden = give_states, .first_layer = 3}, NULL));
    encode_batch(session, &batch);
    check_refused(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, one_of_them, 1, logits, 97, &error), &error,
                  DEBERTA_E_ARGUMENT, "needs the last layer, which an encode from H[3] does not run");
    OWN_MODEL *integers = open_model_with(models[2], (deberta_model_options){.precision = DEBERTA_PRECISION_INT8});
    OWN_SESSION *low = open_session_with(integers, (deberta_session_options){.features = DEBERTA_PATCH_TERMS});
    check_refused(deberta_session_intervene(low, &(deberta_interventions){.patches = &term, .patch_count = 1}, &error),
                  &error, DEBERTA_E_UNSUPPORTED, "needs attention in float32; found int8");
}
