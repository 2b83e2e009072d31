/* Declares one ragged batch that remembers the layout in which the user gave it. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "include/deberta.h"
#include "output/scope.h"
#include "program/frame/input/text_stream.h"

/* Longest text, in tokens, without an option. Attention is quadratic: a row of 10 MB would take days. Options allow
 * more (--max-tokens, --memory-limit). */
enum { INPUT_LONGEST_UNASKED = 32768 };

/* A row of the input as the user gave it. */
typedef struct input_row {
    size_t first_column, tokens; /* columns that are encoded */
    size_t sequence;             /* index of its sequence in the batch; SIZE_MAX for a row that is all padding */
} input_row;

typedef struct input_batch {
    scope memory;         /* owner of all arrays and labels */
    size_t rows, columns; /* B and N; shorter rows are padded to the longest */
    input_row *row;       /* [rows] */
    size_t sequences, tokens;
    int32_t *ids;
    size_t *sequence_starts;             /* [sequences + 1] */
    int32_t *token_types, *position_ids; /* NULL: the default */
    uint8_t *mask;                       /* NULL: no holes */
    const char **labels;                 /* [tokens] text beside a figure's row: "7", or the token */
    bool *special;                       /* [tokens] true: [CLS], [SEP] and other special tokens */

    /* Set for texts only */
    deberta_tokenizer *tokenizer; /* NULL for ids */
    deberta_tokens **token_lists; /* [rows] */
    char **texts, **pairs;        /* [rows]; pairs may be NULL or hold NULL */
    size_t *text_bytes, *pair_bytes;
} input_batch;

void input_free(input_batch *input);
/* Returns the batch for deberta_encode, which borrows the arrays. */
deberta_batch input_as_batch(const input_batch *input);
/* Refuses the first id or token type without a row in the model's tables, and names its place in the source. */
deberta_status input_check(const input_batch *input, const deberta_model_info *info, const char *source,
                           deberta_error *err);

/* Sets rows, texts, text_bytes, pairs and pair_bytes by reading a text_stream to its end. A line that cannot be used
 * is an error. */
void text_source_read(const reading_options *options, input_batch *input);

/* Returns the text that the spans of a token refer to: in a pair, the first or the second. */
const char *token_segment(const input_batch *input, size_t row, size_t column);

/* Returns the token without its mark for a space; the text lives as long as the batch. A byte-level BPE writes bytes
 * in a private code ("\u00e4\u00bd"), so its tokens are decoded, and shown in hexadecimal if they are part of a
 * character. */
const char *token_label(input_batch *input, size_t row, size_t column);
