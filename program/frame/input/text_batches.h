/* Runs token sequences through the encoder in ragged batches. Sequences are sorted by length inside a window, so that
 * those of a batch are alike; a batch has at most --batch-tokens tokens unless a single sequence is longer.
 *
 * The results do not depend on batches: a sequence gives the same bits alone or in a batch.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/ablate.h"
#include "program/frame/input/text_stream.h"

/* A sequence of tokens; it borrows its arrays. */
typedef struct text_piece {
    const int32_t *ids, *types; /* [tokens] */
    size_t tokens;
    size_t index; /* index before sorting, for the caller */
} text_piece;

typedef struct text_batches {
    const reading_options *options;
    deberta_model *model;
    deberta_model_info info;
    deberta_tokenizer *tokenizer;
    deberta_session *session; /* opened for the first batch, and again for a longer one */
    deberta_session_options session_options;
    size_t batch_tokens; /* value of --batch-tokens */
    size_t cut;          /* value of --max-tokens, or 0 */
    /* largest number of tokens of a text; a longer one is refused, as the program does not guess what to cut */
    size_t longest;
    bool strict;
    int32_t *ids, *types; /* [session_options.max_tokens]: of the current batch */
    size_t *starts;
    double encoder_seconds;
    size_t tokens, batches;                        /* sums over all batches so far */
    size_t most_tokens;                            /* tokens of the longest sequence */
    size_t replaced_texts, cut_texts, empty_texts; /* texts with broken UTF-8, longer than `cut`, and without tokens;
                                                    * only the first few are named */
} text_batches;

/* Reads the options, and opens model and tokenizer. features: of the session. */
void text_batches_open(text_batches *batches, const reading_options *options, unsigned features);
void text_batches_close(text_batches *batches);

/* Returns the record's text in the form for the tokenizer. */
deberta_text text_batches_text(const text_batches *batches, const text_record *record);
/* Tokenizes a record that has no problem yet. If it is unfit for this model (too long, an id the model lacks, broken
 * UTF-8 with --strict), that becomes its problem; the status is an error only if the work must end. */
deberta_status text_batches_tokenize(text_batches *batches, text_record *record, deberta_tokens **list,
                                     deberta_error *err);
/* Notes that a record is answered although a text of it has no token. empty: which, "the text is empty"; NULL: none. */
void text_batches_note_empty(text_batches *batches, const text_record *record, const char *empty);
/* Checks the length alone, for a command whose head sees positions that the encoder does not. */
deberta_status text_batches_check_length(const text_batches *batches, text_record *record, size_t tokens,
                                         size_t longest, deberta_error *err);

/* Sorts the pieces and encodes them. on_batch receives pieces[0 .. count) of one batch while the session holds its
 * results. */
typedef deberta_status (*text_batch_callback)(void *context, const text_piece *pieces, size_t count,
                                              const size_t *starts, const deberta_outputs *outputs, deberta_error *err);
deberta_status text_batches_run(text_batches *batches, text_piece *pieces, size_t count, text_batch_callback on_batch,
                                void *context, deberta_error *err);

#define TEXT_BATCHES_OPTIONS                                                                                           \
    {"batch-tokens", 0, "N", "tokens encoded together (default 2048); changes speed and memory, no result",            \
     SIZE_AT(reading_options, batch_tokens, 1, 1 << 24)},                                                              \
        {"max-tokens", 0, "N",                                                                                         \
         "cut longer texts to N tokens, frame included; also: trained, receptive. Nothing is cut otherwise, but a "    \
         "text of more than 32768 tokens is refused",                                                                  \
         PARSED_AT(reading_options, max_tokens, token_limit_parse)},                                                   \
        ABLATE_OPTION,                                                                                                 \
    {                                                                                                                  \
        "strict", 0, NULL, "broken UTF-8 is a problem of its line instead of being replaced by U+FFFD",                \
            FLAG_AT(reading_options, strict)                                                                           \
    }
