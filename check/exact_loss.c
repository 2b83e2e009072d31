/* SPDX-License-Identifier: MIT */
#include "check/exact_loss.h"

#include <math.h>
#include <stdlib.h>

typedef struct one_text {
    int64_t *ids, *types;
    double *hidden, *logits;
} one_text;

static void release(one_text *text)
{
    free(text->ids);
    free(text->types);
    free(text->hidden);
    free(text->logits);
}

static double cross_entropy_of(const double *logits, size_t count, size_t label)
{
    double most = logits[0], sum = 0;
    for (size_t w = 1; w < count; w++) most = fmax(most, logits[w]);
    for (size_t w = 0; w < count; w++) sum += exp(logits[w] - most);
    return log(sum) + most - logits[label];
}

/* A token that somebody else put there is to be told from one that belongs. */
static double replaced_loss(double logit, bool is_replaced)
{
    return fmax(logit, 0) - (is_replaced ? logit : 0) + log1p(exp(-fabs(logit)));
}

/* Adds what the tokens of a sequence contribute, and how many do. */
static void add_tokens(const exact_texts *texts, size_t first, size_t n, const double *logits, size_t width,
                       double *sum, size_t *count)
{
    for (size_t t = 0; t < n; t++) {
        const int32_t label = texts->labels[first + t];
        const bool labelled = label != EXACT_NOT_LABELLED, replaces = texts->task == DEBERTA_TASK_RTD;
        if (replaces ? !texts->mask[first + t] : !labelled) continue;
        *sum += replaces ? replaced_loss(logits[t], labelled && texts->ids[first + t] != label)
                         : cross_entropy_of(logits + t * width, width, (size_t)label);
        ++*count;
    }
}

static deberta_status run_text(const reference_model *model, const exact_texts *texts, size_t sequence, one_text *text,
                               double *sum, size_t *count, deberta_error *err)
{
    const size_t first = texts->starts[sequence], n = texts->starts[sequence + 1] - first;
    const size_t width = reference_head_width(model, texts->task), h = model->config.hidden_size;
    text->ids = calloc(n, sizeof *text->ids);
    text->types = calloc(n, sizeof *text->types);
    text->hidden = calloc((model->config.layers + 1) * n * h, sizeof *text->hidden);
    text->logits = calloc(n * width, sizeof *text->logits);
    if (!text->ids || !text->types || !text->hidden || !text->logits)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the float64 loss of %zu tokens", n);
    for (size_t t = 0; t < n; t++) text->ids[t] = texts->ids[first + t];
    for (size_t t = 0; texts->types && t < n; t++) text->types[t] = texts->types[first + t];
    const reference_input input = {
        .tokens = n, .ids = text->ids, .token_types = text->types, .mask = texts->mask + first};
    DEBERTA_TRY(reference_encode(model, &input, text->hidden, NULL, err));
    DEBERTA_TRY(reference_head_logits(model, texts->task, &input, text->hidden, text->logits, err));
    add_tokens(texts, first, n, text->logits, width, sum, count);
    return DEBERTA_OK;
}

deberta_status exact_loss(double *loss, const reference_model *model, const exact_texts *texts, deberta_error *err)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < texts->sequences; i++) {
        one_text text = {0};
        const deberta_status status = run_text(model, texts, i, &text, &sum, &count, err);
        release(&text);
        DEBERTA_TRY(status);
    }
    *loss = sum / (double)count;
    return DEBERTA_OK;
}
