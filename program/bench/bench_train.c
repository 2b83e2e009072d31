/* `deberta bench train` measures seconds, work and memory of a step of training. SPDX-License-Identifier: MIT */
#include "bench/machine.h"
#include "bench/statistics.h"
#include "bench/training_bench.h"
#include "program/bench/bench_options.h"

typedef struct train_bench_options {
    common_options common;
    size_t sequences, tokens, shards, micro_tokens, reps;
    double labelled;
    int head;
    bool skip_peak, recompute;
} train_bench_options;

enum { HEAD_AUTO, HEAD_MLM };
static const char *const heads[] = {"auto", "mlm", NULL};

/* The measurement, and the reference values it is compared with. */
typedef struct train_result {
    const train_bench_options *options;
    training_measurement found;
    /* seconds; GFLOP/s, 0 if not measured; the peak at the time of measurement is found.peak_then */
    double median, processor, peak;
} train_result;

static void cell_share(result_table *table, double gflop, double seconds, double peak)
{
    if (gflop > 0 && seconds > 0 && peak > 0)
        cell_real(table, 100 * gflop / seconds / peak);
    else
        cell_none(table);
}

static void cell_rate(result_table *table, double gflop, double seconds)
{
    if (gflop > 0)
        cell_real(table, gflop);
    else
        cell_none(table);
    if (gflop > 0 && seconds > 0)
        cell_real(table, gflop / seconds);
    else
        cell_none(table);
}

static void add_stages(result *r, const train_result *t)
{
    static const result_column columns[] = {{"stage", NULL, COLUMN_TEXT, NULL, 0},
                                            {"seconds", NULL, COLUMN_REAL, "%.4f", 0},
                                            {"processor_seconds", "processor", COLUMN_REAL, "%.4f", 0},
                                            {"percent", "% of a step", COLUMN_REAL, "%.1f", 0},
                                            {"gflop", "GFLOP", COLUMN_REAL, "%.2f", 0},
                                            {"gflops", "GFLOP/s", COLUMN_REAL, "%.1f", 0},
                                            {"percent_of_peak", "% of peak", COLUMN_REAL, "%.1f", 0},
                                            {"percent_of_peak_then", "% of peak then", COLUMN_REAL, "%.1f", 0},
                                            {NULL, NULL, COLUMN_TEXT, NULL, 0}};
    result_table *table = result_add_table(r, "stages", NULL, columns);
    const training_measurement *m = &t->found;
    double sum = 0;
    for (int stage = 0; stage < TRAINING_STAGES; stage++) sum += m->stage_seconds[stage];
    for (int stage = 0; stage < TRAINING_STAGES; stage++) {
        const double seconds = m->stage_seconds[stage];
        cell_text(table, "%s", training_stage_name((training_stage)stage));
        cell_real(table, seconds);
        cell_real(table, m->stage_processor[stage]);
        cell_real(table, sum > 0 ? 100 * seconds / sum : 0);
        cell_rate(table, 1e-9 * m->cost.flops[stage], seconds);
        cell_share(table, 1e-9 * m->cost.flops[stage], seconds, t->peak);
        cell_share(table, 1e-9 * m->cost.flops[stage], seconds, m->peak_then);
    }
    result_set_data(r, table, false);
}

static void add_memory(result *r, const training_memory *m)
{
    static const result_column columns[] = {{"memory", NULL, COLUMN_TEXT, NULL, 0},
                                            {"bytes", NULL, COLUMN_INTEGER, NULL, NOT_IN_TABLES},
                                            {"mib", "MiB", COLUMN_REAL, "%.1f", NOT_IN_JSON | NOT_IN_CSV},
                                            {NULL, NULL, COLUMN_TEXT, NULL, 0}};
    const struct {
        const char *name;
        size_t bytes;
    } rows[] = {{"weights and gradients", m->weights_bytes},
                {"moments", m->moments_bytes},
                {"sums of position tables and of groups of shards", m->sums_bytes},
                {"packed weights", m->model_bytes},
                {"session", m->session_bytes},
                {"transposed weights, records, gradients of activations", m->learner_bytes},
                {"logits", m->logits_bytes},
                {"plan, together", training_memory_plan(m)},
                {"peak of the process", m->peak_rss_bytes}};
    result_table *table = result_add_table(r, "memory", NULL, columns);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        cell_text(table, "%s", rows[k].name);
        cell_integer(table, (int64_t)rows[k].bytes);
        cell_real(table, (double)rows[k].bytes / (1 << 20));
    }
}

static void add_json(json_t *to, const train_result *t)
{
    const training_measurement *m = &t->found;
    const train_bench_options *o = t->options;
    json_t *seconds = json_array();
    for (size_t i = 0; i < m->count; i++) json_array_append_new(seconds, json_real(m->seconds[i]));
    json_object_update_new(to, json_pack("{s:s, s:I, s:I, s:I, s:I, s:b, s:I, s:s}", "model", o->common.arguments[0],
                                         "sequences", (json_int_t)o->sequences, "tokens_of_a_sequence",
                                         (json_int_t)o->tokens, "tokens", (json_int_t)m->tokens, "labelled",
                                         (json_int_t)m->labelled, "decoder", (int)m->decodes, "threads",
                                         (json_int_t)m->threads, "isa", m->isa));
    json_object_update_new(to, json_pack("{s:o, s:f, s:f, s:f, s:f}", "step_seconds", seconds, "median_seconds",
                                         t->median, "processor_seconds", t->processor, "tokens_per_second",
                                         (double)m->tokens / t->median, "gflop", 1e-9 * m->cost.total));
    json_object_set_new(to, "peak_gflops", t->peak > 0 ? json_real(t->peak) : json_null());
    json_object_set_new(to, "peak_then_gflops", m->peak_then > 0 ? json_real(m->peak_then) : json_null());
}

