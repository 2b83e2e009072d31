/* Measures encodes over every combination of lengths, layers, threads, tiers and variants of attention.
 *
 * Points are visited in turn, in another order each round, so that a disturbance or a drift of the clock affects all
 * of them. A visit opens a session, encodes without counting until times have settled, then takes samples, each of
 * one deberta_encode. Between them run slices of the loops that measured the machine's limits, so that peaks are
 * measured at the same time. Before all that, each point runs once in a separate process, which measures its memory
 * and digests its results.
 *
 * Nothing is printed; progress goes to a callback.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/range.h"
#include "bench/results.h"

enum { SWEEP_DEFAULT_REPETITIONS = 7, SWEEP_MAX_SAMPLES = 10000, SWEEP_DEFAULT_LENGTH = 128 };
#define SWEEP_DEFAULT_MIN_SECONDS 0.2
#define SWEEP_DEFAULT_ROOF_SHARE  0.1

typedef struct sweep_state {
    /* "opening the model", "limits of the machine", or "memory", "time", "stages" of a point: "time: n = 128, batch 1,
     * 5 layers, avx2, 1 thread, attention full". Valid during the call. */
    const char *what;
    double done; /* fraction of the whole that is done, 0 ... 1; grows */
    double elapsed_s;
    double remaining_s; /* estimated seconds; negative: unknown yet */
} sweep_state;

/* Called with the progress; returns false to stop, and completed measurements are then reported. */
typedef bool (*sweep_progress)(void *context, const sweep_state *state);

/* How position projections are measured: folded at load, computed in every encode, or both ways. */
typedef enum sweep_position_cache { SWEEP_CACHE_ON, SWEEP_CACHE_OFF, SWEEP_CACHE_BOTH } sweep_position_cache;

/* Options of a sweep. Empty lists mean the default in brackets. The caller owns all memory. */
typedef struct sweep_options {
    const char *model;
    deberta_reference reference;
    deberta_precision precision;
    size_list lengths;      /* tokens of a sequence [128, or none if there are mixes] */
    size_list batches;      /* sequences of that length [1] */
    const size_list *mixes; /* ragged batches: the lengths of their sequences */
    size_t mix_count;
    size_list layers;        /* numbers of layers to run [all] */
    size_list threads;       /* numbers of threads [usable cores] */
    const deberta_isa *isas; /* tiers [best] */
    size_t isa_count;
    const term_selection *terms; /* terms of attention [full] */
    size_t term_count;
    sweep_position_cache position_cache;
    bool cold;      /* true: all caches are overwritten before each sample */
    bool breakdown; /* true: stages are measured as well */
    bool pin_threads;
    bool skip_roofs; /* true: limits are not measured beforehand, and there is no % of peak */
    /* most time of the slices of the limits between samples, as a fraction of the samples' time; 0: no slices */
    double roof_share;
    size_t repetitions; /* least number of samples of a point; 0: SWEEP_DEFAULT_REPETITIONS */
    /* least measured time of a point, up to SWEEP_MAX_SAMPLES samples; negative: SWEEP_DEFAULT_MIN_SECONDS, or 0 if
     * repetitions are given */
    double min_seconds;
    uint64_t seed;             /* seed of the token ids */
    size_t memory_limit_bytes; /* for the model and one session together; 0: no limit */
    sweep_progress progress;   /* may be NULL */
    void *progress_context;
} sweep_options;

/* Checks the options against a model. Fails with DEBERTA_E_ARGUMENT, beginning with the option as typed, if the model
 * has fewer layers or lacks a term that --attention names: removing an absent term would give two equal curves.
 * sweep_run checks this too. */
deberta_status sweep_check(const sweep_options *options, const deberta_model_info *model, deberta_error *err);

/* Runs the sweep and fills *results, whose memory is to be freed whatever is returned. The sheet's notes hold reasons
 * to doubt the numbers: a busy machine, a changing clock, outputs that differ between repetitions or tiers. */
deberta_status sweep_run(bench_results *results, const sweep_options *options, deberta_error *err);
