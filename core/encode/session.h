/* Describes a session's memory and the cutting of its work. All memory is carved once from one arena; encoding
 * allocates nothing.
 *
 * Letters: T tokens of the batch (at most max_tokens), d head size, dp = padded_head, A heads, ld a row_stride.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "core/encode/session_internal_options.h"
#include "core/load/model.h"

/* Ablations remove terms of the scores from single heads. This part holds the caller's list and the session's table of
 * it; encoder_parts.h declares the functions that apply them.
 *
 * A term is a product of a vector of the text (the query in c2c and c2p, the key in p2c) with something else. Ablating
 * it replaces that vector by zeros, or by the mean over the tokens of its sequence, so that the term no longer depends
 * on the token. The kernels then run unchanged, from one vector for all rows (a stride of 0): there is no second code
 * path, and no cost without an ablation. */

enum { ABLATION_TERMS = 3 }; /* DEBERTA_C2C, C2P, P2C */

typedef enum ablation_mode { ABLATION_NONE = 0, ABLATION_ZERO, ABLATION_MEAN } ablation_mode;

typedef struct ablation_plan {
    const deberta_ablation *given; /* the caller's list; valid only while the session is made */
    size_t given_count;
    uint8_t *modes;      /* [L][A][ABLATION_TERMS] of ablation_mode; NULL, like all the others, without interventions */
    float *zeros;        /* [max(padded_head, d 16)]: a row of queries, or a panel of keys */
    float *mean_queries; /* [A][max_tokens][padded_head]: by head and sequence, in the layer that ran last */
    float *mean_keys;    /* as packed_keys: the panel of a sequence and head, all 16 lanes alike */
    integer_panels zero_key, mean_key_integers; /* the same panels as integers, where attention multiplies integers */
} ablation_plan;

/* Checks the list; the error names the wrong entry, and the model's layers, heads and terms. */
deberta_status ablation_check(const deberta_model *model, const deberta_ablation *list, size_t count,
                              deberta_error *err);
/* Takes memory for the given list, for sequences of max_tokens in all, packed into key_panels panels of keys a head;
 * also fills the modes when the arena is a real one. */
void ablation_plan_carve(ablation_plan *plan, const deberta_model *model, size_t max_tokens, size_t key_panels,
                         arena *memory);
/* Returns the modes of a head's terms, [ABLATION_TERMS]. The plan must have modes. */
uint8_t *ablation_modes(const ablation_plan *plan, const model_config *config, size_t layer, size_t head);

enum {
    OBSERVED_ROWS = 16,   /* query rows of a block given to an observer */
    FAR_SIDES = 2,        /* keys far to the left, keys far to the right */
    DECODER_PANELS = 4,   /* panels of the word table that the MLM head computes at a time */
    MAX_QUERY_ROWS = 252, /* most query rows of an attention task, before rounding down to whole tiles: 252 or 248 of
                           * floats, 240 of integers */
};

/* Private memory of one thread. session_carve computes the sizes. */
typedef struct worker_scratch {
    float *inner;                     /* this thread's inner_rows of session->inner */
    void *integers;                   /* rows of a block in low precision (quantized_rows_bytes) */
    float *strip;                     /* [query rows][strip_stride]: c2p */
    size_t strip_first;               /* reversed table position of its first column */
    float *transposed;                /* [tile panels][transposed_rows][16]: p2c of the current tiles */
    float *bias;                      /* [tile panels][query rows][16] */
    float *logits;                    /* [query rows][logits_stride] */
    integer_rows query_integers;      /* [query rows]: the current queries */
    integer_rows probabilities;       /* [query rows][logits_stride]: probabilities in 15 bits, made from logits */
    float *packing;                   /* [d][16]: a panel of keys before it is quantized */
    float *maximum, *total, *rescale; /* [query rows] */
    float *observed;                  /* [OBSERVED_ROWS][observed_stride]; talking heads: 2 A of them */
    float *patch_keys[2];             /* packed keys of another sequence, for c2c and for p2c, */
    /* and its far_p2c and mean_key (attention_head.h); present with DEBERTA_PATCH_TERMS */
    float *patch_far, *patch_mean;
} worker_scratch;

