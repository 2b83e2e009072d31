/* Computes scores of held-out examples: accuracy and macro F1 of classes, correlations of regressions, accuracy of
 * choices.
 *
 * SPDX-License-Identifier: MIT */
#include "program/train/task_scores.h"

#include <math.h>
#include <string.h>

#include "analysis/classification.h"
#include "program/train/score_kinds.h"

/* ---------------------------------------------------------------------------------------------------------- classes */

typedef struct class_scores {
    const example_list *examples;
    confusion confusion;
} class_scores;

static void begin_classes(void *context)
{
    class_scores *s = context;
    memset(s->confusion.counts, 0, s->confusion.labels * s->confusion.labels * sizeof *s->confusion.counts);
}

static void class_row(void *context, size_t example, size_t token, const float *logits, size_t width)
{
    class_scores *s = context;
    (void)token;
    confusion_add(&s->confusion, (size_t)s->examples->items[example].label, logits_largest(logits, width));
}

static void end_classes(void *context, double measures[DEBERTA_MEASURES])
{
    const classification_score score = confusion_score(&((class_scores *)context)->confusion);
    measures[0] = score.accuracy;
    measures[1] = score.macro_f1;
}

static void make_classes(deberta_scorer *scorer, const example_list *examples, size_t labels)
{
    class_scores *s = options_take(examples->options, 1, sizeof *s);
    s->examples = examples;
    s->confusion = (confusion){labels, options_take(examples->options, labels * labels, sizeof(size_t))};
    *scorer = (deberta_scorer){
        .names = {"accuracy", "macro_f1"}, .context = s, .begin = begin_classes, .row = class_row, .end = end_classes};
}

/* ---------------------------------------------------------------------------------------------------- one output each */

/* Values of a regression, or scores of choices, text by text. */
typedef struct value_scores {
    const example_list *examples;
    double *found, *wanted; /* [count] */
} value_scores;

static void begin_values(void *context) { (void)context; }

static void value_row(void *context, size_t example, size_t token, const float *logits, size_t width)
{
    (void)token, (void)width;
    ((value_scores *)context)->found[example] = (double)logits[0];
}

/* Returns false if all values are the same. A mean of equal values need not be their value, so differences from it do
 * not tell. */
static bool varies(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[0]) return true;
    return false;
}

/* Returns the correlation, or NaN if one of both does not vary. */
static double pearson(const double *a, const double *b, size_t count)
{
    if (!varies(a, count) || !varies(b, count)) return NAN;
    double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < count; i++) {
        mean_a += a[i] / (double)count;
        mean_b += b[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / sqrt(aa * bb);
}

static void end_regression(void *context, double measures[DEBERTA_MEASURES])
{
    const value_scores *s = context;
    const size_t count = s->examples->count;
    measures[0] = pearson(s->found, s->wanted, count);
    double squares = 0;
    for (size_t i = 0; i < count; i++) squares += (s->found[i] - s->wanted[i]) * (s->found[i] - s->wanted[i]);
    measures[1] = -squares / (double)count;
}

static void end_choices(void *context, double measures[DEBERTA_MEASURES])
{
    const value_scores *s = context;
    const size_t choices = s->examples->choices, questions = s->examples->count / choices;
    size_t right = 0;
    for (size_t q = 0; q < questions; q++) {
        const double *scores = s->found + q * choices;
        size_t best = 0;
        for (size_t k = 1; k < choices; k++)
            if (scores[k] > scores[best]) best = k;
        right += best == (size_t)s->examples->items[q * choices].label;
    }
    measures[0] = (double)right / (double)questions;
}

static void make_values(deberta_scorer *scorer, const example_list *examples, bool regression)
{
    value_scores *s = options_take(examples->options, 1, sizeof *s);
    s->examples = examples;
    s->found = options_take(examples->options, examples->count, sizeof *s->found);
    s->wanted = options_take(examples->options, examples->count, sizeof *s->wanted);
    *scorer = (deberta_scorer){.names = {"accuracy"},
                               .context = s,
                               .begin = begin_values,
                               .row = value_row,
                               .end = regression ? end_regression : end_choices};
    if (regression) scorer->names[0] = "pearson";
    if (regression) scorer->names[1] = "minus_mse";
    for (size_t i = 0; i < examples->count; i++) s->wanted[i] = (double)examples->items[i].target;
}

/* ------------------------------------------------------------------------------------------------------------ of tasks */

void task_scorer_make(deberta_scorer *scorer, deberta_training_task task, const example_list *held_out,
                      const label_list *labels, size_t label_count, bool regression)
{
    switch (task) {
    case DEBERTA_TRAIN_TOKEN: score_tags_make(scorer, held_out, labels, label_count); return;
    case DEBERTA_TRAIN_QA: score_answers_make(scorer, held_out); return;
    case DEBERTA_TRAIN_CHOICE: make_values(scorer, held_out, false); return;
    default: break;
    }
    if (regression)
        make_values(scorer, held_out, true);
    else
        make_classes(scorer, held_out, label_count);
}
