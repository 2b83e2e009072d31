/* Verifies every tier bit for bit against the scalar one, and all of them against float64.
 *
 * Bits: every float32 tier must give the same bits, so that comparison is equality. Errors: a difference from float64
 * is divided by its scale, what rounding can be held responsible for: eps times the sum of the absolute values of all
 * terms (kernels), or eps times the largest magnitude of the quantity (models). Limits are in these units: for kernels
 * those of core/kernels.h, for models they grow with the layer, because each one adds its rounding to that of the
 * layers before.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "check/mutation.h"
#include "output/scope.h"

/* The place of a quantity in a model, for charts of the error by layer. */
typedef struct verify_place {
    char model[32];    /* the label, "" for a model that the user named; only meaningful with a quantity */
    char quantity[16]; /* "hidden", "c2c" ... "probs"; "" for everything that has no layer */
    size_t layer;      /* hidden k: H[k] */
} verify_place;

/* Sums over all values: squares of found - expected, of expected, of found, and found times expected. */
typedef struct verify_norms {
    double difference, expected, found, product;
} verify_norms;

/* |found - expected| / |expected| as 2-norms; 0 where nothing was expected. */
double verify_relative_error(const verify_norms *norms);
/* Cosine of the angle between found and expected; 1 if one of them is zero. */
double verify_cosine(const verify_norms *norms);

typedef struct verify_row {
    char subject[96]; /* "gemm_f32", "v3 layer 3 c2p" */
    deberta_isa tier;
    verify_place place;
    size_t values;                        /* compared */
    size_t differing;                     /* bits other than scalar's */
    bool has_error;                       /* compared with float64 */
    double worst, percentile_999, median; /* error in units of eps scale */
    double worst_ulp, ulp_999;            /* error in units of the last place of the exact value, rounded to float */
    verify_norms norms;
    double limit;    /* of `worst` */
    char where[144]; /* of the worst: index, found, expected */
    bool passed;
} verify_row;

typedef struct verify_report {
    scope memory; /* of the rows; to be freed */
    verify_row *rows;
    size_t count, capacity, failures;
    bool errors_only; /* nothing was compared bit for bit: `differing` means nothing */
} verify_report;

typedef struct verify_options {
    bool tiers[DEBERTA_ISA_COUNT]; /* which to verify; scalar is always the base of comparison */
    uint64_t seed;
    size_t threads;
    deberta_reference reference;
    deberta_precision precision; /* of the engine; the reference is float64 */
    const mutation *mutation;    /* a fault to be put into the model; NULL: none */
    size_t memory_limit_bytes;
    const deberta_ablation *ablations; /* [ablation_count]: of engine and reference alike */
    size_t ablation_count;
} verify_options;

/* Every kernel of every tier on random problems that touch all edges, at random alignments; then on inputs chosen to
 * hurt: huge values, ties, subnormals, constant rows. */
deberta_status verify_kernels(verify_report *report, const verify_options *options, deberta_error *err);

/* exp, GELU and tanh of every tier, and SLEEF's, against float64; float64 of the C library against SLEEF's. Nothing in
 * a build without SLEEF. */
deberta_status verify_sleef(verify_report *report, const verify_options *options, deberta_error *err);

/* A model on sequences, each by itself: hidden states of all layers, attention components, probabilities, head logits.
 * A row of the report covers all sequences. label: what rows begin with, "" for nothing. */
deberta_status verify_model(verify_report *report, const verify_options *options, const char *path, const char *label,
                            const int32_t *ids, const size_t *starts, size_t sequences, deberta_error *err);

/* Texts of a batch; members other than ids and starts may be NULL. */
typedef struct verify_texts {
    const int32_t *ids, *token_types, *position_ids;
    const uint8_t *mask; /* rows and columns of holes are not compared */
    const size_t *starts;
    size_t sequences;
} verify_texts;

/* The same of texts with all that a batch can have. */
deberta_status verify_texts_of(verify_report *report, const verify_options *options, const char *path,
                               const char *label, const verify_texts *texts, deberta_error *err);

/* Growth of a model's error that each layer may add, in eps times the largest magnitude. */
double verify_limit_of_a_layer(deberta_precision precision);

/* A sequence computed by other means must give the same bits as the scalar tier with one thread: 1, 2 and 3 threads,
 * in a batch with other sequences, with padding after it, while being observed. */
deberta_status verify_invariance(verify_report *report, const verify_options *options, const char *path,
                                 const char *label, const int32_t *ids, size_t tokens, deberta_error *err);

/* Runs verify_model on the sequences, then verify_invariance on each, unless a fault is planted. */
deberta_status verify_sequences(verify_report *report, const verify_options *options, const char *path,
                                const char *label, const int32_t *ids, const size_t *starts, size_t sequences,
                                deberta_error *err);
/* The same of small made-up models that between them use every part of the engine. */
deberta_status verify_standard(verify_report *report, const verify_options *options, deberta_error *err);
/* Ids that repeat now and then, as words do, always the same for a seed. */
void verify_make_ids(int32_t *ids, size_t tokens, size_t vocabulary, uint64_t seed);

/* ------------------------------------------------------------------------------------------------ for its own parts */

/* The model to be verified, with the fault that is to be found, and its description. */
deberta_status verify_open(deberta_model **model, deberta_model_info *info, const verify_options *options,
                           const char *path, deberta_error *err);

/* Collects the errors of one row. */
typedef struct verify_errors {
    double *values, *ulps; /* [capacity] */
    size_t count, capacity;
    double worst, worst_ulp;
    verify_norms norms;
    char where[144];
    const char *prefix; /* of the place of the worst, "text 2, "; may be NULL */
} verify_errors;

/* scale > 0. A NaN counts as an infinite error unless both are NaN. */
void verify_errors_add(verify_errors *errors, double found, double expected, double scale, const char *where_format,
                       size_t a, size_t b);
void verify_errors_free(verify_errors *errors);
/* Ends a row, of which subject, tier, place, values, differing and limit are given: computes percentiles, decides,
 * frees the errors. If the report has a row of the same subject and tier, the two become one: counts are added, and of
 * every error statistic the larger one stays. errors: NULL where only bits were compared. */
void verify_report_add(verify_report *report, const verify_row *row, verify_errors *errors);
