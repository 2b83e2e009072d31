/* Traces an answer through an encoder by activation patching: places of a run on a clean text are put into a run on a
 * corrupted one, one at a time, and the answer shows how much of the clean run it restores; or the other way round.
 *
 * The clean text and all variants of the corrupted one are sequences of one batch (deberta_patch), which begins at the
 * first layer that a variant changes, because the layers before it give the same states.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "include/deberta_unstable.h"
#include "output/scope.h"

enum { TRACE_TERMS = 3, TRACE_NO_CONTRAST = -1 };

/* Totals, each patched in all heads of all layers at once: each term, all terms, the heads' outputs. */
typedef enum trace_together { TOGETHER_TERMS = TRACE_TERMS, TOGETHER_HEADS, TOGETHER_COUNT } trace_together;

/* Parts of a model, in bits. */
typedef enum trace_part {
    TRACE_STATES = 1, /* each token of H[0] ... H[L] */
    TRACE_HEADS = 2,  /* each head's output, for all tokens */
    TRACE_OF_TERMS = 4,
} trace_part;

/* The measure: the probability of a column of a head's logits or, with a contrast, its logit minus the other's. */
typedef struct trace_answer {
    deberta_task task; /* a head whose columns are alternatives: MLM, MLM_EMD, SEQUENCE, TOKEN */
    size_t position;   /* token of the text; not read for SEQUENCE */
    /* column to subtract, or TRACE_NO_CONTRAST; column < 0: the clean run's most probable one */
    int64_t column, contrast;
} trace_answer;

typedef struct trace_options {
    const deberta_model *model;
    deberta_session_options session; /* options of the session; max_tokens and features are set by the trace */
    size_t tokens;
    const int32_t *clean, *corrupted;             /* [tokens] */
    const int32_t *clean_types, *corrupted_types; /* [tokens] or NULL */
    const float *noise; /* [tokens][E], added to the word rows of the corrupted text; or NULL */
    trace_answer answer;
    unsigned parts; /* trace_part */
    const bool *layers,
        *heads;    /* [L], [A]: those that are patched; states: H[l], the input of a layer l, and with the last H[L] */
    bool corrupts; /* whether places of the corrupted run go into the clean one */
    void (*progress)(void *context, size_t done, size_t total); /* variants; may be NULL */
    void *context;
} trace_options;

/* Measures of the runs in which each place was patched; NaN: the place was not requested, or nothing reads it. */
typedef struct trace_report {
    scope memory;        /* memory of the arrays; to be freed */
    trace_answer answer; /* the target, with the chosen column */
    double clean, corrupted;
    double *states;                  /* [L + 1][tokens] */
    double *heads;                   /* [L][A] */
    double *terms;                   /* [TRACE_TERMS][L][A] */
    double together[TOGETHER_COUNT]; /* filled where all layers and heads are requested */
    size_t states_end; /* H[0] ... H[states_end - 1] are read: the Enhanced Mask Decoder does not read H[L] */
    size_t variants;
} trace_report;

/* Runs a trace. DEBERTA_E_FORMAT where both texts give nearly the same answer, so that there is nothing to restore; the
 * report then has only clean and corrupted. */
deberta_status trace_measure(trace_report *report, const trace_options *options, deberta_error *err);
/* Returns the part of the difference between both runs that one patch restores, or removes: 0 none, 1 all of it. */
double trace_share(const trace_report *report, bool corrupts, double measure);
/* Fills noise [tokens][E] of the tokens that are marked with normal numbers of a seed, of `scale` standard deviations
 * of the word table. */
deberta_status trace_noise(float *noise, const deberta_model *model, const bool *marked, size_t tokens, double scale,
                           uint64_t seed, deberta_error *err);
