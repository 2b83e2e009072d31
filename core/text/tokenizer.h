/* Provides one interface to the tokenizers of all DeBERTa generations: text to ids with offsets, ids to text.
 *
 *     deberta_tokenizer *t;
 *     token_list tokens = {0};
 *     DEBERTA_TRY(deberta_tokenizer_open(&t, "deberta-v3-base", err));
 *     DEBERTA_TRY(tokenizer_encode(t, text, strlen(text), NULL, 0, NULL, &tokens, err));
 *     for (size_t i = 0; i < tokens.count; i++) use(tokens.ids[i], token_list_text(&tokens, i, NULL),
 * tokens.char_spans[i]);
 *
 * v2, v3 and mDeBERTa have SentencePiece vocabularies (spm.model, or a tokenizer.json made from one), v1 a byte-level
 * BPE (tokenizer.json, vocab.json with merges.txt, or Microsoft's bpe_encoder.bin). The results are those of SPEC 11:
 * SentencePiece's own, with special tokens cut out of the text first, and those of transformers' slow classes for v1.
 *
 * Tokenizing never truncates: a caller with a limit calls token_list_truncate and reports it.
 *
 * A tokenizer is immutable and may be used by several threads at once, each with its own token_list.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/token_list.h"

/* Returns the name of the vocabulary's file: "spm.model" ... */
const char *tokenizer_file_name(const deberta_tokenizer *tokenizer);

typedef struct tokenizer_options {
    /* whether broken UTF-8 is an error (DEBERTA_E_FORMAT); otherwise U+FFFD replaces it and the list counts it */
    bool strict;
    /* whether "[MASK]" in a text is six ordinary characters, as in Microsoft's SPMTokenizer; transformers finds the
     * token */
    bool literal_specials;
} tokenizer_options;

/* Fills the list with [CLS] text [SEP], or [CLS] text [SEP] pair [SEP]. pair: NULL for none; an empty one is a segment.
 * Texts may hold NUL and be up to 2 GiB long; options may be NULL. Time is linear in the length (times its logarithm
 * for BPE); memory about 20 bytes for every byte of a text, 40 for BPE, and 60 for every token. On failure the list is
 * empty. */
deberta_status tokenizer_encode(const deberta_tokenizer *tokenizer, const char *text, size_t bytes, const char *pair,
                                size_t pair_bytes, const tokenizer_options *options, token_list *list,
                                deberta_error *err);
