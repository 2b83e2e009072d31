/* Ridge regression of one number on a row of features, in float64 and in closed form.
 *
 * Rows are not kept: sums of their products are, and those of two parts can be merged. So a penalty is chosen on one
 * part, the fit redone on both, and the cost does not depend on how often that happens.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_RIDGE_H
#define ANALYSIS_RIDGE_H

#include "core/base/status.h"

typedef struct ridge_sums {
    size_t features, count;
    double *products; /* [features][features], the lower triangle */
    double *row_sum;  /* [features] */
    double *moments;  /* [features] row times target */
    double target_sum, target_squares;
} ridge_sums;

deberta_status ridge_sums_create(ridge_sums *sums, size_t features, deberta_error *err);
void ridge_sums_free(ridge_sums *sums); /* accepts what is all zero */
void ridge_sums_add(ridge_sums *sums, const float *row, double target);
void ridge_sums_merge(ridge_sums *sums, const ridge_sums *others); /* of as many features */

typedef struct ridge_fit {
    size_t features;
    double *weights; /* [features] */
    double intercept;
} ridge_fit;

/* Least squares with `penalty` > 0 times the mean variance of a feature times the rows on the squares of the weights;
 * the intercept costs nothing, so the penalty has no unit. Features that never vary get no weight. At least one row. */
deberta_status ridge_solve(ridge_fit *fit, const ridge_sums *sums, double penalty, deberta_error *err);
void ridge_fit_free(ridge_fit *fit);
double ridge_predict(const ridge_fit *fit, const float *row);

/* 1 - sum of squared errors / sum of squared deviations from the mean target, over the rows behind `sums`, which may be
 * others than those of the fit. Negative when the mean would do better; NaN when all targets are the same. */
double ridge_r2(const ridge_fit *fit, const ridge_sums *sums);

#endif
