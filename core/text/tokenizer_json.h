/* Reads tokenizer.json, the one-file form in which transformers saves a tokenizer.
 *
 * It describes a pipeline of small steps. This code recognises the steps that DeBERTa's converters write, and restores
 * the model. It refuses any other step by name, because guessing would give wrong ids silently.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/byte_bpe.h"
#include "core/text/model_proto.h"
#include "core/text/tokenizer_config.h"

/* Fills *model (a unigram model, checked) or *bpe (tokens and merges, not finished), and the added tokens and flags of
 * *config. *bpe is NULL unless the file has a byte-level BPE. *model is initialised before, and may be freed in any
 * case. */
deberta_status tokenizer_json_load(const char *path, tokenizer_config *config, piece_model *model, byte_bpe **bpe,
                                   deberta_error *err);
