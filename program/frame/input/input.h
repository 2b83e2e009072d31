/* Reads the user's input, in any of its forms, as one ragged batch that remembers its original layout.
 *
 * Sources, one of: --text S (may be repeated; --pair S adds a second segment), --file FILE of lines ("-": standard
 * input), --ids 1,7,3 (taken as is, nothing added; may be repeated), --input FILE (.safetensors, .json or standard
 * input with input_ids [B,N] and optionally attention_mask, token_type_ids, position_ids).
 *
 * Padding exists only here: leading and trailing padding of a row is cut before encoding, a hole inside keeps its
 * columns and carries a mask, and absolute positions go on counting columns: a left-padded row starts at its first real
 * column. A row without any real token has no sequence.
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

/* One ragged batch that remembers the form in which the user gave it (input_batch.c). */
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

/* The options of the sources, for the table of a command. */
#define INPUT_OPTIONS                                                                                                  \
    {"text", 0, "TEXT", "what to encode; may be repeated", TEXTS_AT(reading_options, texts)},                          \
        {"pair", 0, "TEXT", "second segment of the text of the same number; an empty one is a segment",                \
         TEXTS_AT(reading_options, pairs)},                                                                            \
        {"file", 'f', "FILE", "texts, one a line, or objects (.jsonl); - is standard input",                           \
         TEXTS_AT(reading_options, files)},                                                                            \
        {"max-tokens", 0, "N", "cut longer texts to N tokens, frame included (also: trained, receptive)",              \
         PARSED_AT(reading_options, max_tokens, token_limit_parse)},                                                   \
        {"strict", 0, NULL, "refuse broken UTF-8 instead of replacing it by U+FFFD and saying so",                     \
         FLAG_AT(reading_options, strict)},                                                                            \
        {"ids", 0, "LIST", "token ids such as 1,7,3,2, taken as they are; may be repeated",                            \
         TEXTS_AT(reading_options, ids)},                                                                              \
    {                                                                                                                  \
        "input", 'i', "FILE", "input_ids and masks from a .safetensors or .json file; - is standard input",            \
            TEXTS_AT(reading_options, tensors)                                                                         \
    }

/* model_folder: where the tokenizer is. info: for --max-tokens trained and receptive, and for comparing ids with the
 * vocabulary; NULL where no model is open, then these two are refused. */
void input_read(const reading_options *options, const char *model_folder, const deberta_model_info *info,
                input_batch *input);
/* Reads the tensors of a file. */
deberta_status input_read_tensors(input_batch *input, const char *path, deberta_error *err);

/* Says once that a row's mask begins with zeros: padding, which is cut. */
void note_padding(const common_options *options, const input_batch *input, const char *source);

/* Refuses an option that only texts have a use for. because: ends the sentence. */
void input_refuse_text_options(const reading_options *options, const char *because);
/* --max-tokens, 0 where it was not given; info as above. */
size_t input_token_limit(const reading_options *options, const deberta_model_info *info);

/* "all", "0,3", "0-5,7": sets selected[k] for k < limit. member: the text of an option. */
void parse_index_list(const common_options *options, const char *const *member, bool *selected, size_t limit);
