/* Problem lines, the lists that ship, and a run of every operation. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"

#include "bench/kernel_bench.h"
#include "analysis/reference/sleef_math.h"
#include "core/kernels.h"

static kernel_problem parsed(const char *line)
{
    kernel_problem p;
    deberta_error err = {0};
    if (kernel_problem_parse(&p, line, "here", &err) != DEBERTA_OK) fail_msg("%s", err.message);
    return p;
}

TEST(test_lines_are_understood)
{
    kernel_problem p = parsed("  gemm rows=16 depth=768 columns=3072 bias gelu  # comment\n");
    assert_string_equal(p.text, "gemm rows=16 depth=768 columns=3072 bias gelu");
    assert_int_equal(p.operation, KERNEL_GEMM);
    assert_int_equal(p.rows, 16);
    assert_int_equal(p.depth, 768);
    assert_int_equal(p.columns, 3072);
    assert_true(p.bias && p.gelu && !p.residual);
    assert_int_equal(parsed("activate columns=5 function=silu").function, KERNEL_SILU);
    assert_int_equal(parsed("position_bias rows=24 distance=-300").distance, -300);
    assert_int_equal(parsed("layernorm").rows, 1);
}

TEST(test_wrong_lines_are_refused)
{
    static const char *const cases[][2] = {
        {"conv rows=1", "unknown kernel 'conv'"},
        {"gemm rows=0 columns=16", "rows='0' is not a number from 1"},
        {"gemm rows=x columns=16", "rows='x'"},
        {"gemm rows=-3 columns=16", "rows='-3'"},
        {"gemm rows=4 columns=17", "columns=17 of gemm is not a multiple of 16"},
        {"gemm_u8 rows=4 depth=100 columns=16", "depth=100 of gemm_u8 is not a multiple of 64"},
        {"gemm_u15 rows=4 depth=576 columns=16", "depth=576 of gemm_u15 is not a multiple of 64, at most 512"},
        {"quantize_panels depth=64 columns=8", "columns=8 of quantize_panels is not a multiple of 16"},
        {"gemm rows=4 columns=16 fast", "'fast' is not understood"},
        {"softmax rows=4 columns=513", "softmax takes at most 512 columns"},
        {"softmax rows=4 columns=16 gelu", "'gelu' belongs to gemm"},
        {"activate columns=16 function=cosine", "unknown function 'cosine'"},
        {"gemm rows=1000000 columns=1000000", "more than 1 GiB"},
        {"position_bias distance=near", "distance='near'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel_problem p;
        deberta_error err = {0};
        assert_int_equal(kernel_problem_parse(&p, cases[i][0], "file:7", &err), DEBERTA_E_FORMAT);
        if (!strstr(err.message, cases[i][1]) || !strstr(err.message, "file:7")) fail_msg("%s", err.message);
    }
}

TEST(test_files_skip_comments_and_name_the_line)
{
    char text[] = "# head\n\n  layernorm columns=8\npack rows=3 # tail\n";
    FILE *file = fmemopen(text, strlen(text), "r");
    kernel_problems list = {0};
    assert_int_equal(kernel_problems_read(&list, file, "f", NULL), DEBERTA_OK);
    fclose(file);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.problems[1].text, "pack rows=3");
    kernel_problems_free(&list);

    char wrong[] = "layernorm\n\nlayernrom\n";
    deberta_error err = {0};
    file = fmemopen(wrong, strlen(wrong), "r");
    assert_int_equal(kernel_problems_read(&list, file, "f", &err), DEBERTA_E_FORMAT);
    fclose(file);
    assert_non_null(strstr(err.message, "f:3: unknown kernel 'layernrom'"));
    kernel_problems_free(&list);
}

TEST(test_every_operation_runs)
{
    static const char *const lines[] = {
        "gemm rows=5 depth=20 columns=48 bias gelu residual",
        "pack rows=19 depth=7",
        "position_bias rows=24 distance=-600",
        "softmax rows=3 columns=37",
        "layernorm rows=2 columns=33",
        "activate rows=2 columns=19 function=exp",
        "gemm_tn rows=19 depth=7 columns=32",
        "sum_rows rows=19 columns=7",
        "dot_rows rows=3 columns=37",
        "layernorm_backward rows=2 columns=33",
        "activate_backward rows=2 columns=19 function=tanh",
        "softmax_backward rows=3 columns=37",
        "fold_runs rows=24 columns=70 distance=-600",
        "adam columns=100",
        "dropout rows=3 columns=37",
        "quantize_u8 rows=19 depth=64",
        "quantize_u8x2 rows=3 depth=128",
        "gemm_u8 rows=19 depth=64 columns=32",
        "gemm_u8x2 rows=3 depth=128 columns=16",
        "quantize_u15 rows=19 depth=64",
        "quantize_panels depth=128 columns=32",
        "gemm_u15 rows=19 depth=512 columns=32",
    };
    enum { LINES = sizeof lines / sizeof *lines, ACTIVATE = 5 };
    kernel_problem problems[sizeof lines / sizeof *lines];
    kernel_problems list = {.problems = problems, .count = sizeof lines / sizeof *lines};
    for (size_t i = 0; i < list.count; i++) problems[i] = parsed(lines[i]);
    const deberta_isa isas[] = {DEBERTA_ISA_SCALAR, deberta_isa_best()};
    kernel_bench_options options = {.isas = isas, .isa_count = 2, .samples = 3, .min_seconds = 1e-5, .cold = true};
    kernel_measurements found;
    deberta_error err = {0};
    if (kernel_bench_run(&found, &list, &options, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    assert_int_equal(LINES, KERNEL_OPERATIONS);
    assert_int_equal(found.count, 2 * LINES + sleef_is_present());
    const size_t behind = 2 * ACTIVATE + 2; /* where SLEEF's exp is */
    for (size_t i = 0; i < 2 * LINES; i++) {
        const kernel_measurement *m = &found.measurements[i < behind ? i : i + sleef_is_present()];
        assert_int_equal(m->problem, i / 2);
        assert_int_equal(m->isa, isas[i % 2]);
        assert_true(m->time.count == 3 && m->time.minimum > 0);
        assert_true(m->work.elements > 0 && m->work.bytes > 0);
        assert_non_null(m->implementation);
        assert_int_equal(m->worst_ulp > 0, i / 2 == ACTIVATE); /* 38 values of exp */
        assert_true(m->worst_ulp < 2);
    }
    if (sleef_is_present()) {
        const kernel_measurement *sleef = &found.measurements[behind];
        assert_string_equal(sleef->implementation, "SLEEF");
        assert_int_equal(sleef->isa, DEBERTA_ISA_AUTO);
        assert_true(sleef->problem == ACTIVATE && sleef->time.minimum > 0 && sleef->worst_ulp > 0 &&
                    sleef->worst_ulp <= 1);
    }
    assert_true(found.measurements[0].work.gflop == 1e-9 * 2 * 5 * 20 * 48);
    assert_true(found.measurements[0].speed_up == 1);

    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    result *r = result_new(NULL);
    kernel_bench_describe(r, &found, &list);
    assert_int_equal(result_write(r, out, RESULT_CSV, NULL), DEBERTA_OK);
    fclose(out);
    result_free(&r);
    assert_non_null(strstr(text, "\npack rows=19 depth=7,scalar,"));
    free(text);
    kernel_measurements_free(&found);
}

/* Every list in bench/shapes is understood to its last line, and its first two problems run. */
TEST(test_lists_that_ship)
{
    static const char *const paths[] = {"bench/shapes/small.txt", "bench/shapes/base.txt", "bench/shapes/large.txt",
                                        "bench/shapes/edges.txt"};
    const deberta_isa isa = deberta_isa_best();
    const kernel_bench_options options = {.isas = &isa, .isa_count = 1, .samples = 1, .min_seconds = 1e-6};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        kernel_problems list = {0};
        kernel_measurements found;
        deberta_error err = {0};
        FILE *file = fopen(paths[i], "rb");
        assert_non_null(file);
        if (kernel_problems_read(&list, file, paths[i], &err) != DEBERTA_OK) fail_msg("%s", err.message);
        fclose(file);
        assert_true(list.count >= 2);
        const kernel_problems first = {.problems = list.problems, .count = 2};
        if (kernel_bench_run(&found, &first, &options, &err) != DEBERTA_OK) fail_msg("%s", err.message);
        assert_int_equal(found.count, 2);
        assert_true(found.measurements[0].time.minimum > 0 && found.measurements[1].time.minimum > 0);
        kernel_measurements_free(&found);
        kernel_problems_free(&list);
    }
}
