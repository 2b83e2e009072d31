/* Computes medians with their intervals, tests by rank, Hodges-Lehmann ratios and least-squares fits.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "output/scope.h"

#define CONFIDENCE 0.95

static double median_of_sorted(const double *sorted, size_t count)
{
    return count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

double statistics_median(double *values, size_t count)
{
    sort_doubles(values, count);
    return median_of_sorted(values, count);
}

/* -------------------------------------------------------------------------------------------------------- a summary */

/* Finds an interval for the median. The number of samples below it is binomial(count, 1/2), whatever the
 * distribution, so [x(k+1), x(count-k)] misses it with probability 2 P(B <= k). k is the largest for which that is at
 * most 5 %. */
static void median_interval(statistics_summary *s, const double *sorted)
{
    double n = (double)s->count;
    double log_term = -n * log(2); /* logarithm of P(B = i), which underflows a double for 1100 samples and i = 0 */
    double tail = 0, missed = 1;
    size_t k = 0;
    for (size_t i = 0; 2 * i + 1 < s->count; i++) {
        tail += exp(log_term);
        if (i > 0 && 2 * tail > 1 - CONFIDENCE) break;
        k = i;
        missed = 2 * tail;
        log_term += log((n - (double)i) / (double)(i + 1));
    }
    s->low = sorted[k];
    s->high = sorted[s->count - 1 - k];
    s->coverage = 1 - missed;
}

void statistics_summarize(statistics_summary *summary, const double *samples, size_t count)
{
    assert(count >= 1);
    double *sorted = memory_take(count, sizeof *sorted);
    memcpy(sorted, samples, count * sizeof *sorted);
    sort_doubles(sorted, count);
    *summary = (statistics_summary){
        .count = count,
        .minimum = sorted[0],
        .maximum = sorted[count - 1],
        .median = median_of_sorted(sorted, count),
        .p95 = sorted[(size_t)ceil(0.95 * (double)count) - 1],
    };
    median_interval(summary, sorted);
    for (size_t i = 0; i < count; i++) sorted[i] = fabs(sorted[i] - summary->median);
    summary->mad = count > 1 ? statistics_median(sorted, count) : NAN; /* one sample tells nothing of the scatter */
    free(sorted);
}

/* ---------------------------------------------------------------------------------------------- two sets of samples */

/* Above this many pairs counting takes too long, and the normal approximation is accurate to more digits than are
 * shown. */
enum { EXACT_PAIRS = 2500 };

/* Returns distribution[u] = P(U = u) without ties, u <= m n. The number of ways to get u with m and n samples is that
 * of the partitions of u into at most m parts of at most n: the Gaussian binomial coefficient, multiplied factor by
 * factor. The products subtract, but the lower half, which is all that is read, keeps eight digits in doubles at
 * EXACT_PAIRS pairs. The upper half does not. */
static double *exact_distribution(size_t m, size_t n)
{
    size_t last = m * n;
    double *ways = memory_take(last + 1, sizeof *ways);
    ways[0] = 1;
    for (size_t i = 1; i <= m; i++) {
        for (size_t u = last; u >= n + i; u--) ways[u] -= ways[u - n - i];
        for (size_t u = i; u <= last; u++) ways[u] += ways[u - i];
    }
    double total = 0;
    for (size_t u = 0; u <= last; u++) total += ways[u];
    for (size_t u = 0; u <= last; u++) ways[u] /= total;
    return ways;
}

/* Returns the variance of U under the null hypothesis; `ties` = sum of t^3 - t over groups of t equal values. */
static double variance_of_u(double m, double n, double ties)
{
    double total = m + n;
    return m * n / 12 * (total + 1 - ties / (total * (total - 1)));
}

static double sum_of_ties(const double *sorted, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count;) {
        size_t end = i;
        while (end < count && sorted[end] == sorted[i]) end++;
        double equal = (double)(end - i);
        sum += equal * equal * equal - equal;
        i = end;
    }
    return sum;
}

/* Returns the largest k for which [k-th smallest, k-th largest] pair misses the true ratio with at most 5 %, from the
 * distribution of U. */
static size_t pairs_to_drop(const double *distribution, double m, double n, double *coverage)
{
    size_t pairs = (size_t)(m * n), k = 0;
    double tail = 0;
    if (!distribution) {
        double z = 1.959963984540054, k_real = floor(m * n / 2 - z * sqrt(variance_of_u(m, n, 0)));
        *coverage = CONFIDENCE;
        return k_real > 0 ? (size_t)k_real : 0;
    }
    *coverage = 1 - 2 * distribution[0];
    for (size_t u = 0; 2 * u + 1 < pairs; u++) {
        tail += distribution[u];
        if (u > 0 && 2 * tail > 1 - CONFIDENCE) break;
        k = u;
        *coverage = 1 - 2 * tail;
    }
    return k;
}