struct deberta_session {
    const deberta_model *model;
    kernels kernels;
    deberta_isa isa;
    executor *executor;
    bool owns_executor; /* whether the session owns its executor; else the caller does, who may share it between
                           sessions */
    size_t threads, max_tokens;
    unsigned features;
    bool may_leave_rows; /* whether an encode without changes leaves the last layer's rows to the heads
                            (DEBERTA_ONLY_HEADS) */
    session_internal_options internal;
    layer_attention attend; /* attention_run, or the replacement of a study */
    ablation_plan ablation;
    arena arena;
    pthread_mutex_t lock; /* lock around observers' calls and `failure` */
    bool has_lock;
    atomic_bool busy; /* whether a call is running; a second one, by an observer or another thread, is refused */
    position_map positions;
    profile profile;

    /* Sizes of the pieces of attention, which affect only speed: no bit depends on them. */
    bool has_c2p, has_p2c; /* whether the session computes the term: the model has it, and it is not switched off */
    size_t query_rows;     /* most rows of an attention task */
    size_t row_tile, tile_panels; /* rows and panels that the kernels' products prefer */
    size_t l2_bytes;
    size_t strip_stride, transposed_rows, logits_stride, observed_stride;
    size_t inner_rows, inner_stride;

    /* Activations. A session that records has no memory for context, normed, queries, keys and values: they point into
     * the attached record, and are NULL between two records. */
    float *hidden;  /* X [max_tokens][hidden_stride]: the layer's input and output */
    float *context; /* [max_tokens][context_stride]: P V, later the output before its norm */
    float *normed;  /* [max_tokens][normed_stride]: after attention; E-wide rows of embeddings and of the MLM head */
    size_t hidden_stride, context_stride, normed_stride;
    float *inner;       /* [threads][inner_rows][inner_stride]: the feed-forward's middle; the MLM decoder's panels */
    void *integers;     /* quantized rows of a product that all threads share, in low precision */
    float *queries;     /* [A][T][dp] */
    float *keys;        /* [A][T][dp] */
    float *values;      /* [A][dp / 16][T][16] */
    float *packed_keys; /* [sequence][A][ceil(n / 16)][d][16] of the current sequences; only in float32 attention */
    integer_panels key_integers;   /* the same as integers: [sequence][A][16-key panels of whole tiles] */
    integer_panels value_integers; /* [sequence][A][chunk of keys][padded_head / 16], one scale per column */
    float *far_p2c;                /* [sequence][A][2][16 ceil(n / 16)]: p2c of saturated distances */
    size_t key_panels;             /* panels that packed_keys holds for each head */
    float *halo;                   /* H[0] with (width - 1) / 2 zero rows before, between and after the sequences */
    float *decoder_input;          /* H[L - 1] */
    float *asked_rows;             /* rows of the last layer that a head asks for, [max_tokens][hidden_stride] */
    size_t *asked_tokens;          /* [max_tokens]: first tokens of the sequences that a head asks for */
    float *fold_keys, *fold_queries, *fold_workspace; /* memory for recompute_positions */
    worker_scratch *workers;                          /* [threads] */

    const layer_record *recording; /* record of the current run; NULL: none */

    /* The current batch, or the last one. */
    bool encoded;
    bool left_to_heads; /* whether `hidden` is H[L - 1], and the last layer has computed keys and values only */
    size_t tokens, sequences;
    size_t first_layer;    /* first layer that ran */
    size_t *starts;        /* [max_tokens + 1] */
    int32_t *position_ids; /* [max_tokens] */
    uint8_t *mask;         /* [max_tokens] */
    float *key_bias;       /* [max_tokens]: 0, or -inf for holes */
    float *key_present;    /* [max_tokens]: 1, or 0 for holes */
    bool has_holes;
    size_t *panel_starts;  /* [sequence]: first panel in packed_keys */
    size_t *task_starts;   /* [sequence + 1]: first attention task */
    deberta_status status; /* first failure inside a parallel loop */
    deberta_error failure;
};

static inline size_t session_sequence_length(const deberta_session *session, size_t sequence)
{
    return session->starts[sequence + 1] - session->starts[sequence];
}

