/* Statistics against answers computed elsewhere (SciPy 1.x: binom, mannwhitneyu, wilcoxon, lstsq) or by hand.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "bench/statistics.h"

static void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected)))
        fail_msg("found %.15g, expected %.15g", found, expected);
}

TEST(test_summary_of_seven)
{
    const double samples[] = {5, 1, 9, 3, 7, 2, 100};
    statistics_summary s;
    statistics_summarize(&s, samples, 7);
    assert_int_equal(s.count, 7);
    assert_near(s.minimum, 1, 0);
    assert_near(s.maximum, 100, 0);
    assert_near(s.median, 5, 0);
    assert_near(s.p95, 100, 0);
    assert_near(s.mad, 3, 0); /* |x - 5| = 0 4 4 2 2 3 95 */
    assert_near(s.low, 1, 0);
    assert_near(s.high, 100, 0);
    assert_near(s.coverage, 0.984375, 1e-12);
}

/* Samples 1 ... n, so that the ends of the interval tell which order statistics were taken. */
static statistics_summary summary_of_first(size_t n)
{
    FREED_BY(free_memory) double *samples = malloc(n * sizeof *samples);
    assert_non_null(samples);
    for (size_t i = 0; i < n; i++) samples[(i * 7919) % n] = (double)i + 1;
    statistics_summary s;
    statistics_summarize(&s, samples, n);
    return s;
}

TEST(test_median_intervals)
{
    const struct {
        size_t n, low, high;
        double coverage;
    } expected[] = {
        {1, 1, 1, 0},
        {2, 1, 2, 0.5},
        {5, 1, 5, 0.9375},
        {6, 1, 6, 0.96875},
        {10, 2, 9, 0.978515625},
        {20, 6, 15, 0.9586105346679688},
        {100, 40, 61, 0.9647997997822951},
        {1200, 566, 635, 0.9536584799640776},
    };
    FOR_ROWS(i, expected) {
        statistics_summary s = summary_of_first(expected[i].n);
        assert_near(s.low, (double)expected[i].low, 0);
        assert_near(s.high, (double)expected[i].high, 0);
        assert_near(s.coverage, expected[i].coverage, 1e-9);
    }
    statistics_summary hundred = summary_of_first(100);
    assert_near(hundred.median, 50.5, 0);
    assert_near(hundred.p95, 95, 0);
    assert_near(hundred.mad, 25, 0);
}

TEST(test_exact_comparison)
{
    const double a[] = {1.00, 1.02, 1.01, 1.05, 0.99, 1.03, 1.20}, b[] = {1.10, 1.12, 1.08, 1.15, 1.04, 1.11, 1.31};
    statistics_comparison c;
    statistics_compare(&c, a, 7, b, 7);
    assert_true(c.exact);
    assert_near(c.u, 42, 0);
    assert_near(c.p, 0.026223776223776224, 1e-12);
    assert_near(c.effect, 2 * 42 / 49.0 - 1, 1e-12);
    assert_near(c.ratio, 1.0882352941176472, 1e-12);
    assert_near(c.low, 1.0196078431372548, 1e-12);
    assert_near(c.high, 1.1386138613861385, 1e-12);
    assert_near(c.coverage, 0.9621212121212122, 1e-12);

    statistics_comparison back;
    statistics_compare(&back, b, 7, a, 7);
    assert_near(back.p, c.p, 1e-12);
    assert_near(back.effect, -c.effect, 1e-12);
    assert_near(back.ratio, 1 / c.ratio, 1e-12);
}

TEST(test_exact_comparison_of_larger_sets)
{
    double a[40], b[45];
    for (int i = 0; i < 40; i++) a[i] = i + 1;
    for (int i = 0; i < 45; i++) b[i] = i + 1 + 6.5;
    statistics_comparison c;
    statistics_compare(&c, a, 40, b, 45);
    assert_true(c.exact);
    assert_near(c.u, 40 * 45 - 561, 0);
    assert_near(c.p, 0.002581952726929063, 1e-9);
}

TEST(test_ties_go_by_the_normal_approximation)
{
    const double a[] = {1, 2, 2, 3, 5}, b[] = {2, 3, 3, 4, 6, 7};
    statistics_comparison c;
    statistics_compare(&c, a, 5, b, 6);
    assert_false(c.exact);
    assert_near(c.u, 23, 0); /* 30 - 7 */
    assert_near(c.p, 0.16304505585423734, 1e-9);
}

