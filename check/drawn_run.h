/* One drawn case while it is verified: what features work with. For verify_drawn.c and the tables of features.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_DRAWN_RUN_H
#define CHECK_DRAWN_RUN_H

#include "check/drawn_case.h"
#include "check/verify_drawn.h"

typedef struct drawn_run {
    const drawing_options *options;
    const drawn_case *drawn;
    drawn_report *report;
    char folder[64];
    size_t failures; /* of this case */
} drawn_run;

/* A way to a result, and what it is compared with. */
typedef struct drawn_feature {
    const char *name;
    bool (*applies)(const drawn_run *run);
    deberta_status (*run)(drawn_run *run, const char *name, deberta_error *err); /* fails for want of memory only */
} drawn_feature;

extern const drawn_feature drawn_training_features[], drawn_inference_features[]; /* up to one that runs nothing */

/* One result of a case: an error in units of its limit. where: NULL, or what was compared. */
deberta_status drawn_note(drawn_run *run, const char *feature, const char *against, double worst, const char *where,
                          deberta_error *err);
/* Something that should have worked did not. */
deberta_status drawn_note_refusal(drawn_run *run, const char *feature, const char *against,
                                  const deberta_error *refusal, deberta_error *err);
/* folder/name of the case in text. */
void drawn_path(const drawn_run *run, const char *name, char text[128]);

#endif
