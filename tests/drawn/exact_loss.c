/* Computes logits by the reference model, one sequence at a time, and losses and their means in float64.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/drawn/exact_loss.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/reference/reference_math.h"
#include "output/scope.h"

typedef struct exact_mean {
    double sum;
    size_t count;
} exact_mean;

typedef struct exact_means {
    exact_mean of[2]; /* of an answer both ends */
    double *scores;   /* [choices] */
} exact_means;

/* ------------------------------------------------------------------------------------------------------------- logits */

static deberta_task head_of(exact_task task)
{
    static const deberta_task heads[] = {
        [EXACT_WORDS] = DEBERTA_TASK_MLM,       [EXACT_WORDS_DECODED] = DEBERTA_TASK_MLM_EMD,
        [EXACT_REPLACED] = DEBERTA_TASK_RTD,    [EXACT_SEQUENCES] = DEBERTA_TASK_SEQUENCE,
        [EXACT_VALUES] = DEBERTA_TASK_SEQUENCE, [EXACT_CHOICES] = DEBERTA_TASK_SEQUENCE,
        [EXACT_TOKENS] = DEBERTA_TASK_TOKEN,    [EXACT_ANSWERS] = DEBERTA_TASK_QA,
    };
    return heads[task];
}

bool exact_labels_tokens(exact_task task)
{
    return task == EXACT_WORDS || task == EXACT_WORDS_DECODED || task == EXACT_REPLACED || task == EXACT_TOKENS;
}

size_t exact_length(const exact_batch *batch, size_t sequence)
{
    const uint8_t *mask = batch->mask + sequence * batch->columns;
    size_t n = batch->columns;
    while (n > 0 && mask[n - 1] == 0) n--;
    return n;
}

reference_input exact_input(const exact_batch *batch, size_t sequence)
{
    const size_t at = sequence * batch->columns;
    return (reference_input){.tokens = exact_length(batch, sequence),
                             .ids = batch->ids + at,
                             .token_types = batch->types ? batch->types + at : NULL,
                             .position_ids = batch->positions ? batch->positions + at : NULL,
                             .mask = batch->mask + at,
                             .padding = REFERENCE_PADDING_KEPT};
}

deberta_status exact_logits(const exact_batch *batch, const reference_model *model, const reference_input *input,
                            double *logits, deberta_error *err)
{
    const size_t floats = (model->config.layers + 1) * input->tokens * model->config.hidden_size;
    double *hidden = memory_take(floats, sizeof *hidden);
    deberta_status status = reference_encode(model, input, hidden, NULL, err);
    if (status == DEBERTA_OK) status = reference_head_logits(model, head_of(batch->task), input, hidden, logits, err);
    free(hidden);
    return status;
}

size_t exact_width(const exact_batch *batch, const reference_model *model)
{
    return reference_head_width(model, head_of(batch->task));
}

/* ------------------------------------------------------------------------------------------------------------- losses */

double exact_log_sum(const double *logits, size_t count, size_t stride)
{
    double most = logits[0], sum = 0;
    for (size_t k = 1; k < count; k++) most = fmax(most, logits[k * stride]);
    for (size_t k = 0; k < count; k++) sum += exp(logits[k * stride] - most);
    return log(sum) + most;
}

static void add_cross_entropy(exact_mean *mean, const double *logits, size_t count, int64_t label)
{
    if (label == EXACT_NOT_LABELLED) return;
    mean->sum += exact_log_sum(logits, count, 1) - logits[label];
    mean->count++;
}

/* Binary cross entropy of a token: was it replaced, or is it the original? */
static double replaced_loss(double logit, bool is_replaced)
{
    return fmax(logit, 0) - (is_replaced ? logit : 0) + log1p(exp(-fabs(logit)));
}

static void add_token(const exact_batch *batch, size_t at, const double *logits, size_t width, exact_mean *mean)
{
    const int64_t label = batch->labels[at];
    if (batch->task != EXACT_REPLACED) {
        add_cross_entropy(mean, logits, width, label);
    } else if (batch->mask[at]) {
        mean->sum += replaced_loss(*logits, label != EXACT_NOT_LABELLED && batch->ids[at] != label);
        mean->count++;
    }
}

/* An end of an answer among the tokens of its text that are no holes; one that is none of them does not count. */
static void add_end(const exact_batch *batch, size_t sequence, const double *logits, int64_t place, exact_mean *mean)
{
    const size_t n = exact_length(batch, sequence);
    const uint8_t *mask = batch->mask + sequence * batch->columns;
    if (place < 0 || (size_t)place >= n || !mask[place]) return;
    double most = -INFINITY, sum = 0;
    for (size_t t = 0; t < n; t++)
        if (mask[t]) most = fmax(most, logits[2 * t]);
    for (size_t t = 0; t < n; t++)
        if (mask[t]) sum += exp(logits[2 * t] - most);
    mean->sum += log(sum) + most - logits[2 * place];
    mean->count++;
}

/* Adds the contribution of sequence i to the means. */
static void add_sequence(const exact_batch *batch, size_t i, const double *logits, size_t width, exact_means *means)
{
    exact_mean *mean = means->of;
    switch (batch->task) {
    case EXACT_SEQUENCES: add_cross_entropy(mean, logits, width, batch->labels[i]); break;
    case EXACT_VALUES:
        mean->sum += pow(logits[0] - (double)batch->targets[i], 2);
        mean->count++;
        break;
    case EXACT_CHOICES:
        means->scores[i % batch->choices] = logits[0];
        if ((i + 1) % batch->choices == 0)
            add_cross_entropy(mean, means->scores, batch->choices, batch->labels[i / batch->choices]);
        break;
    case EXACT_ANSWERS:
        add_end(batch, i, logits, batch->starts[i], &mean[0]);
        add_end(batch, i, logits + 1, batch->ends[i], &mean[1]);
        break;
    default:
        for (size_t t = 0; t < exact_length(batch, i); t++)
            add_token(batch, i * batch->columns + t, logits + t * width, width, mean);
    }
}

static double mean_of(const exact_mean *mean) { return mean->count ? mean->sum / (double)mean->count : 0; }

void exact_own_loss(const exact_batch *batch, size_t width, double *const *logits, double *loss)
{
    exact_means means = {.scores = memory_take(batch->choices, sizeof *means.scores)};
    for (size_t i = 0; i < batch->sequences; i++) add_sequence(batch, i, logits[i], width, &means);
    *loss = mean_of(&means.of[0]);
    if (batch->task == EXACT_ANSWERS) *loss = (*loss + mean_of(&means.of[1])) / 2;
    free(means.scores);
}
