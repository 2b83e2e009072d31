/* The buffers that a token list keeps for the tokenizers that fill it.
 *
 * A tokenizer is immutable and shared by threads, so everything that changes while a text is cut up lives here, with
 * the caller's list.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_TEXT_WORKSPACE_H
#define CORE_TEXT_WORKSPACE_H

#include "core/text/byte_bpe.h"
#include "core/text/sentencepiece.h"
#include "core/text/traced_text.h"

typedef struct token_workspace {
    traced_text clean, prefixed;
    sentencepiece_workspace pieces;
    byte_bpe_workspace byte_bpe;
} token_workspace;

/* Accepts NULL. */
void token_workspace_free(token_workspace **workspace);

#endif
