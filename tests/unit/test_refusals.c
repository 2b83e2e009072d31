/* Calls of the public functions that cannot be meant: each is refused with a sentence that says what was wrong, and
 * leaves the model usable.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/model_helpers.h"

#include "include/deberta.h"
#include "include/deberta_unstable.h"

static const char small_model[] =
    "synthetic:v3-base,layers=1,hidden=64,heads=2,intermediate=64,vocab=50,buckets=16,distance=64,lm=1";
static const char decoder_model[] = "tests/golden/33-v3-mlm-emd";

enum { TOKENS = 5, VOCABULARY = 50 };

static const int32_t ids[TOKENS] = {1, 2, 3, 4, 5};
static const size_t starts[] = {0, TOKENS};
static const deberta_batch batch = {.struct_size = sizeof batch, .ids = ids, .sequence_starts = starts, .sequences = 1};

static const deberta_session_options small = {.max_tokens = TOKENS, .threads = 1};

TEST(test_options_of_models)
{
    deberta_error err;
    deberta_model *model;
    deberta_model_options options = {.struct_size = sizeof options, .reference = (deberta_reference)7};
    check_refused(deberta_model_open(&model, small_model, &options, &err), &err, DEBERTA_E_ARGUMENT, "reference 7");
    assert_null(model);
    options = (deberta_model_options){.struct_size = sizeof options, .precision = (deberta_precision)9};
    check_refused(deberta_model_open(&model, small_model, &options, &err), &err, DEBERTA_E_ARGUMENT, "precision 9");
    const deberta_pack_options packing = {.struct_size = sizeof packing, .precision = (deberta_precision)9};
    check_refused(deberta_model_pack(decoder_model, &packing, &err), &err, DEBERTA_E_ARGUMENT, "precision 9");
}

TEST(test_weights_of_low_precision_are_not_read_back)
{
    deberta_error err;
    float value;
    OWN_MODEL *model = open_model_with(small_model, (deberta_model_options){.precision = DEBERTA_PRECISION_INT8});
    check_refused(deberta_model_read_weight(NULL, "x", &value, 1, &err), &err, DEBERTA_E_ARGUMENT, "needs a model");
    check_refused(deberta_model_read_weight(model, "deberta.embeddings.LayerNorm.weight", &value, 1, &err), &err,
                  DEBERTA_E_UNSUPPORTED, "low precision");
}

static deberta_status see_hidden(void *context, const deberta_hidden_block *block)
{
    (void)context, (void)block;
    return DEBERTA_OK;
}

static deberta_status see_attention(void *context, const deberta_attention_block *block)
{
    (void)context, (void)block;
    return DEBERTA_OK;
}

TEST(test_encodes)
{
    deberta_error err;
    OWN_MODEL *model = open_model(small_model);
    OWN_SESSION *session = open_session_with(model, small);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    check_refused(deberta_encode(session, NULL, &outputs, &err), &err, DEBERTA_E_ARGUMENT, "a batch and outputs");
    check_refused(deberta_encode(session, &batch, NULL, &err), &err, DEBERTA_E_ARGUMENT, "a batch and outputs");
    deberta_observer observer = {.struct_size = sizeof observer, .on_hidden = see_hidden};
    deberta_batch seen = batch;
    seen.observer = &observer;
    check_refused(deberta_encode(session, &seen, &outputs, &err), &err, DEBERTA_E_ARGUMENT, "DEBERTA_OBSERVE_HIDDEN");
    observer = (deberta_observer){.struct_size = sizeof observer, .on_attention = see_attention};
    check_refused(deberta_encode(session, &seen, &outputs, &err), &err, DEBERTA_E_ARGUMENT,
                  "DEBERTA_OBSERVE_ATTENTION");
    assert_ok(deberta_encode(session, &batch, &outputs, &err));
}

TEST(test_heads)
{
    deberta_error err;
    OWN_MODEL *model = open_model(small_model);
    OWN_SESSION *session = open_session_with(model, small);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    float logits[VOCABULARY];
    const size_t first = 0, beyond = TOKENS;
    check_refused(deberta_task_logits(session, DEBERTA_TASK_MLM, &first, 1, logits, VOCABULARY, &err), &err,
                  DEBERTA_E_ARGUMENT, "no batch");
    encode_batch(session, &batch);
    const struct {
        deberta_task task;
        const size_t *positions;
        size_t stride;
        const char *words;
    } cases[] = {{DEBERTA_TASK_MLM, NULL, VOCABULARY, "positions and a place"},
                 {(deberta_task)99, &first, VOCABULARY, "task 99"},
                 {DEBERTA_TASK_MLM, &first, VOCABULARY - 1, "stride 49 is less than the 50 columns"},
                 {DEBERTA_TASK_MLM, &beyond, VOCABULARY, "token 5 was asked for, but the batch has 5"}};
    FOR_ROWS(i, cases)
        check_refused(deberta_task_logits(session, cases[i].task, cases[i].positions, 1, logits, cases[i].stride, &err),
                      &err, DEBERTA_E_ARGUMENT, cases[i].words);
    assert_ok(deberta_task_logits(session, DEBERTA_TASK_MLM, &first, 1, logits, VOCABULARY, &err));
}

/* Rows of the last layer by the decoder alone: the same bits, also of one that is ablated. */
static void decode(const deberta_model *model, unsigned features, const deberta_ablation *ablations, float *logits)
{
    deberta_error err;
    const size_t width = deberta_task_width(model, DEBERTA_TASK_MLM_EMD), places[] = {1, 3};
    deberta_session_options options = small;
    options.features = features;
    options.ablations = ablations;
    options.ablation_count = ablations ? 1 : 0;
    OWN_SESSION *session = open_session_with(model, options);
    encode_batch(session, &batch);
    assert_ok(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, places, 2, logits, width, &err));
}

