/* Implements SentencePiece's normaliser (SPEC 11.2), which transforms a text before it is cut into pieces.
 *
 * The charsmap of a model file is a double-array trie from strings to their replacements (NFKC and the like). The
 * SentencePiece library follows its offsets unchecked, and does not expose the normalised text. This code proves at
 * load time that every offset a walk can reach lies inside.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/model_proto.h"
#include "core/text/traced_text.h"
#include "core/text/unicode.h"

typedef struct normalizer normalizer;

/* Creates a normaliser. The model must have been checked and must stay: the charsmap never changes its user-defined
 * pieces. */
deberta_status normalizer_create(normalizer **normalizer, const piece_model *model, const char *where,
                                 deberta_error *err);
void normalizer_free(normalizer **normalizer);

/* Reusable; must be zero-initialised. */
typedef struct normalizer_workspace {
    nfc_run run;
    traced_text before; /* state of form KC */
} normalizer_workspace;

void normalizer_workspace_free(normalizer_workspace *workspace);

/* Normalises a text of valid UTF-8. DEBERTA_E_MEMORY also if the result would be too long for a traced_text. The origin
 * of a byte is the beginning of the step that produced it; the last is the end of the text before any white space cut
 * off there. */
deberta_status normalizer_run(const normalizer *normalizer, normalizer_workspace *workspace, traced_text *out,
                              const char *text, size_t bytes, deberta_error *err);
