/* Implements SentencePiece's kind of byte-pair encoding (SPEC 11.2). Two neighbours can merge if their joined text is a
 * piece. The pair whose piece has the highest score merges first, leftmost first, until no pair is left.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/merge_list.h"
#include "core/text/model_proto.h"
#include "core/text/piece_cuts.h"

typedef struct piece_bpe piece_bpe;

/* Creates a cutter. The model must have been checked and must stay. `where` begins messages. */
deberta_status piece_bpe_create(piece_bpe **bpe, const piece_model *model, const char *where, deberta_error *err);
void piece_bpe_free(piece_bpe **bpe);

/* Reusable; must be zero-initialised. */
typedef struct piece_bpe_workspace {
    merge_list merges;
    uint32_t *halves; /* [pieces]: halves of unused pieces */
    size_t halves_capacity;
    bool has_halves; /* whether this text has unused pieces */
} piece_bpe_workspace;

void piece_bpe_workspace_free(piece_bpe_workspace *workspace);

/* Cuts a text: normalised, valid UTF-8, below 2^31 bytes, not empty. */
deberta_status piece_bpe_cut(const piece_bpe *bpe, piece_bpe_workspace *workspace, const char *text, size_t bytes,
                             piece_cuts *cuts, deberta_error *err);
