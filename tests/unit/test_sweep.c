/* Whole sweeps over a tiny made-up model: which points there are, what each result holds, and what is refused.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "bench/sweep_work.h"

static void results_free(bench_results *of) { scope_free(&of->memory); }

static scope memory; /* of lists */

#define MODEL "synthetic:v3-xsmall,layers=2,vocab=50,hidden=64,heads=2,intermediate=128"

static size_list list_of(const char *text)
{
    size_list list;
    assert_ok(range_parse(&memory, &list, text, "list", 1, 100000, false, NULL));
    return list;
}

static bench_results swept(const sweep_options *options)
{
    bench_results results;
    deberta_error err = {0};
    if (sweep_run(&results, options, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    return results;
}

static sweep_options quick_options(void)
{
    return (sweep_options){.model = MODEL, .repetitions = 3, .skip_roofs = true};
}

TEST(test_a_grid)
{
    const deberta_isa isas[] = {DEBERTA_ISA_SCALAR, DEBERTA_ISA_AUTO};
    sweep_options options = quick_options();
    options.lengths = list_of("4,9");
    options.layers = list_of("1-2");
    options.threads = list_of("1,3");
    options.isas = isas;
    options.isa_count = 2;
    FREED_BY(results_free) bench_results results = swept(&options);
    assert_int_equal(results.count, 16);
    assert_int_equal(results.disagreements, 0);
    for (size_t i = 0; i < results.count; i++) {
        const bench_result *r = &results.result[i];
        assert_string_equal(r->model, MODEL);
        assert_string_equal(r->isa, i % 2 ? deberta_isa_name(deberta_isa_best()) : "scalar");
        assert_int_equal(r->threads, i / 2 % 2 ? 3 : 1);
        assert_int_equal(r->layers, i / 4 % 2 ? 2 : 1);
        assert_int_equal(r->n, i / 8 ? 9 : 4);
        assert_int_equal(r->time.count, 3);
        assert_true(r->time.minimum > 0 && r->gflop > 0 && r->tokens_per_s > 0);
        assert_true(r->peak_rss_bytes > r->workspace_bytes && r->workspace_bytes > 0);
        assert_int_equal(r->checksum == results.result[i & ~(size_t)3].checksum, 1); /* any tier, any threads */
    }
    assert_true(results.result[0].checksum != results.result[4].checksum);
    assert_true(results.result[0].checksum != results.result[8].checksum);
}

TEST(test_defaults)
{
    sweep_options options = quick_options();
    FREED_BY(results_free) bench_results results = swept(&options);
    assert_int_equal(results.count, 1);
    const bench_result *r = &results.result[0];
    assert_int_equal(r->n, SWEEP_DEFAULT_LENGTH);
    assert_int_equal(r->batch, 1);
    assert_int_equal(r->layers, 2);
    assert_true(r->position_cache && !r->cold && !r->has_breakdown && !r->lengths);
    assert_string_equal(r->attention, "full");
    assert_int_equal(r->threads, results.sheet.topology.usable_cores);
    assert_true(results.load_s > 0 && results.load_peak_rss_bytes > 0);
}

/* Is most of every encode inside of its stages? */
static bool stages_fill_the_encode(const bench_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const bench_result *r = &results->result[i];
        double sum = 0;
        for (int s = 0; s < PROFILE_STAGES; s++) sum += r->breakdown[s].seconds;
        if (sum <= 0.5 * r->breakdown_s) return false;
    }
    return true;
}

TEST(test_variants_of_attention)
{
    enum { TRIES = 5 }; /* a neighbour may take the processor away between two stages */
    const term_selection terms[] = {TERM_SELECTION_FULL, TERM_SELECTION_C2C};
    sweep_options options = quick_options();
    options.lengths = list_of("20");
    options.terms = terms;
    options.term_count = 2;
    options.position_cache = SWEEP_CACHE_BOTH;
    options.breakdown = true;
    options.threads = list_of("1");
    FREED_BY(results_free) bench_results results = swept(&options);
    for (int i = 1; i < TRIES && !stages_fill_the_encode(&results); i++) {
        scope_free(&results.memory);
        results = swept(&options);
    }
    assert_true(stages_fill_the_encode(&results));
    assert_int_equal(results.count, 4);
    assert_int_equal(results.disagreements, 0);
    assert_true(results.result[0].position_cache && !results.result[1].position_cache);
    assert_string_equal(results.result[2].attention, "c2c");
    assert_true(results.result[0].gflop > results.result[2].gflop);
    assert_true(results.result[0].checksum == results.result[1].checksum);
    assert_true(results.result[0].checksum != results.result[2].checksum);
    for (size_t i = 0; i < 4; i++) {
        const bench_result *r = &results.result[i];
        assert_true(r->has_breakdown);
        /* With one thread the stages are what the encode does: they take no longer. */
        double sum = 0;
        for (int s = 0; s < PROFILE_STAGES; s++) sum += r->breakdown[s].seconds;
        assert_true(sum <= 1.001 * r->breakdown_s);
        double parts = 0; /* the same of attention */
        for (int p = 0; p < PROFILE_PARTS; p++) parts += r->parts[p].seconds;
        assert_true(parts > 0 && parts <= 1.001 * r->breakdown[PROFILE_ATTENTION].seconds);
        const bool positions = strcmp(r->attention, "full") == 0;
        assert_int_equal(r->parts[PROFILE_C2P].seconds > 0 && r->parts[PROFILE_P2C].seconds > 0, positions);
        assert_true(r->parts[PROFILE_QK].seconds > 0 && r->parts[PROFILE_SOFTMAX].seconds > 0 &&
                    r->parts[PROFILE_PV].seconds > 0);
        assert_true(r->parts[PROFILE_QK].gflop == r->parts[PROFILE_PV].gflop);
        double gflop = 0;
        for (int p = 0; p < PROFILE_PARTS; p++) gflop += r->parts[p].gflop;
        assert_true(fabs(gflop / r->breakdown[PROFILE_ATTENTION].gflop - 1) < 1e-12);
        assert_true(r->breakdown[PROFILE_FEED_FORWARD].seconds > 0);
        assert_int_equal(r->breakdown[PROFILE_POSITIONS].seconds > 0, i == 1);
    }
}

TEST(test_batches_and_mixes)
{
    size_list mix = list_of("12,5,7");
    sweep_options options = quick_options();
    options.lengths = list_of("6");
    options.batches = list_of("1,4");
    options.mixes = &mix;
    options.mix_count = 1;
    options.cold = true;
    FREED_BY(results_free) bench_results results = swept(&options);
    assert_int_equal(results.count, 3);
    assert_int_equal(results.result[1].batch, 4);
    assert_int_equal(results.result[1].tokens, 24);
    const bench_result *ragged = &results.result[2];
    assert_int_equal(ragged->batch, 3);
    assert_int_equal(ragged->n, 12);
    assert_int_equal(ragged->tokens, 24);
    assert_int_equal(ragged->lengths[1], 5);
    assert_true(ragged->cold);
}

TEST(test_minimum_time_adds_samples)
{
    sweep_options options = quick_options();
    options.lengths = list_of("1");
    options.min_seconds = 0.2; /* an encode of one token takes well below a millisecond */
    FREED_BY(results_free) bench_results results = swept(&options);
    const bench_result *result = &results.result[0];
    double seconds = 0;
    for (size_t k = 0; k < result->time.count; k++) seconds += result->samples[k];
    assert_true(result->time.count > 3);
    assert_true(result->time.count <= SWEEP_MAX_SAMPLES);
    assert_true(seconds >= options.min_seconds || result->time.count == SWEEP_MAX_SAMPLES);
}

/* Encodes of one session, in milliseconds, as they were measured where weights come from a far cache: samples begin
 * once two in a row were no more than 3 % faster than the fastest before. */
TEST(test_when_a_visit_is_warm)
{
    static const struct {
        double ms[16];
        size_t warm;
    } rows[] = {
        {{9.1, 9.7, 7.7, 7.5, 7.1, 6.6, 6.6, 6.4, 6.3, 6.3, 6.3}, 10},
        {{9.8, 8.4, 7.2, 6.5, 6.4, 6.5, 6.4}, 6},
        {{5, 5, 5, 5}, 3},
        {{5, 7, 9, 4}, 3},
        {{20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5}, SWEEP_MOST_WARM},
        {{300, 200, 100}, 2},
        {{9000, 8000}, 1},
    };
    FOR_ROWS(row, rows) {
        sweep_warmth warm = {0};
        size_t k = 0;
        while (!sweep_is_warm(&warm, 1e-3 * rows[row].ms[k])) k++;
        assert_int_equal(warm.count, k + 1);
        assert_int_equal(warm.count, rows[row].warm);
    }
}

/* The visits of a point: in order, one after the other in time, each with encodes that do not count. */
static void check_visits(const bench_result *r, bool cold)
{
    assert_true(r->visits > 0 && r->visit && r->at && r->warm);
    for (size_t k = 0; k < r->time.count; k++) {
        assert_true(k == 0 ? r->visit[k] == 0 : r->visit[k] - r->visit[k - 1] <= 1);
        if (k) assert_true(r->at[k] >= r->at[k - 1] + r->samples[k - 1]);
    }
    assert_int_equal(r->visit[r->time.count - 1], r->visits - 1);
    for (size_t v = 0; v < r->visits; v++) assert_true(r->warm[v] >= 1 && r->warm[v] <= (cold ? 1 : SWEEP_MOST_WARM));
}

TEST(test_samples_have_visits_and_times)
{
    for (int cold = 0; cold < 2; cold++) {
        sweep_options options = quick_options();
        options.lengths = list_of("4,30");
        options.repetitions = 20;
        options.cold = cold;
        FREED_BY(results_free) bench_results results = swept(&options);
        for (size_t k = 0; k < results.count; k++) {
            check_visits(&results.result[k], cold);
            assert_int_equal(results.result[k].time.count, 20);
            assert_true(results.result[k].visits > 1);
            assert_int_equal(results.result[k].peak_then.slices, 0); /* without limits of the machine */
        }
    }
}

/* Slices take no more than their share of the samples' time, but for one of two milliseconds; low precision has both
 * kinds of products, and only --breakdown reads. */
TEST(test_slices_of_the_limits)
{
    for (int precision = 0; precision < DEBERTA_PRECISION_COUNT; precision++) {
        sweep_options options = quick_options();
        options.lengths = list_of("64");
        options.threads = list_of("1");
        options.min_seconds = 0.15;
        options.roof_share = 0.1;
        options.precision = (deberta_precision)precision;
        options.breakdown = precision == DEBERTA_PRECISION_INT8;
        FREED_BY(results_free) bench_results results = swept(&options);
        const bench_result *r = &results.result[0];
        const bench_then *then = &r->peak_then;
        assert_true(then->slices >= 3);
        double encoded = 0;
        for (size_t k = 0; k < r->time.count; k++) encoded += r->samples[k];
        assert_true((double)(then->slices - 1) * 0.001 <= options.roof_share * encoded); /* half of what one takes */
        assert_true(then->gflops > 0);
        assert_int_equal(then->gops > 0, precision != DEBERTA_PRECISION_FLOAT32);
        assert_int_equal(then->read_gbs > 0, options.breakdown);
        assert_int_equal(r->breakdown_peak_then.read_gbs > 0, options.breakdown);
        const double rate = machine_rate_of(then->gflops, then->gops, options.precision);
        assert_true(fabs(r->peak_then_fraction - r->gflops / rate) <= 1e-12 * r->peak_then_fraction);
        check_visits(r, false);
    }
}

typedef struct watched {
    double done;
    size_t calls, stop_after;
    bool went_back;
} watched;

static bool watch(void *context, const sweep_state *state)
{
    watched *w = context;
    if (state->done < w->done || state->done > 1) w->went_back = true;
    w->done = state->done;
    return ++w->calls < w->stop_after;
}

TEST(test_progress_grows_and_can_stop)
{
    watched w = {.stop_after = SIZE_MAX};
    sweep_options options = quick_options();
    options.lengths = list_of("2,3");
    options.progress = watch;
    options.progress_context = &w;
    FREED_BY(results_free) bench_results results = swept(&options);
    assert_false(w.went_back);
    assert_true(w.done > 0.3 && w.calls > 6);
    scope_free(&results.memory);

    w = (watched){.stop_after = 6}; /* opening, limits, two of memory, one point's time */
    results = swept(&options);
    assert_int_equal(results.count, 1);
    assert_string_equal(results.sheet.notes[results.sheet.note_count - 1], "stopped before the end");
}

static void assert_refused(const sweep_options *options, deberta_status expected, const char *message)
{
    FREED_BY(results_free) bench_results results;
    deberta_error err = {0};
    check_refused(sweep_run(&results, options, &err), &err, expected, message);
    assert_null(results.result);
}

TEST(test_what_cannot_be_swept)
{
    sweep_options options = quick_options();
    options.layers = list_of("1-3");
    assert_refused(&options, DEBERTA_E_ARGUMENT, "2 layers; 3 were asked for");

    options = quick_options();
    const term_selection absent[] = {TERM_SELECTION_FULL, TERM_SELECTION_C2C_P2C};
    char lacking[128];
    snprintf(lacking, sizeof lacking, "%s,terms=c2p", options.model);
    options.model = lacking;
    options.terms = absent;
    options.term_count = 2;
    assert_refused(&options, DEBERTA_E_ARGUMENT, "--attention: c2c+p2c asks for p2c");

    options = quick_options();
    const deberta_isa foreign[] = {deberta_isa_missing(DEBERTA_ISA_NEON) ? DEBERTA_ISA_NEON : DEBERTA_ISA_AVX2};
    options.isas = foreign;
    options.isa_count = 1;
    assert_refused(&options, DEBERTA_E_ARGUMENT, "cannot be used here: a tier of");

    options = quick_options();
    options.lengths = list_of("100");
    options.memory_limit_bytes = (size_t)64 << 20;
    options.batches = list_of("10000");
    assert_refused(&options, DEBERTA_E_MEMORY, "n = 100, batch 10000, 2 layers");

    options = quick_options();
    options.model = "/nonexistent/model";
    assert_refused(&options, DEBERTA_E_FILE, "/nonexistent/model");
}
