/* Calls of the public functions that cannot be meant: each is refused with a sentence that says what was wrong, and
 * leaves the model usable.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/unit/test.h"

#include "include/deberta.h"
#include "include/deberta_unstable.h"

static const char small_model[] =
    "synthetic:v3-base,layers=1,hidden=64,heads=2,intermediate=64,vocab=50,buckets=16,distance=64,lm=1";
static const char decoder_model[] = "tests/golden/33-v3-mlm-emd";

enum { TOKENS = 5, VOCABULARY = 50 };

static const int32_t ids[TOKENS] = {1, 2, 3, 4, 5};
static const size_t starts[] = {0, TOKENS};
static const deberta_batch batch = {.struct_size = sizeof batch, .ids = ids, .sequence_starts = starts, .sequences = 1};

static void assert_refused(deberta_status status, deberta_status expected, const deberta_error *err, const char *words)
{
    assert_int_equal(status, expected);
    if (!strstr(err->message, words)) fail_msg("'%s' is not in: %s", words, err->message);
}

static deberta_session *open_session(const char *path, const deberta_model_options *options, deberta_model **model)
{
    deberta_error err;
    deberta_session *session = NULL;
    assert_int_equal(deberta_model_open(model, path, options, &err), DEBERTA_OK);
    const deberta_session_options small = {.struct_size = sizeof small, .max_tokens = TOKENS, .threads = 1};
    assert_int_equal(deberta_session_create(&session, *model, &small, &err), DEBERTA_OK);
    return session;
}

static void close_session(deberta_session *session, deberta_model *model)
{
    deberta_session_free(&session);
    deberta_model_free(&model);
}

TEST(test_options_of_models)
{
    deberta_error err;
    deberta_model *model;
    deberta_model_options options = {.struct_size = sizeof options, .reference = (deberta_reference)7};
    assert_refused(deberta_model_open(&model, small_model, &options, &err), DEBERTA_E_ARGUMENT, &err, "reference 7");
    assert_null(model);
    options = (deberta_model_options){.struct_size = sizeof options, .precision = (deberta_precision)9};
    assert_refused(deberta_model_open(&model, small_model, &options, &err), DEBERTA_E_ARGUMENT, &err, "precision 9");
    const deberta_pack_options packing = {.struct_size = sizeof packing, .precision = (deberta_precision)9};
    assert_refused(deberta_model_pack(decoder_model, &packing, &err), DEBERTA_E_ARGUMENT, &err, "precision 9");
}

TEST(test_weights_of_low_precision_are_not_read_back)
{
    deberta_error err;
    float value;
    deberta_model *model;
    const deberta_model_options options = {.struct_size = sizeof options, .precision = DEBERTA_PRECISION_INT8};
    assert_refused(deberta_model_read_weight(NULL, "x", &value, 1, &err), DEBERTA_E_ARGUMENT, &err, "needs a model");
    assert_int_equal(deberta_model_open(&model, small_model, &options, &err), DEBERTA_OK);
    assert_refused(deberta_model_read_weight(model, "deberta.embeddings.LayerNorm.weight", &value, 1, &err),
                   DEBERTA_E_UNSUPPORTED, &err, "low precision");
    deberta_model_free(&model);
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
    deberta_model *model;
    deberta_session *session = open_session(small_model, NULL, &model);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    assert_refused(deberta_encode(session, NULL, &outputs, &err), DEBERTA_E_ARGUMENT, &err, "a batch and outputs");
    assert_refused(deberta_encode(session, &batch, NULL, &err), DEBERTA_E_ARGUMENT, &err, "a batch and outputs");
    deberta_observer observer = {.struct_size = sizeof observer, .on_hidden = see_hidden};
    deberta_batch seen = batch;
    seen.observer = &observer;
    assert_refused(deberta_encode(session, &seen, &outputs, &err), DEBERTA_E_ARGUMENT, &err, "DEBERTA_OBSERVE_HIDDEN");
    observer = (deberta_observer){.struct_size = sizeof observer, .on_attention = see_attention};
    assert_refused(deberta_encode(session, &seen, &outputs, &err), DEBERTA_E_ARGUMENT, &err,
                   "DEBERTA_OBSERVE_ATTENTION");
    assert_int_equal(deberta_encode(session, &batch, &outputs, &err), DEBERTA_OK);
    close_session(session, model);
}

TEST(test_heads)
{
    deberta_error err;
    deberta_model *model;
    deberta_session *session = open_session(small_model, NULL, &model);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    float logits[VOCABULARY];
    const size_t first = 0, beyond = TOKENS;
    assert_refused(deberta_task_logits(session, DEBERTA_TASK_MLM, &first, 1, logits, VOCABULARY, &err),
                   DEBERTA_E_ARGUMENT, &err, "no batch");
    assert_int_equal(deberta_encode(session, &batch, &outputs, &err), DEBERTA_OK);
    assert_refused(deberta_task_logits(session, DEBERTA_TASK_MLM, NULL, 1, logits, VOCABULARY, &err),
                   DEBERTA_E_ARGUMENT, &err, "positions and a place");
    assert_refused(deberta_task_logits(session, (deberta_task)99, &first, 1, logits, VOCABULARY, &err),
                   DEBERTA_E_ARGUMENT, &err, "task 99");
    assert_refused(deberta_task_logits(session, DEBERTA_TASK_MLM, &first, 1, logits, VOCABULARY - 1, &err),
                   DEBERTA_E_ARGUMENT, &err, "stride 49 is less than the 50 columns");
    assert_refused(deberta_task_logits(session, DEBERTA_TASK_MLM, &beyond, 1, logits, VOCABULARY, &err),
                   DEBERTA_E_ARGUMENT, &err, "token 5 was asked for, but the batch has 5");
    assert_int_equal(deberta_task_logits(session, DEBERTA_TASK_MLM, &first, 1, logits, VOCABULARY, &err), DEBERTA_OK);
    close_session(session, model);
}

/* Only what the decoder needs of the last layer: the same bits, also of one that is ablated, and no other head. */
static void decode(const deberta_model *model, unsigned features, const deberta_ablation *ablations, float *logits)
{
    deberta_error err;
    deberta_session *session = NULL;
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    const size_t width = deberta_task_width(model, DEBERTA_TASK_MLM_EMD), places[] = {1, 3};
    const deberta_session_options options = {.struct_size = sizeof options,
                                             .max_tokens = TOKENS,
                                             .threads = 1,
                                             .features = features,
                                             .ablations = ablations,
                                             .ablation_count = ablations ? 1 : 0};
    assert_int_equal(deberta_session_create(&session, model, &options, &err), DEBERTA_OK);
    assert_int_equal(deberta_encode(session, &batch, &outputs, &err), DEBERTA_OK);
    assert_int_equal(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, places, 2, logits, width, &err), DEBERTA_OK);
    if (features & DEBERTA_ONLY_DECODER)
        assert_refused(deberta_task_logits(session, DEBERTA_TASK_MLM, places, 1, logits, width, &err),
                       DEBERTA_E_ARGUMENT, &err, "DEBERTA_ONLY_DECODER");
    deberta_session_free(&session);
}

