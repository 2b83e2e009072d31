/* Defines the members of a tokenizer, for tokenizer.c, tokenizer_encode.c and tokenizer_decode.c only.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/text.h"
#include "core/text/added_tokens.h"
#include "core/text/byte_bpe.h"
#include "core/text/metaspace.h"
#include "core/text/model_proto.h"
#include "core/text/sentencepiece.h"
#include "core/text/tokenizer_config.h"

struct deberta_tokenizer {
    sentencepiece *pieces; /* one of these three is set */
    metaspace *words;
    byte_bpe *bpe;
    const piece_model *model; /* model of pieces or words; NULL for byte-level BPE */
    const char *file_name;
    kept_notes notes;   /* notes on settings of the folder that the tokenizer does not follow */
    added_tokens added; /* tokens that are found in texts by their spelling */
    int32_t specials[DEBERTA_SPECIAL_COUNT];
    size_t vocabulary_size;
    bool add_prefix_space, prefix_every_stretch;
    bool cuts_as_microsoft; /* whether long pairs are truncated by Microsoft's rule: the folder's config.json is
                               Microsoft's */
    size_t pair_separators; /* number of [SEP] between two segments: 1 or 2 */
};

/* A tokenizer.json beside the spm.model that is read: its additional content, and the differences between the two. */

/* Takes the added tokens that the other files of the folder do not name, and adds one note on all differences that can
 * change ids. model: of spm.model, checked. The note also names a tokenizer.json that cannot be read. */
deberta_status tokenizer_beside_read(tokenizer_config *config, const piece_model *model, const char *folder,
                                     deberta_error *err);
