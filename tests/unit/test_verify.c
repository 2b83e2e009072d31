/* How verify counts: errors in eps and in ULP, percentiles, limits, rows that become one; and that a model's row is
 * there for every quantity and every way of computing it. SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "tests/unit/test.h"

#include "analysis/reference/sleef_math.h"
#include "check/verify.h"

static void report_free(verify_report *of) { scope_free(&of->memory); }

static const verify_row subject = {.subject = "x", .tier = DEBERTA_ISA_SCALAR, .values = 1, .limit = 10};

TEST(test_units)
{
    FREED_BY(report_free) verify_report report = {0};
    verify_errors errors = {0};
    /* 8 is at the beginning of a binade: its neighbours above are 8 eps apart. */
    verify_errors_add(&errors, 8 + 4 * 8 * (double)FLT_EPSILON, 8, 2 * (double)FLT_EPSILON, "at %zu, %zu", 3, 4);
    verify_report_add(&report, &subject, &errors);
    assert_float_equal(report.rows[0].worst, 16, 1e-9);
    assert_float_equal(report.rows[0].worst_ulp, 4, 1e-9);
    assert_string_equal(report.rows[0].where, "at 3, 4: 8.00000381, expected 8");
    assert_false(report.rows[0].passed);
    assert_int_equal(report.failures, 1);
}

/* Values in an order that is no order, with many equal ones: what a careless selection gets wrong. */
TEST(test_percentiles)
{
    for (size_t count = 1; count < 3000; count = count * 2 + 1) {
        FREED_BY(report_free) verify_report report = {0};
        verify_errors errors = {0};
        for (size_t k = 0; k < count; k++)
            verify_errors_add(&errors, (double)(k * 7919 % count / 2), 0, 1, "%zu%zu", k, k);
        verify_report_add(&report, &subject, &errors);
        const size_t rank = (size_t)((double)(count - 1) * 0.999);
        assert_float_equal(report.rows[0].percentile_999, (double)(rank / 2), 0);
        assert_float_equal(report.rows[0].median, (double)(count / 2 / 2), 0);
        assert_float_equal(report.rows[0].worst, (double)((count - 1) / 2), 0);
    }
}

TEST(test_not_a_number)
{
    FREED_BY(report_free) verify_report report = {0};
    const double pairs[][2] = {{NAN, NAN}, {INFINITY, INFINITY}, {NAN, 1}, {INFINITY, 1}, {1, NAN}};
    FOR_ROWS(k, pairs) {
        verify_errors errors = {0};
        verify_row row = subject;
        row.subject[0] = (char)('a' + k);
        verify_errors_add(&errors, pairs[k][0], pairs[k][1], 1, "%zu%zu", 0, 0);
        verify_report_add(&report, &row, &errors);
        assert_int_equal(report.rows[k].passed, k < 2);
    }
    assert_int_equal(report.failures, 3);
}

TEST(test_rows_become_one)
{
    FREED_BY(report_free) verify_report report = {0};
    for (size_t k = 0; k < 3; k++) {
        verify_errors errors = {0};
        verify_row row = subject;
        row.differing = k == 2;
        verify_errors_add(&errors, k == 1 ? 9 : 1, 0, 1, "%zu%zu", k, k);
        verify_report_add(&report, &row, &errors);
        assert_int_equal(report.failures, k == 2);
    }
    assert_int_equal(report.count, 1);
    assert_int_equal(report.rows[0].values, 3);
    assert_float_equal(report.rows[0].worst, 9, 0);
    assert_true(strncmp(report.rows[0].where, "11: 9", 5) == 0);
    verify_row other = subject;
    other.tier = DEBERTA_ISA_AVX2;
    verify_report_add(&report, &other, NULL);
    assert_int_equal(report.count, 2);
}

/* A fault in the engine is the same by every way of computing: the bits agree, float64 does not. */
TEST(test_fault_in_a_model)
{
    static const char path[] = "synthetic:v3-base,layers=1,hidden=48,heads=3,intermediate=64,vocab=61,buckets=16";
    const int32_t ids[] = {1, 5, 9, 2, 33, 7, 60, 5, 5, 2};
    const size_t starts[] = {0, 3, 10};
    FREED_BY(report_free) verify_report report = {0};
    verify_options options = {.seed = 1};
    options.tiers[DEBERTA_ISA_SCALAR] = true;
    deberta_error error = {0};
    assert_ok(verify_model(&report, &options, path, "m", ids, starts, 2, &error));
    assert_ok(verify_invariance(&report, &options, path, "m", ids, 10, &error));
    assert_int_equal(report.failures, 0);
    assert_int_equal(report.count, 2 + 5 + 5);
    assert_int_equal(report.rows[0].values, 10 * 48);
    scope_free(&report.memory);
    report = (verify_report){0};
    options.mutation = mutation_find("sign");
    assert_ok(verify_model(&report, &options, path, "m", ids, starts, 2, &error));
    assert_true(report.failures > 0);
    scope_free(&report.memory);
    report = (verify_report){0};
    assert_ok(verify_invariance(&report, &options, path, "m", ids, 10, &error));
    assert_int_equal(report.failures, 0);
}

/* Low precision of a model with channels that are far larger than others stays within its limits; not without the
 * factors that even these out, and not with a fault in the positions. */
TEST(test_low_precision_of_outliers)
{
    static const char path[] = "synthetic:v3-base,layers=2,hidden=256,heads=4,intermediate=512,vocab=300,outliers=6";
    enum { TOKENS = 12 };
    int32_t ids[TOKENS];
    const size_t starts[] = {0, TOKENS};
    const mutation *faults[] = {NULL, &mutation_unsmoothed, mutation_find("sign")};
    verify_make_ids(ids, TOKENS, 300, 1);
    for (int p = DEBERTA_PRECISION_INT16; p < DEBERTA_PRECISION_COUNT; p++)
        FOR_ROWS(k, faults) {
            FREED_BY(report_free) verify_report report = {0};
            const verify_options options = {
                .seed = 1, .threads = 1, .precision = (deberta_precision)p, .mutation = faults[k]};
            assert_ok(verify_model(&report, &options, path, "", ids, starts, 1, NULL));
            assert_true((report.failures > 0) == (k > 0));
        }
}

/* Ours on each tier, SLEEF's, and float64 twice, for three functions; all of them close, none of them exact. */
TEST(test_second_opinion)
{
    FREED_BY(report_free) verify_report report = {0};
    verify_options options = {.seed = 1};
    options.tiers[DEBERTA_ISA_SCALAR] = options.tiers[deberta_isa_best()] = true;
    const size_t tiers = deberta_isa_best() == DEBERTA_ISA_SCALAR ? 1 : 2;
    assert_ok(verify_sleef(&report, &options, NULL));
    assert_int_equal(report.count, sleef_is_present() ? SLEEF_FUNCTIONS * (tiers + 2) : 0);
    assert_int_equal(report.failures, 0);
    for (size_t k = 0; k < report.count; k++) {
        const bool float64 = strstr(report.rows[k].subject, "float64") != NULL;
        assert_true(report.rows[k].worst > 0 && (report.rows[k].worst < 1e-6) == float64);
        assert_int_equal(report.rows[k].differing, 0);
    }
}