TEST(test_only_the_decoder)
{
    enum { ALONE = DEBERTA_KEEP_DECODER_INPUT | DEBERTA_ONLY_DECODER };
    static const unsigned refused[] = {DEBERTA_ONLY_DECODER, ALONE | DEBERTA_OBSERVE_HIDDEN,
                                       ALONE | DEBERTA_OBSERVE_ATTENTION};
    const deberta_ablation mean = {DEBERTA_C2P, DEBERTA_EVERY, DEBERTA_EVERY, DEBERTA_ABLATE_MEAN};
    deberta_error err;
    deberta_model *model;
    deberta_session *session = NULL;
    assert_int_equal(deberta_model_open(&model, decoder_model, NULL, &err), DEBERTA_OK);
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        const deberta_session_options options = {.struct_size = sizeof options, .features = refused[k]};
        assert_refused(deberta_session_create(&session, model, &options, &err), DEBERTA_E_ARGUMENT, &err,
                       "DEBERTA_ONLY_DECODER");
    }
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
    deberta_model_free(&model);
}

TEST(test_decoder_needs_its_input)
{
    deberta_error err;
    deberta_model *model;
    deberta_session *session = open_session(decoder_model, NULL, &model);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    const size_t width = deberta_task_width(model, DEBERTA_TASK_MLM_EMD), first = 0;
    assert_true(width > 0);
    float *logits = calloc(width, sizeof *logits);
    assert_int_equal(deberta_encode(session, &batch, &outputs, &err), DEBERTA_OK);
    assert_refused(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, &first, 1, logits, width, &err),
                   DEBERTA_E_ARGUMENT, &err, "DEBERTA_KEEP_DECODER_INPUT");
    free(logits);
    close_session(session, model);
}