static deberta_status count_hidden(void *context, const deberta_hidden_block *block)
{
    size_t *seen = context;
    assert_int_equal(block->layer, *seen);
    (*seen)++;
    return DEBERTA_OK;
}

/* An observer sees H[0] ... H[L-1], and nobody is given H[L]. */
static void check_observed(const deberta_model *model)
{
    size_t seen = 0;
    deberta_error err;
    deberta_session_options options = small;
    options.features = DEBERTA_ONLY_HEADS | DEBERTA_OBSERVE_HIDDEN;
    OWN_SESSION *session = open_session_with(model, options);
    const deberta_observer observer = {.struct_size = sizeof observer, .context = &seen, .on_hidden = count_hidden};
    deberta_batch observed = batch;
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    observed.observer = &observer;
    assert_ok(deberta_encode(session, &observed, &outputs, &err));
    assert_int_equal(seen, deberta_model_describe(model)->layers);
    assert_null(outputs.hidden);
}

TEST(test_only_heads)
{
    enum { ALONE = DEBERTA_KEEP_DECODER_INPUT | DEBERTA_ONLY_HEADS };
    static const unsigned refused[] = {ALONE | DEBERTA_OBSERVE_ATTENTION,
                                       DEBERTA_ONLY_HEADS | DEBERTA_OBSERVE_ATTENTION};
    const deberta_ablation mean = {DEBERTA_C2P, DEBERTA_EVERY, DEBERTA_EVERY, DEBERTA_ABLATE_MEAN};
    deberta_error err;
    OWN_MODEL *model = open_model(decoder_model);
    deberta_session *session = NULL;
    FOR_ROWS(k, refused) {
        const deberta_session_options options = {.struct_size = sizeof options, .features = refused[k]};
        check_refused(deberta_session_create(&session, model, &options, &err), &err, DEBERTA_E_ARGUMENT,
                      "DEBERTA_ONLY_HEADS");
    }
    check_observed(model);
    const size_t bytes = 2 * deberta_task_width(model, DEBERTA_TASK_MLM_EMD) * sizeof(float);
    float *rows[] = {malloc(bytes), malloc(bytes), malloc(bytes), malloc(bytes)};
    decode(model, DEBERTA_KEEP_DECODER_INPUT, NULL, rows[0]);
    decode(model, ALONE, NULL, rows[1]);
    decode(model, DEBERTA_KEEP_DECODER_INPUT, &mean, rows[2]);
    decode(model, ALONE, &mean, rows[3]);
    assert_int_equal(memcmp(rows[0], rows[1], bytes), 0);
    assert_int_equal(memcmp(rows[2], rows[3], bytes), 0);
    assert_true(memcmp(rows[0], rows[2], bytes) != 0);
    for (size_t k = 0; k < 4; k++) free(rows[k]);
}

TEST(test_decoder_needs_its_input)
{
    deberta_error err;
    OWN_MODEL *model = open_model(decoder_model);
    OWN_SESSION *session = open_session_with(model, small);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    const size_t width = deberta_task_width(model, DEBERTA_TASK_MLM_EMD), first = 0;
    assert_true(width > 0);
    FREED_BY(free_memory) float *logits = calloc(width, sizeof *logits);
    encode_batch(session, &batch);
    check_refused(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, &first, 1, logits, width, &err), &err,
                  DEBERTA_E_ARGUMENT, "DEBERTA_KEEP_DECODER_INPUT");
}

/* The text has no byte to spare, so that AddressSanitizer sees a read beyond it. */
TEST(test_entities_of_other_texts)
{
    OWN_MODEL *model = open_model("tests/golden/30-v3-token");
    static const char text[2] = {'a', '\''};
    static const deberta_span spans[] = {{0, 1}, {1, 2}, {0, 2}, {7, 9}};
    static const uint8_t roles[4] = {0};
    static const float logits[4 * 5] = {0};
    deberta_entity entities[4];
    deberta_error err;
    size_t count;
    deberta_tokens tokens = {.count = 2, .byte_spans = spans, .character_spans = spans, .roles = roles, .segments = 1};
    assert_ok(deberta_entities(entities, &count, model, &tokens, text, 2, logits, DEBERTA_ENTITIES_BY_WORD, NULL));
    assert_int_equal(count, 1);
    assert_int_equal(entities[0].place.bytes.end, 2);
    tokens.count = 4;
    check_refused(deberta_entities(entities, &count, model, &tokens, text, 2, logits, DEBERTA_ENTITIES_BY_WORD, &err),
                  &err, DEBERTA_E_ARGUMENT, "token 3 ends at byte 9, but the text has 2");
    tokens.count = 3;
    tokens.segments = 2;
    check_refused(deberta_entities(entities, &count, model, &tokens, text, 2, logits, DEBERTA_ENTITIES_BY_WORD, &err),
                  &err, DEBERTA_E_ARGUMENT, "the tokens are those of a pair");
}
