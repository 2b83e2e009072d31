/* Ridge regression against what is known of the data it is given. SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "core/base/random.h"
#include "analysis/ridge.h"

static void assert_near(double found, double expected, double distance)
{
    if (!(fabs(found - expected) <= distance))
        fail_msg("found %.12g, expected %.12g +- %.3g", found, expected, distance);
}

/* Three features without pattern, and a target that is a plane over them plus, where wanted, noise. */
static double fill_row(float row[3], size_t k, double noise)
{
    uint64_t state = k;
    double values[4];
    for (size_t a = 0; a < 4; a++) {
        values[a] = random_fraction(&state) - 0.5;
        if (a < 3) row[a] = (float)values[a];
    }
    return 7 + 2 * (double)row[0] - 3 * (double)row[1] + noise * values[3];
}

static void add_rows(ridge_sums *sums, size_t first, size_t end, double noise)
{
    for (size_t k = first; k < end; k++) {
        float row[3];
        const double target = fill_row(row, k, noise);
        ridge_sums_add(sums, row, target);
    }
}

TEST(test_plane)
{
    ridge_sums sums;
    ridge_fit fit;
    assert_int_equal(ridge_sums_create(&sums, 3, NULL), DEBERTA_OK);
    add_rows(&sums, 0, 200, 0);
    assert_int_equal(ridge_solve(&fit, &sums, 1e-12, NULL), DEBERTA_OK);
    assert_near(fit.weights[0], 2, 1e-8);
    assert_near(fit.weights[1], -3, 1e-8);
    assert_near(fit.weights[2], 0, 1e-8);
    assert_near(fit.intercept, 7, 1e-8);
    assert_near(ridge_r2(&fit, &sums), 1, 1e-10);
    float row[3];
    const double target = fill_row(row, 1000, 0);
    assert_near(ridge_predict(&fit, row), target, 1e-8);
    ridge_fit_free(&fit);
    ridge_sums_free(&sums);
}

/* One feature: the weight is the covariance over (1 + penalty) times the variance, and the fit passes the means. */
TEST(test_penalty)
{
    ridge_sums sums;
    ridge_fit fit;
    assert_int_equal(ridge_sums_create(&sums, 1, NULL), DEBERTA_OK);
    for (size_t k = 0; k < 5; k++) ridge_sums_add(&sums, &(float){(float)k}, 10 + 4 * (double)k);
    assert_int_equal(ridge_solve(&fit, &sums, 3, NULL), DEBERTA_OK);
    assert_near(fit.weights[0], 1, 1e-12);
    assert_near(fit.intercept, 18 - 2, 1e-12);
    /* errors are 3 (k - 2): 9 of 16 parts of the variance remain */
    assert_near(ridge_r2(&fit, &sums), 1 - 9.0 / 16, 1e-12);
    ridge_fit_free(&fit);
    ridge_sums_free(&sums);
}

/* The r2 of other rows, from sums alone, is what their predictions say; parts merged are the whole. */
TEST(test_other_rows)
{
    ridge_sums first, second, whole;
    ridge_fit fit, merged, direct;
    assert_int_equal(ridge_sums_create(&first, 3, NULL), DEBERTA_OK);
    assert_int_equal(ridge_sums_create(&second, 3, NULL), DEBERTA_OK);
    assert_int_equal(ridge_sums_create(&whole, 3, NULL), DEBERTA_OK);
    add_rows(&first, 0, 100, 2);
    add_rows(&second, 100, 160, 2);
    add_rows(&whole, 0, 160, 2);
    assert_int_equal(ridge_solve(&fit, &first, 0.1, NULL), DEBERTA_OK);
    double errors = 0, sum = 0, squares = 0;
    for (size_t k = 100; k < 160; k++) {
        float row[3];
        const double target = fill_row(row, k, 2), error = target - ridge_predict(&fit, row);
        errors += error * error;
        sum += target;
        squares += target * target;
    }
    assert_near(ridge_r2(&fit, &second), 1 - errors / (squares - sum * sum / 60), 1e-10);
    ridge_sums_merge(&first, &second);
    assert_int_equal(ridge_solve(&merged, &first, 0.1, NULL), DEBERTA_OK);
    assert_int_equal(ridge_solve(&direct, &whole, 0.1, NULL), DEBERTA_OK);
    for (size_t a = 0; a < 3; a++) assert_near(merged.weights[a], direct.weights[a], 1e-12);
    ridge_fit_free(&fit);
    ridge_fit_free(&merged);
    ridge_fit_free(&direct);
    ridge_sums_free(&first);
    ridge_sums_free(&second);
    ridge_sums_free(&whole);
}

TEST(test_nothing_varies)
{
    ridge_sums sums;
    ridge_fit fit;
    assert_int_equal(ridge_sums_create(&sums, 2, NULL), DEBERTA_OK);
    for (size_t k = 0; k < 4; k++) ridge_sums_add(&sums, (float[]){1, 0}, (double)k);
    assert_int_equal(ridge_solve(&fit, &sums, 0.1, NULL), DEBERTA_OK);
    assert_true(fit.weights[0] == 0 && fit.weights[1] == 0);
    assert_near(fit.intercept, 1.5, 0);
    ridge_fit_free(&fit);
    ridge_sums_free(&sums);
}
