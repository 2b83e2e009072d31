/* Reads SentencePiece model files: the protobuf wire format, without trusting a byte of it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "core/text/trie.h"

/* The types have the numbers of SPEC 11.2. */
typedef enum piece_type {
    PIECE_NORMAL = 1,
    PIECE_UNKNOWN,
    PIECE_CONTROL,
    PIECE_USER_DEFINED,
    PIECE_UNUSED,
    PIECE_BYTE,
    PIECE_HIDDEN, /* not in files: a later piece has the same text, and this one is never produced */
} piece_type;

/* Pieces that match text, and pieces that only the model itself produces. The same text may be among both. */
#define PIECES_OF_TEXT  (1u << PIECE_NORMAL | 1u << PIECE_USER_DEFINED | 1u << PIECE_UNUSED)
#define PIECES_RESERVED (1u << PIECE_UNKNOWN | 1u << PIECE_CONTROL | 1u << PIECE_BYTE)

typedef enum piece_algorithm { PIECES_UNIGRAM = 1, PIECES_BPE = 2 } piece_algorithm;

typedef struct piece {
    size_t begin, bytes; /* place of its text in piece_model.texts */
    double score;        /* a float, unless the model is of_tokenizers */
    piece_type type;
} piece;

typedef struct piece_model {
    piece *pieces;
    size_t count, capacity;
    char *texts; /* each terminated by NUL */
    size_t texts_bytes, texts_capacity;

    uint64_t algorithm; /* a piece_algorithm, once checked */
    bool byte_fallback, treat_whitespace_as_suffix;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
    uint8_t *charsmap;
    size_t charsmap_bytes;
    int32_t unknown_id; /* number that the check sets */

    /* Set by tokenizer.json alone, after the charsmap: the remaining spaces are removed, and the text is converted to
     * Unicode's form KC. Prompt Guard 2 uses this to read words that were split by spaces. */
    bool remove_spaces, form_kc;

    /* The model follows the library `tokenizers`, not SentencePiece: core/text/metaspace. */
    bool of_tokenizers;
    bool prefix_once; /* whether add_dummy_prefix applies only at the very beginning of a text */
} piece_model;

/* Sets the defaults of an empty file. */
void piece_model_init(piece_model *model);
void piece_model_free(piece_model *model);

/* Reads a model; `where` begins messages. On failure the model is empty. */
deberta_status piece_model_read(piece_model *model, const uint8_t *bytes, size_t size_bytes, const char *where,
                                deberta_error *err);
/* Adds a piece to a model from another source. The text is copied. */
deberta_status piece_model_add(piece_model *model, const char *text, size_t bytes, double score, piece_type type,
                               deberta_error *err);
/* Makes all but the last of the pieces with the same text PIECE_HIDDEN. */
deberta_status piece_model_hide_repeated(piece_model *model, const char *where, deberta_error *err);
/* Checks that the model is usable: algorithm, kinds, texts, scores, the one unknown piece, the 256 bytes. */
deberta_status piece_model_check(piece_model *model, const char *where, deberta_error *err);

/* Builds a trie that maps the texts of pieces to their ids, for the types in the mask `types` (bits 1 << type); the
 * caller frees it in any case. DEBERTA_E_FORMAT if two have the same text. */
deberta_status piece_model_trie(const piece_model *model, unsigned types, trie *trie, const char *where,
                                deberta_error *err);

static inline const char *piece_text(const piece_model *model, size_t id)
{
    return model->texts + model->pieces[id].begin;
}
/* Finds a piece of any type but PIECE_HIDDEN; -1 if there is none. */
int32_t piece_find(const piece_model *model, const char *text, size_t bytes);
/* Returns the byte that "<0x0A>" denotes, or -1. */
int piece_byte(const char *text, size_t bytes);