static double two_sided(const double *distribution, double u, double pairs)
{
    double lower = 0;
    size_t extreme = (size_t)fmin(u, pairs - u);
    for (size_t i = 0; i <= extreme; i++) lower += distribution[i];
    return fmin(1, 2 * lower);
}

static double two_sided_normal(double u, double m, double n, double ties)
{
    double variance = variance_of_u(m, n, ties);
    if (!(variance > 0)) return 1; /* all values are equal */
    double distance = fmax(0, fabs(u - m * n / 2) - 0.5);
    return erfc(distance / sqrt(2 * variance));
}

static void compare_with(statistics_comparison *c, const double *a, size_t m, const double *b, size_t n, double *ratios,
                         double *joined)
{
    size_t pairs = m * n;
    double greater = 0, equal = 0;
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            ratios[i * n + j] = b[j] / a[i];
            greater += b[j] > a[i];
            equal += b[j] == a[i];
        }
    }
    memcpy(joined, a, m * sizeof *joined);
    memcpy(joined + m, b, n * sizeof *joined);
    sort_doubles(joined, m + n);
    double ties = sum_of_ties(joined, m + n);

    double *distribution = NULL;
    if (pairs <= EXACT_PAIRS) distribution = exact_distribution(m, n);
    c->u = greater + 0.5 * equal;
    c->effect = (2 * greater + equal) / (double)pairs - 1;
    c->exact = distribution && ties == 0;
    c->p = c->exact ? two_sided(distribution, c->u, (double)pairs) : two_sided_normal(c->u, (double)m, (double)n, ties);
    sort_doubles(ratios, pairs);
    c->ratio = median_of_sorted(ratios, pairs);
    size_t k = pairs_to_drop(distribution, (double)m, (double)n, &c->coverage);
    c->low = ratios[k];
    c->high = ratios[pairs - 1 - k];
    free(distribution);
}

void statistics_compare(statistics_comparison *comparison, const double *a, size_t count_a, const double *b,
                        size_t count_b)
{
    assert(count_a >= 1 && count_b >= 1);
    *comparison = (statistics_comparison){0};
    size_t pairs;
    if (!size_multiply(count_a, count_b, &pairs)) memory_short();
    double *ratios = memory_take(pairs, sizeof *ratios), *joined = memory_take(count_a + count_b, sizeof *joined);
    compare_with(comparison, a, count_a, b, count_b, ratios, joined);
    free(ratios);
    free(joined);
}

/* ------------------------------------------------------------------------------------------------ pairs of samples */

/* Above this many pairs of samples the number of signs is not exact in a double. */
enum { EXACT_SIGNED = 50 };

/* A difference of logarithms, and twice its rank: whole numbers where ties share a rank. */
typedef struct signed_rank {
    double log_ratio;
    size_t twice_rank;
} signed_rank;

static int by_magnitude(const void *left, const void *right)
{
    const double a = fabs(((const signed_rank *)left)->log_ratio), b = fabs(((const signed_rank *)right)->log_ratio);
    return (a > b) - (a < b);
}

/* Ranks differences by their magnitude; returns the sum of t^3 - t over groups of t equal ones. */
static double rank_differences(signed_rank *differences, size_t count)
{
    double ties = 0;
    qsort(differences, count, sizeof *differences, by_magnitude);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && by_magnitude(&differences[i], &differences[end]) == 0;) end++;
        for (size_t k = i; k < end; k++) differences[k].twice_rank = i + 1 + end;
        const double equal = (double)(end - i);
        ties += equal * equal * equal - equal;
    }
    return ties;
}

/* Returns ways[s], the number of subsets of the doubled ranks with the sum s <= total; all 2^count signs are equally
 * likely. */
static double *count_subsets(const signed_rank *differences, size_t count, size_t total)
{
    double *ways = memory_take(total + 1, sizeof *ways);
    ways[0] = 1;
    for (size_t i = 0; i < count; i++)
        for (size_t s = total; s >= differences[i].twice_rank; s--) ways[s] += ways[s - differences[i].twice_rank];
    return ways;
}

/* Returns the two-sided tail of a doubled sum. */
static double signed_tail(const signed_rank *differences, size_t count, size_t twice_w)
{
    const size_t total = count * (count + 1), extreme = minimum(twice_w, total - twice_w);
    double *ways = count_subsets(differences, count, total), lower = 0;
    for (size_t s = 0; s <= extreme; s++) lower += ways[s];
    free(ways);
    return fmin(1, 2 * ldexp(lower, -(int)count));
}

static double signed_variance(double n, double ties) { return n * (n + 1) * (2 * n + 1) / 24 - ties / 48; }

static double signed_normal(double w, double n, double ties)
{
    const double variance = signed_variance(n, ties), distance = fmax(0, fabs(w - n * (n + 1) / 4) - 0.5);
    return variance > 0 ? erfc(distance / sqrt(2 * variance)) : 1;
}

