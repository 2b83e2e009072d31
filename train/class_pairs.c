/* Losses of pairs (docs/training.md, "SiFT"): of clean logits t their own loss, and how far the moved ones s are from
 * them. Classes and choices compare distributions both ways, -sum p log q - sum q log p with p and q for constants;
 * values of a regression are compared by their squared difference.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "train/class_job.h"
#include "train/losses.h"

/* What the gradients of a row are multiplied with: of its own loss, of the distance. */
typedef struct pair_scales {
    float label, row;
    bool ascends; /* the gradient of the moved side alone, not scaled */
} pair_scales;

typedef struct pair_losses {
    double own, distance;
} pair_losses;

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

/* Both become gradients. label: NOT_LABELLED for none. */
static pair_losses compare_classes(const kernels *table, float *t, float *s, size_t classes, int32_t label,
                                   pair_scales scales)
{
    enum { MOST = PAIRS_MOST_CLASSES };
    float clean[MOST], moved[MOST];
    memcpy(clean, t, classes * sizeof *clean);
    memcpy(moved, s, classes * sizeof *moved);
    const double clean_total = softmax_in_place(table, t, classes, 1),
                 moved_total = softmax_in_place(table, s, classes, 1);
    const bool labelled = label != NOT_LABELLED && !scales.ascends;
    const pair_losses losses = {
        .own = labelled ? clean_total - (double)clean[label] : 0,
        .distance = moved_total - dot(t, moved, classes) + clean_total - dot(s, clean, classes),
    };
    for (size_t k = 0; k < classes; k++) {
        const float p = t[k], q = s[k], wanted = (int32_t)k == label ? 1.0f : 0.0f;
        s[k] = scales.ascends ? q - p : scales.row * (q - p);
        t[k] = scales.ascends ? 0 : scales.row * (p - q) + (labelled ? scales.label * (p - wanted) : 0);
    }
    return losses;
}

static pair_losses compare_values(float *t, float *s, float target, pair_scales scales)
{
    float own = *t;
    pair_losses losses = {0};
    const float difference = *s - *t;
    losses.distance = (double)difference * (double)difference;
    if (!scales.ascends) losses.own = squared_error(&own, target, scales.label);
    *s = scales.ascends ? 2 * difference : scales.row * 2 * difference;
    *t = scales.ascends ? 0 : own - scales.row * 2 * difference;
    return losses;
}

static pair_scales scales_of(const class_job *job, size_t labelled, size_t pairs)
{
    return (pair_scales){.label = labelled ? 1 / (float)labelled : 0,
                         .row = job->options->weight / (float)pairs,
                         .ascends = job->options->pairs == PAIRS_ASCENT};
}

/* ------------------------------------------------------------------------------------------------------------- rows */

static size_t count_labelled(const class_job *job)
{
    size_t count = 0;
    if (job->batch->targets) return job->rows.count / 2;
    for (size_t i = 0; i < job->rows.count; i++) count += class_label_of(job, i) != NOT_LABELLED;
    return count;
}

static pair_losses compare_rows(const class_job *job, size_t i, float *t, float *s, pair_scales scales)
{
    const learner *l = job->learner;
    const size_t classes = l->model->tasks.labels;
    if (!job->batch->targets) return compare_classes(learner_kernels(l), t, s, classes, class_label_of(job, i), scales);
    return compare_values(t, s, job->batch->targets[session_sequence_of(l->session, job->rows.tokens[i])], scales);
}

static void losses_of_rows(const class_job *job)
{
    learner *l = job->learner;
    const size_t classes = l->model->tasks.labels, pairs = job->rows.count / 2, labelled = count_labelled(job);
    const pair_scales scales = scales_of(job, labelled, pairs);
    double distance = 0;
    for (size_t part = 0; part < l->options.parts; part++) {
        const size_t first = job->rows.bounds[part], half = (job->rows.bounds[part + 1] - first) / 2;
        for (size_t i = first; i < first + half; i++) {
            float *t = l->logits + i * job->stride, *s = t + half * job->stride;
            const pair_losses losses = compare_rows(job, i, t, s, scales);
            distance += losses.distance;
            l->losses[i] = losses.own;
            l->losses[i + half] = 0;
            memset(t + classes, 0, (job->stride - classes) * sizeof *t);
            memset(s + classes, 0, (job->stride - classes) * sizeof *s);
        }
    }
    job->result->labelled = labelled;
    job->result->loss = labelled ? sum_of_losses(l->losses, job->rows.bounds, l->options.parts) / (double)labelled : 0;
    job->result->distance = distance / (double)pairs;
}

/* -------------------------------------------------------------------------------------------------------- questions */

/* Scores of a question from, or back to, the rows of its sequences: the first in order of a choice is clean. */
static void exchange_scores(const class_job *job, size_t question, float sides[2][MOST_CHOICES], bool back)
{
    const step_batch *batch = job->batch;
    bool seen[MOST_CHOICES] = {false};
    for (size_t i = 0; i < batch->sequences; i++) {
        const size_t choice = batch->origin[i] % batch->choices;
        float *logits = job->learner->logits + i * job->stride;
        if (batch->origin[i] / batch->choices != question) continue;
        float *score = &sides[seen[choice]][choice];
        seen[choice] = true;
        if (back) memset(logits, 0, job->stride * sizeof *logits);
        *(back ? logits : score) = *(back ? score : logits);
    }
}

static void losses_of_questions(const class_job *job)
{
    learner *l = job->learner;
    const step_batch *batch = job->batch;
    const pair_scales scales = scales_of(job, batch->questions, batch->questions);
    double own = 0, distance = 0;
    for (size_t question = 0; question < batch->questions; question++) {
        float sides[2][MOST_CHOICES];
        exchange_scores(job, question, sides, false);
        const pair_losses losses = compare_classes(learner_kernels(l), sides[0], sides[1], batch->choices,
                                                   batch->question_labels[question], scales);
        exchange_scores(job, question, sides, true);
        own += losses.own;
        distance += losses.distance;
    }
    job->result->labelled = batch->questions;
    job->result->loss = own / (double)batch->questions;
    job->result->distance = distance / (double)batch->questions;
}

void class_losses_of_pairs(const class_job *job)
{
    if (job->task == CLASSES_OF_CHOICE)
        losses_of_questions(job);
    else
        losses_of_rows(job);
}
