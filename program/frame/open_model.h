/* Opens the model of a command as the common options say. SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

/* Fills options from --isa, --threads, --memory-limit, --ablate. The caller fills max_tokens and features. */
void fill_session_options(const common_options *options, deberta_session_options *session_options);
/* Refuses low precision for work that has none: `what`, such as "training", is in float32. */
void check_float32(const common_options *options, const char *what);
/* "int8" of --precision, which results have to name; NULL for float32, which is what they are without a word. */
const char *low_precision_name(const common_options *options);
/* There is something at the first argument that could be a model. */
void check_model_place(const common_options *options);
/* Opens the first argument. */
deberta_model *open_model(const common_options *options);
/* Opens a model without its weights, for describing it. */
deberta_model *open_description(const common_options *options);
/* Opens a model that is named elsewhere on the command line. */
deberta_model *open_model_at(const common_options *options, const char *path);

/* Prints what the library has to say of the tokenizer's files: a note a sentence, each said once. */
void note_tokenizer(const common_options *options, const deberta_tokenizer *tokenizer);
/* A note if the longest text has more tokens than the model was trained on; nothing keeps it from being encoded. */
void note_trained_length(const common_options *options, size_t longest, const deberta_model_info *info);

/* Compares every byte of the first argument's packed weights with their digests. Where something differs, the program
 * ends with EXIT_CHECK_FAILED. */
void check_packed(const common_options *options);
