/* Takes the rows ["piece", score] out of a tokenizer.json without a tree: with a hundred thousand rows jansson's tree
 * takes most of the time in which a tokenizer is opened.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/text/model_proto.h"

/* Reads the file as json_value_read does, but an empty array stands in *root for model.vocab, and its rows become
 * pieces of *rows, all PIECE_NORMAL. Returns false for a file with an error or in an unknown form: it then keeps and
 * reports nothing, and json_value_read decides. The caller has initialised *rows, which has no pieces. */
bool vocabulary_rows_read(json_t **root, piece_model *rows, const char *path);
