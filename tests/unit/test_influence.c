/* Influence by finite differences: agrees with float64, counts what it should, refuses nonsense.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "analysis/influence.h"

static const char *const models[] = {
    "synthetic:v1-base,layers=3,hidden=48,heads=4,intermediate=64,vocab=97,distance=12,biased=1,positions=60",
    "synthetic:v2-xlarge,layers=3,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40",
};

static influence_options options_for(const char *model)
{
    return (influence_options){
        .of = {.model = model, .threads = 1, .seed = 3}, .tokens = 60, .sources = 3, .check_tokens = 20};
}

TEST(test_against_float64)
{
    for (size_t m = 0; m < 2; m++) {
        influence_report report;
        const influence_options options = options_for(models[m]);
        assert_ok(influence_measure(&report, &options, NULL));
        assert_true(report.checked);
        assert_int_equal(report.float64_values, 3 * 20);
        assert_true(report.float64_median < 1e-3);
        assert_true(report.float64_worst < 2e-2);
        scope_free(&report.memory);
    }
}

/* Bins go from left to right without overlapping, cover every sample, and quantiles are in order. */
TEST(test_bins)
{
    influence_report report;
    const influence_options options = options_for(models[1]);
    assert_ok(influence_measure(&report, &options, NULL));
    assert_int_equal(report.layers, 3);
    for (size_t l = 0; l < report.layers; l++) {
        const influence_layer *layer = &report.layer[l];
        size_t count = 0;
        for (size_t k = 0; k < layer->bin_count; k++) {
            const influence_bin *bin = &layer->bins[k];
            count += bin->count;
            assert_true(bin->from <= bin->to && (k == 0 || bin->from > layer->bins[k - 1].to));
            assert_true(bin->q10 <= bin->median && bin->median <= bin->q90 && bin->q10 >= 0);
            if (bin->from == 0) assert_true(bin->to == 0 && bin->count == 3 && bin->mean == layer->self);
        }
        assert_int_equal(count, 3 * 60);
        assert_true(layer->self > 0.1 && layer->self < 10);
        assert_true(layer->radius95 > 0 && layer->radius95 < 60);
        assert_true(layer->noise_floor > 0 && layer->noise_floor < 1e-3);
    }
    /* The convolution makes the neighbours of layer 0 stand out. */
    double near = 0, far = 0;
    for (size_t k = 0; k < report.layer[0].bin_count; k++) {
        if (report.layer[0].bins[k].from == 1) near = report.layer[0].bins[k].mean;
        if (report.layer[0].bins[k].from == 2) far = report.layer[0].bins[k].mean;
    }
    assert_true(near > 2 * far);
    scope_free(&report.memory);
}

/* Differences of neighbouring steps first shrink as the square of the step, then rounding takes over. */
TEST(test_sweep)
{
    influence_report report;
    const influence_options options = options_for(models[0]);
    assert_ok(influence_measure(&report, &options, NULL));
    const double ratio = report.disagreement[0] / report.disagreement[1];
    assert_true(ratio > 2.5 && ratio < 8);
    for (size_t k = 0; k + 1 < INFLUENCE_STEPS; k++)
        if (report.steps[k] == report.step)
            for (size_t other = 0; other + 1 < INFLUENCE_STEPS; other++)
                assert_true(report.disagreement[k] <= report.disagreement[other]);
    scope_free(&report.memory);
}

TEST(test_refused)
{
    influence_report report;
    influence_options options = options_for(models[0]);
    options.tokens = 1;
    assert_int_equal(influence_measure(&report, &options, NULL), DEBERTA_E_ARGUMENT);
    options = options_for(models[0]);
    options.tokens = 61; /* the position table has 60 rows */
    assert_int_equal(influence_measure(&report, &options, NULL), DEBERTA_E_ARGUMENT);
    scope_free(&report.memory);
    options = options_for("synthetic:nothing");
    assert_int_equal(influence_measure(&report, &options, NULL), DEBERTA_E_ARGUMENT);
}
