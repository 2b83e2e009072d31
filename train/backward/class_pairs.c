/* Computes losses of pairs (docs/training.md, "SiFT"): the loss of the clean logits t, and the distance of the moved
 * ones s from them. Classes and choices compare distributions both ways, -sum p log q - sum q log p with p and q as
 * constants; values of a regression are compared by their squared difference.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "train/backward/heads.h"

/* Factors of a row's gradients: for its own loss, and for the distance. */
typedef struct pair_scales {
    float label, row;
    bool ascends; /* whether only the moved side gets its gradient, not scaled */
} pair_scales;

typedef struct pair_losses {
    double own, distance;
} pair_losses;

size_t pair_row_floats(const learner *l, const step_batch *batch)
{
    return maximum(l->model->tasks.classifier.panel_count * PANEL, batch->choices);
}

static double class_pairs_dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

/* Turns both rows of logits into gradients. label: NOT_LABELLED for none. */
static pair_losses compare_classes(const class_job *job, float *t, float *s, size_t classes, int32_t label,
                                   pair_scales scales)
{
    const kernels *table = learner_kernels(job->step->learner);
    float *clean = job->step->options->compared[PAIR_ROW_CLEAN], *moved = job->step->options->compared[PAIR_ROW_MOVED];
    memcpy(clean, t, classes * sizeof *clean);
    memcpy(moved, s, classes * sizeof *moved);
    const double clean_total = softmax_in_place(table, t, classes, 1),
                 moved_total = softmax_in_place(table, s, classes, 1);
    const bool labelled = label != NOT_LABELLED && !scales.ascends;
    const pair_losses losses = {
        .own = labelled ? clean_total - (double)clean[label] : 0,
        .distance = moved_total - class_pairs_dot(t, moved, classes) + clean_total - class_pairs_dot(s, clean, classes),
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

static pair_scales scales_of(const class_job *job)
{
    const head_counts *counts = &job->step->head.counts;
    return (pair_scales){.label = counts->labelled[0] ? 1 / (float)counts->labelled[0] : 0,
                         .row = job->step->options->sift_weight / (float)counts->pairs,
                         .ascends = job->step->options->pairs == PAIRS_ASCENT};
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* Row i is the clean one or, in the ascent, the moved one. */
static double compare_rows(const class_job *job, size_t i, float *t, float *s, pair_scales scales)
{
    const step_state *step = job->step;
    const learner *l = step->learner;
    const size_t classes = l->model->tasks.labels;
    pair_losses losses;
    if (job->batch->targets)
        losses =
            compare_values(t, s, job->batch->targets[session_sequence_of(l->session, job->rows.tokens[i])], scales);
    else
        losses = compare_classes(job, t, s, classes, class_label_of(job, i), scales);
    memset(t + classes, 0, (job->stride - classes) * sizeof *t);
    memset(s + classes, 0, (job->stride - classes) * sizeof *s);
    step->memory->losses[i] = losses.own;
    return losses.distance;
}

static void ascend(const class_job *job)
{
    const step_state *step = job->step;
    const size_t classes = step->learner->model->tasks.labels;
    const pair_scales scales = scales_of(job);
    for (size_t i = 0; i < job->rows.count; i++) {
        float *clean = job->step->options->compared[PAIR_ROW_COPY];
        memcpy(clean, job->step->options->clean + (step->group.first_token + job->rows.tokens[i]) * classes,
               classes * sizeof *clean);
        compare_rows(job, i, clean, step->memory->logits + i * job->stride, scales);
    }
}

void class_losses_of_rows(const class_job *job)
{
    step_state *step = job->step;
    step_memory *m = step->memory;
    const pair_scales scales = scales_of(job);
    if (scales.ascends) {
        ascend(job);
        return;
    }
    for (size_t part = 0; part < step->group.count; part++) {
        const size_t first = job->rows.bounds[part], half = (job->rows.bounds[part + 1] - first) / 2;
        for (size_t i = first; i < first + half; i++) {
            float *t = m->logits + i * job->stride, *s = t + half * job->stride;
            job->step->head.distances[step->group.first_token + job->rows.tokens[i]] =
                compare_rows(job, i, t, s, scales);
            m->losses[i + half] = 0;
        }
    }
    head_add_losses(step, 0, job->rows.bounds);
}

/* -------------------------------------------------------------------------------------------------------- questions */

void class_losses_of_questions(const class_job *job)
{
    const step_batch *batch = job->batch;
    const pair_scales scales = scales_of(job);
    head_result *result = &job->step->head;
    for (size_t question = 0; question < batch->questions; question++) {
        const size_t first = question * batch->choices;
        const pair_losses losses = compare_classes(job, result->scores[0] + first, result->scores[1] + first,
                                                   batch->choices, batch->question_labels[question], scales);
        result->losses[0][0] += losses.own;
        result->distance += losses.distance;
    }
}
