/* Reports: what is written to JSON is read back, tables leave out what does not vary, wrong files are refused.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "bench/results.h"
#include "bench/trends.h"
#include "output/text_table.h"

enum { SAMPLES = 7 };

static void add_result(bench_results *results, size_t n, size_t layers, double seconds)
{
    bench_result *more = scope_take(&results->memory, results->count + 1, sizeof *more);
    if (results->count) memcpy(more, results->result, results->count * sizeof *more);
    results->result = more;
    bench_result *r = &results->result[results->count++];
    *r = (bench_result){.model = "synthetic:v3-base",
                        .engine = "deberta",
                        .isa = "avx2",
                        .precision = "float32",
                        .attention = "full",
                        .position_cache = true,
                        .threads = 2,
                        .layers = layers,
                        .n = n,
                        .batch = 1,
                        .tokens = n,
                        .gflop = 2.5,
                        .gflop_reachable = 2.25,
                        .table_rows = 31,
                        .reachable_rows = 16,
                        .gflops = 2.5 / seconds,
                        .peak_fraction = 0.875,
                        .tokens_per_s = (double)n / seconds,
                        .peak_rss_bytes = (size_t)100 << 20,
                        .workspace_bytes = 1000 * n,
                        .checksum = 0xfedcba9876543210};
    r->samples = scope_take(&results->memory, SAMPLES, sizeof *r->samples);
    for (int i = 0; i < SAMPLES; i++)
        r->samples[i] = round(1e9 * seconds * (1 + 0.01 * (i - 3))) / 1e9; /* whole nanoseconds */
    statistics_summarize(&r->time, r->samples, SAMPLES);
}

static void results_free(bench_results *results) { scope_free(&results->memory); }

static bench_results make_report(void)
{
    bench_results results = {.sheet = {.version = "0.1.0",
                                       .commit = "abc",
                                       .cpu = "A, \"quoted\" processor",
                                       .isa = "avx2",
                                       .tiers = "scalar avx2",
                                       .compiler = "gcc 12.2.0",
                                       .load = 0.25,
                                       .dirty = true},
                             .command = "deberta bench x",
                             .load_s = 0.25,
                             .load_peak_rss_bytes = 12345};
    results.sheet.topology.cores = 8;
    results.sheet.topology.l3_bytes = (size_t)32 << 20;
    results.sheet.roofs.count = 1;
    results.sheet.roofs.roof[0] = (machine_roof){.threads = 2, .read_gbs = 20, .triad_gbs = 18, .typical_share = 0.75};
    results.sheet.roofs.roof[0].gflops[DEBERTA_ISA_AVX2] = 200;
    results.sheet.roofs.roof[0].gops[DEBERTA_ISA_AVX2] = 600;
    machine_note(&results.sheet, "the load was high");
    machine_note(&results.sheet, "the load was high");
    for (size_t n = 16; n <= 256; n *= 2) add_result(&results, n, 12, 1e-3 + 1e-4 * (double)n);
    add_result(&results, 16, 6, 1.6e-3);
    return results;
}

/* Not inlined: gcc would take the text for a dangling local. */
__attribute__((noinline)) static char *text_of(const bench_results *results, result_format format)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    FREED_BY(result_free) result *r = result_new(BENCH_RESULTS_SCHEMA);
    assert_non_null(out);
    bench_results_describe(r, results);
    result_write(r, out, format);
    fclose(out);
    return text;
}

static deberta_status read_text(bench_results *results, const char *text, deberta_error *err)
{
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(in);
    deberta_status status = bench_results_read_json(results, in, "file.json", err);
    fclose(in);
    return status;
}