TEST(test_equal_sets_do_not_differ)
{
    const double a[] = {2, 2, 2, 2, 2, 2, 2}, one[] = {2};
    statistics_comparison c;
    statistics_compare(&c, a, 7, a, 7);
    assert_near(c.p, 1, 0);
    assert_near(c.ratio, 1, 0);
    assert_true(c.effect == 0);
    statistics_compare(&c, one, 1, a, 7);
    assert_true(c.coverage < 0.95);
    assert_near(c.p, 1, 0);
}

/* p and W of scipy.stats.wilcoxon; the estimate and its interval by hand from the 36 means. */
TEST(test_pairs)
{
    const double a[] = {1.00, 1.40, 1.01, 1.90, 0.99, 1.30, 1.20, 2.50},
                 b[] = {1.05, 1.44, 1.08, 1.92, 0.985, 1.39, 1.31, 2.66};
    statistics_pairs c;
    statistics_compare_pairs(&c, a, b, 8);
    assert_true(c.exact);
    assert_near(c.w, 35, 0);
    assert_near(c.p, 0.015625, 1e-15);
    assert_near(c.ratio, 1.04872274116412, 1e-14);
    assert_near(c.low, 1.0116207903046592, 1e-14);
    assert_near(c.high, 1.0777445584800387, 1e-14);
    assert_near(c.coverage, 0.9609375, 1e-15);
    statistics_pairs back;
    statistics_compare_pairs(&back, b, a, 8);
    assert_near(back.w, 1, 0);
    assert_near(back.p, c.p, 1e-15);
    assert_near(back.ratio, 1 / c.ratio, 1e-14);
    assert_near(back.low, 1 / c.high, 1e-14);
}

/* All signs of shared ranks counted one by one (of seven differences that are not 0); and pairs that are all equal. */
TEST(test_pairs_with_ties)
{
    const double a[] = {1, 2, 4, 8, 1, 2, 4, 1, 2}, b[] = {2, 4, 2, 4, 1, 8, 16, 1, 16};
    statistics_pairs c;
    statistics_compare_pairs(&c, a, b, 9);
    assert_true(c.exact && c.count == 9);
    assert_near(c.w, 23, 0);
    assert_near(c.p, 0.171875, 1e-15);
    statistics_compare_pairs(&c, a, a, 9);
    assert_near(c.p, 1, 0);
    assert_near(c.ratio, 1, 0);
    statistics_compare_pairs(&c, a, b, 1);
    assert_near(c.p, 1, 0);
    assert_near(c.ratio, 2, 1e-15);
    assert_true(c.coverage < 0.95);
}

TEST(test_many_pairs)
{
    static const struct {
        size_t count;
        double offset, w, p, ratio;
        bool exact;
    } expected[] = {
        {40, 12.75, 820 - 182, 0.0016823487039800966, 1.0273678027634894, true},
        {60, 22.75, 1830 - 552, 0.007617238909937106, 1.0273678027634894, false},
    };
    FOR_ROWS(k, expected) {
        double a[60], b[60];
        for (size_t i = 0; i < expected[k].count; i++) {
            a[i] = 1 + 0.01 * (double)i;
            b[i] = a[i] * exp(0.004 * ((double)(i * 7 % expected[k].count) - expected[k].offset));
        }
        statistics_pairs c;
        statistics_compare_pairs(&c, a, b, expected[k].count);
        assert_int_equal(c.exact, expected[k].exact);
        assert_near(c.w, expected[k].w, 0);
        assert_near(c.p, expected[k].p, 1e-9);
        assert_near(c.ratio, expected[k].ratio, 1e-12);
        assert_true(c.low < c.ratio && c.ratio < c.high);
    }
}

