/* Masked texts, ranks, and effects of interventions against sessions that were made with them.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"

#include "analysis/ablation_effect.h"

enum { TOKENS = 60, SENTENCES = 3, MASK_ID = 96 };
static const size_t starts[SENTENCES + 1] = {0, 20, 24, TOKENS};

static masked_texts make_texts(double rate, uint64_t seed)
{
    masked_texts texts;
    int32_t ids[TOKENS];
    uint8_t maskable[TOKENS];
    for (int32_t t = 0; t < TOKENS; t++) {
        ids[t] = t;
        maskable[t] = t != 0 && t != 19;
    }
    assert_int_equal(masked_texts_make(&texts, ids, maskable, starts, SENTENCES, MASK_ID, rate, seed, NULL),
                     DEBERTA_OK);
    return texts;
}

TEST(test_masks)
{
    masked_texts some = make_texts(0.3, 5), again = make_texts(0.3, 5), none = make_texts(0, 5), all = make_texts(1, 5);
    assert_memory_equal(some.ids, again.ids, sizeof(int32_t[TOKENS]));
    size_t hidden = 0;
    for (int32_t t = 0; t < TOKENS; t++) {
        if (some.ids[t] == t) continue;
        assert_int_equal(some.ids[t], MASK_ID);
        assert_int_equal(some.places[hidden], t);
        assert_int_equal(some.targets[hidden++], t);
    }
    assert_int_equal(hidden, masked_texts_masks(&some, 0, SENTENCES));
    assert_true(hidden > 8 && hidden < 30);
    for (size_t k = 0; k < SENTENCES; k++) assert_int_equal(masked_texts_masks(&none, k, k + 1), 1);
    assert_int_equal(masked_texts_masks(&all, 0, SENTENCES), TOKENS - 2);
    assert_int_equal(all.ids[0], 0);
    masked_texts_free(&some);
    masked_texts_free(&again);
    masked_texts_free(&none);
    masked_texts_free(&all);
}

/* Three words of equal logits: ln 3 nats each; the target one unit above: ln(2 + e) - 1. */
TEST(test_loss)
{
    const size_t one_each[] = {0, 1, 2};
    const int32_t ids[] = {0, 2};
    const uint8_t maskable[] = {1, 1};
    const float logits[] = {40, 40, 40, -7, -7, -6};
    masked_texts texts;
    double loss[2];
    assert_int_equal(masked_texts_make(&texts, ids, maskable, one_each, 2, 1, 1, 1, NULL), DEBERTA_OK);
    masked_texts_loss(&texts, logits, 3, 0, 2, loss);
    assert_true(fabs(loss[0] - log(3)) < 1e-12);
    assert_true(fabs(loss[1] - (log(2 + exp(1)) - 1)) < 1e-12);
    masked_texts_free(&texts);
}

TEST(test_ranks)
{
    const double x[] = {1, 2, 3, 4, 5}, squares[] = {1, 4, 9, 16, 25}, down[] = {9, 7, 5, 3, 1},
                 flat[] = {2, 2, 2, 2, 2};
    const double mixed[] = {2, 1, 4, 3, 5}, ties[] = {1, 2, 2, 3, 3};
    assert_true(fabs(rank_correlation(x, squares, 5) - 1) < 1e-12);
    assert_true(fabs(rank_correlation(x, down, 5) + 1) < 1e-12);
    assert_true(fabs(rank_correlation(x, mixed, 5) - 0.8) < 1e-12);               /* 1 - 6 * 4 / (5 * 24) */
    assert_true(fabs(rank_correlation(x, ties, 5) - 9 / sqrt(10 * 9.0)) < 1e-12); /* ranks 0 1.5 1.5 3.5 3.5 */
    assert_true(isnan(rank_correlation(x, flat, 5)));
}

/* The loss of a session that was made with these ablations, alone. */
static void read_loss(const masked_texts *texts, const deberta_model *model, deberta_task head,
                      const deberta_ablation *ablations, size_t count, double loss[SENTENCES], float **logits,
                      size_t *width)
{
    const deberta_session_options options = {.struct_size = sizeof options,
                                             .max_tokens = TOKENS,
                                             .threads = 1,
                                             .features = DEBERTA_KEEP_DECODER_INPUT,
                                             .ablations = ablations,
                                             .ablation_count = count};
    masked_reader reader = {.head = head};
    assert_int_equal(deberta_session_create(&reader.session, model, &options, NULL), DEBERTA_OK);
    reader.width = *width = deberta_task_width(model, reader.head);
    *logits = malloc(masked_texts_masks(texts, 0, SENTENCES) * reader.width * sizeof **logits);
    assert_non_null(*logits);
    assert_int_equal(masked_texts_read(texts, &reader, 0, SENTENCES, *logits, NULL), DEBERTA_OK);
    masked_texts_loss(texts, *logits, reader.width, 0, SENTENCES, loss);
    deberta_session_free(&reader.session);
}

