/* Problem lines, the lists that ship, and a run of every operation. SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "analysis/reference/sleef_math.h"
#include "bench/kernel_bench.h"
#include "core/kernels.h"

static problem_line parsed(const char *line)
{
    problem_line p;
    deberta_error err = {0};
    if (problem_line_parse(&p, line, "here", &err) != DEBERTA_OK) fail_msg("%s", err.message);
    return p;
}

TEST(test_lines_are_understood)
{
    problem_line line = parsed("  gemm rows=16 depth=768 columns=3072 bias gelu  # comment\n");
    const kernel_problem p = line.problem;
    assert_string_equal(line.text, "gemm rows=16 depth=768 columns=3072 bias gelu");
    assert_int_equal(p.slot, SLOT_gemm_f32);
    assert_int_equal(p.rows, 16);
    assert_int_equal(p.depth, 768);
    assert_int_equal(p.columns, 3072);
    assert_int_equal(p.options, WITH_BIAS | WITH_GELU | FETCH_NEXT);
    assert_int_equal(parsed("activate columns=5 function=silu").problem.function, ACTIVATION_SILU);
    assert_int_equal(parsed("position_bias rows=24 distance=-300").problem.distance, -300);
    assert_int_equal(parsed("layernorm").problem.rows, 1);
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
    FOR_ROWS(i, cases) {
        problem_line p;
        deberta_error err = {0};
        assert_int_equal(problem_line_parse(&p, cases[i][0], "file:7", &err), DEBERTA_E_FORMAT);
        if (!strstr(err.message, cases[i][1]) || !strstr(err.message, "file:7")) fail_msg("%s", err.message);
    }
}

TEST(test_files_skip_comments_and_name_the_line)
{
    char text[] = "# head\n\n  layernorm columns=8\npack rows=3 # tail\n";
    FILE *file = fmemopen(text, strlen(text), "r");
    problem_lines list = {0};
    assert_ok(problem_lines_read(&list, file, "f", NULL));
    fclose(file);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.lines[1].text, "pack rows=3");
    scope_free(&list.memory);
    list = (problem_lines){0};

    char wrong[] = "layernorm\n\nlayernrom\n";
    deberta_error err = {0};
    file = fmemopen(wrong, strlen(wrong), "r");
    assert_int_equal(problem_lines_read(&list, file, "f", &err), DEBERTA_E_FORMAT);
    fclose(file);
    assert_non_null(strstr(err.message, "f:3: unknown kernel 'layernrom'"));
    scope_free(&list.memory);
}

/* Of every kernel that there is. */
TEST(test_every_kernel_runs)
{
    enum { LINES = KERNEL_SLOTS, ACTIVATE = SLOT_activate_f32 };
    problem_line problems[LINES];
    problem_lines list = {.lines = problems, .count = LINES};
    for (int slot = 0; slot < LINES; slot++) {
        const kernel_description *d = problem_description((kernel_slot)slot);
        char line[PROBLEM_LINE_BYTES];
        snprintf(line, sizeof line, "%s rows=19 depth=64 columns=32%s%s%s", d->word,
                 d->has_function ? " function=exp" : "", d->has_map ? " distance=-600" : "",
                 d->optional & WITH_BIAS ? " bias gelu residual" : "");
        problems[slot] = parsed(line);
        assert_int_equal(problems[slot].problem.slot, slot);
    }
    const deberta_isa isas[] = {DEBERTA_ISA_SCALAR, deberta_isa_best()};
    kernel_bench_options options = {.isas = isas, .isa_count = 2, .samples = 3, .min_seconds = 1e-5, .cold = true};
    kernel_measurements found;
    deberta_error err = {0};
    if (kernel_bench_run(&found, &list, &options, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    assert_int_equal(found.count, 2 * LINES + sleef_is_present());
    const size_t behind = 2 * ACTIVATE + 2; /* where SLEEF's exp is */
    for (size_t i = 0; i < 2 * LINES; i++) {
        const kernel_measurement *m = &found.measurements[i < behind ? i : i + sleef_is_present()];
        assert_int_equal(m->problem, i / 2);
        assert_int_equal(m->isa, isas[i % 2]);
        assert_true(m->time.count == 3 && m->time.minimum > 0);
        assert_true(m->work.elements > 0 && m->work.bytes > 0);
        assert_non_null(m->implementation);
        assert_int_equal(m->worst_ulp > 0, i / 2 == ACTIVATE); /* 608 values of exp */
        assert_true(m->worst_ulp < 2);
    }
    if (sleef_is_present()) {
        const kernel_measurement *sleef = &found.measurements[behind];
        assert_string_equal(sleef->implementation, "SLEEF");
        assert_int_equal(sleef->isa, DEBERTA_ISA_AUTO);
        assert_true(sleef->problem == ACTIVATE && sleef->time.minimum > 0 && sleef->worst_ulp > 0 &&
                    sleef->worst_ulp <= 1);
    }
    assert_true(found.measurements[0].work.flop == 2.0 * 19 * 64 * 32);
    assert_true(found.measurements[0].speed_up == 1);

    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    result *r = result_new(NULL);
    kernel_bench_describe(r, &found, &list);
    result_write(r, out, RESULT_CSV);
    fclose(out);
    result_free(&r);
    assert_non_null(strstr(text, "\npack rows=19 depth=64 columns=32,scalar,"));
    free(text);
    scope_free(&found.memory);
}

/* Every list in bench/shapes is understood to its last line, and its first two problems run. */
TEST(test_lists_that_ship)
{
    static const char *const paths[] = {"bench/shapes/small.txt", "bench/shapes/base.txt", "bench/shapes/large.txt",
                                        "bench/shapes/edges.txt"};
    const deberta_isa isa = deberta_isa_best();
    const kernel_bench_options options = {.isas = &isa, .isa_count = 1, .samples = 1, .min_seconds = 1e-6};
    FOR_ROWS(i, paths) {
        problem_lines list = {0};
        kernel_measurements found;
        deberta_error err = {0};
        FILE *file = fopen(paths[i], "rb");
        assert_non_null(file);
        if (problem_lines_read(&list, file, paths[i], &err) != DEBERTA_OK) fail_msg("%s", err.message);
        fclose(file);
        assert_true(list.count >= 2);
        const problem_lines first = {.lines = list.lines, .count = 2};
        if (kernel_bench_run(&found, &first, &options, &err) != DEBERTA_OK) fail_msg("%s", err.message);
        assert_int_equal(found.count, 2);
        assert_true(found.measurements[0].time.minimum > 0 && found.measurements[1].time.minimum > 0);
        scope_free(&found.memory);
        scope_free(&list.memory);
    }
}
