/* Reads the user's input, in any of its forms, as one ragged batch without padding that remembers its original layout.
 *
 * The sources, of which one is given: --text S (may be repeated; --pair S adds a second segment), --file FILE of
 * lines ("-": standard input), --ids 1,7,3 (taken as is, nothing added; may be repeated), --input FILE (.safetensors,
 * .json or standard input with input_ids [B,N] and optionally attention_mask, token_type_ids, position_ids).
 *
 * Padding exists only here. Leading and trailing padding of a row is cut before encoding; a hole inside keeps its
 * columns and carries a mask. Absolute positions count columns, so a left-padded row starts at its first real column.
 * A row without any real token has no sequence.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/input/input_batch.h"

/* Rows of the sources, for the table of a command. */
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

/* Reads the input. model_folder: folder of the tokenizer. info: used for --max-tokens trained and receptive, and for
 * comparing ids with the vocabulary; NULL if no model is open, and then these two values are refused. */
void input_read(const reading_options *options, const char *model_folder, const deberta_model_info *info,
                input_batch *input);
/* Reads the tensors of a file. */
deberta_status input_read_tensors(input_batch *input, const char *path, deberta_error *err);

/* Notes once if a row's mask begins with zeros: they are padding, which is cut. */
void note_padding(const common_options *options, const input_batch *input, const char *source);

/* Refuses the options that only texts use. because: end of the sentence. */
void input_refuse_text_options(const reading_options *options, const char *because);
/* Returns --max-tokens, or 0 if it was not given; info as above. */
size_t input_token_limit(const reading_options *options, const deberta_model_info *info);
/* Returns true if segment 0 or 1 has no token of its own, only those of the frame. */
bool input_segment_is_empty(const deberta_tokens *tokens, int segment);
/* Returns what to say of a text without a token of its own, or of such a second text where there is a pair; NULL: each
 * has one. */
const char *input_empty_text(const deberta_tokens *tokens, bool pair);

/* Returns row r of the texts in the form for the tokenizer; limit: from input_token_limit. */
deberta_text input_text(const reading_options *options, const input_batch *input, size_t r, size_t limit);

/* Parses "all", "0,3" or "0-5,7" and sets selected[k] for k < limit. member: the option's text. */
void parse_index_list(const common_options *options, const char *const *member, bool *selected, size_t limit);
