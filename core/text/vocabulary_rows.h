/* Takes the rows ["piece", score] out of a tokenizer.json without a tree: with a hundred thousand rows jansson's tree
 * takes most of the time in which a tokenizer is opened.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/text/model_proto.h"

/* Reads the file as json_value_read does, but an empty array stands in *root for model.vocab, and its rows become
 * pieces of *rows, all PIECE_NORMAL. False where the file has an error or a form that is not known here: then it keeps
 * and reports nothing, and json_value_read decides. *rows is initialised before and has no pieces. */
bool vocabulary_rows_read(json_t **root, piece_model *rows, const char *path);
