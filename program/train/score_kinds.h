/* Scorers of one kind of task each. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TRAIN_SCORE_KINDS_H
#define PROGRAM_TRAIN_SCORE_KINDS_H

#include "program/train/finetune_lists.h"
#include "include/deberta_training.h"

/* What every context begins with: how it is released. */
typedef struct score_context {
    void (*free)(void *context);
} score_context;

void score_tags_make(deberta_scorer *scorer, const example_list *held_out, const label_list *labels,
                     size_t label_count);
void score_answers_make(deberta_scorer *scorer, const example_list *held_out);

#endif
