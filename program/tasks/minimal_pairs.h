/* Evaluates minimal pairs: of two sentences that differ in little, which does the model find likelier?
 *
 * A file has an object a line: "sentence_good", "sentence_bad", "UID" (the paradigm) and perhaps "linguistics_term", as
 * BLiMP's files have them. A sentence's score is a sum over its tokens, without the frame:
 *
 *     pll   log P(token | all others), that token masked: as many sequences as tokens
 *     rtd   log P(the token was not replaced): one sequence
 *
 * A pair is right if the good sentence's score is larger; equal scores are not.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "output/result.h"
#include "output/scope.h"
#include "program/tasks/task_run.h"

typedef struct pair_request {
    int score;              /* pair_score */
    const int *mlm_decoder; /* of --mlm-decoder: the member of the command's struct */
    const char *scores;     /* a file for the scores of both sentences of every pair, or NULL */
} pair_request;

/* Reads the pairs of the option "minimal-pairs", which fills `files` of the reading_options, and prints what was found.
 * The exit code: EXIT_INPUT if a line could not be used. */
int minimal_pairs_run(const reading_options *options, const pair_request *request);

/* The results of minimal pairs, by paradigm and by term (pair_output.c). */

typedef enum pair_score { PAIR_SCORE_PLL, PAIR_SCORE_RTD } pair_score;
extern const char *const pair_score_names[];

typedef struct pair_group {
    const char *name;
    size_t pairs, right;
} pair_group;

/* Groups in the order in which names come; {0} is empty. */
typedef struct pair_groups {
    pair_group *groups; /* [count] */
    size_t count, capacity;
} pair_groups;

typedef struct pair_findings {
    scope memory;
    pair_score score;
    const char *head, *precision; /* precision NULL: float32 */
    size_t pairs, right, ties, bad;
    size_t unknown; /* pairs with a stretch of text that the vocabulary does not know */
    pair_groups paradigms, terms;
} pair_findings;

/* A pair of this paradigm; term may be NULL. */
void pair_findings_add(pair_findings *findings, const char *paradigm, const char *term, double good, double bad);
void pair_findings_free(pair_findings *findings);

/* {"schema": "deberta-minimal-pairs/1", "score", "head", "pairs", "right", "accuracy", "interval": [low, high], "ties",
 * "bad", "paradigms": [{"name", "pairs", "right", "accuracy", "low", "high"}], "terms": the same}; CSV is the table of
 * the paradigms. The caller frees it. */
result *pair_result(const pair_findings *findings);
