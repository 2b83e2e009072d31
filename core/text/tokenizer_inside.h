/* Defines the members of a tokenizer, for tokenizer.c, tokenizer_encode.c and tokenizer_decode.c only.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/notes.h"
#include "core/text/added_tokens.h"
#include "core/text/byte_bpe.h"
#include "core/text/metaspace.h"
#include "core/text/model_proto.h"
#include "core/text/sentencepiece.h"
#include "core/text/tokenizer_config.h"

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

/* A tokenizer.json beside the spm.model that is read: what only it holds, and where the two differ. */

/* Takes the added tokens that the other files of the folder do not name, and adds one note where anything differs that
 * can change ids. model: of spm.model, checked. A tokenizer.json that cannot be read is named in the note, too. */
deberta_status tokenizer_beside_read(tokenizer_config *config, const piece_model *model, const char *folder,
                                     deberta_error *err);
