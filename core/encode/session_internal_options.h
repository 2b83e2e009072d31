/* Switches of a session that measurements and studies need and applications do not: not part of the public API.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "core/base/parallel.h"
#include "core/encode/forward_record.h"
#include "core/encode/profile.h"
#include "include/deberta_unstable.h"

/* Which terms enter the scores. A term that is left out is not computed; the common scale stays that of the model's own
 * terms, so what remains has the same values as in the full sum. */
typedef enum term_selection {
    TERM_SELECTION_FULL = 0, /* all that the model has */
    TERM_SELECTION_C2C = 1 << DEBERTA_C2C,
    TERM_SELECTION_C2C_C2P = 1 << DEBERTA_C2C | 1 << DEBERTA_C2P,
    TERM_SELECTION_C2C_P2C = 1 << DEBERTA_C2C | 1 << DEBERTA_P2C,
} term_selection;

static inline bool term_is_selected(term_selection selection, deberta_component term)
{
    return selection == TERM_SELECTION_FULL || (unsigned)selection & 1u << term;
}

/* From session->queries, keys and values of the whole batch to session->context. observer may be NULL. */
typedef void (*layer_attention)(deberta_session *session, size_t layer, const deberta_observer *observer);

/* What studies put into a forward pass. What they point at is the caller's, as long as the session lives. */
typedef struct session_interventions {
    deberta_interventions changes; /* deberta_session_intervene sets them anew */
    layer_attention attend;        /* instead of attention_run; NULL: that. The Enhanced Mask Decoder does not use it */
    const void *attend_context;
} session_interventions;

/* DEBERTA_E_UNSUPPORTED for what the model has no place for. */
deberta_status interventions_check(const deberta_model *model, const deberta_interventions *changes,
                                   deberta_error *err);

typedef struct session_internal_options {
    term_selection terms;
    size_t layers;            /* run only the first ones, so that one loaded model serves a sweep over them; 0 = all */
    bool recompute_positions; /* PK and PQ anew in every encode, as programs do that fold nothing; same results */
    bool profile;             /* keep times per stage */
    /* Who runs the loops, instead of threads of the session's own, and with how many threads: threads and pin_threads
     * are ignored. Several sessions may share one. The caller's, as long as the session lives. NULL: its own */
    executor *executor;
    session_interventions interventions;
    const forward_record *record; /* NULL: nothing is kept. The caller's, as long as the session lives */
} session_internal_options;

/* deberta_session_create with these on top; internal may be NULL. */
deberta_status session_create_internal(deberta_session **session, const deberta_model *model,
                                       const deberta_session_options *options, const session_internal_options *internal,
                                       deberta_error *err);
/* NULL unless the session was created with `profile`. Owned by the session. */
profile *session_profile(deberta_session *session);

/* session_create_internal, unless the session would, with its model and what the caller keeps of the results, need more
 * than options->memory_limit_bytes: what the user of a program means by a limit. The library's own is the session's
 * alone. *session is NULL on failure. */
deberta_status session_create_within(deberta_session **session, const deberta_model *model,
                                     const deberta_session_options *options, const session_internal_options *internal,
                                     size_t kept_bytes, deberta_error *err);
