/* Measures steps of training: seconds by stage, work, memory. The batch is generated: sequences of one length, with a
 * given number of labelled tokens.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/cost_model.h"
#include "output/scope.h"
#include "train/state/stage_clock.h"
#include "train/step/training.h"

/* The least work of a step by stage: products only, three times those of the forward pass, with the position
 * projections, and the head for labelled rows alone. Recomputation in the backward pass is not counted. */
typedef struct training_cost {
    double flops[TRAINING_STAGES], total;
} training_cost;

/* Returns "forward", "input gradients" ... */
const char *training_stage_name(training_stage stage);

typedef struct training_bench_options {
    const char *model;
    deberta_reference reference;
    deberta_isa isa;
    size_t threads, sequences, tokens, shards, repetitions; /* tokens: of each sequence; threads: 0: the default */
    double labelled;                                        /* labelled fraction of the tokens */
    size_t micro_tokens;
    bool recomputes; /* as in learner_options */
    bool decodes;    /* true: through the Enhanced Mask Decoder, if the model has one */
    /* most time of the slices of the machine's limit between steps, as a fraction of the steps' time; 0: no slices */
    double roof_share;
    uint64_t seed;
    size_t memory_limit_bytes; /* 0: none */
} training_bench_options;

typedef struct training_memory {
    size_t weights_bytes; /* weights with their gradients */
    size_t moments_bytes, sums_bytes, model_bytes, session_bytes, learner_bytes, logits_bytes;
    size_t peak_rss_bytes; /* peak memory of the process, including opening the model */
} training_memory;

typedef struct training_measurement {
    scope arrays; /* owner of the arrays; free it */
    char isa[16];
    size_t threads, tokens, labelled, count;
    bool decodes;
    double *seconds; /* [count] seconds of each step */
    /* [count] processor seconds of all threads */
    double *processor;
    double stage_seconds[TRAINING_STAGES], stage_processor[TRAINING_STAGES]; /* mean seconds per step */
    double peak_then; /* GFLOP/s of multiply-adds between the steps, median of slices; 0: not measured */
    size_t slices;
    training_cost cost;
    training_memory memory;
} training_measurement;

/* Measures steps; the first is not counted. */
deberta_status training_bench_run(training_measurement *found, const training_bench_options *options,
                                  deberta_error *err);

size_t training_memory_plan(const training_memory *memory); /* Returns the sum of all members but the peak. */
