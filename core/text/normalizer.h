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

/* The model must have been checked and must stay: its user-defined pieces are never changed by the charsmap. */
deberta_status normalizer_create(normalizer **normalizer, const piece_model *model, const char *where,
                                 deberta_error *err);
void normalizer_free(normalizer **normalizer);

/* Reusable; zero-initialised at first. */
typedef struct normalizer_workspace {
    nfc_run run;
    traced_text before; /* form KC */
} normalizer_workspace;

void normalizer_workspace_free(normalizer_workspace *workspace);

/* text: valid UTF-8. DEBERTA_E_MEMORY also if the result would be too long for a traced_text. The origin of a byte is
 * where the step began that gave it; the last is where the text ended, which is before any white space cut off there.
 */
deberta_status normalizer_run(const normalizer *normalizer, normalizer_workspace *workspace, traced_text *out,
                              const char *text, size_t bytes, deberta_error *err);
