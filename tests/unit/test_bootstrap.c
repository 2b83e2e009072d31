/* Resampled intervals against what theory says of the same samples. SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "analysis/bootstrap.h"

enum { UNITS = 400 };

static void assert_within(double found, double expected, double distance)
{
    if (!(fabs(found - expected) <= distance)) fail_msg("found %.9g, expected %.9g +- %.3g", found, expected, distance);
}

/* Half of the units are 1: the mean has the standard error sqrt(1/4 / n) = 0.025. */
TEST(test_mean)
{
    double samples[UNITS];
    bootstrap_interval interval, again;
    for (size_t k = 0; k < UNITS; k++) samples[k] = (double)(k % 2);
    assert_int_equal(bootstrap_ratio(&interval, samples, NULL, UNITS, 1, NULL), DEBERTA_OK);
    assert_within(interval.value, 0.5, 0);
    assert_within(interval.low, 0.5 - 1.96 * 0.025, 0.008);
    assert_within(interval.high, 0.5 + 1.96 * 0.025, 0.008);
    assert_int_equal(bootstrap_ratio(&again, samples, NULL, UNITS, 1, NULL), DEBERTA_OK);
    assert_true(again.low == interval.low && again.high == interval.high);
}

/* A ratio of sums, not a mean of ratios: long sentences count more. */
TEST(test_ratio)
{
    const double parts[] = {1, 30}, wholes[] = {10, 30};
    bootstrap_interval interval;
    assert_int_equal(bootstrap_ratio(&interval, parts, wholes, 2, 3, NULL), DEBERTA_OK);
    assert_within(interval.value, 31.0 / 40, 1e-12);
    assert_within(interval.low, 0.1, 1e-12);
    assert_within(interval.high, 1, 1e-12);
}

/* Every unit has the same ratio, so every resample has it too. */
TEST(test_no_spread)
{
    const double parts[] = {1, 2, 3, 4}, wholes[] = {4, 8, 12, 16};
    bootstrap_interval interval;
    assert_int_equal(bootstrap_ratio(&interval, parts, wholes, 4, 7, NULL), DEBERTA_OK);
    assert_within(interval.low, 0.25, 1e-12);
    assert_within(interval.high, 0.25, 1e-12);
}

TEST(test_one_unit_of_nothing)
{
    const double part = 0, whole = 0;
    bootstrap_interval interval;
    assert_int_equal(bootstrap_ratio(&interval, &part, &whole, 1, 1, NULL), DEBERTA_OK);
    assert_true(interval.value == 0 && isnan(interval.low) && isnan(interval.high)); /* says nothing about others */
}
