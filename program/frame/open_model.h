/* Opens the model of a command as the common options say. SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

/* Fills options from --isa, --threads, --memory-limit, --ablate. The caller fills max_tokens and features. */
void fill_session_options(const common_options *options, deberta_session_options *session_options);
/* Refuses low precision for work that needs float32: `what`, such as "training". */
void check_float32(const common_options *options, const char *what);
/* Returns "int8" or another low precision of --precision, which results must name; NULL for float32, the unnamed
 * default. */
const char *low_precision_name(const common_options *options);
/* Ends the program unless the first argument exists and could be a model. */
void check_model_place(const common_options *options);
/* Opens the model of the first argument. */
deberta_model *open_model(const common_options *options);
/* Opens a model without its weights, to describe it. */
deberta_model *open_description(const common_options *options);
/* Opens a model that an option names. */
deberta_model *open_model_at(const common_options *options, const char *path);

/* Prints the library's notes on the tokenizer's files, each sentence once. */
void note_tokenizer(const common_options *options, const deberta_tokenizer *tokenizer);
/* Prints a note if the longest text has more tokens than the model was trained on; such a text is encoded all the
 * same. */
void note_trained_length(const common_options *options, size_t longest, const deberta_model_info *info);

/* Compares every byte of the first argument's packed weights with their digests. If any differs, it ends the program
 * with EXIT_CHECK_FAILED. */
void check_packed(const common_options *options);
