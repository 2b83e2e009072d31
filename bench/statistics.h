/* Evaluates repeated measurements: summaries, comparison of two sets, fitted curves.
 *
 * Times are never normally distributed (nothing is faster than undisturbed, everything can be slower), so all methods
 * use ranks: medians, order statistics, Mann-Whitney, Wilcoxon's signed ranks. Nothing is random, so the same samples
 * give the same answer.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

typedef struct statistics_summary {
    size_t count;
    double minimum, maximum, median, p95;
    double mad;       /* median absolute deviation from the median, not scaled */
    double low, high; /* interval for the true median, from order statistics */
    double coverage;  /* its confidence: the least at or above 0.95 that the count allows, less if there are too
                       * few */
} statistics_summary;

/* Summarizes samples, which are finite; count >= 1. */
void statistics_summarize(statistics_summary *summary, const double *samples, size_t count);

/* Returns the median of an array, which it may reorder; count >= 1. */
double statistics_median(double *values, size_t count);

typedef struct statistics_comparison {
    double ratio;     /* Hodges-Lehmann: median of b / a over all pairs */
    double low, high; /* interval of the ratio, consistent with the test below */
    double coverage;  /* its confidence, chosen as for a summary */
    double u;         /* number of pairs with a < b; ties count half */
    double p;         /* two-sided p of Mann-Whitney */
    bool exact;       /* true: p by counting; false: by the normal approximation, corrected for ties and continuity */
    double effect;    /* Cliff's delta: P(b > a) - P(b < a), from -1 to 1 */
} statistics_comparison;

/* Compares two sets of positive samples; counts >= 1. */
void statistics_compare(statistics_comparison *comparison, const double *a, size_t count_a, const double *b,
                        size_t count_b);

/* Comparison of measurements taken in pairs: what both of a pair share, such as a slow hour, cancels. */
typedef struct statistics_pairs {
    size_t count; /* number of pairs */
    double ratio; /* Hodges-Lehmann in the logarithms: exp of the median of the means of log(b / a) over all pairs of
                     pairs, each with itself as well */
    double low, high; /* interval of the ratio, consistent with the test below */
    double coverage;  /* its confidence, chosen as for a summary */
    /* Wilcoxon: sum of the ranks of |log(b / a)| where b > a; ties share their mean rank, pairs of equal times are
     * left out */
    double w;
    double p; /* two-sided p */
    /* true: p by counting all signs of these ranks, with or without ties; false: by the normal approximation */
    bool exact;
} statistics_pairs;

/* Compares pairs of positive a[i] and b[i]; count >= 1. */
void statistics_compare_pairs(statistics_pairs *pairs, const double *a, const double *b, size_t count);

enum { STATISTICS_MAX_DEGREE = 2 };

typedef struct statistics_fit {
    size_t degree;
    double coefficient[STATISTICS_MAX_DEGREE + 1]; /* coefficients of x^0, x^1, x^2 */
    double worst;                                  /* largest |fit - y| / |y| */
    bool valid; /* false: there are no more distinct x than coefficients, which any curve would meet */
} statistics_fit;

/* Fits a polynomial by least squares of *relative* errors: in a sweep from 1 ms to 10 s every point should count the
 * same. y > 0. */
statistics_fit statistics_fit_polynomial(const double *x, const double *y, size_t count, size_t degree);

/* z = sum over k of (coefficient[0][k] + y coefficient[1][k]) x^k: time over lengths x and layers y, where the cost
 * of a layer and the constant cost both grow with the length. */
typedef struct statistics_surface {
    size_t degree; /* degree in x */
    double coefficient[2][STATISTICS_MAX_DEGREE + 1];
    double worst; /* largest |fit - z| / |z| */
    /* false: there are fewer than two different y, or no more points than coefficients even with degree 0 */
    bool valid;
} statistics_surface;

/* Fits a surface by least squares of relative errors, z > 0, with the highest degree that leaves more points than
 * coefficients. */
statistics_surface statistics_fit_surface(const double *x, const double *y, const double *z, size_t count);
double statistics_surface_at(const statistics_surface *surface, double x, double y);

typedef struct statistics_growth {
    double exponent; /* exponent of y = c x^exponent, by least squares in the logarithms */
    double last;     /* exponent between the two largest x alone */
    double worst;    /* largest |fit - y| / y */
    bool valid;      /* false: there are no more distinct x than the two coefficients */
} statistics_growth;

/* Fits a power law to x, y > 0, with x ascending. */
statistics_growth statistics_fit_growth(const double *x, const double *y, size_t count);
