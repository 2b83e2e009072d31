/* The sentences of `study decoder`: two masks each, and pairs of words of which the first belongs at the first mask.
 *
 * A file holds one frame a line, "#" begins a comment: kind (subject, verb, preposition or either), tab, template, tab,
 * pairs. {1} and {2} in the template are the masks, <a|b> gives one sentence with a and one with b, a pair is
 * "word/word", pairs are separated by commas.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDIES_DECODER_ITEMS_H
#define STUDIES_DECODER_ITEMS_H

#include "program/frame/input/text_stream.h"
#include "include/deberta.h"

enum { DECODER_WORD_BYTES = 40, DECODER_MASKS = 2 };

typedef struct decoder_pair {
    char words[DECODER_MASKS][DECODER_WORD_BYTES];
    int32_t ids[DECODER_MASKS];
} decoder_pair;

typedef struct decoder_frame {
    char kind[24];
    decoder_pair *pairs;
    size_t pair_count, pair_capacity;
} decoder_frame;

/* One sentence of a frame. */
typedef struct decoder_context {
    size_t frame;
    const char *text;
    int32_t *ids;
    size_t tokens, masks[DECODER_MASKS];
} decoder_context;

typedef struct decoder_items {
    const common_options *options; /* whose memory the lists are */
    decoder_frame *frames;
    size_t frame_count, frame_capacity;
    decoder_context *contexts;
    size_t context_count, context_capacity;
    size_t skipped_pairs; /* a word of theirs is not one token of the model */
} decoder_items;

/* Reads the stream to its end. DEBERTA_E_FORMAT, with the line, for what is no frame. */
deberta_status decoder_items_read(decoder_items *items, const common_options *options, text_stream *stream,
                                  const deberta_tokenizer *tokenizer, deberta_error *err);

#endif
