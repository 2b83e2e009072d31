/* Comparing runs: pairing, verdicts, and what makes files incomparable. SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "bench/compare.h"

static void results_free(bench_results *of) { scope_free(&of->memory); }

static void list_free(compare_list *of) { scope_free(&of->memory); }

enum { SAMPLES = 9 };

static bench_result *add_result(bench_results *results, size_t n, const char *isa, double seconds)
{
    bench_result *more = scope_take(&results->memory, results->count + 1, sizeof *more);
    if (results->count) memcpy(more, results->result, results->count * sizeof *more);
    results->result = more;
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
    r->samples = scope_take(&results->memory, SAMPLES, sizeof *r->samples);
    for (int i = 0; i < SAMPLES; i++) r->samples[i] = seconds * (1 + 0.0011 * (double)((i * 5) % SAMPLES));
    statistics_summarize(&r->time, r->samples, SAMPLES);
    return r;
}

static const char *const names[] = {"1.json", "2.json", "3.json", "4.json", "5.json", "6.json", "7.json"};

static compare_side side_of(const bench_results *runs, size_t count)
{
    return (compare_side){.runs = runs, .names = names, .count = count};
}

static void free_runs(bench_results *runs, size_t count)
{
    for (size_t k = 0; k < count; k++) scope_free(&runs[k].memory);
}

static compare_list compared(const bench_results *a, size_t runs_a, const bench_results *b, size_t runs_b)
{
    compare_list list;
    const compare_side left = side_of(a, runs_a), right = side_of(b, runs_b);
    compare_sides(&list, &left, &right);
    return list;
}

static char *described(const compare_list *list, const compare_side *a, const compare_side *b, unsigned by)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    FREED_BY(result_free) result *r = result_new(NULL);
    compare_describe(r, list, a, b, by);
    result_write(r, out, RESULT_TEXT);
    fclose(out);
    return text;
}

enum { RUNS = 5 };

TEST(test_verdicts)
{
    bench_results a[RUNS] = {0}, b[RUNS] = {0};
    for (size_t k = 0; k < RUNS; k++) {
        const double luck = 1 + 0.01 * (double)k;
        add_result(&a[k], 16, "avx2", 1e-3 * luck);
        add_result(&a[k], 40, "avx2", 2e-3 * luck);
        add_result(&a[k], 128, "avx2", 4e-3 * luck);
        add_result(&a[k], 512, "avx2", 9e-3 * luck);
        add_result(&b[k], 128, "avx2", 4e-3 * 1.002 * luck)->checksum = 2;
        add_result(&b[k], 40, "avx2", 3e-3 * luck);
        add_result(&b[k], 16, "avx2", 0.8e-3 * luck);
    }
    for (size_t k = 0; k < RUNS; k++) {
        snprintf(a[k].sheet.date, sizeof a[k].sheet.date, "2026-01-02T03:%02zu:00Z", k);
        snprintf(b[k].sheet.date, sizeof b[k].sheet.date, "2026-01-02T03:%02zu:00Z", 10 + k);
        snprintf(b[k].sheet.cpu, sizeof b[k].sheet.cpu, "Some CPU");
    }
    snprintf(b[3].sheet.notes[0], sizeof b[3].sheet.notes[0], "the load was 1.7");
    b[3].sheet.note_count = 1;
    compare_list list = compared(a, RUNS, b, RUNS);
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
    assert_true(fabs(list.mean_ratio - cbrt(0.8 * 1.5 * 1.002)) < 0.002);
    const compare_side left = side_of(a, RUNS), right = side_of(b, RUNS);
    char *text = described(&list, &left, &right, 0);
    assert_non_null(strstr(text, "not quiet: 4.json: the load was 1.7"));
    assert_non_null(strstr(text, "3 compared: 1 faster, 1 slower, 1 without a difference, 0 not decided"));
    assert_non_null(strstr(text, "no difference shown; other results"));
    assert_non_null(strstr(text, "without a partner: 1 of A, 0 of B"));
    assert_null(strstr(text, "chance"));
    assert_non_null(strstr(text, "A: 1.json and 4 more runs; "));
    assert_non_null(strstr(text, "B: 1.json and 4 more runs; Some CPU; "));
    assert_non_null(strstr(text, "not in turns: all runs of A were made before the first of B"));
    free(text);
    snprintf(b[0].sheet.date, sizeof b[0].sheet.date, "2026-01-02T03:00:30Z");
    text = described(&list, &left, &right, 0);
    assert_null(strstr(text, "not in turns"));
    free(text);
    scope_free(&list.memory);
    free_runs(a, RUNS);
    free_runs(b, RUNS);
}

/* However far apart they are: samples of one process share its luck. */
TEST(test_one_run_each_decides_nothing)
{
    bench_results a[3] = {0}, b[4] = {0};
    for (size_t k = 0; k < 3; k++) add_result(&a[k], 16, "avx2", 1e-3 * (1 + 0.01 * (double)k));
    for (size_t k = 0; k < 4; k++) add_result(&b[k], 16, "avx2", 2e-3 * (1 + 0.01 * (double)k));
    compare_list list = compared(a, 1, b, 1);
    assert_int_equal(list.pairs[0].verdict, COMPARE_UNDECIDED);
    assert_true(fabs(list.pairs[0].time.ratio - 2) < 1e-9);
    const compare_side left = side_of(a, 1), right = side_of(b, 1);
    char *text = described(&list, &left, &right, 0);
    assert_non_null(strstr(text, "not decided: one run each"));
    assert_non_null(strstr(text, "2.0000"));
    assert_non_null(strstr(text, "A MAD"));
    assert_non_null(strstr(text, "0.50"));
    free(text);
    scope_free(&list.memory);
    list = compared(a, 3, b, 4); /* the most extreme of 35 orders: p = 2/35 */
    assert_int_equal(list.pairs[0].verdict, COMPARE_UNDECIDED);
    scope_free(&list.memory);
    free_runs(a, 3);
    free_runs(b, 4);
}

