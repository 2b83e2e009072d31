/* Computes accuracy, precision, recall and F1 of a classifier from right and given answers.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

typedef struct confusion {
    size_t labels;
    size_t *counts; /* [labels: right][labels: answered], at first zeros */
} confusion;

void confusion_add(confusion *c, size_t right, size_t answered);
size_t confusion_at(const confusion *c, size_t right, size_t answered);

typedef struct class_score {
    size_t texts, answers, hits;  /* number of texts that have the label, to which it was given, and both */
    double precision, recall, f1; /* NaN where there is nothing to divide by */
} class_score;
class_score confusion_class(const confusion *c, size_t label);

typedef struct accuracy_score {
    size_t texts, hits;
    double accuracy, low, high; /* 95 % confidence interval by Wilson, for independent texts */
} accuracy_score;
/* Computes the accuracy; all members are 0 without texts. */
accuracy_score accuracy_of(size_t hits, size_t texts);

typedef struct classification_score {
    size_t texts, hits;
    double accuracy, low, high; /* as in accuracy_score */
    double majority;            /* accuracy of always answering the most frequent label */
    double macro_f1;            /* mean over the labels that occur, as a label or as an answer */
} classification_score;
classification_score confusion_score(const confusion *c);

/* Returns the class of the largest of `width` logits, at least one; of equals the first. */
size_t logits_largest(const float *logits, size_t width);
