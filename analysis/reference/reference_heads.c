/* Computes the heads of SPEC 8 in float64.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/reference/exact_activation.h"
#include "analysis/reference/reference_math.h"
#include "analysis/reference/reference_weights.h"

/* Number of rows of the word table that are multiplied at a time, because the whole table of a large vocabulary would
 * not fit as doubles. */
enum { WORD_BLOCK = 1024 };

static bool has_modern_lm(const reference_model *m) { return reference_has(m, "lm_predictions.lm_head.dense.weight"); }
static bool has_legacy_lm(const reference_model *m)
{
    return reference_has(m, "cls.predictions.transform.dense.weight");
}

static size_t reference_heads_rows_of(const reference_model *m, const char *name)
{
    size_t rank, shape[TENSOR_MAX_RANK];
    return m->source.find(m->source.context, name, &rank, shape) && rank > 0 ? shape[0] : 0;
}

size_t reference_head_width(const reference_model *m, deberta_task head)
{
    bool lm = has_modern_lm(m) || has_legacy_lm(m);
    bool sequence = reference_has(m, "pooler.dense.weight") && !m->classifies_tokens;
    size_t classes =
        reference_has(m, "proj.weight") ? 0 : reference_heads_rows_of(m, "classifier.weight"); /* SPEC 8.5 */
    bool table = reference_has(m, "embeddings.position_embeddings.weight") && !m->config.talking_heads;
    bool decodes =
        (m->config.position_biased_input || table) && m->config.embedding_size == m->config.hidden_size; /* SPEC 8.3 */
    switch (head) {
    case DEBERTA_TASK_MLM: return lm ? m->config.vocabulary_size : 0;
    case DEBERTA_TASK_MLM_EMD: return lm && decodes ? m->config.vocabulary_size : 0;
    case DEBERTA_TASK_RTD: return reference_has(m, "mask_predictions.dense.weight");
    case DEBERTA_TASK_SEQUENCE: return sequence ? classes : 0;
    case DEBERTA_TASK_TOKEN: return sequence ? 0 : classes;
    case DEBERTA_TASK_QA: return reference_heads_rows_of(m, "qa_outputs.weight");
    case DEBERTA_TASK_COUNT: break;
    }
    return 0;
}

/* Computes out [n][rows of the layer] = W x + b, with activation. The tensors are module.weight and module.bias. */
static deberta_status apply_linear(const reference_model *m, const char *module, size_t n, const double *x, size_t in,
                                   double *out, size_t width, activation function, deberta_error *err)
{
    shelf scratch = {0};
    double *weight, *bias;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &weight, width, in, err, "%s.weight", module));
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &bias, width, 0, err, "%s.bias", module));
    reference_linear(out, x, n, in, weight, bias, width);
    for (size_t e = 0; e < n * width; e++) out[e] = exact_activation(out[e], function);
fail:
    shelf_clear(&scratch);
    return status;
}

static deberta_status apply_norm(const reference_model *m, const char *module, size_t n, double *x, size_t width,
                                 deberta_error *err)
{
    shelf scratch = {0};
    double *gain, *shift;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &gain, width, 0, err, "%s.weight", module));
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &shift, width, 0, err, "%s.bias", module));
    reference_layer_norm(x, x, n, width, gain, shift, m->eps);
fail:
    shelf_clear(&scratch);
    return status;
}

/* Computes logits [n][V] = word table (or the decoder's own copy) times t [n][E], plus bias [V]. */
static deberta_status multiply_words(const reference_model *m, const char *table, const char *bias_name, size_t n,
                                     const double *t, double *logits, deberta_error *err)
{
    size_t V = m->config.vocabulary_size, E = m->config.embedding_size;
    shelf scratch = {0};
    double *words, *bias;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, WORD_BLOCK * E, &words, err));
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &bias, V, 0, err, "%s", bias_name));
    for (size_t first = 0; first < V; first += WORD_BLOCK) {
        size_t rows = V - first < WORD_BLOCK ? V - first : WORD_BLOCK;
        DEBERTA_TRY_OR_FAIL(status, m->source.read(m->source.context, table, first * E, rows * E, words, err));
        for (size_t i = 0; i < n; i++) {
            for (size_t w = 0; w < rows; w++)
                logits[i * V + first + w] = reference_dot(words + w * E, t + i * E, E) + bias[first + w];
        }
    }
fail:
    shelf_clear(&scratch);
    return status;
}

/* Runs the MLM head (SPEC 8.1 and 8.2) on states x [n][h]. The legacy head's bias has two names for one vector; a tied
 * table need not be stored. */