TEST(test_json_round_trip)
{
    FREED_BY(results_free) bench_results results = make_report(), back = {0};
    bench_result *ragged = &results.result[5];
    ragged->batch = 2;
    ragged->lengths = scope_take(&results.memory, 2, sizeof *ragged->lengths);
    ragged->lengths[0] = 16, ragged->lengths[1] = 7;
    results.result[0].has_breakdown = true;
    results.result[0].breakdown[PROFILE_QKV] = (bench_stage){.seconds = 0.001, .gflop = 1.5, .bytes = 4096};
    results.result[0].parts[PROFILE_SOFTMAX] = (bench_stage){.seconds = 0.002, .gflop = 0.5};
    results.result[0].waiting_s = 0.0002;
    size_t visit[SAMPLES] = {0, 0, 0, 1, 1, 1, 1}, warm[] = {5, 3};
    double at[SAMPLES] = {0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75};
    results.result[1].visit = visit, results.result[1].at = at;
    results.result[1].warm = warm, results.result[1].visits = 2;
    results.result[1].peak_then = (bench_then){.gflops = 170, .gops = 700, .slices = 4};
    results.result[1].peak_then_fraction = 0.9375;
    results.result[0].breakdown_peak_then = (bench_then){.gflops = 165, .read_gbs = 11, .slices = 3};
    FREED_BY(free_memory) char *text = text_of(&results, RESULT_JSON);
    deberta_error err = {0};
    if (read_text(&back, text, &err) != DEBERTA_OK) fail_msg("%s", err.message);

    FREED_BY(free_memory) char *again = text_of(&back, RESULT_JSON);
    assert_string_equal(again, text);
    assert_string_equal(back.sheet.cpu, "A, \"quoted\" processor");
    assert_true(back.sheet.dirty);
    assert_int_equal(back.sheet.topology.l3_bytes, 32 << 20);
    assert_int_equal(back.sheet.note_count, 1);
    assert_int_equal(back.count, 6);
    assert_true(back.result[0].checksum == 0xfedcba9876543210);
    assert_int_equal(back.result[5].lengths[1], 7);
    assert_true(!back.result[0].visit && back.result[1].visits == 2 && back.result[1].warm[0] == 5);
    assert_true(back.result[1].visit[2] == 0 && back.result[1].visit[3] == 1 && back.result[1].at[6] == 1.75);
    assert_true(back.result[1].peak_then.gops == 700 && back.result[1].peak_then_fraction == 0.9375);
    assert_true(back.result[0].breakdown_peak_then.read_gbs == 11 && back.result[0].peak_then.slices == 0);
    assert_true(fabs(back.result[2].time.median - 0.0074) < 1e-9);
    assert_true(machine_peak_gflops(&back.sheet.roofs, DEBERTA_ISA_AVX2, 2) == 200);
    assert_true(machine_peak_of(&back.sheet.roofs, DEBERTA_ISA_AVX2, 2, DEBERTA_PRECISION_INT8) == 600);
    assert_true(machine_peak_of(&back.sheet.roofs, DEBERTA_ISA_AVX2, 2, DEBERTA_PRECISION_INT16) == 200);
    assert_true(machine_peak_of(&back.sheet.roofs, DEBERTA_ISA_AVX512, 2, DEBERTA_PRECISION_INT8) == 0);
    assert_true(back.sheet.roofs.roof[0].typical_share == 0.75);
    assert_true(back.load_s == 0.25 && back.load_peak_rss_bytes == 12345);
    assert_true(back.result[0].breakdown[PROFILE_QKV].gflop == 1.5);
    assert_true(back.result[0].parts[PROFILE_SOFTMAX].seconds == 0.002 &&
                back.result[0].parts[PROFILE_SOFTMAX].gflop == 0.5);
}

TEST(test_members_of_the_schema_are_there)
{
    static const char *const members[] = {
        "environment",
        "results",
        "cpu",
        "tiers",
        "isa",
        "cores",
        "caches",
        "governor",
        "load",
        "compiler",
        "flags",
        "commit",
        "dirty",
        "peak_gflops_1t",
        "peak_gflops",
        "stream_gbs",
        "load_s",
        "model",
        "precision",
        "threads",
        "batch",
        "n",
        "layers",
        "attention",
        "position_cache",
        "repetitions",
        "samples_s",
        "min_s",
        "median_s",
        "mad_s",
        "p95_s",
        "gflop",
        "gflops",
        "peak_fraction",
        "tokens_per_s",
        "peak_rss_bytes",
        "workspace_bytes",
    };
    FREED_BY(results_free) bench_results results = make_report();
    FREED_BY(free_memory) char *text = text_of(&results, RESULT_JSON);
    assert_non_null(strstr(text, "\"schema\": \"deberta-bench/1\""));
    assert_non_null(strstr(text, "\"checksum\": \"fedcba9876543210\""));
    FOR_ROWS(i, members) {
        char member[40];
        snprintf(member, sizeof member, "\"%s\":", members[i]);
        if (!strstr(text, member)) fail_msg("%s is missing", member);
    }
}

