/* SPDX-License-Identifier: MIT */
#include "cli/bench/bench_machine.h"

#include <errno.h>
#include <string.h>

#include "bench/kernel_bench.h"
#include "bench/report.h"
#include "bench/schedule.h"
#include "cli/bench/bench_lists.h"
#include "command/table_format.h"

/* ------------------------------------------------------------------------------------------------------ the machine */

int bench_machine_run(const parsed_options *options)
{
    bench_report report = {0};
    deberta_error error = {0};
    size_list wanted = {0};
    text_output output;
    table_format format = FORMAT_TABLE;
    size_t defaults[2] = {1, 1};
    if (options_argument_count(options) > 1)
        return say_usage(options, "unexpected argument '%s'", options_argument(options, 1));
    int code = EXIT_USAGE;
    if (bench_read_threads(options, TOPOLOGY_MAX_WORKERS, &wanted) && table_format_read(options, &format))
        code = text_output_open(options, options_value(options, "out", NULL), &output);
    if (code != EXIT_OK) {
        size_list_free(&wanted);
        return code;
    }
    deberta_status status = machine_read_sheet(&report.sheet, &error);
    defaults[1] = executor_default_threads(&report.sheet.topology);
    const size_t *threads = wanted.count ? wanted.values : defaults;
    const size_t count = wanted.count ? wanted.count : defaults[1] > 1 ? 2 : 1;
    const machine_counters before = machine_read_counters();
    if (status == DEBERTA_OK) status = machine_measure_roofs(&report.sheet.roofs, threads, count, ~0u, true, &error);
    if (status == DEBERTA_OK) machine_finish_sheet(&report.sheet, &before);
    bench_note_command(options, &report);
    if (status == DEBERTA_OK && format == FORMAT_JSON) {
        status = report_write_json(&report, output.file, &error);
    } else if (status == DEBERTA_OK) {
        if (format != FORMAT_CSV) report_print_environment(&report, output.file);
        status = report_print_roofs(&report.sheet.roofs, output.file, table_format_style(format), &error);
    }
    size_list_free(&wanted);
    return bench_finish_output(options, &output, status, &error);
}

/* --------------------------------------------------------------------------------------------------- single kernels */

static deberta_status read_problems(kernel_problems *problems, const parsed_options *options, deberta_error *err)
{
    for (size_t k = 1; k < options_argument_count(options); k++) {
        const char *path = options_argument(options, k);
        FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
        if (!file) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be opened: %s", path, strerror(errno));
        const deberta_status status = kernel_problems_read(problems, file, path, err);
        if (file != stdin) fclose(file);
        DEBERTA_TRY(status);
    }
    if (problems->count == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the files hold no problems");
    return DEBERTA_OK;
}

int bench_kernel_run(const parsed_options *options)
{
    kernel_problems problems = {0};
    kernel_measurements found = {0};
    machine_roofs roofs = {0};
    deberta_isa isas[DEBERTA_ISA_COUNT];
    deberta_error error = {0};
    table_format format;
    const size_t one = 1;
    if (options_argument_count(options) < 2)
        return say_usage(options, "kernel: expected files of problems, such as bench/shapes/base.txt");
    kernel_bench_options bench = {.isas = isas, .cold = options_has(options, "cold"), .roofs = &roofs};
    if (!bench_read_isas(options, isas, &bench.isa_count) || !table_format_read_no_json(options, &format) ||
        !options_size(options, "reps", 0, 1, 10000, &bench.samples))
        return EXIT_USAGE;
    text_output output = {0};
    deberta_status status = read_problems(&problems, options, &error);
    int code = status == DEBERTA_OK ? text_output_open(options, options_value(options, "out", NULL), &output) : EXIT_OK;
    if (code != EXIT_OK) {
        kernel_problems_free(&problems);
        return code;
    }
    if (status == DEBERTA_OK) status = machine_measure_roofs(&roofs, &one, 1, ~0u, false, &error);
    if (status == DEBERTA_OK) status = kernel_bench_run(&found, &problems, &bench, &error);
    if (status == DEBERTA_OK)
        status = kernel_bench_print(&found, &problems, output.file, table_format_style(format), &error);
    kernel_measurements_free(&found);
    kernel_problems_free(&problems);
    return bench_finish_output(options, &output, status, &error);
}

/* ----------------------------------------------------------------------------------------------------- the schedule */

static bool read_schedule(const parsed_options *options, schedule_options *given, table_format *format)
{
    enum { MOST_TOKENS = 1 << 20, MOST_REPETITIONS = 1000 };
    deberta_model_options model;
    deberta_isa isas[DEBERTA_ISA_COUNT];
    size_t tiers;
    fill_model_options(options, &model);
    if (!bench_read_list(options, "tokens", MOST_TOKENS, &given->lengths) ||
        !bench_read_threads(options, TOPOLOGY_MAX_WORKERS, &given->threads) ||
        !bench_read_isas(options, isas, &tiers) ||
        !options_size(options, "reps", 0, 1, MOST_REPETITIONS, &given->repetitions) ||
        !table_format_read_no_json(options, format))
        return false;
    if (tiers > 1) {
        say_usage(options, "schedule: --isa takes one tier");
        return false;
    }
    given->isa = isas[0];
    given->reference = model.reference;
    given->memory_limit_bytes = model.memory_limit_bytes;
    return true;
}

int bench_schedule_run(const parsed_options *options)
{
    schedule_options given = {.model = options_argument(options, 1)};
    schedule found = {0};
    deberta_error error = {0};
    table_format format = FORMAT_TABLE;
    text_output output = {0};
    int code = EXIT_USAGE;
    if (options_argument_count(options) != 2)
        say_usage(options, "schedule: expected a model");
    else if (read_schedule(options, &given, &format))
        code = text_output_open(options, options_value(options, "out", NULL), &output);
    if (code == EXIT_OK) {
        deberta_status status = schedule_run(&found, &given, &error);
        if (status == DEBERTA_OK) status = schedule_print(&found, output.file, table_format_style(format), &error);
        code = bench_finish_output(options, &output, status, &error);
    }
    schedule_free(&found);
    size_list_free(&given.lengths);
    size_list_free(&given.threads);
    return code;
}