static deberta_status language_model(const reference_model *m, size_t n, const double *x, double *logits,
                                     deberta_error *err)
{
    bool legacy = !has_modern_lm(m);
    const char *dense = legacy ? "cls.predictions.transform.dense" : "lm_predictions.lm_head.dense";
    const char *norm = legacy ? "cls.predictions.transform.LayerNorm" : "lm_predictions.lm_head.LayerNorm";
    const char *bias = legacy ? "cls.predictions.decoder.bias" : "lm_predictions.lm_head.bias";
    const char *table = "embeddings.word_embeddings.weight";
    if (legacy && !reference_has(m, "%s", bias)) bias = "cls.predictions.bias";
    if (legacy && reference_has(m, "cls.predictions.decoder.weight")) table = "cls.predictions.decoder.weight";
    size_t E = m->config.embedding_size;
    shelf scratch = {0};
    double *t;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, n * E, &t, err));
    DEBERTA_TRY_OR_FAIL(status,
                        apply_linear(m, dense, n, x, m->config.hidden_size, t, E, m->config.hidden_activation, err));
    DEBERTA_TRY_OR_FAIL(status, apply_norm(m, norm, n, t, E, err));
    DEBERTA_TRY_OR_FAIL(status, multiply_words(m, table, bias, n, t, logits, err));
fail:
    shelf_clear(&scratch);
    return status;
}

static deberta_status language_model_decoded(const reference_model *m, const reference_input *input,
                                             const double *hidden, double *logits, deberta_error *err)
{
    size_t size = input->tokens * m->config.hidden_size;
    shelf scratch = {0};
    double *passes;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, 2 * size, &passes, err));
    DEBERTA_TRY_OR_FAIL(status, reference_decode(m, input, hidden, passes, err));
    DEBERTA_TRY_OR_FAIL(status, language_model(m, input->tokens, passes + size, logits, err));
fail:
    shelf_clear(&scratch);
    return status;
}

/* Runs replaced-token detection (SPEC 8.4) on the last hidden state: the first token's row is added to every row,
 * including its own. */
static deberta_status replaced_token(const reference_model *m, size_t n, const double *last, double *logits,
                                     deberta_error *err)
{
    size_t h = m->config.hidden_size;
    shelf scratch = {0};
    double *sum, *s;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, n * h, &sum, err));
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, n * h, &s, err));
    for (size_t t = 0; t < n; t++) {
        for (size_t c = 0; c < h; c++) sum[t * h + c] = last[c] + last[t * h + c];
    }
    DEBERTA_TRY_OR_FAIL(status, apply_norm(m, "mask_predictions.LayerNorm", n, sum, h, err));
    DEBERTA_TRY_OR_FAIL(status,
                        apply_linear(m, "mask_predictions.dense", n, sum, h, s, h, m->config.hidden_activation, err));
    DEBERTA_TRY_OR_FAIL(status,
                        apply_linear(m, "mask_predictions.classifier", n, s, h, logits, 1, ACTIVATION_NONE, err));
fail:
    shelf_clear(&scratch);
    return status;
}

/* Runs the pooler on the first token, then the classifier (SPEC 8.5). */
static deberta_status classify_sequence(const reference_model *m, const double *last, double *logits,
                                        deberta_error *err)
{
    size_t h = m->config.hidden_size, width = reference_head_width(m, DEBERTA_TASK_SEQUENCE);
    shelf scratch = {0};
    double *pooled;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, h, &pooled, err));
    DEBERTA_TRY_OR_FAIL(status,
                        apply_linear(m, "pooler.dense", 1, last, h, pooled, h, m->config.pooler_activation, err));
    DEBERTA_TRY_OR_FAIL(status, apply_linear(m, "classifier", 1, pooled, h, logits, width, ACTIVATION_NONE, err));
fail:
    shelf_clear(&scratch);
    return status;
}

deberta_status reference_head_logits(const reference_model *m, deberta_task head, const reference_input *input,
                                     const double *hidden, double *logits, deberta_error *err)
{
    size_t n = input->tokens, h = m->config.hidden_size, width = reference_head_width(m, head);
    const double *last = hidden + m->config.layers * n * h;
    if (width == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the checkpoint has no head of this kind (%d)", (int)head);
    switch (head) {
    case DEBERTA_TASK_MLM: return language_model(m, n, last, logits, err);
    case DEBERTA_TASK_MLM_EMD: return language_model_decoded(m, input, hidden, logits, err);
    case DEBERTA_TASK_RTD: return replaced_token(m, n, last, logits, err);
    case DEBERTA_TASK_SEQUENCE: return classify_sequence(m, last, logits, err);
    case DEBERTA_TASK_TOKEN: return apply_linear(m, "classifier", n, last, h, logits, width, ACTIVATION_NONE, err);
    case DEBERTA_TASK_QA: return apply_linear(m, "qa_outputs", n, last, h, logits, width, ACTIVATION_NONE, err);
    case DEBERTA_TASK_COUNT: break;
    }
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "unknown head %d", (int)head);
}
