/* Tokenizers of all DeBERTa generations behind one interface: text to ids with offsets, ids to text.
 *
 *     tokenizer *t;
 *     token_list tokens = {0};
 *     DEBERTA_TRY(tokenizer_open(&t, "deberta-v3-base", err));
 *     DEBERTA_TRY(tokenizer_encode(t, text, strlen(text), NULL, 0, NULL, &tokens, err));
 *     for (size_t i = 0; i < tokens.count; i++) use(tokens.ids[i], token_list_text(&tokens, i, NULL),
 * tokens.char_spans[i]);
 *
 * v2, v3 and mDeBERTa have SentencePiece vocabularies (spm.model, or a tokenizer.json made from one), v1 a byte-level
 * BPE (tokenizer.json, vocab.json with merges.txt, or Microsoft's bpe_encoder.bin). The results are those of SPEC 11:
 * what SentencePiece itself gives, with special tokens cut out of the text first, and transformers' slow classes for
 * v1.
 *
 * Nothing is ever truncated here: a caller that has a limit calls token_list_truncate and says so.
 *
 * A tokenizer is immutable and may be used by several threads at once, each with its own token_list.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_TEXT_TOKENIZER_H
#define CORE_TEXT_TOKENIZER_H

#include "core/text/token_list.h"

typedef struct tokenizer tokenizer;

/* In the order in which transformers appends those that a vocabulary lacks. */
typedef enum tokenizer_special {
    TOKENIZER_CLS = 0,
    TOKENIZER_SEP,
    TOKENIZER_UNK,
    TOKENIZER_PAD,
    TOKENIZER_MASK,
    TOKENIZER_SPECIAL_COUNT
} tokenizer_special;

/* Looks into the folder for, in this order: spm.model; tokenizer.json; vocab.json with merges.txt; bpe_encoder.bin. No
 * config.json and no weights are needed. Names, ids and flags of special tokens come from tokenizer_config.json,
 * special_tokens_map.json and added_tokens.json where they are. DEBERTA_E_UNSUPPORTED in a build without text support.
 */
deberta_status tokenizer_open(tokenizer **tokenizer, const char *folder, deberta_error *err);
/* Accepts NULL; sets *tokenizer to NULL. */
void tokenizer_free(tokenizer **tokenizer);

const char *tokenizer_kind_name(const tokenizer *tokenizer);  /* "SentencePiece unigram", "byte-level BPE" ... */
const char *tokenizer_file_name(const tokenizer *tokenizer);  /* "spm.model" ... */
size_t tokenizer_vocabulary_size(const tokenizer *tokenizer); /* one more than the largest id */
int32_t tokenizer_id(const tokenizer *tokenizer, tokenizer_special special);
/* The token as the vocabulary writes it, terminated; NULL where no token has the id. bytes may be NULL. */
const char *tokenizer_token(const tokenizer *tokenizer, int32_t id, size_t *bytes);
/* Is it one of the five, or another special token that the folder's files add? */
bool tokenizer_is_special(const tokenizer *tokenizer, int32_t id);

typedef struct tokenizer_options {
    /* Broken UTF-8 is an error (DEBERTA_E_FORMAT) rather than replaced by U+FFFD and counted in the list. */
    bool strict;
    /* "[MASK]" in a text is six ordinary characters, as in Microsoft's SPMTokenizer; transformers finds the token. */
    bool literal_specials;
} tokenizer_options;

/* Fills the list with [CLS] text [SEP], or [CLS] text [SEP] pair [SEP]. pair: NULL for none; an empty one is a segment.
 * Texts may hold NUL and be up to 2 GiB long; options may be NULL. Time is linear in the length (times its logarithm
 * for BPE); libsentencepiece takes 70 to 250 bytes of memory for every byte of a text, the rest about 60 for every
 * token. On failure the list is empty. */
deberta_status tokenizer_encode(const tokenizer *tokenizer, const char *text, size_t bytes, const char *pair,
                                size_t pair_bytes, const tokenizer_options *options, token_list *list,
                                deberta_error *err);

/* The text that ids stand for, terminated, to be freed by the caller; bytes may be NULL. [CLS], [SEP] and [PAD] are
 * left out, other special tokens are spelled. Bytes that make no character become U+FFFD. DEBERTA_E_ARGUMENT for an id
 * without a token. */
deberta_status tokenizer_decode(const tokenizer *tokenizer, const int32_t *ids, size_t count, char **text,
                                size_t *bytes, deberta_error *err);

#endif
