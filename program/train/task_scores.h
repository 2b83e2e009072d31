/* What is measured on held-out examples: accuracy and macro F1 of classes, correlations of a regression, accuracy of
 * choices, F1 of tagged spans, F1 and exact match of answers.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TRAIN_TASK_SCORES_H
#define PROGRAM_TRAIN_TASK_SCORES_H

#include "include/deberta_training.h"
#include "program/train/finetune_data.h"

/* The list and the labels must stay. *scorer->context is to be released by the function below. */
void task_scorer_make(deberta_scorer *scorer, deberta_training_task task, const example_list *held_out,
                      const label_list *labels, size_t label_count, bool regression);
void task_scorer_free(deberta_scorer *scorer);

/* What every context begins with: how it is released. */
typedef struct score_context {
    void (*free)(void *context);
} score_context;

void score_tags_make(deberta_scorer *scorer, const example_list *held_out, const label_list *labels,
                     size_t label_count);
void score_answers_make(deberta_scorer *scorer, const example_list *held_out);

#endif
