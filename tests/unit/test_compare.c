/* Comparing two reports: pairing, verdicts, and what makes files incomparable. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/compare.h"

enum { SAMPLES = 9 };

static bench_result *add_result(bench_results *results, size_t n, const char *isa, double seconds)
{
    results->result = realloc(results->result, (results->count + 1) * sizeof *results->result);
    assert_non_null(results->result);
    bench_result *r = &results->result[results->count++];
    *r = (bench_result){.model = "m",
                        .engine = "deberta",
                        .precision = "float32",
                        .attention = "full",
                        .position_cache = true,
                        .threads = 1,
                        .layers = 2,
                        .n = n,
                        .batch = 1,
                        .tokens = n,
                        .checksum = 1};
    snprintf(r->isa, sizeof r->isa, "%s", isa);
    r->samples = malloc(SAMPLES * sizeof *r->samples);
    assert_non_null(r->samples);
    for (int i = 0; i < SAMPLES; i++) r->samples[i] = seconds * (1 + 0.0011 * (double)((i * 5) % SAMPLES));
    assert_int_equal(statistics_summarize(&r->time, r->samples, SAMPLES, NULL), DEBERTA_OK);
    return r;
}

static void test_verdicts(void **state)
{
    (void)state;
    bench_results a = {0}, b = {0};
    add_result(&a, 16, "avx2", 1e-3);
    add_result(&a, 40, "avx2", 2e-3);
    add_result(&a, 128, "avx2", 4e-3);
    add_result(&a, 512, "avx2", 9e-3);
    add_result(&b, 128, "avx2", 4e-3 * 1.00005)->checksum = 2;
    add_result(&b, 40, "avx2", 3e-3);
    add_result(&b, 16, "avx2", 0.8e-3);
    compare_list list;
    assert_int_equal(compare_results(&list, &a, &b, NULL), DEBERTA_OK);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.only_a, 1);
    assert_int_equal(list.only_b, 0);
    assert_int_equal(list.pairs[0].verdict, COMPARE_FASTER);
    assert_true(fabs(list.pairs[0].time.ratio - 0.8) < 0.002);
    assert_true(list.pairs[0].time.effect == -1);
    assert_int_equal(list.pairs[1].verdict, COMPARE_SLOWER);
    assert_true(list.pairs[1].time.low < 1.5 && list.pairs[1].time.high > 1.5);
    assert_int_equal(list.pairs[2].verdict, COMPARE_SAME);
    assert_true(list.pairs[2].checksums_differ);
    assert_false(list.pairs[0].checksums_differ);
    assert_true(fabs(list.mean_ratio - cbrt(0.8 * 1.5 * 1)) < 0.002);

    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_int_equal(compare_print(&list, &a, &b, out, TEXT_TABLE_PLAIN, NULL), DEBERTA_OK);
    fclose(out);
    assert_non_null(strstr(text, "3 compared: 1 faster, 1 slower"));
    assert_non_null(strstr(text, "no difference shown; other results"));
    assert_non_null(strstr(text, "without a partner: 1 of A, 0 of B"));
    free(text);
    compare_free(&list);
    bench_results_free(&a);
    bench_results_free(&b);
}

static void test_tiers_are_paired_when_nothing_else_is_left(void **state)
{
    (void)state;
    bench_results a = {0}, b = {0};
    add_result(&a, 16, "avx2", 1e-3);
    add_result(&a, 40, "avx2", 1e-3);
    add_result(&b, 16, "avx512", 1e-3);
    add_result(&b, 40, "avx512", 1e-3);
    add_result(&b, 16, "avx2", 1e-3);
    compare_list list;
    assert_int_equal(compare_results(&list, &a, &b, NULL), DEBERTA_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.pairs[0].b, 2);
    assert_int_equal(list.pairs[1].b, 1);
    assert_int_equal(list.only_b, 1);
    compare_free(&list);
    bench_results_free(&a);
    bench_results_free(&b);
}

static void test_other_work_is_not_paired(void **state)
{
    (void)state;
    for (int change = 0; change < 6; change++) {
        bench_results a = {0}, b = {0};
        add_result(&a, 16, "avx2", 1e-3);
        bench_result *other = add_result(&b, 16, "avx2", 1e-3);
        if (change == 0) other->position_cache = false;
        if (change == 1) other->cold = true;
        if (change == 2) other->layers = 3;
        if (change == 3) other->batch = 2;
        if (change == 4) snprintf(other->attention, sizeof other->attention, "c2c");
        if (change == 5) other->threads = 2;
        compare_list list;
        assert_int_equal(compare_results(&list, &a, &b, NULL), DEBERTA_OK);
        assert_int_equal(list.count, 0);
        compare_free(&list);
        bench_results_free(&a);
        bench_results_free(&b);
    }
}

static void test_environments(void **state)
{
    (void)state;
    deberta_error err = {0};
    bench_results a = {.sheet = {.cpu = "x", .compiler = "gcc 12", .commit = "1"}}, b = a;
    b.sheet.load = 7;
    snprintf(b.sheet.commit, sizeof b.sheet.commit, "2");
    assert_int_equal(compare_environments(&a, &b, &err), DEBERTA_OK);
    snprintf(b.sheet.compiler, sizeof b.sheet.compiler, "clang 14");
    a.sheet.topology.cores = 2;
    b.sheet.topology.cores = 4;
    assert_int_equal(compare_environments(&a, &b, &err), DEBERTA_E_ARGUMENT);
    assert_non_null(strstr(err.message, "compiler 'gcc 12' and 'clang 14'"));
    assert_non_null(strstr(err.message, "cores 2 and 4"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_tiers_are_paired_when_nothing_else_is_left),
        cmocka_unit_test(test_other_work_is_not_paired),
        cmocka_unit_test(test_environments),
    };
    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
