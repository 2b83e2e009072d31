/* What a tokenizer is made of, for the files that are one: tokenizer.c, tokenizer_encode.c and
 * tokenizer_decode.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/notes.h"
#include "core/text/added_tokens.h"
#include "core/text/byte_bpe.h"
#include "core/text/metaspace.h"
#include "core/text/sentencepiece.h"

struct deberta_tokenizer {
    sentencepiece *pieces; /* one of these three */
    metaspace *words;
    byte_bpe *bpe;
    const piece_model *model; /* of pieces or words; NULL for byte-level BPE */
    const char *file_name;
    notes notes;        /* of what the folder says and the tokenizer does not follow */
    added_tokens added; /* what is found in texts by its spelling */
    int32_t specials[DEBERTA_SPECIAL_COUNT];
    size_t vocabulary_size;
    bool add_prefix_space, prefix_every_stretch;
    bool cuts_as_microsoft; /* pairs that are too long: the folder's config.json is Microsoft's */
    size_t pair_separators; /* [SEP] between two segments: 1 or 2 */
};