static result *bench_train_describe(const train_result *t)
{
    const training_measurement *m = &t->found;
    const train_bench_options *o = t->options;
    const double rate = 1e-9 * m->cost.total / t->median;
    result *r = result_new("deberta-bench-train/1");
    result_say(r, "%s: %zu x %zu tokens, %zu labelled, %zu thread%s, %s", o->common.arguments[0], o->sequences,
               o->tokens, m->labelled, m->threads, m->threads == 1 ? "" : "s", m->isa);
    result_say(r, "a step (median of %zu): %.4f s, %.4f s of processor time; %.0f tokens/s, %.1f GFLOP/s", m->count,
               t->median, t->processor, (double)m->tokens / t->median, rate);
    if (t->peak > 0) result_say(r, "%.0f %% of %.1f GFLOP/s measured in registers", 100 * rate / t->peak, t->peak);
    if (m->peak_then > 0)
        result_say(r, "%.0f %% of %.1f GFLOP/s measured between the steps, in %zu slices", 100 * rate / m->peak_then,
                   m->peak_then, m->slices);
    result_say(r, "%s", "");
    add_json(result_json(r), t);
    add_stages(r, t);
    result_say(r, "%s", "");
    add_memory(r, &m->memory);
    return r;
}

static deberta_status bench_train_measure(train_result *t, deberta_error *err)
{
    const train_bench_options *o = t->options;
    const training_bench_options options = {.model = o->common.arguments[0],
                                            .reference = (deberta_reference)o->common.reference,
                                            .isa = o->common.isa,
                                            .threads = o->common.threads,
                                            .sequences = o->sequences,
                                            .tokens = o->tokens,
                                            .shards = o->shards,
                                            .repetitions = o->reps,
                                            .labelled = o->labelled,
                                            .micro_tokens = o->micro_tokens,
                                            .recomputes = o->recompute,
                                            .decodes = o->head != HEAD_MLM,
                                            .roof_share = o->skip_peak ? 0 : SWEEP_DEFAULT_ROOF_SHARE,
                                            .seed = o->common.seed,
                                            .memory_limit_bytes = o->common.memory_limit_bytes};
    machine_roofs roofs = {0};
    deberta_isa isa;
    DEBERTA_TRY(training_bench_run(&t->found, &options, err));
    t->median = statistics_median(t->found.seconds, t->found.count);
    t->processor = statistics_median(t->found.processor, t->found.count);
    if (o->skip_peak) return DEBERTA_OK;
    DEBERTA_TRY(deberta_isa_from_name(&isa, t->found.isa, err));
    DEBERTA_TRY(machine_measure_roofs(&roofs, &t->found.threads, 1, 1u << isa, false, err));
    t->peak = machine_peak_gflops(&roofs, isa, t->found.threads);
    return DEBERTA_OK;
}

static int bench_train_run(const common_options *options)
{
    train_result t = {.options = (const train_bench_options *)options};
    deberta_error error = {0};
    if (t.options->shards & (t.options->shards - 1))
        option_wrong(options, &t.options->shards, "expected a power of two, found %zu", t.options->shards);
    const result_format format = result_format_read(options);
    must(options, bench_train_measure(&t, &error), &error);
    finish_result(options, options_out(options), bench_train_describe(&t), format);
    scope_free(&t.found.arrays);
    return EXIT_OK;
}

static const option table[] = {
    {"tokens", 'n', "N", "tokens of a sequence (default 128)", SIZE_AT(train_bench_options, tokens, 1, 1 << 16)},
    {"batch", 'b', "N", "sequences of a step (default 16)", SIZE_AT(train_bench_options, sequences, 1, 1 << 16)},
    {"labelled", 0, "SHARE", "of the tokens, labelled (default 0.15)", NUMBER_AT(train_bench_options, labelled, 0, 1)},
    {"head", 0, "NAME", "auto (default): after the decoder, where the model has one; mlm: without it",
     CHOICE_AT(train_bench_options, head, heads)},
    {"virtual-shards", 0, "N", "parts that sums over tokens are cut into, a power of two (default 16)",
     SIZE_AT(train_bench_options, shards, 1, MAX_ROW_PARTS)},
    {"micro-tokens", 0, "N", "compute so many tokens of a step at a time, whole shards (default: all)",
     SIZE_AT(train_bench_options, micro_tokens, 1, (size_t)1 << 32)},
    {"recompute", 0, NULL, "keep only the inputs of layers, each of which runs twice",
     FLAG_AT(train_bench_options, recompute)},
    {"reps", 0, "N", "steps that are measured, after one that is not (default 5)",
     SIZE_AT(train_bench_options, reps, 1, 10000)},
    {"no-peak", 0, NULL, "do not measure what the processor can do, neither between steps nor behind them",
     FLAG_AT(train_bench_options, skip_peak)},
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

const command command_bench_train = {
    .name = "bench train",
    .summary = "a step of training: seconds by stage, work, share of the peak, memory",
    .arguments = "MODEL",
    .writes = WRITES_TABLE,
    .min_arguments = 1,
    .max_arguments = 1,
    .size = sizeof(train_bench_options),
    .defaults = &(const train_bench_options){.sequences = 16, .tokens = 128, .shards = 16, .reps = 5, .labelled = 0.15},
    .options = table,
    .example = "  deberta bench train models/demo\n"
               "  deberta bench train synthetic:v3-xsmall,layers=2,vocab=1000,lm=1 -n 256 -b 2 --reps 2 --json\n",
    .run = bench_train_run,
    .without = "precision",
};
