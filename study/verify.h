/* Verification: every tier bit for bit against the scalar one, and all of them against float64.
 *
 * Bits: every float32 tier must give the same bits, so that comparison is equality. Errors: a difference from float64
 * is divided by its scale, what rounding can be held responsible for: eps times the sum of the absolute values of all
 * terms (kernels), or eps times the largest magnitude of the quantity (models). Limits are in these units: for kernels
 * those of core/kernels.h, for models they grow with the layer, because each one adds its rounding to that of the
 * layers before.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDY_VERIFY_H
#define STUDY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model/mutation.h"
#include "include/deberta.h"

typedef struct verify_row {
    char subject[96]; /* "gemm_f32", "synthetic:...: layer 3 c2p" */
    deberta_isa tier;
    size_t values;                /* compared */
    size_t differing;             /* bits other than scalar's */
    bool has_error;               /* compared with float64 */
    double worst, percentile_999; /* error in units of eps scale */
    double limit;
    char where[96]; /* of the worst: index, found, expected */
    bool passed;
} verify_row;

typedef struct verify_report {
    verify_row *rows;
    size_t count, capacity, failures;
} verify_report;

void verify_report_free(verify_report *report);

typedef struct verify_options {
    bool tiers[DEBERTA_ISA_COUNT]; /* which to verify; scalar is always the base of comparison */
    uint64_t seed;
    size_t threads;
    deberta_reference reference;
    model_mutation mutation; /* a fault to be put into the engine */
    size_t memory_limit_bytes;
} verify_options;

/* Every kernel of every tier on random problems that touch all edges. */
deberta_status verify_kernels(verify_report *report, const verify_options *options, deberta_error *err);

/* A model on one sequence: hidden states of all layers, attention components, probabilities, head logits. label: what
 * rows begin with, "" for nothing. */
deberta_status verify_model(verify_report *report, const verify_options *options, const char *path, const char *label,
                            const int32_t *ids, size_t tokens, deberta_error *err);

/* ------------------------------------------------------------------------------------------------ for its own parts */

/* Collects the errors of one row. */
typedef struct verify_errors {
    double *values;
    size_t count, capacity;
    double worst;
    char where[96];
    bool failed_allocation;
} verify_errors;

/* scale > 0. A NaN counts as an infinite error unless both are NaN. */
void verify_errors_add(verify_errors *errors, double found, double expected, double scale, const char *where_format,
                       size_t a, size_t b);
/* Ends a row: computes percentiles, decides, frees the errors. */
deberta_status verify_report_add(verify_report *report, const char *subject, deberta_isa tier, size_t values,
                                 size_t differing, verify_errors *errors, double limit, deberta_error *err);

#endif
