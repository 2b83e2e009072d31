/* The model of a command, opened as the common options say. SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

/* From --isa, --threads, --memory-limit, --ablate. max_tokens and features are the caller's. */
void fill_session_options(const common_options *options, deberta_session_options *session_options);
/* For what has no low precision: EXIT_OK, or EXIT_USAGE after saying that `what`, such as "training", is in float32. */
int check_float32(const common_options *options, const char *what);
/* "int8" of --precision, which results have to name; NULL for float32, which is what they are without a word. */
const char *low_precision_name(const common_options *options);
/* Whether there is something at the first argument that could be a model; false after saying what was expected. */
bool check_model_place(const common_options *options);
/* Opens the first argument. EXIT_OK or the exit code, after saying why. */
int open_model(const common_options *options, deberta_model **model);
/* Opens a model without its weights, for describing it. */
int open_description(const common_options *options, deberta_model **model);
/* Opens a model that is named elsewhere on the command line. */
int open_model_at(const common_options *options, const char *path, deberta_model **model);

/* Compares every byte of the first argument's packed weights with their digests. EXIT_OK, or the exit code after saying
 * what is wrong: EXIT_CHECK_FAILED where something differs. */
int check_packed(const common_options *options);