/* What nobody shall be told: that a program differs from itself. Runs here have luck of their own, shared by their
 * samples, and so do points within a run. */
TEST(test_a_program_against_itself)
{
    enum { SIDE = 7, TABLES = 300, POINTS = 6 };
    uint64_t random = 1;
    size_t called = 0, tables = 0;
    for (size_t t = 0; t < TABLES; t++) {
        bench_results runs[2 * SIDE] = {0};
        for (size_t k = 0; k < 2 * SIDE; k++) {
            double luck[POINTS + 1];
            for (size_t p = 0; p <= POINTS; p++) {
                random = random * 6364136223846793005 + 1442695040888963407;
                luck[p] = 0.04 * (double)(random >> 40) / (1 << 24);
            }
            for (size_t p = 0; p < POINTS; p++)
                add_result(&runs[k], 16 + p, "avx2", 1e-3 * (1 + luck[p] + luck[POINTS]));
        }
        compare_list list = compared(runs, SIDE, runs + SIDE, SIDE);
        size_t differ = 0;
        for (size_t p = 0; p < list.count; p++) differ += list.pairs[p].verdict != COMPARE_SAME;
        called += differ;
        tables += differ > 0;
        scope_free(&list.memory);
        free_runs(runs, 2 * SIDE);
    }
    assert_true(called <= TABLES * POINTS / 20);
    assert_true(tables <= TABLES / 20 + 10); /* 5 %, and 2.6 standard deviations of 300 draws */
}

/* ------------------------------------------------------------------------------------------------------------ turns */

enum { SIDE = 10, POINTS = 4 };

static double drawn(uint64_t *random)
{
    *random = *random * 6364136223846793005 + 1442695040888963407;
    return (double)(*random >> 40) / (1 << 24);
}

/* Two sides in turns, A B B A A B B A, of a machine whose speed walks by up to 4 % from run to run and creeps by 30 %
 * over all of them; B takes `slower` times as long. */
static void run_in_turns(bench_results runs[2 * SIDE], double slower, uint64_t *random)
{
    double speed = 1;
    memset(runs, 0, 2 * SIDE * sizeof *runs);
    for (size_t k = 0; k < 2 * SIDE; k++) {
        const bool is_b = (k + 1) / 2 % 2;
        bench_results *run = &runs[is_b ? SIDE + k / 2 : k / 2];
        snprintf(run->sheet.date, sizeof run->sheet.date, "2026-01-02T03:%02zu:00Z", k);
        speed *= 1 + 0.3 / (2 * SIDE) + 0.08 * (drawn(random) - 0.5);
        for (size_t p = 0; p < POINTS; p++)
            add_result(run, 16 + p, "avx2", 1e-3 * speed * (is_b ? slower : 1) * (1 + 0.01 * drawn(random)));
    }
}

