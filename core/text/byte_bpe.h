/* Tokenizes v1: byte-level byte-pair encoding as in GPT-2 and RoBERTa (SPEC 11.1).
 *
 * A text is split into words by one regular expression; the bytes of a word begin as one symbol each, and the adjacent
 * pair that comes first in the list of merges is merged until no pair is left. The vocabulary needs neither
 * normalisation nor an unknown token.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/merge_list.h"
#include "core/text/regex.h"
#include "core/text/token_list.h"

typedef struct byte_bpe byte_bpe;

deberta_status byte_bpe_create(byte_bpe **bpe, deberta_error *err);
void byte_bpe_free(byte_bpe **bpe);

/* A vocabulary is filled with all tokens, then all merges in order of rank, then byte_bpe_finish. `where` begins
 * messages. Tokens are written in the byte alphabet ("\u0120the"). */
deberta_status byte_bpe_add_token(byte_bpe *bpe, const char *text, size_t bytes, int64_t id, const char *where,
                                  deberta_error *err);
deberta_status byte_bpe_add_merge(byte_bpe *bpe, const char *left, size_t left_bytes, const char *right,
                                  size_t right_bytes, const char *where, deberta_error *err);
/* Adds one merge from a line of merges.txt: two symbols with a space between them. */
deberta_status byte_bpe_add_merge_line(byte_bpe *bpe, const char *line, size_t bytes, const char *where,
                                       deberta_error *err);
/* Finishes the vocabulary. unknown_id: an added token, for bytes whose symbol is not in the vocabulary. */
deberta_status byte_bpe_finish(byte_bpe *bpe, int32_t unknown_id, const char *where, deberta_error *err);

size_t byte_bpe_size(const byte_bpe *bpe); /* Returns one more than the largest id. */
/* Returns the id of a token's text; -1: no such token. */
int32_t byte_bpe_find(const byte_bpe *bpe, const char *text, size_t bytes);
/* Returns the text of an id; NULL: no such id. bytes may be NULL. */
const char *byte_bpe_token(const byte_bpe *bpe, int32_t id, size_t *bytes);

/* Returns the byte of a character of the byte alphabet, or -1. */
int byte_bpe_byte(uint32_t character);

/* Reusable; must be zero-initialised. */
typedef struct byte_bpe_workspace {
    regex_match *match;
    merge_list merges;
    merge_pair *fresh; /* pairs that are pushed when the current rank is done */
    size_t fresh_count, fresh_capacity;
} byte_bpe_workspace;

void byte_bpe_workspace_free(byte_bpe_workspace *workspace);

/* Appends the tokens of a text (valid UTF-8, below 2^31 bytes, no special tokens in it); spans count from its
 * beginning. */
deberta_status byte_bpe_encode(const byte_bpe *bpe, byte_bpe_workspace *workspace, const char *text, size_t bytes,
                               token_list *list, deberta_error *err);
