/* Reads byte-level vocabularies from folders: vocab.json with merges.txt (transformers), bpe_encoder.bin (Microsoft).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/text/byte_bpe.h"

/* Adds an object of tokens and their ids. */
deberta_status bpe_files_add_vocabulary(byte_bpe *bpe, json_t *vocabulary, const char *where, deberta_error *err);
/* Adds the text of a merges.txt, including its `#version` line. */
deberta_status bpe_files_add_merges(byte_bpe *bpe, const char *text, size_t bytes, const char *where,
                                    deberta_error *err);

/* Loads tokens and merges; the caller then calls byte_bpe_finish. *bpe: NULL on failure. */
deberta_status bpe_files_load(byte_bpe **bpe, const char *vocabulary_path, const char *merges_path, deberta_error *err);

/* bpe_encoder.bin is Microsoft's file of the vocabulary of v1 (SPEC 11.1): a dict saved with torch.save.
 *
 *     "encoder"   GPT-2's tokens and their ids, as a dict or as the JSON text of one
 *     "vocab"     the merges, as a list of pairs or as the text of a merges.txt
 *     "dict_map"  a list of (GPT-2's id as a text, count): DeBERTa's ids are 4 and up in its order */

/* Does the same; [PAD], [CLS], [SEP] and [UNK] are 0 to 3. */
deberta_status bpe_encoder_load(byte_bpe **bpe, const char *path, deberta_error *err);