TEST(test_tables_say_once_what_does_not_vary)
{
    static const struct {
        result_format format;
        const char *words;
    } cases[] = {
        {RESULT_TEXT,
         "model synthetic:v3-base, engine deberta, precision float32, isa avx2, threads 2, attention full"},
        {RESULT_TEXT, "layers    n  median ms"},
        {RESULT_TEXT, "\n    12   16      2.600"},
        {RESULT_TEXT, "87.5"},
        {RESULT_TEXT, " 0.01234 "},
        {RESULT_MARKDOWN, "| layers | n | median ms |"},
        {RESULT_MARKDOWN, "|--:|--:|"},
        {RESULT_CSV, "\nsynthetic:v3-base,,deberta,float32,avx2,2,full,true,false,12,1,16,16,0.0026,"},
    };
    FREED_BY(results_free) bench_results results = make_report();
    results.result[5].time.median = 12.344e-6;
    FOR_ROWS(i, cases) {
        FREED_BY(free_memory) char *text = text_of(&results, cases[i].format);
        if (!strstr(text, cases[i].words)) fail_msg("'%s' is not in: %s", cases[i].words, text);
        if (cases[i].format == RESULT_TEXT) assert_null(strstr(text, "layers 12"));
        if (cases[i].format == RESULT_CSV)
            assert_memory_equal(text, "model,model_sha256,engine,precision,isa,threads,", 48);
    }
}

TEST(test_unknown_columns_are_left_out)
{
    FREED_BY(results_free) bench_results results = make_report();
    for (size_t i = 0; i < results.count; i++) results.result[i].peak_fraction = 0;
    FREED_BY(free_memory) char *text = text_of(&results, RESULT_TEXT);
    assert_null(strstr(text, "% of peak"));
    assert_non_null(strstr(text, "GFLOP/s"));
}

TEST(test_trends)
{
    FREED_BY(results_free) bench_results results = make_report();
    trend_list list;
    trends_find(&list, &results);
    assert_int_equal(list.count, 1); /* any two numbers of layers lie on a line */
    scope_free(&list.memory);
    add_result(&results, 16, 9, 2.1e-3);
    trends_find(&list, &results);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.trends[0].axis, TREND_LENGTH);
    assert_int_equal(list.trends[0].points, 5);
    assert_true(fabs(list.trends[0].time.coefficient[0] - 1e-3) < 1e-9);
    assert_true(fabs(list.trends[0].time.coefficient[1] - 1e-4) < 1e-10);
    assert_true(fabs(list.trends[0].memory.exponent - 1) < 1e-9);
    assert_int_equal(list.trends[1].axis, TREND_LAYERS);
    assert_int_equal(list.trends[1].from, 6);
    assert_int_equal(list.trends[1].to, 12);
    assert_true(fabs(list.trends[1].time.coefficient[1] - 1e-3 / 6) < 1e-9);
    scope_free(&list.memory);
    char *text = text_of(&results, RESULT_TEXT);
    assert_non_null(strstr(text, "time = 1.000 ms + 100.000 us n"));
    assert_non_null(strstr(text, "workspace grows as n^1.00 (off by at most 0.0 %), at the end as n^1.00"));
    assert_non_null(strstr(text, "n = 16, 6 to 12 layers"));
    assert_non_null(strstr(text, "per layer (off by at most 0.0 %)"));
    free(text);
    for (size_t k = 0; k < results.count; k++)
        results.result[k].time.median = 3e-3 - 1e-5 * (double)results.result[k].n;
    text = text_of(&results, RESULT_TEXT);
    assert_non_null(strstr(text, "time = 3.000 ms - 10.000 us n "));
    assert_null(strstr(text, "+ -"));
    free(text);
    results.count = 3; /* three lengths meet any parabola */
    text = text_of(&results, RESULT_TEXT);
    assert_null(strstr(text, "time ="));
    assert_non_null(strstr(text, "time grows as n^"));
    free(text);
    results.count = 7;
}

TEST(test_breakdown_adds_up)
{
    FREED_BY(results_free) bench_results results = make_report();
    bench_result *r = &results.result[0];
    r->has_breakdown = true;
    r->breakdown[PROFILE_QKV] = (bench_stage){.seconds = 0.010, .gflop = 1.5, .bytes = 2e6};
    r->breakdown[PROFILE_FEED_FORWARD] = (bench_stage){.seconds = 0.025, .gflop = 2.5, .bytes = 4e6};
    r->breakdown[PROFILE_ATTENTION].bytes = 1;
    r->parts[PROFILE_PV] = (bench_stage){.seconds = 0.002, .gflop = 0.2};
    r->breakdown_s = 0.040;
    r->waiting_s = 0.005;
    FREED_BY(free_memory) char *text = text_of(&results, RESULT_TEXT);
    const char *qkv = strstr(text, "\nqkv"), *all = strstr(text, "\nall"), *waiting = strstr(text, "\nwaiting");
    assert_non_null(qkv);
    assert_non_null(all);
    assert_non_null(waiting);
    double ms, percent, gflop, rate, peak, mb, gbs;
    assert_int_equal(sscanf(qkv, " qkv %lf %lf %lf %lf %lf %lf %lf", &ms, &percent, &gflop, &rate, &peak, &mb, &gbs),
                     7);
    assert_true(ms == 10 && percent == 25 && gflop == 1.5 && rate == 150 && peak == 75 && mb == 2 && gbs == 0.2);
    double pv[2] = {0};
    assert_non_null(strstr(text, "\n- pv"));
    assert_int_equal(sscanf(strstr(text, "\n- pv"), " - pv %lf %lf", &pv[0], &pv[1]), 2);
    assert_true(pv[0] == 2 && pv[1] == 5);
    assert_null(strstr(text, "softmax"));
    assert_int_equal(sscanf(all, " all %lf %lf %lf %lf %lf", &ms, &percent, &gflop, &rate, &peak), 5);
    assert_true(ms == 40 && percent == 100 && gflop == 4 && rate == 100 && peak == 50);
    assert_int_equal(sscanf(waiting, " waiting %lf %lf", &ms, &percent), 2);
    assert_true(ms == 5 && percent == 12.5);
}

