/* Measures held-out examples: accuracy and macro F1 of classes, correlations of a regression, accuracy of choices, F1
 * of tagged spans, F1 and exact match of answers.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "program/train/finetune_lists.h"

/* Makes a scorer. List and labels must outlive it; its memory is that of the list's options. */
void task_scorer_make(deberta_scorer *scorer, deberta_training_task task, const example_list *held_out,
                      const label_list *labels, size_t label_count, bool regression);
