/* Heads in training: they compute the logits of the rows that the loss reads, the loss, and its gradient for the
 * encoder's output (the carried one, or that of the decoder's second pass). They add losses to step->head.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "core/kernels.h"
#include "include/deberta_training.h"
#include "train/state/step_state.h"

/* Compute the losses of a group of shards, and their gradients. */
deberta_status head_mlm(step_state *step, const step_batch *group, deberta_error *err);
deberta_status head_rtd(step_state *step, const step_batch *group, deberta_error *err);
/* Trains heads with a few classes: sequence, choice, token, question answering. */
deberta_status head_classes(step_state *step, const step_batch *group, deberta_error *err);

/* Adds the losses of rows, in step->memory, to those of their shards; bounds: places among the rows. */
void head_add_losses(step_state *step, size_t end, const size_t *bounds);

/* Lists the tokens for which wanted[t] is not 0; NULL: all except holes. */
head_rows head_rows_of(const step_state *step, const uint8_t *wanted);
/* Lists the first tokens of sequences for which wanted[sequence] is not 0. */
head_rows head_rows_of_sequences(const step_state *step, const uint8_t *wanted);

/* Gather rows of H[L] into to [count][normed_stride], and scatter them back: added to the carried gradient. */
void head_gather(const learner *learner, const head_rows *rows, float *to);
void head_scatter(const step_state *step, const head_rows *rows, const float *from, size_t ld);

/* Reserves at least rows x stride floats as logits. */
deberta_status head_reserve(step_memory *memory, size_t rows, size_t stride, deberta_error *err);

/* Returns the floats of a row while a pair is compared: logits with their last panel, or scores of a question. */
size_t pair_row_floats(const learner *learner, const step_batch *batch);

/* The current head with a few classes: the inputs and outputs of its losses (head_classes.c, class_pairs.c). */

typedef struct class_job {
    step_state *step;
    const step_batch *batch; /* current group of shards */
    const packed_matrix *classifier, *transposed;
    size_t stride; /* floats between rows of logits: whole panels */
    head_rows rows;
} class_job;

/* Returns the label of row i of the logits. */
static inline int32_t class_label_of(const class_job *job, size_t i)
{
    const size_t token = job->rows.tokens[i];
    if (job->step->options->task == DEBERTA_TRAIN_TOKEN) return job->batch->labels[token];
    return job->batch->sequence_labels[session_sequence_of(job->step->learner->session, token)];
}

/* Turns logits of clean rows and of their moved copies into their gradients (SiFT): inside a part, row i of the first
 * half and row i of the second are a pair. In the ascent all rows are moved ones. */
void class_losses_of_rows(const class_job *job);
/* Computes the losses of the scores of all questions, which are in step->head. */
void class_losses_of_questions(const class_job *job);

/* Functions that compute losses from logits, and their gradients: cross entropy, squared error, binary cross entropy
 * (docs/training.md). */

/* Returns the cross entropy of n logits, `stride` floats apart, against class `label`. They become scale (softmax -
 * onehot). */
double cross_entropy(const kernels *table, float *logits, size_t n, size_t stride, size_t label, float scale);

/* Computes the softmax in place and returns log(sum exp). stride as above. */
double softmax_in_place(const kernels *table, float *logits, size_t n, size_t stride);

/* Draws a class from softmax(logits), n contiguous ones: the first whose cumulative sum of exp(logit - max) exceeds u
 * times the total, u in [0, 1]. docs/training.md has the order of the sums. */
size_t draw_class(const kernels *table, const float *logits, size_t n, double u);

/* Returns max(a, 0) - a y + log(1 + exp(-|a|)); *logit becomes scale (sigmoid(a) - y). */
double binary_cross_entropy(const kernels *table, float *logit, float target, float scale);

/* Returns (a - y)^2; *logit becomes scale 2 (a - y). */
double squared_error(float *logit, float target, float scale);

/* Sums rows in parts: a chain in each part, the parts in the tree of core/kernels.h. */
void losses_by_part(const double *losses, const size_t *bounds, size_t parts, double *sums);
double sum_of_parts(const double *sums, size_t parts);