/* Fills w and p from the differences that are not 0. */
static void test_signs(statistics_pairs *pairs, const double *logs)
{
    signed_rank *differences = memory_take(pairs->count, sizeof *differences);
    size_t count = 0, twice_w = 0;
    for (size_t i = 0; i < pairs->count; i++)
        if (logs[i] != 0) differences[count++].log_ratio = logs[i];
    const double ties = rank_differences(differences, count);
    for (size_t i = 0; i < count; i++) twice_w += differences[i].log_ratio > 0 ? differences[i].twice_rank : 0;
    pairs->w = 0.5 * (double)twice_w;
    pairs->exact = count <= EXACT_SIGNED;
    pairs->p = count == 0     ? 1
               : pairs->exact ? signed_tail(differences, count, twice_w)
                              : signed_normal(pairs->w, (double)count, ties);
    free(differences);
}

/* Returns the largest k for which [k-th smallest, k-th largest] mean of two misses the true one with at most 5 %: a
 * mean of two is above it where the ranks of those above it sum to more. */
static size_t means_to_drop(size_t count, double *coverage)
{
    const size_t total = count * (count + 1) / 2;
    const double n = (double)count;
    size_t k = 0;
    if (count > EXACT_SIGNED) {
        const double z = 1.959963984540054, real = floor(n * (n + 1) / 4 - z * sqrt(signed_variance(n, 0)));
        *coverage = CONFIDENCE;
        return real > 0 ? (size_t)real : 0;
    }
    signed_rank *ranks = memory_take(count, sizeof *ranks);
    for (size_t i = 0; i < count; i++) ranks[i].twice_rank = i + 1; /* ranks without ties, not doubled */
    double *ways = count_subsets(ranks, count, total), tail = 0;
    for (size_t s = 0; 2 * s + 1 < total || s == 0; s++) {
        tail += ldexp(ways[s], -(int)count);
        if (s > 0 && 2 * tail > 1 - CONFIDENCE) break;
        k = s;
        *coverage = 1 - 2 * tail;
    }
    free(ways);
    free(ranks);
    return k;
}

static void estimate_ratio(statistics_pairs *pairs, const double *logs)
{
    const size_t count = pairs->count, total = count * (count + 1) / 2;
    double *means = memory_take(total, sizeof *means);
    for (size_t i = 0, at = 0; i < count; i++)
        for (size_t j = i; j < count; j++) means[at++] = 0.5 * (logs[i] + logs[j]);
    pairs->ratio = exp(statistics_median(means, total)); /* the median sorts them */
    const size_t k = means_to_drop(count, &pairs->coverage);
    pairs->low = exp(means[k]);
    pairs->high = exp(means[total - 1 - k]);
    free(means);
}

void statistics_compare_pairs(statistics_pairs *pairs, const double *a, const double *b, size_t count)
{
    assert(count >= 1);
    *pairs = (statistics_pairs){.count = count};
    double *logs = memory_take(count, sizeof *logs);
    for (size_t i = 0; i < count; i++) logs[i] = log(b[i] / a[i]);
    test_signs(pairs, logs);
    estimate_ratio(pairs, logs);
    free(logs);
}

/* ---------------------------------------------------------------------------------------------------- fitted curves */

enum { POWERS = STATISTICS_MAX_DEGREE + 1, TERMS = 2 * POWERS };

/* Solves by Gaussian elimination with pivoting; returns false if the matrix is singular. */
static bool solve(double matrix[TERMS][TERMS + 1], size_t terms)
{
    for (size_t column = 0; column < terms; column++) {
        size_t pivot = column;
        for (size_t row = column + 1; row < terms; row++) {
            if (fabs(matrix[row][column]) > fabs(matrix[pivot][column])) pivot = row;
        }
        if (!(fabs(matrix[pivot][column]) > 1e-12)) return false;
        for (size_t i = 0; i <= terms; i++) {
            double value = matrix[pivot][i];
            matrix[pivot][i] = matrix[column][i];
            matrix[column][i] = value;
        }
        for (size_t row = 0; row < terms; row++) {
            if (row == column) continue;
            double factor = matrix[row][column] / matrix[column][column];
            for (size_t i = column; i <= terms; i++) matrix[row][i] -= factor * matrix[column][i];
        }
    }
    return true;
}

static size_t distinct(const double *x, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++) seen = x[j] == x[i];
        found += !seen;
    }
    return found;
}

static double evaluate(const statistics_fit *fit, double x)
{
    double y = 0;
    for (size_t i = fit->degree + 1; i-- > 0;) y = y * x + fit->coefficient[i];
    return y;
}

