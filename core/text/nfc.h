/* Unicode's normalisation forms C and KC, character by character: what composes is composed, marks come in their one
 * order. Form KC writes characters that only look otherwise as those that they stand for.
 *
 * Characters collect in a run until one comes that the run before it cannot change.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/traced_text.h"

typedef struct nfc_character {
    uint32_t code, origin, place; /* place: in its run */
    uint8_t class;
} nfc_character;

/* Zero-initialised at first; reusable after nfc_end. */
typedef struct nfc_run {
    nfc_character *items;
    size_t count, capacity;
    bool compatible; /* form KC; to be set before the first character */
} nfc_run;

/* origin: where in the source the character came from; ascending. The origin of a composed character is that of its
 * first part; of marks that changed places, the least that keeps origins ascending. */
deberta_status nfc_put(nfc_run *run, traced_text *out, uint32_t character, size_t origin, deberta_error *err);
/* What is left. The end of `out` is the caller's to set. */
deberta_status nfc_end(nfc_run *run, traced_text *out, deberta_error *err);
void nfc_free(nfc_run *run);
