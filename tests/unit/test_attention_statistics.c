/* Summaries, curves over the distance and rollout, against values worked out by hand.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "analysis/attention_statistics.h"

TEST(test_summary)
{
    const float p[] = {0.5f, 0.5f, 1, 0};
    const attention_summary two = attention_summarize(p, 2, NULL, NULL);
    assert_close(two.entropy, 0.5, 1e-6);
    assert_close(two.distance, 0.75, 1e-6);
    assert_close(two.offset, 0.25, 1e-6); /* -0.5 to the right, 1 to the left */
    const float hole[] = {0.25f, 9, 0.75f, 9, 9, 9, 0, 9, 1};
    const unsigned char mask[] = {1, 0, 1};
    const attention_summary rest = attention_summarize(hole, 3, NULL, mask);
    assert_close(rest.entropy, 0.811278 / 2, 1e-6);
    assert_close(rest.distance, 1.5 / 2, 1e-6);
    assert_close(rest.offset, -1.5 / 2, 1e-6);
    const float part[] = {0.125f, 0.375f, 0, 0.5f}; /* rows of a larger matrix: 1/4 and 3/4, 0 and 1 */
    const attention_summary shown = attention_summarize(part, 2, NULL, NULL);
    assert_close(shown.entropy, 0.811278 / 2, 1e-6);
    assert_close(shown.distance, 0.75 / 2, 1e-6);
    assert_close(shown.offset, -0.75 / 2, 1e-6);
    const float none[] = {0, 0, 0, 1};
    assert_true(isnan(attention_summarize(none, 2, NULL, NULL).entropy));
}

TEST(test_centre)
{
    const float values[] = {1, 2, 9, 0, 0, 0, 4, 8, 9};
    const unsigned char mask[] = {1, 1, 0};
    float out[9];
    attention_centre_rows(out, values, 3, NULL);
    assert_close(out[0], -3, 1e-6);
    assert_close(out[2], 5, 1e-6);
    assert_close(out[6], -3, 1e-6);
    attention_centre_rows(out, values, 3, mask);
    assert_close(out[0], -0.5, 1e-6);
    assert_close(out[1], 0.5, 1e-6);
    assert_close(out[6], -2, 1e-6);
}

TEST(test_by_distance)
{
    const float values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const unsigned char mask[] = {1, 1, 0};
    attention_by_distance curve;
    attention_by_distance_measure(&curve, values, 3, NULL, NULL, 0.25);
    assert_int_equal(curve.entries, 5);
    static const double mean[] = {3, 4, 5, 6, 7}; /* r = -2: the key two to the right, ..., r = 2: two to the left */
    static const size_t count[] = {1, 2, 3, 2, 1};
    for (size_t k = 0; k < 5; k++) {
        assert_close(curve.mean[k], mean[k], 1e-6);
        assert_close(curve.median[k], mean[k], 1e-6);
        assert_int_equal(curve.count[k], count[k]);
    }
    assert_close(curve.low[2], 3, 1e-6);
    assert_close(curve.high[2], 7, 1e-6);
    assert_close(curve.low[3], 5, 1e-6); /* of 4 and 8 */
    scope_free(&curve.memory);
    attention_by_distance_measure(&curve, values, 3, NULL, mask, 0.25);
    assert_int_equal(curve.count[0], 0);
    assert_true(isnan(curve.mean[0]) && isnan(curve.median[0]));
    assert_close(curve.mean[2], 3, 1e-6);
    assert_close(curve.mean[3], 4, 1e-6);
    scope_free(&curve.memory);
}

/* Tokens 4, 5 and 7 of a text: distances are those in it. */
TEST(test_distances_across_a_gap)
{
    const float values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, p[] = {0, 0, 1, 1, 0, 0, 0, 1, 0};
    const size_t positions[] = {4, 5, 7};
    static const double mean[] = {3, 6, 2, 5, 4, 8, 7};
    static const size_t count[] = {1, 1, 1, 3, 1, 1, 1};
    attention_by_distance curve;
    attention_by_distance_measure(&curve, values, 3, positions, NULL, 0.25);
    assert_int_equal(curve.entries, 7);
    for (size_t k = 0; k < 7; k++) {
        assert_close(curve.mean[k], mean[k], 1e-6);
        assert_int_equal(curve.count[k], count[k]);
    }
    scope_free(&curve.memory);
    attention_by_distance_measure(&curve, values, 2, positions + 1, NULL, 0.25);
    assert_int_equal(curve.entries, 5);
    assert_int_equal(curve.count[1], 0); /* nothing stands beside tokens 5 and 7 */
    scope_free(&curve.memory);
    const attention_summary summary = attention_summarize(p, 3, positions, NULL);
    assert_close(summary.distance, (3 + 1 + 2) / 3.0, 1e-6);
    assert_close(summary.offset, (-3 + 1 + 2) / 3.0, 1e-6);
}

/* Everybody looks at token 0, then two heads that differ. The steps do not commute. */
TEST(test_rollout)
{
    const float first[] = {1, 0, 1, 0}, second[] = {0, 1, 0, 1}, third[] = {0, 1, 1, 0};
    const float *const one[] = {first}, *const two[] = {second, third};
    static const double expected[] = {0.75, 0.25, 0.625, 0.375};
    double rollout[4];
    attention_rollout_begin(rollout, 2);
    assert_close(rollout[0], 1, 1e-6);
    assert_close(rollout[1], 0, 1e-6);
    attention_rollout_step(rollout, one, 1, 2, NULL);
    attention_rollout_step(rollout, two, 2, 2, NULL);
    for (size_t k = 0; k < 4; k++) assert_close(rollout[k], expected[k], 1e-6);
}

/* Rows that do not sum to 1, as behind talking heads, are renormalised; a masked token stays by itself. */
TEST(test_rollout_rows)
{
    const float head[] = {0.25f, 0.25f, 7, 0, 2, 7, 7, 7, 7};
    const float *const heads[] = {head};
    const unsigned char mask[] = {1, 1, 0};
    static const double expected[] = {5.0 / 6, 1.0 / 6, 0, 0, 1, 0, 0, 0, 1};
    double rollout[9];
    attention_rollout_begin(rollout, 3);
    attention_rollout_step(rollout, heads, 1, 3, mask);
    for (size_t k = 0; k < 9; k++) assert_close(rollout[k], expected[k], 1e-6);
}