typedef struct calls {
    size_t pairs, runs, called, tables; /* points with p <= 5 % by either test; points and tables called different */
} calls;

static calls count_calls(double slower, size_t tables)
{
    uint64_t random = 5;
    calls found = {0};
    for (size_t t = 0; t < tables; t++) {
        bench_results runs[2 * SIDE];
        run_in_turns(runs, slower, &random);
        compare_list list = compared(runs, SIDE, runs + SIDE, SIDE);
        size_t differ = 0;
        for (size_t p = 0; p < list.count; p++) {
            const compare_pair *pair = &list.pairs[p];
            assert_true(pair->by_pairs && pair->pairs.count == SIDE);
            found.pairs += pair->pairs.p <= 0.05;
            found.runs += pair->time.p <= 0.05;
            differ += pair->verdict != COMPARE_SAME;
        }
        found.called += differ;
        found.tables += differ > 0;
        scope_free(&list.memory);
        free_runs(runs, 2 * SIDE);
    }
    return found;
}

/* The machine drifts by more than the sides differ: neighbours show it, sets of runs do not. */
TEST(test_pairs_see_through_drift)
{
    enum { TABLES = 100 };
    const calls found = count_calls(1.05, TABLES);
    assert_true(found.pairs > TABLES * POINTS / 2);
    assert_true(found.runs < found.pairs / 4);
    assert_true(found.called > TABLES * POINTS / 2);
}

/* And of a program beside itself they call no more than one table in twenty. */
TEST(test_pairs_of_one_program)
{
    enum { TABLES = 400 };
    const calls found = count_calls(1, TABLES);
    assert_true(found.called <= TABLES * POINTS / 20);
    assert_true(found.tables <= TABLES / 20 + 12); /* 5 %, and 2.75 standard deviations of 400 draws */
}

/* Runs are pairs only where one pair is over before the next begins; which file is named first does not matter. */
TEST(test_which_runs_are_neighbours)
{
    static const struct {
        const char *a, *b; /* a letter is the minute of a run */
        size_t pairs;
    } rows[] = {
        {"ACEGIK", "BDFHJL", 6}, {"ADEHIL", "BCFGJK", 6}, {"LIHEDA", "KJGFCB", 6}, {"AAAAAA", "AAAAAA", 6},
        {"ABEGIK", "CDFHJL", 0}, {"ABCDEF", "GHIJKL", 0}, {"ACEGI", "BDFHJL", 0},  {"ACEG-K", "BDFHJL", 0},
    };
    FOR_ROWS(row, rows) {
        bench_results runs[12] = {0};
        const size_t count_a = strlen(rows[row].a), count_b = strlen(rows[row].b);
        for (size_t k = 0; k < count_a + count_b; k++) {
            const char minute = k < count_a ? rows[row].a[k] : rows[row].b[k - count_a];
            const double at = (double)(minute - 'A');
            if (minute != '-')
                snprintf(runs[k].sheet.date, sizeof runs[k].sheet.date, "2026-01-02T03:%02d:00Z", minute - 'A');
            add_result(&runs[k], 16, "avx2", 1e-3 * (1 + 0.1 * floor(at / 2)) * (k < count_a ? 1 : 1.01));
        }
        compare_list list = compared(runs, count_a, runs + count_a, count_b);
        const compare_pair *pair = &list.pairs[0];
        assert_int_equal(pair->pairs.count, rows[row].pairs);
        assert_int_equal(pair->by_pairs, rows[row].pairs > 0);
        if (rows[row].pairs) assert_true(fabs(pair->pairs.ratio - 1.01) < 1e-9);
        scope_free(&list.memory);
        free_runs(runs, count_a + count_b);
    }
}

