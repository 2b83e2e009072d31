/* A head with a few classes at work: what its losses read and write (head_classes.c, class_pairs.c).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/backward/heads.h"
#include "include/deberta_training.h"

typedef struct class_job {
    step_state *step;
    const step_batch *batch; /* the group of shards */
    const packed_matrix *classifier, *transposed;
    size_t stride; /* of the logits: whole panels */
    head_rows rows;
} class_job;

/* Row i of the logits belongs to this label. */
static inline int32_t class_label_of(const class_job *job, size_t i)
{
    const size_t token = job->rows.tokens[i];
    if (job->step->options->task == DEBERTA_TRAIN_TOKEN) return job->batch->labels[token];
    return job->batch->sequence_labels[session_sequence_of(job->step->learner->session, token)];
}

/* Logits of clean rows and of their moved copies become their gradients (SiFT): inside a part, row i of the first half
 * and row i of the second are a pair. In the ascent all rows are moved ones. */
void class_losses_of_rows(const class_job *job);
/* Losses of the scores of all questions, which are in step->head. */
void class_losses_of_questions(const class_job *job);
