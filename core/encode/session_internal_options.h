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

/* Records of a forward pass for a backward pass (train/). */

/* The record of a run through a layer for the backward pass. The session uses queries ... context and normed instead of
 * its own memory, in the same layouts; it fills the other pieces in addition. Rows are tokens, or the rows of a pass of
 * the decoder; strides are the session's. */
typedef struct layer_record {
    size_t layer, pass;   /* pass: number of the decoder's pass */
    const size_t *tokens; /* token of each row; NULL: row i is token i */
    float *input;         /* [rows][hidden_stride]; NULL: not kept */
    float *queries, *context;
    float *keys, *values;           /* in a pass of the decoder, those of the layer, for all tokens */
    float *maximum, *inverse_total; /* [A][tokens]: softmax statistics of every query, */
    float *exponentials; /* [A][tokens][exponentials_stride]: exp(s - maximum) of every query; NULL: recomputed */
    size_t exponentials_stride; /* stride of exponentials; longer sequences keep none, nor do sequences of several
                                   chunks of keys */
    float *attention_sum;       /* [rows][normed_stride]: before the norm, */
    float *normed;              /* [rows][normed_stride]: after the norm */
    float *inner;               /* [rows][inner_stride]: before the activation */
    float *output_sum;          /* [rows][hidden_stride]: before the norm */
} layer_record;

/* Returns the exponentials from row `row` of [A][tokens] on, of a sequence of n tokens; NULL where they are not kept.
 */
static inline float *record_exponentials(const layer_record *record, size_t row, size_t n)
{
    const size_t stride = record->exponentials_stride;
    return record->exponentials && n <= stride && n <= KEY_CHUNK ? record->exponentials + row * stride : NULL;
}

/* Replaces the positions that each sequence of a batch reads, for an attribution that follows a path from a baseline to
 * the model's positions (train/attribution/). The caller owns the memory. */
typedef struct position_change {
    void *context;
    /* Fills keys and queries for this layer; called before the layer is run, forward or back. */
    void (*begin_layer)(void *context, size_t layer);
    /* Replacements of a layer's position_keys and position_queries; those of one sequence follow those of the one
     * before it at a distance of `stride` floats. NULL: the model's. */
    float *keys, *queries;
    size_t keys_stride, queries_stride;
    const float *absolute; /* [sequences]: factors of the rows of positions that the Enhanced Mask Decoder adds */
} position_change;

/* The record of a whole encode. */
typedef struct forward_record {
    layer_record *layers;  /* [L] */
    layer_record *decoder; /* [2]: the passes of the Enhanced Mask Decoder */
    bool decoder_only;  /* whether the last layer computes only keys and values, which are all that the decoder needs */
    float *embedded;    /* [tokens][hidden_stride]: before the norm */
    float *narrow;      /* [tokens][normed_stride]: before the projection; NULL if there is none */
    float *convolution; /* [tokens][hidden_stride]: before the activation, */
    float *convolution_sum; /* [tokens][hidden_stride]: before the norm */
    /* Callback that may change rows before the norm of the embeddings, [count][hidden_stride] from token `first` on;
     * NULL: none. Several threads call it. */
    void (*edit_embedded)(void *context, float *rows, size_t first, size_t count);
    void *edit_context;
    /* dropout of the pass; NULL: none. The relative table is dropped where its projections are folded */
    const dropout_plan *dropout;
    const position_change *positions; /* positions of each sequence; NULL: those of the model */
} forward_record;

/* Measures the time of an encode: seconds per stage, kept separately by every thread.
 *
 * A stage's share of the wall time is its thread-seconds divided by the threads; the rest of the wall time is waiting,
 * at the ends of loops and while one thread works alone. Stages that are fused into one loop are still distinguished,
 * because each thread reads the clock where it changes from one to the next. Off (a NULL profile) it costs a test of a
 * pointer.
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
    PROFILE_PACK,             /* packing keys (values leave their projection in panels), and p2c of far rows */
    PROFILE_ATTENTION,        /* strips, scores, softmax, P V */
    PROFILE_ATTENTION_OUTPUT, /* output projection, residual, layer norm */
    PROFILE_FEED_FORWARD,     /* both matrices, activation, residual, layer norm */
    PROFILE_CONVOLUTION,
    PROFILE_TASKS,
    PROFILE_STAGES
} profile_stage;

/* The parts of PROFILE_ATTENTION. Far tiles, whose bias is a column plus a row, count entirely as q·k. */
typedef enum profile_part {
    PROFILE_QK,   /* q·k, and adding the bias to it */
    PROFILE_C2P,  /* strips: queries with the rows of the table that they reach */
    PROFILE_P2C,  /* rows of the table with keys */
    PROFILE_BIAS, /* reading both at the distance of each pair, and adding them */
    PROFILE_SOFTMAX,
    PROFILE_PV,
    PROFILE_PARTS
} profile_part;

typedef struct profile_lane {
    _Alignas(64) double seconds[PROFILE_STAGES]; /* seconds of one thread, on a separate cache line */
    double parts[PROFILE_PARTS];
} profile_lane;

/* The encoder fills it; the caller reads and zeroes it between two calls of deberta_encode. */
typedef struct profile {
    profile_lane *lanes; /* [threads] */
    size_t threads;
} profile;

static inline double profile_start(const profile *p) { return p ? clock_seconds() : 0; }

/* Adds the time since `start` to a stage of this thread; returns now, the start of the next stage. */
static inline double profile_lap(const profile *p, size_t worker, profile_stage stage, double start)
{
    if (!p) return 0;
    double now = clock_seconds();
    p->lanes[worker].seconds[stage] += now - start;
    return now;
}

/* Ends a lap of a part of attention, whose time also counts in its stage. */
static inline double profile_lap_part(const profile *p, size_t worker, profile_part part, double start)
{
    if (!p) return 0;
    double now = clock_seconds();
    p->lanes[worker].parts[part] += now - start;
    return now;
}

/* Ends a lap of a stage that all threads share, between two loops: the stage includes the time that threads wait for
 * each other. */
static inline double profile_lap_all(const profile *p, profile_stage stage, double start)
{
    if (!p) return 0;
    double now = clock_seconds();
    for (size_t i = 0; i < p->threads; i++) p->lanes[i].seconds[stage] += now - start;
    return now;
}

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
    deberta_interventions changes; /* interventions; deberta_session_intervene replaces them */
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
