/* Computes an answer from a row of logits: a logit, a difference of two, or a log-probability; and its gradient.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "train/attribution/attribution_parts.h"

/* Returns log(softmax) of the answer. */
static double log_share(const kernels *table, float *logits, size_t n, size_t answer, float weight)
{
    const double wanted = (double)logits[answer], total = softmax_in_place(table, logits, n, 1);
    for (size_t k = 0; k < n; k++) logits[k] = -weight * logits[k];
    logits[answer] += weight;
    return wanted - total;
}

/* Returns log(sigmoid) of the answer, which does not depend on the other outputs. */
static double log_sigmoid(const kernels *table, float *logits, size_t n, size_t answer, float weight)
{
    float gradient = logits[answer];
    const double loss = binary_cross_entropy(table, &gradient, 1, -weight);
    memset(logits, 0, n * sizeof *logits);
    logits[answer] = gradient;
    return -loss;
}

static double logit_difference(float *logits, size_t n, size_t answer, size_t contrast, float weight)
{
    const bool has_contrast = contrast != DEBERTA_NO_CONTRAST;
    const double value = (double)logits[answer] - (has_contrast ? (double)logits[contrast] : 0);
    memset(logits, 0, n * sizeof *logits);
    logits[answer] += weight;
    if (has_contrast) logits[contrast] -= weight;
    return value;
}

double attribution_value(void *context, const step_state *step, size_t token, float *logits, size_t n)
{
    attribution_run *run = context;
    const deberta_attribution_options *o = run->options;
    const learner *l = step->learner;
    const size_t sequence = session_sequence_of(l->session, token);
    const float weight = (float)run->points[sequence].weight;
    const bool alone =
        n == 1 || (o->task == DEBERTA_TASK_SEQUENCE && l->model->config.problem == DEBERTA_PROBLEM_MULTI_LABEL);
    if (o->task == DEBERTA_TASK_RTD && token - l->session->starts[sequence] != o->token) {
        logits[0] = 0;
        return 0;
    }
    double *value = &run->values[sequence];
    if (!o->log_probability)
        *value = logit_difference(logits, n, o->answer, o->contrast, weight);
    else if (alone)
        *value = log_sigmoid(learner_kernels(l), logits, n, o->answer, weight);
    else
        *value = log_share(learner_kernels(l), logits, n, o->answer, weight);
    return *value;
}
