/* Computes scores of answers, in tokens of the context: whether the best span of all windows of a question is the
 * answer, and F1 of the common tokens. Where the data has questions without an answer, [CLS] competes with the spans:
 * as in SQuAD's rule with its least score of all windows, since a window beside the answer has none.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "core/base/status.h"
#include "program/train/score_kinds.h"

enum { LONGEST_ANSWER = 30 }; /* the default of `deberta answer` */

/* The best span of a question so far, and the least score of "no answer" in its windows; begin SIZE_MAX: no answer. */
typedef struct best_answer {
    double score, none;
    size_t begin, end;
} best_answer;

typedef struct answer_scores {
    const example_list *examples;
    float **logits; /* [examples][tokens][2] */
    best_answer *best;
    bool has_unanswered;
} answer_scores;

static void begin_answers(void *context)
{
    answer_scores *s = context;
    for (size_t q = 0; q < s->examples->questions; q++)
        s->best[q] = (best_answer){.score = -INFINITY, .none = INFINITY, .begin = SIZE_MAX};
}

static void answer_row(void *context, size_t example, size_t token, const float *logits, size_t width)
{
    float *to = ((answer_scores *)context)->logits[example] + 2 * token;
    (void)width;
    to[0] = logits[0];
    to[1] = logits[1];
}

static void search_window(answer_scores *s, size_t example)
{
    const answer_window *w = &s->examples->windows[example];
    const float *logits = s->logits[example];
    best_answer *best = &s->best[w->question];
    best->none = fmin(best->none, (double)logits[0] + (double)logits[1]);
    for (size_t b = 0; b < w->count; b++)
        for (size_t e = b; e < w->count && e < b + LONGEST_ANSWER; e++) {
            const double score = (double)logits[2 * (w->first + b)] + (double)logits[2 * (w->first + e) + 1];
            if (score > best->score) best->score = score, best->begin = w->offset + b, best->end = w->offset + e;
        }
}

static double f1_of(const answer_window *w, const best_answer *best)
{
    if (w->answer == SIZE_MAX || best->begin == SIZE_MAX) return w->answer == best->begin;
    const size_t begin = w->answer > best->begin ? w->answer : best->begin,
                 end = w->answer_end < best->end ? w->answer_end : best->end;
    const size_t common = end + 1 > begin ? end + 1 - begin : 0,
                 both = w->answer_end - w->answer + 1 + best->end - best->begin + 1;
    return 2 * (double)common / (double)both;
}

static void end_answers(void *context, double measures[DEBERTA_MEASURES])
{
    answer_scores *s = context;
    const example_list *list = s->examples;
    for (size_t i = 0; i < list->count; i++) search_window(s, i);
    for (size_t q = 0; s->has_unanswered && q < list->questions; q++)
        if (!(s->best[q].score > s->best[q].none)) s->best[q].begin = SIZE_MAX;
    for (size_t i = 0; i < list->count; i++) {
        const answer_window *w = &list->windows[i];
        if (w->offset > 0) continue; /* each question is scored once, at its first window */
        const double f1 = f1_of(w, &s->best[w->question]);
        measures[0] += f1;
        measures[1] += f1 >= 1;
    }
    for (size_t k = 0; k < 2; k++) measures[k] /= (double)list->questions;
}

void score_answers_make(deberta_scorer *scorer, const example_list *held_out)
{
    answer_scores *s = options_take(held_out->options, 1, sizeof *s);
    s->examples = held_out;
    s->logits = options_take(held_out->options, held_out->count, sizeof *s->logits);
    s->best = options_take(held_out->options, held_out->questions, sizeof *s->best);
    for (size_t i = 0; i < held_out->count; i++) {
        s->logits[i] = options_take(held_out->options, 2 * held_out->items[i].tokens, sizeof **s->logits);
        s->has_unanswered = s->has_unanswered || held_out->windows[i].answer == SIZE_MAX;
    }
    *scorer = (deberta_scorer){
        .names = {"f1", "exact_match"}, .context = s, .begin = begin_answers, .row = answer_row, .end = end_answers};
}
