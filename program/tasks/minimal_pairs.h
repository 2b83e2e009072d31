/* Evaluates minimal pairs: which of two sentences that differ in little does the model find likelier?
 *
 * A file has an object a line: "sentence_good", "sentence_bad", "UID" (the paradigm) and perhaps "linguistics_term",
 * as BLiMP's files have them. A sentence's score is a sum over its tokens, without [CLS] and [SEP]:
 *
 *     pll   log P(token | all others), with that token masked: as many sequences as tokens
 *     rtd   log P(the token was not replaced): one sequence
 *
 * A pair is right if the good sentence's score is larger; equal scores count as wrong.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/tasks/pair_output.h"
#include "program/tasks/task_run.h"

typedef struct pair_request {
    int score;              /* a pair_score */
    const int *mlm_decoder; /* member of --mlm-decoder in the command's struct */
    const char *text;       /* path of the accuracies; NULL: standard output */
    const char *scores;     /* path of a file for the scores of both sentences of every pair, or NULL */
} pair_request;

/* Reads the pairs of the option "minimal-pairs", which fills `files` of the reading_options, and prints the findings.
 * Returns the exit code, EXIT_INPUT if a line could not be used. */
int minimal_pairs_run(const reading_options *options, const pair_request *request);
