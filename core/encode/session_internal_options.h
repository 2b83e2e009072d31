/* Options of a session for measurements, studies and training, which are not part of the public API: the terms of the
 * logits that it computes, the first layers alone, the profile, interventions, the record for a backward pass.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/base/parallel.h"
#include "core/encode/forward_record.h"
#include "core/encode/profile.h"
#include "include/deberta_unstable.h"

/* Selects the terms of the scores. An omitted term is not computed; the common scale stays that of the model's own
 * terms, so the remaining ones have the same values as in the full sum. */
typedef enum term_selection {
    TERM_SELECTION_FULL = 0, /* all terms of the model */
    TERM_SELECTION_C2C = 1 << DEBERTA_C2C,
    TERM_SELECTION_C2C_C2P = 1 << DEBERTA_C2C | 1 << DEBERTA_C2P,
    TERM_SELECTION_C2C_P2C = 1 << DEBERTA_C2C | 1 << DEBERTA_P2C,
} term_selection;

static inline bool term_is_selected(term_selection selection, deberta_component term)
{
    return selection == TERM_SELECTION_FULL || (unsigned)selection & 1u << term;
}

/* Computes session->context from session->queries, keys and values of the whole batch. observer may be NULL. */
typedef void (*layer_attention)(deberta_session *session, size_t layer, const deberta_observer *observer);

/* Changes that a study makes in a forward pass. The caller owns the referenced memory, which must stay while the
 * session lives. */
typedef struct session_interventions {
    deberta_interventions changes; /* of the last encode; its heads need them too */
    deberta_interventions next;    /* of the next one: what deberta_session_intervene was given last */
    layer_attention attend; /* replacement of attention_run; NULL: none. The Enhanced Mask Decoder does not use it */
    const void *attend_context;
} session_interventions;

/* Fails for a change whose layer, head or term the model lacks, or for which a session with these features has no
 * memory. */
deberta_status interventions_check(const deberta_model *model, unsigned features, const deberta_interventions *changes,
                                   deberta_error *err);

typedef struct session_internal_options {
    term_selection terms;
    size_t layers; /* number of first layers to run, so that one loaded model serves a sweep over them; 0: all */
    bool recompute_positions; /* whether to compute PK and PQ in every encode, as programs without folding do; same
                                 results */
    bool profile;             /* whether to measure the time of each stage */
    /* The executor and its threads run the loops, instead of the session's own threads: threads and pin_threads are
     * ignored. Several sessions may share one. The caller owns it, and keeps it while the session lives. NULL: its
     * own */
    executor *executor;
    session_interventions interventions;
    /* record to fill; NULL: none. The caller owns it, and keeps it while the session lives */
    const forward_record *record;
} session_internal_options;

/* Creates a session like deberta_session_create, with these options in addition; internal may be NULL. */
deberta_status session_create_internal(deberta_session **session, const deberta_model *model,
                                       const deberta_session_options *options, const session_internal_options *internal,
                                       deberta_error *err);
/* Returns NULL unless the session was created with `profile`. The session owns it. */
profile *session_profile(deberta_session *session);

/* Creates a session like session_create_internal, but fails if the session, its model and the caller's kept results
 * together need more than options->memory_limit_bytes. This is the meaning of a limit for a program's user; the
 * library's own limit is the session's alone. *session is NULL on failure. */
deberta_status session_create_within(deberta_session **session, const deberta_model *model,
                                     const deberta_session_options *options, const session_internal_options *internal,
                                     size_t kept_bytes, deberta_error *err);
