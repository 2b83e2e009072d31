/* Drawn cases through every feature that has a second way to its result: float64, or another way to the same bits.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_VERIFY_DRAWN_H
#define CHECK_VERIFY_DRAWN_H

#include "check/backward_faults.h"
#include "check/verify.h"

typedef struct drawn_row {
    char feature[64];    /* "gradients of mlm", "training: recompute" */
    const char *against; /* "float64", "bits" */
    size_t cases, failures;
    double worst; /* error in units of its limit; bits that differ count as infinite */
    size_t worst_case;
    char where[200];
} drawn_row;

typedef struct drawn_report {
    drawn_row *rows;
    size_t count, capacity, failures;
    size_t failed_cases, first_failed; /* a case counts once */
} drawn_report;

typedef struct drawing_options {
    verify_options verify; /* tiers, seed, threads */
    size_t first, count;   /* numbers of the cases */
    bool training_only;
    const backward_fault *fault; /* put into every learner; the run ends with the case that shows it */
} drawing_options;

deberta_status verify_drawn(drawn_report *report, const drawing_options *options, deberta_error *err);
void drawn_report_free(drawn_report *report);

#endif
