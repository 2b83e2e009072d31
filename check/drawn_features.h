/* The tables of features: what a drawn case goes through. For verify_drawn.c and the files of the tables.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_DRAWN_FEATURES_H
#define CHECK_DRAWN_FEATURES_H

#include "check/drawn_run.h"

/* A way to a result, and what it is compared with. */
typedef struct drawn_feature {
    const char *name;
    bool (*applies)(const drawn_run *run);
    deberta_status (*run)(drawn_run *run, const char *name,
                          deberta_error *err); /* fails where a file cannot be written */
} drawn_feature;

extern const drawn_feature drawn_training_features[], drawn_inference_features[]; /* up to one that runs nothing */

#endif