/* Returns an attribution's replacement of the positions, or NULL. */
static inline const position_change *session_position_change(const deberta_session *session)
{
    return session->internal.record ? session->internal.record->positions : NULL;
}

/* Returns how many of the positions [0, count), sorted by sequence, come before the sequence that begins at a token. */
static inline size_t session_positions_before(const size_t *positions, size_t count, size_t start)
{
    size_t row = 0;
    while (row < count) {
        const size_t middle = row + (count - row) / 2;
        if (positions[middle] < start)
            row = middle + 1;
        else
            count = middle;
    }
    return row;
}

/* Returns the panels that the packed keys of a sequence of n tokens take for each head: integer values lie next to
 * them, in whole tiles. */
static inline size_t session_key_panels(const deberta_session *session, size_t n)
{
    return round_up(ceiling_divide(n, PANEL), session->model->integer_attention ? DIGIT_TILE_INPUTS / PANEL : 1);
}

/* Return a head's data of a token: its row among queries or keys; its 16 columns of the head's first panel of values,
 * whose panels lie tokens * PANEL floats apart. */
static inline float *head_query(const deberta_session *session, size_t head, size_t token)
{
    return session->queries + (head * session->tokens + token) * session->model->padded_head;
}
static inline float *head_key(const deberta_session *session, size_t head, size_t token)
{
    return session->keys + (head * session->tokens + token) * session->model->padded_head;
}
static inline float *head_value(const deberta_session *session, size_t head, size_t token)
{
    return session->values + (head * session->model->head_panels * session->tokens + token) * PANEL;
}

/* Returns the profile of the session, NULL when off, for profile_start and profile_lap. */
static inline const profile *session_profiling(const deberta_session *session)
{
    return session->internal.profile ? &session->profile : NULL;
}

/* Attaches a record, whose memory a recording session uses until session_detach. */
void session_attach(deberta_session *session, const layer_record *record);
void session_detach(deberta_session *session);
/* Records the next run through a layer in the attached record, until session_detach; its input is `rows` rows of x. */
void session_record(deberta_session *session, const layer_record *record, const float *x, size_t rows);

/* Returns the last of the places [first, end) in ascending numbers that is not beyond `number`: the sequence that
 * contains a token or a task. */
static inline size_t session_place_of(const size_t *starts, size_t first, size_t end, size_t number)
{
    while (end - first > 1) {
        const size_t middle = first + (end - first) / 2;
        if (starts[middle] <= number)
            first = middle;
        else
            end = middle;
    }
    return first;
}

/* Returns the sequence that contains a token of the batch. */
static inline size_t session_sequence_of(const deberta_session *session, size_t token)
{
    return session_place_of(session->starts, 0, session->sequences, token);
}

/* Keeps the first failure of a parallel loop; thread-safe. */
void session_note_failure(deberta_session *session, deberta_status status, const deberta_error *error);
/* Records a failure for a caller that holds session->lock. */
void session_note_failure_locked(deberta_session *session, deberta_status status, const deberta_error *error);

/* Applies the caller's edit of H[layer], if there is one, before other code reads it. */
deberta_status interventions_edit(const deberta_session *session, size_t layer, deberta_error *err);

/* Activation patching (deberta_patch). */

/* Checks the patches that a batch makes; the caller has taken it. */
deberta_status patches_check(const deberta_session *session, deberta_error *err);
/* Checks that the positions of the Enhanced Mask Decoder have what the patches of the last layer need. */
deberta_status patches_check_decoder(const deberta_session *session, const size_t *positions, size_t count,
                                     deberta_error *err);
/* Returns the sequence that gives a term of a head to this sequence: the sequence itself where no patch replaces the
 * term. */
size_t patches_donor(const deberta_session *session, deberta_component term, size_t layer, size_t head,
                     size_t sequence);
/* Make the patches of H[layer], and of the contexts of a layer. positions: tokens of the context's rows, ascending;
 * NULL: row i is token i. */
void patches_make_states(const deberta_session *session, size_t layer);
void patches_make_heads(const deberta_session *session, size_t layer, const size_t *positions, size_t count);

/* Enclose every call that uses the session's memory: DEBERTA_E_ARGUMENT during another call. */
deberta_status session_enter(deberta_session *session, deberta_error *err);
void session_leave(deberta_session *session);