TEST(test_polynomials_are_found_exactly)
{
    const double x[] = {16, 32, 64, 128, 256, 512, 1024};
    double y[7];
    for (size_t i = 0; i < 7; i++) y[i] = 2e-3 + 3e-5 * x[i] + 7e-8 * x[i] * x[i];
    statistics_fit fit = statistics_fit_polynomial(x, y, 7, 2);
    assert_true(fit.valid);
    assert_near(fit.coefficient[0], 2e-3, 1e-9);
    assert_near(fit.coefficient[1], 3e-5, 1e-9);
    assert_near(fit.coefficient[2], 7e-8, 1e-9);
    assert_true(fit.worst < 1e-9);

    const double layers[] = {1, 2, 6, 12}, seconds[] = {1.5, 2.5, 6.5, 12.5};
    fit = statistics_fit_polynomial(layers, seconds, 4, 1);
    assert_near(fit.coefficient[0], 0.5, 1e-9);
    assert_near(fit.coefficient[1], 1, 1e-9);
}

TEST(test_relative_least_squares)
{
    const double x[] = {16, 32, 64, 128, 256, 512}, y[] = {1.1e-3, 2.0e-3, 4.3e-3, 8.8e-3, 19.5e-3, 47e-3};
    statistics_fit fit = statistics_fit_polynomial(x, y, 6, 2);
    assert_near(fit.coefficient[0], 1.15270349e-04, 1e-7);
    assert_near(fit.coefficient[1], 5.94766627e-05, 1e-7);
    assert_near(fit.coefficient[2], 6.32696768e-08, 1e-7);
    statistics_growth growth = statistics_fit_growth(x, y, 6);
    assert_near(growth.exponent, 1.084994290290299, 1e-12);
    assert_near(growth.last, 1.269186632815389, 1e-12);
}

/* Six coefficients from a grid of 4 x 3 points: exactly where they lie on a surface; and where one point is off by a
 * tenth, by as much as least squares of relative errors says (numpy.linalg.lstsq on the rows divided by z). */
TEST(test_surfaces_over_length_and_layers)
{
    static const double lengths[] = {16, 64, 256, 512}, layers[] = {1, 2, 6};
    double x[12], y[12], z[12];
    for (size_t i = 0; i < 12; i++) {
        x[i] = lengths[i / 3];
        y[i] = layers[i % 3];
        z[i] = 1e-4 + 2e-6 * x[i] + 3e-9 * x[i] * x[i] + y[i] * (5e-4 + 7e-6 * x[i] + 9e-8 * x[i] * x[i]);
    }
    statistics_surface s = statistics_fit_surface(x, y, z, 12);
    assert_true(s.valid && s.degree == 2 && s.worst < 1e-9);
    static const double expected[2][3] = {{1e-4, 2e-6, 3e-9}, {5e-4, 7e-6, 9e-8}};
    for (size_t a = 0; a < 2; a++)
        for (size_t k = 0; k < 3; k++) assert_near(s.coefficient[a][k], expected[a][k], 1e-6);
    assert_near(statistics_surface_at(&s, 256, 6), z[8], 1e-9);
    z[4] *= 1.1;
    s = statistics_fit_surface(x, y, z, 12);
    assert_near(s.worst, 0.06771430858888039, 1e-6);
    assert_near(s.coefficient[1][1], 8.019547618179878e-06, 1e-6);

    s = statistics_fit_surface(x, y, z, 6); /* two lengths: a straight line in x */
    assert_true(s.valid && s.degree == 1);
    assert_true(statistics_fit_surface(x, y, z, 3).degree == 0);
    assert_false(statistics_fit_surface(x, y, z, 2).valid);
    const double one_layer[] = {2, 2, 2, 2};
    assert_false(statistics_fit_surface(lengths, one_layer, z, 4).valid);
}

TEST(test_too_few_points_give_no_curve)
{
    const double x[] = {8, 8, 16, 32}, y[] = {1, 1, 2, 4.4};
    assert_false(statistics_fit_polynomial(x, y, 4, 2).valid); /* three coefficients meet three lengths */
    assert_true(statistics_fit_polynomial(x, y, 4, 1).valid);
    assert_false(statistics_fit_polynomial(x, y, 3, 1).valid);
    assert_false(statistics_fit_polynomial(x, y, 0, 1).valid);
    assert_false(statistics_fit_growth(x, y, 3).valid);
    const statistics_growth growth = statistics_fit_growth(x, y, 4);
    assert_true(growth.valid && growth.worst > 0.01 && growth.worst < 0.1);
    assert_near(statistics_fit_growth(x, x, 4).exponent, 1, 1e-12);
}
