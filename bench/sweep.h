/* Measures encodes over every combination of lengths, layers, threads, tiers and variants of attention.
 *
 * Points are visited in turn, in another order each round, so that a disturbance or a drift of the clock falls on all
 * of them and not on one. A visit makes a session, encodes without counting until that has settled, then takes samples,
 * each of one deberta_encode. Between them run slices of the loops that measured the machine's limits, so that a share
 * of the peak can be of the same moment. Before all that, each point runs once in a separate process, which measures
 * its memory and digests its results.
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
    double done; /* share of the whole that is done, 0 ... 1; grows */
    double elapsed_s;
    double remaining_s; /* estimate; negative: unknown yet */
} sweep_state;

/* Returns false to stop: what has been measured by then is reported. */
typedef bool (*sweep_progress)(void *context, const sweep_state *state);

/* The position projections are folded at load, computed in every encode, or measured both ways. */
typedef enum sweep_position_cache { SWEEP_CACHE_ON, SWEEP_CACHE_OFF, SWEEP_CACHE_BOTH } sweep_position_cache;

/* Empty lists mean the default in brackets. All memory stays the caller's. */
typedef struct sweep_options {
    const char *model;
    deberta_reference reference;
    deberta_precision precision;
    size_list lengths;      /* tokens of a sequence [128, or none if there are mixes] */
    size_list batches;      /* sequences of that length [1] */
    const size_list *mixes; /* ragged batches: lengths of their sequences */
    size_t mix_count;
    size_list layers;        /* run only so many of the model's [all] */
    size_list threads;       /* [usable cores] */
    const deberta_isa *isas; /* [best] */
    size_t isa_count;
    const term_selection *terms; /* [full] */
    size_t term_count;
    sweep_position_cache position_cache;
    bool cold;      /* before each sample, write over all caches */
    bool breakdown; /* stages as well */
    bool pin_threads;
    bool skip_roofs;           /* do not measure the limits beforehand: then there is no % of peak */
    double roof_share;         /* of the time of samples, what slices of the limits between them may take; 0: none */
    size_t repetitions;        /* samples a point, at least; 0: SWEEP_DEFAULT_REPETITIONS */
    double min_seconds;        /* measured time a point, at least, but no more than SWEEP_MAX_SAMPLES samples;
                                  negative: SWEEP_DEFAULT_MIN_SECONDS, or 0 where repetitions are given */
    uint64_t seed;             /* of the token ids */
    size_t memory_limit_bytes; /* for the model and one session together; 0: none */
    sweep_progress progress;   /* may be NULL */
    void *progress_context;
} sweep_options;

/* DEBERTA_E_ARGUMENT, beginning with the option as one types it, where the model has fewer layers or lacks a term of
 * what --attention names: left out and absent would give two equal curves. sweep_run asks too. */
deberta_status sweep_check(const sweep_options *options, const deberta_model_info *model, deberta_error *err);

/* Fills *results; whatever is returned, its memory is to be freed. What casts doubt on the numbers is among the sheet's
 * notes: a busy machine, a changing clock, outputs that differ between repetitions or tiers. */
deberta_status sweep_run(bench_results *results, const sweep_options *options, deberta_error *err);
