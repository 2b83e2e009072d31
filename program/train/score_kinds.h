/* Declares the scorers, each for one kind of task. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "program/train/finetune_lists.h"

void score_tags_make(deberta_scorer *scorer, const example_list *held_out, const label_list *labels,
                     size_t label_count);
void score_answers_make(deberta_scorer *scorer, const example_list *held_out);
