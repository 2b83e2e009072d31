/* Verifies every tier bit for bit against the scalar one, and all of them against float64.
 *
 * Bits: every float32 tier must give the same bits, so that comparison is equality. Errors: a difference from float64
 * is divided by its scale, the size that rounding can explain: eps times the sum of the absolute values of all terms
 * (kernels), or eps times the largest magnitude of the quantity (models). Limits are in these units: for kernels those
 * of core/kernels.h, for models they grow with the layer, because each one adds its rounding to that of the layers
 * before.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "check/mutation.h"
#include "output/scope.h"

/* The place of a quantity in a model, for charts of the error by layer. */
typedef struct verify_place {
    char model[32];    /* label of the model, "" for one that the user named; only meaningful with a quantity */
    char quantity[16]; /* "hidden", "c2c" ... "probs"; "" for results without a layer */
    size_t layer;      /* hidden k: H[k] */
} verify_place;

/* Sums over all values: squares of found - expected, of expected, of found, and found times expected. */
typedef struct verify_norms {
    double difference, expected, found, product;
} verify_norms;

/* Returns |found - expected| / |expected| as 2-norms; 0 where all expected values are 0. */
double verify_relative_error(const verify_norms *norms);
/* Returns the cosine of the angle between found and expected; 1 if one of them is zero. */
double verify_cosine(const verify_norms *norms);

typedef struct verify_row {
    char subject[96]; /* subject of the row: "gemm_f32", "v3 layer 3 c2p" */
    deberta_isa tier;
    verify_place place;
    size_t values;                        /* number of compared values */
    size_t differing;                     /* number of values whose bits differ from scalar's */
    bool has_error;                       /* whether values were compared with float64 */
    double worst, percentile_999, median; /* error in units of eps scale */
    double worst_ulp, ulp_999;            /* error in units of the last place of the exact value, rounded to float */
    verify_norms norms;
    double limit;    /* limit of `worst` */
    char where[144]; /* index, found and expected value of the worst error */
    bool passed;
} verify_row;

typedef struct verify_report {
    scope memory; /* memory of the rows; to be freed */
    verify_row *rows;
    size_t count, capacity, failures;
    bool errors_only; /* whether nothing was compared bit for bit, so that `differing` has no meaning */
} verify_report;

typedef struct verify_options {
    bool tiers[DEBERTA_ISA_COUNT]; /* tiers to verify; scalar is always the base of comparison */
    uint64_t seed;
    size_t threads;
    deberta_reference reference;
    deberta_precision precision; /* precision of the engine; the reference is float64 */
    const mutation *mutation;    /* fault to plant in the model; NULL: none */
    size_t memory_limit_bytes;
    const deberta_ablation *ablations; /* [ablation_count]: ablations of engine and reference alike */
    size_t ablation_count;
} verify_options;

/* Verifies every kernel of every tier on random problems that touch all edges, at random alignments; then on difficult
 * inputs: huge values, ties, subnormals, constant rows. */
deberta_status verify_kernels(verify_report *report, const verify_options *options, deberta_error *err);

/* Verifies exp, GELU and tanh of every tier, and SLEEF's, against float64, and float64 of the C library against
 * SLEEF's. Does nothing in a build without SLEEF. */
deberta_status verify_sleef(verify_report *report, const verify_options *options, deberta_error *err);

/* Verifies a model on sequences, one at a time: hidden states of all layers, attention components, probabilities, head
 * logits. A row of the report covers all sequences. label: beginning of the rows' subjects, "" for none. */
deberta_status verify_model(verify_report *report, const verify_options *options, const char *path, const char *label,
                            const int32_t *ids, const size_t *starts, size_t sequences, deberta_error *err);

/* Texts of a batch; members other than ids and starts may be NULL. */
typedef struct verify_texts {
    const int32_t *ids, *token_types, *position_ids;
    const uint8_t *mask; /* rows and columns of holes are not compared */
    const size_t *starts;
    size_t sequences;
} verify_texts;

/* Verifies in the same way texts with everything that a batch can have. */
deberta_status verify_texts_of(verify_report *report, const verify_options *options, const char *path,
                               const char *label, const verify_texts *texts, deberta_error *err);

/* Error that each layer may add to that of a model, in eps times the largest magnitude. */
double verify_limit_of_a_layer(deberta_precision precision);

/* Checks that a sequence has the bits of the scalar tier with one thread in every other setting: with 1, 2 and 3
 * threads, in a batch with other sequences, with padding after it, and while it is observed. */
deberta_status verify_invariance(verify_report *report, const verify_options *options, const char *path,
                                 const char *label, const int32_t *ids, size_t tokens, deberta_error *err);

/* Runs verify_model on the sequences, then verify_invariance on each, unless a fault is planted. */
deberta_status verify_sequences(verify_report *report, const verify_options *options, const char *path,
                                const char *label, const int32_t *ids, const size_t *starts, size_t sequences,
                                deberta_error *err);
/* Verifies in the same way small made-up models that together use every part of the engine. */
deberta_status verify_standard(verify_report *report, const verify_options *options, deberta_error *err);
/* Fills ids that repeat now and then, as words do; the same for a seed. */
void verify_make_ids(int32_t *ids, size_t tokens, size_t vocabulary, uint64_t seed);

/* ------------------------------------------------------------------------------------------------ for its own parts */

/* Opens the model to be verified, with its planted fault, and describes it. */
deberta_status verify_open(deberta_model **model, deberta_model_info *info, const verify_options *options,
                           const char *path, deberta_error *err);

/* Collects the errors of one row. */
typedef struct verify_errors {
    double *values, *ulps; /* [capacity] */
    size_t count, capacity;
    double worst, worst_ulp;
    verify_norms norms;
    char where[144];
    const char *prefix; /* beginning of the worst error's place, "text 2, "; may be NULL */
} verify_errors;

/* Adds the error of one value; scale > 0. A NaN counts as an infinite error unless both are NaN. */
void verify_errors_add(verify_errors *errors, double found, double expected, double scale, const char *where_format,
                       size_t a, size_t b);
void verify_errors_free(verify_errors *errors);
/* Ends a row, of which subject, tier, place, values, differing and limit are given: computes percentiles, decides,
 * frees the errors. If the report has a row of the same subject and tier, the two become one: counts are added, and of
 * every error statistic the larger one stays. errors: NULL where only bits were compared. */
void verify_report_add(verify_report *report, const verify_row *row, verify_errors *errors);