/* Seven pairs of one sign have p = 1/64: enough for three points, not for four. */
TEST(test_too_few_pairs_leave_it_to_the_runs)
{
    for (size_t points = 3; points <= 4; points++) {
        bench_results a[7] = {0}, b[7] = {0};
        for (size_t k = 0; k < 7; k++) {
            snprintf(a[k].sheet.date, sizeof a[k].sheet.date, "2026-01-02T03:%02zu:00Z", 2 * k);
            snprintf(b[k].sheet.date, sizeof b[k].sheet.date, "2026-01-02T03:%02zu:00Z", 2 * k + 1);
            for (size_t p = 0; p < points; p++) {
                add_result(&a[k], 16 + p, "avx2", 1e-3 * (1 + 0.01 * (double)k));
                add_result(&b[k], 16 + p, "avx2", 1e-3 * (1 + 0.01 * (double)k) * (p ? 1 : 1.5));
            }
        }
        compare_list list = compared(a, 7, b, 7);
        assert_int_equal(list.pairs[0].by_pairs, points == 3);
        assert_int_equal(list.pairs[0].verdict, COMPARE_SLOWER);
        const compare_side left = side_of(a, 7), right = side_of(b, 7);
        char *text = described(&list, &left, &right, 0);
        assert_non_null(strstr(text, points == 3 ? "7 pairs of neighbours decide 3 of 3 points"
                                                 : "7 pairs are too few for 4 points"));
        free(text);
        scope_free(&list.memory);
        free_runs(a, 7);
        free_runs(b, 7);
    }
}

TEST(test_within_a_file)
{
    FREED_BY(results_free) bench_results run = {0};
    add_result(&run, 16, "avx2", 1e-3);
    add_result(&run, 16, "avx2", 0.6e-3)->threads = 2;
    add_result(&run, 40, "avx2", 3e-3)->threads = 2;
    add_result(&run, 40, "avx2", 5e-3)->threads = 4;
    add_result(&run, 64, "avx2", 9e-3);
    for (size_t k = 0; k < run.count; k++) strcpy(run.result[k].model, "some/where/m");
    FREED_BY(list_free) compare_list list;
    const compare_side runs = side_of(&run, 1);
    compare_within(&list, &runs, BENCH_THREADS);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.only_a, 1);
    assert_true(fabs(list.pairs[0].time.ratio - 0.6) < 1e-9);
    assert_int_equal(list.pairs[1].b->threads, 4);
    assert_int_equal(list.pairs[1].verdict, COMPARE_UNDECIDED);
    char *text = described(&list, &runs, &runs, BENCH_THREADS);
    assert_non_null(strstr(text, "1 / 2"));
    assert_null(strstr(text, "some/where")); /* the folder's name is enough for people */
    free(text);
}

TEST(test_tiers_are_paired_when_nothing_else_is_left)
{
    FREED_BY(results_free) bench_results a = {0}, b = {0};
    add_result(&a, 16, "avx2", 1e-3);
    add_result(&a, 40, "avx2", 1e-3);
    add_result(&b, 16, "avx512", 1e-3);
    add_result(&b, 40, "avx512", 1e-3);
    add_result(&b, 16, "avx2", 1e-3);
    compare_list list = compared(&a, 1, &b, 1);
    assert_int_equal(list.count, 2);
    assert_ptr_equal(list.pairs[0].b, &b.result[2]);
    assert_ptr_equal(list.pairs[1].b, &b.result[1]);
    assert_int_equal(list.only_b, 1);
    scope_free(&list.memory);
}

TEST(test_other_work_is_not_paired)
{
    for (int change = 0; change < 6; change++) {
        FREED_BY(results_free) bench_results a = {0}, b = {0};
        add_result(&a, 16, "avx2", 1e-3);
        bench_result *other = add_result(&b, 16, "avx2", 1e-3);
        if (change == 0) other->position_cache = false;
        if (change == 1) other->cold = true;
        if (change == 2) other->layers = 3;
        if (change == 3) other->batch = 2;
        if (change == 4) snprintf(other->attention, sizeof other->attention, "c2c");
        if (change == 5) other->threads = 2;
        compare_list list = compared(&a, 1, &b, 1);
        assert_int_equal(list.count, 0);
        scope_free(&list.memory);
    }
}

TEST(test_environments)
{
    deberta_error err = {0};
    bench_results a = {.sheet = {.cpu = "x", .compiler = "gcc 12", .commit = "1"}}, b = a;
    b.sheet.load = 7;
    snprintf(b.sheet.commit, sizeof b.sheet.commit, "2");
    assert_ok(compare_environments(&a, &b, &err));
    snprintf(b.sheet.compiler, sizeof b.sheet.compiler, "clang 14");
    a.sheet.topology.cores = 2;
    b.sheet.topology.cores = 4;
    check_refused(compare_environments(&a, &b, &err), &err, DEBERTA_E_ARGUMENT, "compiler 'gcc 12' and 'clang 14'");
    assert_non_null(strstr(err.message, "cores 2 and 4"));
}
