/* Switches of a session for measurements and studies; they are not part of the public API.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/base/clock.h"
#include "core/base/parallel.h"
#include "core/encode/dropout.h"
#include "core/kernels.h"
#include "include/deberta_unstable.h"

/* What a forward pass leaves for a backward pass (train/). */

/* What a run through a layer leaves for the way back. The session works in queries ... context and in normed instead of
 * in memory of its own, in the same layouts; the other pieces are filled beside. Rows: tokens, or those of a pass of
 * the decoder. Strides are the session's. */
typedef struct layer_record {
    size_t layer, pass;   /* pass: of the decoder */
    const size_t *tokens; /* of each row; NULL: row i is token i */
    float *input;         /* [rows][hidden_stride]; NULL: is not kept */
    float *queries, *context;
    float *keys, *values;           /* in a pass of the decoder those of the layer */
    float *maximum, *inverse_total; /* [A][tokens]: of the softmax of every query, */
    float *exponentials;            /* [A][tokens][exponentials_stride]: and exp(s - maximum); NULL: made again */
    size_t exponentials_stride;     /* longer sequences keep none, nor do those of several chunks of keys */
    float *attention_sum;           /* [rows][normed_stride]: before the norm, */
    float *normed;                  /* and after it */
    float *inner;                   /* [rows][inner_stride]: before the activation */
    float *output_sum;              /* [rows][hidden_stride]: before the norm */
} layer_record;

/* Those of query `row`, head by head, of a sequence of n tokens; NULL where they are not kept. */
static inline float *record_exponentials(const layer_record *record, size_t row, size_t n)
{
    const size_t stride = record->exponentials_stride;
    return record->exponentials && n <= stride && n <= KEY_CHUNK ? record->exponentials + row * stride : NULL;
}

/* What a whole encode records. */
typedef struct forward_record {
    layer_record *layers;   /* [L] */
    layer_record *decoder;  /* [2]: the passes of the Enhanced Mask Decoder */
    bool decoder_only;      /* the last layer makes keys and values alone, which are all that the decoder needs */
    float *embedded;        /* [tokens][hidden_stride]: before the norm */
    float *narrow;          /* [tokens][normed_stride]: before the projection; NULL if there is none */
    float *convolution;     /* [tokens][hidden_stride]: before the activation, */
    float *convolution_sum; /* and before the norm */
    /* May change rows before the norm of the embeddings, [count][hidden_stride] from token `first` on; NULL: no. Called
     * from several threads. */
    void (*edit_embedded)(void *context, float *rows, size_t first, size_t count);
    void *edit_context;
    const dropout_plan *dropout; /* NULL: none. The relative table is dropped where its projections are folded */
} forward_record;

/* Where an encode spends its time: seconds per stage, kept by every thread for itself.
 *
 * A stage's share of the wall time is its thread-seconds divided by the threads; what is missing to the wall time is
 * waiting, at the ends of loops and while one thread works alone. Stages that are fused into one loop are told apart
 * all the same, because each thread looks at the clock where it changes from one to the next. Off (a NULL profile) it
 * costs a test of a pointer.
 *
 *     double time = profile_start(profile);
 *     ...                                                                    // one block of the output projection
 *     time = profile_lap(profile, worker, PROFILE_ATTENTION_OUTPUT, time);
 *     ...                                                                    // the same block through the feed-forward
 *     time = profile_lap(profile, worker, PROFILE_FEED_FORWARD, time); */

typedef enum profile_stage {
    PROFILE_EMBED,            /* look-up, projection to h, layer norm */
    PROFILE_POSITIONS,        /* PK and PQ, only when they are not folded at load (--position-cache off) */
    PROFILE_QKV,              /* query, key and value projections */
    PROFILE_PACK,             /* keys into panels (values come out of their projection so), far rows of p2c */
    PROFILE_ATTENTION,        /* strips, scores, softmax, P V */
    PROFILE_ATTENTION_OUTPUT, /* output projection, residual, layer norm */
    PROFILE_FEED_FORWARD,     /* both matrices, activation, residual, layer norm */
    PROFILE_CONVOLUTION,
    PROFILE_TASKS,
    PROFILE_STAGES
} profile_stage;

/* What PROFILE_ATTENTION is made of. Far tiles, whose bias is a column plus a row, are all in q·k. */
typedef enum profile_part {
    PROFILE_QK,   /* q·k, and adding the bias to it */
    PROFILE_C2P,  /* strips: queries with the rows of the table that they reach */
    PROFILE_P2C,  /* rows of the table with keys */
    PROFILE_BIAS, /* both read at the distance of each pair, and added */
    PROFILE_SOFTMAX,
    PROFILE_PV,
    PROFILE_PARTS
} profile_part;

typedef struct profile_lane {
    _Alignas(64) double seconds[PROFILE_STAGES]; /* of one thread; on its own cache line */
    double parts[PROFILE_PARTS];
} profile_lane;

/* Filled by the encoder, read and set to zero by the caller between two calls of deberta_encode. */
typedef struct profile {
    profile_lane *lanes; /* [threads] */
    size_t threads;
} profile;

static inline double profile_start(const profile *p) { return p ? clock_seconds() : 0; }

/* Adds the time since `start` to a stage of this thread; returns now, the start of what follows. */
static inline double profile_lap(const profile *p, size_t worker, profile_stage stage, double start)
{
    if (!p) return 0;
    double now = clock_seconds();
    p->lanes[worker].seconds[stage] += now - start;
    return now;
}

/* Ends a lap of a part of attention, whose time is in its stage as well. */
static inline double profile_lap_part(const profile *p, size_t worker, profile_part part, double start)
{
    if (!p) return 0;
    double now = clock_seconds();
    p->lanes[worker].parts[part] += now - start;
    return now;
}

/* Ends a lap of a stage that all threads share, between two of their loops: the time that they wait for each other
 * counts as theirs. */
static inline double profile_lap_all(const profile *p, profile_stage stage, double start)
{
    if (!p) return 0;
    double now = clock_seconds();
    for (size_t i = 0; i < p->threads; i++) p->lanes[i].seconds[stage] += now - start;
    return now;
}

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
