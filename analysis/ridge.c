/* The normal equations are centred and solved by Cholesky's decomposition. SPDX-License-Identifier: MIT */
#include "analysis/ridge.h"

#include <math.h>
#include <stdlib.h>

deberta_status ridge_sums_create(ridge_sums *sums, size_t features, deberta_error *err)
{
    *sums = (ridge_sums){.features = features,
                         .products = calloc(features * features, sizeof *sums->products),
                         .row_sum = calloc(features, sizeof *sums->row_sum),
                         .moments = calloc(features, sizeof *sums->moments)};
    if (sums->products && sums->row_sum && sums->moments) return DEBERTA_OK;
    ridge_sums_free(sums);
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for a regression on %zu features", features);
}

void ridge_sums_free(ridge_sums *sums)
{
    free(sums->products);
    free(sums->row_sum);
    free(sums->moments);
    *sums = (ridge_sums){0};
}

void ridge_sums_add(ridge_sums *sums, const float *row, double target)
{
    for (size_t a = 0; a < sums->features; a++) {
        const double value = (double)row[a];
        double *products = sums->products + a * sums->features;
        for (size_t b = 0; b <= a; b++) products[b] += value * (double)row[b];
        sums->row_sum[a] += value;
        sums->moments[a] += value * target;
    }
    sums->target_sum += target;
    sums->target_squares += target * target;
    sums->count++;
}

void ridge_sums_merge(ridge_sums *sums, const ridge_sums *others)
{
    for (size_t k = 0; k < sums->features * sums->features; k++) sums->products[k] += others->products[k];
    for (size_t a = 0; a < sums->features; a++) {
        sums->row_sum[a] += others->row_sum[a];
        sums->moments[a] += others->moments[a];
    }
    sums->target_sum += others->target_sum;
    sums->target_squares += others->target_squares;
    sums->count += others->count;
}

/* The sums around the means: covariances times the number of rows (lower triangle), and those with the target. */
static void centre(const ridge_sums *sums, double *products, double *moments)
{
    const double count = (double)sums->count;
    for (size_t a = 0; a < sums->features; a++) {
        for (size_t b = 0; b <= a; b++)
            products[a * sums->features + b] =
                sums->products[a * sums->features + b] - sums->row_sum[a] * sums->row_sum[b] / count;
        moments[a] = sums->moments[a] - sums->row_sum[a] * sums->target_sum / count;
    }
}

/* Cholesky in place, then both triangular systems: moments becomes the solution. The matrix is positive definite, since
 * the penalty is on its diagonal. */
static void solve_in_place(double *matrix, double *vector, size_t n)
{
    for (size_t a = 0; a < n; a++) {
        double *row = matrix + a * n;
        for (size_t b = 0; b <= a; b++) {
            const double *above = matrix + b * n;
            double sum = row[b];
            for (size_t k = 0; k < b; k++) sum -= row[k] * above[k];
            row[b] = a == b ? sqrt(sum) : sum / above[b];
        }
        for (size_t k = 0; k < a; k++) vector[a] -= row[k] * vector[k];
        vector[a] /= row[a];
    }
    for (size_t a = n; a-- > 0;) {
        for (size_t k = a + 1; k < n; k++) vector[a] -= matrix[k * n + a] * vector[k];
        vector[a] /= matrix[a * n + a];
    }
}

deberta_status ridge_solve(ridge_fit *fit, const ridge_sums *sums, double penalty, deberta_error *err)
{
    const size_t n = sums->features;
    double *matrix = malloc(n * n * sizeof *matrix), *weights = malloc(n * sizeof *weights), trace = 0;
    *fit = (ridge_fit){.features = n, .weights = weights};
    if (!matrix || !weights) {
        free(matrix);
        ridge_fit_free(fit);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for a regression on %zu features", n);
    }
    centre(sums, matrix, weights);
    for (size_t a = 0; a < n; a++) trace += matrix[a * n + a];
    /* With no variance at all any penalty gives weights of zero. */
    const double added = trace > 0 ? penalty * trace / (double)n : 1;
    for (size_t a = 0; a < n; a++) matrix[a * n + a] += added;
    solve_in_place(matrix, weights, n);
    fit->intercept = sums->target_sum;
    for (size_t a = 0; a < n; a++) fit->intercept -= weights[a] * sums->row_sum[a];
    fit->intercept /= (double)sums->count;
    free(matrix);
    return DEBERTA_OK;
}

void ridge_fit_free(ridge_fit *fit)
{
    free(fit->weights);
    *fit = (ridge_fit){0};
}

double ridge_predict(const ridge_fit *fit, const float *row)
{
    double sum = fit->intercept;
    for (size_t a = 0; a < fit->features; a++) sum += fit->weights[a] * (double)row[a];
    return sum;
}

double ridge_r2(const ridge_fit *fit, const ridge_sums *sums)
{
    const size_t n = sums->features;
    const double count = (double)sums->count;
    /* sum (y - b - w x)^2, multiplied out */
    double errors = sums->target_squares + fit->intercept * (count * fit->intercept - 2 * sums->target_sum);
    for (size_t a = 0; a < n; a++) {
        const double *products = sums->products + a * n;
        double inner = 0.5 * fit->weights[a] * products[a];
        for (size_t b = 0; b < a; b++) inner += fit->weights[b] * products[b];
        errors += 2 * fit->weights[a] * (inner + fit->intercept * sums->row_sum[a] - sums->moments[a]);
    }
    return 1 - errors / (sums->target_squares - sums->target_sum * sums->target_sum / count);
}