/* Adds one point to the normal equations of relative errors: sum of coefficients times basis / value = 1. */
static void add_equation(double matrix[TERMS][TERMS + 1], size_t terms, const double *basis, double value)
{
    for (size_t row = 0; row < terms; row++) {
        for (size_t column = 0; column < terms; column++)
            matrix[row][column] += basis[row] / value * (basis[column] / value);
        matrix[row][terms] += basis[row] / value;
    }
}

/* Scales the equations to a unit diagonal, then solves them; the last column holds the coefficients. */
static bool solve_equations(double matrix[TERMS][TERMS + 1], size_t terms, double *coefficients)
{
    for (size_t row = 0; row < terms; row++) {
        double scale = 1 / matrix[row][row];
        for (size_t column = 0; column <= terms; column++) matrix[row][column] *= scale;
    }
    if (!solve(matrix, terms)) return false;
    for (size_t row = 0; row < terms; row++) coefficients[row] = matrix[row][terms] / matrix[row][row];
    return true;
}

static double largest_of(const double *values, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(values[i]));
    return largest;
}

/* Normal equations are accurate enough for three terms once x is scaled to [0, 1]: their condition stays below
 * 10^6. */
statistics_fit statistics_fit_polynomial(const double *x, const double *y, size_t count, size_t degree)
{
    assert(degree <= STATISTICS_MAX_DEGREE);
    statistics_fit fit = {.degree = degree};
    double matrix[TERMS][TERMS + 1] = {0}, largest = largest_of(x, count);
    if (distinct(x, count) <= degree + 1) return fit;
    for (size_t i = 0; i < count; i++) {
        double power[POWERS] = {1};
        for (size_t t = 1; t <= degree; t++) power[t] = power[t - 1] * (x[i] / largest);
        add_equation(matrix, degree + 1, power, y[i]);
    }
    fit.valid = solve_equations(matrix, degree + 1, fit.coefficient);
    if (!fit.valid) return fit;
    for (size_t t = 0; t <= degree; t++) fit.coefficient[t] /= pow(largest, (double)t);
    for (size_t i = 0; i < count; i++) fit.worst = fmax(fit.worst, fabs(evaluate(&fit, x[i]) / y[i] - 1));
    return fit;
}

double statistics_surface_at(const statistics_surface *surface, double x, double y)
{
    double z = 0;
    for (size_t k = surface->degree + 1; k-- > 0;)
        z = z * x + surface->coefficient[0][k] + y * surface->coefficient[1][k];
    return z;
}

statistics_surface statistics_fit_surface(const double *x, const double *y, const double *z, size_t count)
{
    statistics_surface surface = {.degree = STATISTICS_MAX_DEGREE};
    const size_t lengths = distinct(x, count);
    if (distinct(y, count) < 2 || count < 3) return surface;
    while (surface.degree > 0 && (2 * (surface.degree + 1) >= count || surface.degree + 1 > lengths)) surface.degree--;
    const size_t powers = surface.degree + 1;
    double matrix[TERMS][TERMS + 1] = {0}, found[TERMS];
    const double x_scale = largest_of(x, count), y_scale = largest_of(y, count);
    for (size_t i = 0; i < count; i++) {
        double basis[TERMS], power = 1;
        for (size_t k = 0; k < powers; k++, power *= x[i] / x_scale) {
            basis[k] = power;
            basis[powers + k] = power * (y[i] / y_scale);
        }
        add_equation(matrix, 2 * powers, basis, z[i]);
    }
    surface.valid = solve_equations(matrix, 2 * powers, found);
    for (size_t k = 0; k < powers && surface.valid; k++) {
        surface.coefficient[0][k] = found[k] / pow(x_scale, (double)k);
        surface.coefficient[1][k] = found[powers + k] / y_scale / pow(x_scale, (double)k);
    }
    for (size_t i = 0; i < count && surface.valid; i++)
        surface.worst = fmax(surface.worst, fabs(statistics_surface_at(&surface, x[i], y[i]) / z[i] - 1));
    return surface;
}

statistics_growth statistics_fit_growth(const double *x, const double *y, size_t count)
{
    statistics_growth growth = {0};
    if (distinct(x, count) <= 2) return growth;
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < count; i++) {
        mean_x += log(x[i]) / (double)count;
        mean_y += log(y[i]) / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        double dx = log(x[i]) - mean_x;
        xx += dx * dx;
        xy += dx * (log(y[i]) - mean_y);
    }
    growth.exponent = xy / xx;
    for (size_t i = 0; i < count; i++) {
        const double fitted = exp(mean_y + growth.exponent * (log(x[i]) - mean_x));
        growth.worst = fmax(growth.worst, fabs(fitted / y[i] - 1));
    }
    size_t before = count - 1;
    while (before > 0 && x[before] == x[count - 1]) before--;
    growth.last = log(y[count - 1] / y[before]) / log(x[count - 1] / x[before]);
    growth.valid = true;
    return growth;
}
