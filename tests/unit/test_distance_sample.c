/* Curves over the distance from several matrices, by hand. SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "analysis/distance_sample.h"

static const double parts[] = {0, 0.5, 1};

TEST(test_diagonals_of_two_matrices)
{
    const float a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, b[4] = {10, 20, 30, 40};
    distance_sample sample;
    double q[3];
    distance_sample_create(&sample, 2, 1);
    distance_sample_add(&sample, a, 3, NULL);
    distance_sample_add(&sample, b, 2, NULL);
    assert_true(fabs(distance_sample_mean(&sample, 0) - (1 + 5 + 9 + 10 + 40) / 5.0) < 1e-12);
    assert_true(fabs(distance_sample_mean(&sample, 1) - (4 + 8 + 30) / 3.0) < 1e-12); /* below the diagonal: i > j */
    assert_true(fabs(distance_sample_mean(&sample, -1) - (2 + 6 + 20) / 3.0) < 1e-12);
    assert_true(distance_sample_mean(&sample, 2) == 7 && distance_sample_mean(&sample, -2) == 3);
    distance_sample_quantiles(&sample, 0, parts, 3, q);
    assert_true(q[0] == 1 && q[1] == 9 && q[2] == 40);
    distance_sample_quantiles(&sample, 0, parts + 1, 1, q); /* asking leaves the sample as it was */
    assert_true(q[0] == 9);
    scope_free(&sample.memory);
}

TEST(test_masks_and_reach)
{
    const float a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const unsigned char mask[3] = {1, 0, 1};
    distance_sample sample;
    double q[1];
    distance_sample_create(&sample, 1, 1);
    distance_sample_add(&sample, a, 3, mask);
    assert_true(distance_sample_mean(&sample, 0) == 5);   /* 1 and 9 */
    assert_true(isnan(distance_sample_mean(&sample, 1))); /* the middle is masked; 7 and 3 are beyond the reach */
    distance_sample_quantiles(&sample, -1, parts, 1, q);
    assert_true(isnan(q[0]));
    scope_free(&sample.memory);
}

/* 0, 1, ... 9,999 at distance 0: the mean is exact, the median that of a random part. */
TEST(test_large_samples)
{
    double median[3];
    for (uint64_t seed = 0; seed < 3; seed++) {
        distance_sample sample;
        const uint64_t seeds[] = {1, 1, 2};
        distance_sample_create(&sample, 0, seeds[seed]);
        for (int k = 0; k < 10000; k++) {
            const float value = (float)k;
            distance_sample_add(&sample, &value, 1, NULL);
        }
        assert_true(distance_sample_mean(&sample, 0) == 4999.5);
        distance_sample_quantiles(&sample, 0, parts + 1, 1, &median[seed]);
        scope_free(&sample.memory);
    }
    /* a median of 1,024 of them has a standard deviation of 10,000 / 2 sqrt(1,024), 156 */
    assert_true(fabs(median[0] - 5000) < 5 * 156 && median[0] != 4999.5);
    assert_true(median[0] == median[1] && median[0] != median[2]);
}
