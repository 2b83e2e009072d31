/* `eval --against PRECISION`: which texts get another label than in that precision.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TASKS_EVAL_AGAINST_H
#define PROGRAM_TASKS_EVAL_AGAINST_H

#include "output/result.h"
#include "program/tasks/task_run.h"

typedef struct label_change {
    const char *source; /* the file; the stream's */
    size_t line, index, found, expected;
} label_change;

/* The model in another precision, and a session for one text; zero: nothing is compared. */
typedef struct eval_against {
    const common_options *options;
    deberta_precision precision;
    deberta_model *model;
    deberta_session *session;
    size_t max_tokens, labels, texts, count, capacity;
    label_change *changes; /* [count] */
} eval_against;

/* Opens the model of the options in that precision. EXIT_OK or an exit code, after saying why. */
int eval_against_open(eval_against *against, const common_options *options, deberta_precision precision, size_t labels);
/* Compares the label of one text; nothing if the model is not open. */
deberta_status eval_against_compare(eval_against *against, const task_text *text, size_t label, deberta_error *err);
/* Adds what was found to the result, in the order of the texts. */
void eval_against_tell(eval_against *against, result *r, const char *const *names);
void eval_against_free(eval_against *against);

#endif