TEST(test_wrong_files_are_refused)
{
    static const char *const cases[][2] = {
        {"{", "line 1"},
        {"[]", "holds an array, expected a JSON object"},
        {"{}", "schema is 'absent'"},
        {"{\"a\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}", "nested deeper than 32"},
        {"{\"schema\": \"other/2\"}", "schema is 'other/2', expected 'deberta-bench/1'"},
        {"{\"schema\": \"deberta-bench/1\", \"results\": []}", "there is no environment"},
        {"{\"schema\": \"deberta-bench/1\", \"environment\": {}}", "there are no results"},
        {"{\"schema\": \"deberta-bench/1\", \"environment\": {}, \"results\": [7]}", "results[0] is not an object"},
        {"{\"schema\": \"deberta-bench/1\", \"environment\": {}, \"results\": [{\"model\": \"m\", \"n\": 4}]}",
         "results[0] has no samples_s"},
        {"{\"schema\": \"deberta-bench/1\", \"environment\": {}, \"results\": [{\"n\": 4, \"samples_s\": [1]}]}",
         "results[0] has no model"},
        {"{\"schema\": \"deberta-bench/1\", \"environment\": {}, \"results\": [{\"model\": \"m\", \"n\": 4, "
         "\"samples_s\": [1, -1]}]}",
         "results[0].samples_s[1] is not a positive number"},
        {"{\"schema\": \"deberta-bench/1\", \"environment\": {}, \"results\": [{\"model\": \"m\", \"n\": 4, \"batch\": "
         "3, "
         "\"lengths\": [1], \"samples_s\": [1]}]}",
         "results[0] has 1 lengths for a batch of 3"},
    };
    FOR_ROWS(i, cases) {
        FREED_BY(results_free) bench_results results = {0};
        deberta_error err = {0};
        assert_int_equal(read_text(&results, cases[i][0], &err), DEBERTA_E_FORMAT);
        if (!strstr(err.message, cases[i][1]) || !strstr(err.message, "file.json"))
            fail_msg("case %zu: %s", i, err.message);
    }
}

/* Folders and command lines are bytes; results are UTF-8 all the same, and keep what was measured. */
TEST(test_names_that_are_not_utf8)
{
    FREED_BY(results_free) bench_results results = make_report(), back = {0};
    snprintf(results.result[0].model, sizeof results.result[0].model, "caf\xE9");
    snprintf(results.command, sizeof results.command, "deberta bench caf\xE9");
    machine_note(&results.sheet, "\xFF");
    FREED_BY(free_memory) char *text = text_of(&results, RESULT_JSON);
    deberta_error err = {0};
    if (read_text(&back, text, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    assert_string_equal(back.result[0].model, "caf\xEF\xBF\xBD");
    assert_string_equal(back.command, "deberta bench caf\xEF\xBF\xBD");
}

TEST(test_long_cells_are_whole)
{
    char word[400], *text = NULL;
    size_t length = 0;
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = 0;
    FREED_BY(text_table_free) text_table table = {.columns = 1};
    text_table_add(&table, "%s", word);
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    text_table_print(&table, out, RESULT_CSV);
    fclose(out);
    assert_int_equal(length, sizeof word); /* a line end in place of the NUL */
    free(text);
}

TEST(test_names_of_term_selections)
{
    term_selection terms;
    deberta_error err = {0};
    assert_ok(term_selection_from_name(&terms, "c2c+p2c", NULL));
    assert_int_equal(terms, TERM_SELECTION_C2C_P2C);
    assert_string_equal(term_selection_name(TERM_SELECTION_FULL), "full");
    check_refused(term_selection_from_name(&terms, "p2p", &err), &err, DEBERTA_E_ARGUMENT, "'p2p'");
}
