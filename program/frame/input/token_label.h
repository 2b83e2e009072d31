/* What figures write for a token of a text. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_FRAME_INPUT_TOKEN_LABEL_H
#define PROGRAM_FRAME_INPUT_TOKEN_LABEL_H

#include "program/frame/input/input_batch.h"

/* The text of a row that the spans of a token refer to: of a pair, the first or the second. */
const char *token_segment(const input_batch *input, size_t row, size_t column);

/* The token without its mark for a space; lives as long as the batch. A byte-level BPE writes bytes in a code
 * of its own ("\u00e4\u00bd"): its tokens show what they stand for in the text, in hexadecimal where that is part of a
 * character. */
const char *token_label(input_batch *input, size_t row, size_t column);

#endif