/* One session that goes through the interventions, in small batches, on top of a baseline with one of its own. */
static void check_effects(masked_decoder decoder, deberta_task expected)
{
    deberta_task head;
    const deberta_ablation baseline = {.term = DEBERTA_P2C, .layer = 0, .head = 0};
    const deberta_ablation interventions[] = {
        {.term = DEBERTA_C2P, .layer = 1, .head = 1},
        {.term = DEBERTA_C2C, .layer = 0, .head = DEBERTA_EVERY, .kind = DEBERTA_ABLATE_MEAN},
        {.term = DEBERTA_P2C, .layer = DEBERTA_EVERY, .head = DEBERTA_EVERY, .kind = DEBERTA_ABLATE_MEAN},
        {.term = DEBERTA_P2C, .layer = 0, .head = 0}, /* the baseline's own: nothing changes */
    };
    enum { COUNT = sizeof interventions / sizeof *interventions };
    masked_texts texts = make_texts(0.3, 2);
    deberta_model *model = NULL;
    assert_int_equal(
        deberta_model_open(&model,
                           "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,lm=1",
                           NULL, NULL),
        DEBERTA_OK);
    assert_int_equal(masked_texts_head(&head, model, decoder, NULL), DEBERTA_OK);
    assert_int_equal(head, expected);
    const deberta_session_options options = {
        .struct_size = sizeof options, .threads = 1, .ablations = &baseline, .ablation_count = 1};
    const ablation_sweep sweep = {.model = model,
                                  .session_options = &options,
                                  .texts = &texts,
                                  .head = head,
                                  .interventions = interventions,
                                  .count = COUNT,
                                  .batch_tokens = 24};
    ablation_effects effects;
    assert_int_equal(ablation_effects_measure(&effects, &sweep, NULL), DEBERTA_OK);
    double plain[SENTENCES], changed[SENTENCES];
    float *plain_logits, *logits;
    size_t width;
    read_loss(&texts, model, head, &baseline, 1, plain, &plain_logits, &width);
    for (size_t i = 0; i < COUNT; i++) {
        const deberta_ablation both[] = {baseline, interventions[i]};
        read_loss(&texts, model, head, both, 2, changed, &logits, &width);
        for (size_t k = 0; k < SENTENCES; k++) {
            double change = 0;
            for (size_t m = texts.mask_starts[k]; m < texts.mask_starts[k + 1]; m++) {
                double mean = 0, sum = 0;
                for (size_t v = 0; v < width; v++)
                    mean += ((double)logits[m * width + v] - (double)plain_logits[m * width + v]) / (double)width;
                for (size_t v = 0; v < width; v++)
                    sum += fabs((double)logits[m * width + v] - (double)plain_logits[m * width + v] - mean);
                change += sum / (double)width;
            }
            assert_true(plain[k] == effects.loss[k]);
            assert_true(changed[k] - plain[k] == effects.loss_change[i * SENTENCES + k]);
            assert_true(fabs(change - effects.logit_change[i * SENTENCES + k]) < 1e-9);
            assert_true((change == 0) == (i == COUNT - 1));
        }
        free(logits);
    }
    free(plain_logits);
    ablation_effects_free(&effects);
    deberta_model_free(&model);
    masked_texts_free(&texts);
}

TEST(test_heads_that_are_missing)
{
    deberta_model *model = NULL;
    deberta_task head;
    deberta_error error;
    assert_int_equal(deberta_model_open(&model, "synthetic:v3-base,layers=1,hidden=64,heads=2,vocab=97", NULL, NULL),
                     DEBERTA_OK);
    assert_int_equal(masked_texts_head(&head, model, MASKED_DECODER_EMD, &error), DEBERTA_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "has no Enhanced Mask Decoder"));
    assert_int_equal(masked_texts_head(&head, model, MASKED_DECODER_PLAIN, &error), DEBERTA_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "has no masked-LM head"));
    deberta_model_free(&model);
}

TEST(test_effects)
{
    check_effects(MASKED_DECODER_TRAINED, DEBERTA_TASK_MLM_EMD);
    check_effects(MASKED_DECODER_EMD, DEBERTA_TASK_MLM_EMD);
    check_effects(MASKED_DECODER_PLAIN, DEBERTA_TASK_MLM);
}
