/* Declares the state of one drawn case during its verification, the notes that features make of it, and the report of
 * all cases.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "check/verify.h"
#include "tests/drawn/backward_faults.h"
#include "tests/drawn/drawn_case.h"

typedef struct drawn_row {
    char feature[64];    /* "gradients of mlm", "training: recompute" */
    const char *against; /* "float64", "bits" */
    size_t cases, failures;
    double worst; /* error in units of its limit; bits that differ count as infinite */
    size_t worst_case;
    char where[200];
} drawn_row;

typedef struct drawn_report {
    scope memory; /* of the rows; to be freed */
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

typedef struct drawn_run {
    const drawing_options *options;
    const drawn_case *drawn;
    drawn_report *report;
    char folder[64];
    size_t failures; /* of this case */
} drawn_run;

/* Notes one result of a case: an error in units of its limit. where: NULL, or the compared quantity. */
void drawn_note(drawn_run *run, const char *feature, const char *against, double worst, const char *where);
/* Something that should have worked did not. */
void drawn_note_refusal(drawn_run *run, const char *feature, const char *against, const deberta_error *refusal);
/* folder/name of the case in text. */
void drawn_path(const drawn_run *run, const char *name, char text[128]);

/* A way to a result, and what it is compared with. */
typedef struct drawn_feature {
    const char *name;
    bool (*applies)(const drawn_run *run);
    /* Fails where a file cannot be written. */
    deberta_status (*run)(drawn_run *run, const struct drawn_feature *feature, deberta_error *err);
    deberta_precision precision; /* of inference against float64 */
} drawn_feature;

/* Each up to one that runs nothing. */
extern const drawn_feature drawn_training_features[], drawn_attribution_features[], drawn_inference_features[];

/* Drawn cases through every feature that has a second way to its result: float64, or another way to the same bits. */
deberta_status drawn_run_cases(drawn_report *report, const drawing_options *options, deberta_error *err);
