/* Declares one ragged batch that remembers the form in which the user gave it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "include/deberta.h"
#include "output/scope.h"
#include "program/frame/input/text_stream.h"

/* Attention is quadratic: a row of 10 MB would take days. Options allow more (--max-tokens, --memory-limit). */
enum { INPUT_LONGEST_UNASKED = 32768 };

/* A row of the input as the user gave it. */
typedef struct input_row {
    size_t first_column, tokens; /* the columns that are encoded */
    size_t sequence;             /* which sequence of the batch that is; SIZE_MAX for a row that is all padding */
} input_row;

typedef struct input_batch {
    scope memory;         /* of all arrays, and of the labels */
    size_t rows, columns; /* B, N: shorter rows are padded to the longest */
    input_row *row;       /* [rows] */
    size_t sequences, tokens;
    int32_t *ids;
    size_t *sequence_starts;             /* [sequences + 1] */
    int32_t *token_types, *position_ids; /* NULL: the default */
    uint8_t *mask;                       /* NULL: no holes */
    const char **labels;                 /* [tokens] what figures write beside a row: "7", or the token */
    bool *special;                       /* [tokens] framing and other special tokens */

    /* Only from texts: */
    deberta_tokenizer *tokenizer; /* NULL for ids */
    deberta_tokens **token_lists; /* [rows] */
    char **texts, **pairs;        /* [rows]; pairs may be NULL or hold NULL */
    size_t *text_bytes, *pair_bytes;
} input_batch;

void input_free(input_batch *input);
/* The batch for deberta_encode; borrows. */
deberta_batch input_as_batch(const input_batch *input);
/* Names the first id or token type that the model has no row for, by its place in the source. */
deberta_status input_check(const input_batch *input, const deberta_model_info *info, const char *source,
                           deberta_error *err);

/* Sets rows, texts, text_bytes, pairs and pair_bytes from the whole of a text_stream, in which a line that cannot be
 * used is an error. */
void text_source_read(const reading_options *options, input_batch *input);

/* The text of a row that the spans of a token refer to: of a pair, the first or the second. */
const char *token_segment(const input_batch *input, size_t row, size_t column);

/* Returns the token without its mark for a space; it lives as long as the batch. A byte-level BPE writes bytes in a
 * private code ("\u00e4\u00bd"): its tokens are shown as the text they represent, in hexadecimal if that is part of a
 * character. */
const char *token_label(input_batch *input, size_t row, size_t column);
