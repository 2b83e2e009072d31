/* `deberta bench machine` measures the limits of the machine. SPDX-License-Identifier: MIT */
#include "program/bench/bench_options.h"

typedef struct machine_options {
    common_options common;
    size_list threads;
} machine_options;

static deberta_status bench_machine_measure(bench_results *results, const machine_options *o, deberta_error *err)
{
    DEBERTA_TRY(machine_read_sheet(&results->sheet, err));
    const size_t defaults[2] = {1, executor_default_threads(&results->sheet.topology)};
    const size_t *threads = o->threads.count ? o->threads.values : defaults;
    const size_t count = o->threads.count ? o->threads.count : defaults[1] > 1 ? 2 : 1;
    const machine_counters before = machine_read_counters();
    DEBERTA_TRY(machine_measure_roofs(&results->sheet.roofs, threads, count, ~0u, true, err));
    machine_finish_sheet(&results->sheet, &before);
    return DEBERTA_OK;
}

static int bench_machine_run(const common_options *options)
{
    const machine_options *o = (const machine_options *)options;
    bench_results results = {0};
    deberta_error error = {0};
    text_output output;
    const result_format format = result_format_read(options);
    text_output_open(options, options_out(options), &output);
    text_output_must(options, &output, bench_machine_measure(&results, o, &error), &error);
    bench_finish(options, &output, &results, format);
    return EXIT_OK;
}

static const option table[] = {
    BENCH_THREADS_OPTION(machine_options, threads, "1 and all"),
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

const command command_bench_machine = {
    .name = "bench machine",
    .summary = "what the machine can do: multiply-adds and products of bytes by tier and threads, memory bandwidth, "
               "and whether it is quiet",
    .arguments = "",
    .writes = WRITES_TABLE,
    .size = sizeof(machine_options),
    .options = table,
    .example = "  deberta bench machine --threads 1,2 -o machine.json\n",
    .run = bench_machine_run,
    .without = "isa reference precision memory-limit seed",
};
