/* Measures steps of training: seconds by stage, work, memory. The batch is made up: sequences of one length, with a
 * given number of labelled tokens.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/cost_model.h"
#include "output/scope.h"
#include "train/state/stage_clock.h"
#include "train/step/training.h"

/* The least work of a step by stage: products only, three times those of the forward pass, with the position
 * projections, and the head of labelled rows alone. What the backward pass computes again is not counted. */
typedef struct training_cost {
    double flops[TRAINING_STAGES], total;
} training_cost;

/* "forward", "input gradients" ... */
const char *training_stage_name(training_stage stage);

typedef struct training_bench_options {
    const char *model;
    deberta_reference reference;
    deberta_isa isa;
    size_t threads, sequences, tokens, shards, repetitions; /* tokens: of a sequence; threads 0: the default */
    double labelled;                                        /* share of the tokens */
    size_t micro_tokens;
    bool recomputes;   /* as learner_options has it */
    bool decodes;      /* after the Enhanced Mask Decoder, where there is one */
    double roof_share; /* of the time of steps, what slices of the machine's limit between them may take; 0: none */
    uint64_t seed;
} training_bench_options;

typedef struct training_memory {
    size_t weights_bytes; /* with gradients */
    size_t moments_bytes, sums_bytes, model_bytes, session_bytes, learner_bytes, logits_bytes;
    size_t peak_rss_bytes; /* of the process, opening included */
} training_memory;

typedef struct training_measurement {
    scope arrays; /* memory of them; to be freed */
    char isa[16];
    size_t threads, tokens, labelled, count;
    bool decodes;
    double *seconds;                                                         /* [count]: of each step */
    double *processor;                                                       /* [count]: of all threads */
    double stage_seconds[TRAINING_STAGES], stage_processor[TRAINING_STAGES]; /* a step, mean */
    double peak_then; /* GFLOP/s of multiply-adds between the steps, median of slices; 0: not measured */
    size_t slices;
    training_cost cost;
    training_memory memory;
} training_measurement;

/* The first step is not counted. */
deberta_status training_bench_run(training_measurement *found, const training_bench_options *options,
                                  deberta_error *err);

size_t training_memory_plan(const training_memory *memory); /* all but the peak */
