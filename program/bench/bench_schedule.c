/* `deberta bench schedule`: what the encoder would make of more cores. SPDX-License-Identifier: MIT */
#include "bench/schedule.h"
#include "program/bench/bench_options.h"

typedef struct schedule_command_options {
    common_options common;
    size_list tokens, threads;
    size_t reps;
} schedule_command_options;

static int run(const common_options *options)
{
    const schedule_command_options *o = (const schedule_command_options *)options;
    const schedule_options wanted = {
        .model = options->arguments[0],
        .reference = (deberta_reference)options->reference,
        .precision = (deberta_precision)options->precision,
        .memory_limit_bytes = options->memory_limit_bytes,
        .isa = options->isa == DEBERTA_ISA_AUTO ? deberta_isa_best() : options->isa,
        .lengths = o->tokens,
        .threads = o->threads,
        .repetitions = o->reps,
    };
    schedule_result found = {0};
    deberta_error error = {0};
    text_output output;
    const result_format format = result_format_read(options);
    text_output_open(options, options_out(options), &output);
    result *r = result_new("deberta-bench-schedule/1");
    text_output_must(options, &output, schedule_run(&found, &wanted, &error), &error);
    schedule_describe(r, &found);
    scope_free(&found.memory);
    finish_result_in(options, &output, r, format);
    return EXIT_OK;
}

static const option table[] = {
    BENCH_TOKENS_OPTION(schedule_command_options, tokens, "128,512"),
    BENCH_THREADS_OPTION(schedule_command_options, threads, "1,2,4,8,16"),
    {"reps", 0, "N", "rehearsals and encodes, of which the fastest count (default 5)",
     SIZE_AT(schedule_command_options, reps, 1, 1000)},
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

const command command_bench_schedule = {
    .name = "bench schedule",
    .summary = "what the schedule of the encoder would make of more cores than this machine has",
    .arguments = "MODEL",
    .size = sizeof(schedule_command_options),
    .options = table,
    .example = "  deberta bench schedule synthetic:v3-base,vocab=1000 -n 512 --threads 2,8,16\n",
    .run = run,
    .without = "seed",
};
