/* `deberta bench kernel` measures the speed of single kernels. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "bench/kernel_bench.h"
#include "core/base/text.h"
#include "program/bench/bench_options.h"

typedef struct kernel_options {
    common_options common;
    isa_list isas;
    size_t reps;
    bool cold;
} kernel_options;

static deberta_status read_problems(problem_lines *problems, const common_options *options, deberta_error *err)
{
    for (size_t k = 0; k < options->argument_count; k++) {
        const char *path = options->arguments[k];
        FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
        if (!file) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be opened: %s", path, strerror(errno));
        const deberta_status status = problem_lines_read(problems, file, path, err);
        if (file != stdin) stream_discard(file);
        DEBERTA_TRY(status);
    }
    if (problems->count == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the files hold no problems");
    return DEBERTA_OK;
}

static deberta_status bench_kernel_measure(result *r, const problem_lines *problems, const kernel_options *o,
                                           const isa_list *isas, deberta_error *err)
{
    const size_t one = 1;
    machine_roofs roofs = {0};
    kernel_measurements found = {0};
    DEBERTA_TRY(machine_measure_roofs(&roofs, &one, 1, ~0u, false, err));
    const kernel_bench_options bench = {
        .isas = isas->values, .isa_count = isas->count, .samples = o->reps, .cold = o->cold, .roofs = &roofs};
    const deberta_status status = kernel_bench_run(&found, problems, &bench, err);
    if (status == DEBERTA_OK) kernel_bench_describe(r, &found, problems);
    scope_free(&found.memory);
    return status;
}

static int bench_kernel_run(const common_options *options)
{
    const kernel_options *o = (const kernel_options *)options;
    problem_lines problems = {0};
    deberta_error error = {0};
    isa_list isas = o->isas;
    text_output output;
    bench_default_isas(options, &isas);
    const result_format format = result_format_read(options);
    must(options, read_problems(&problems, options, &error), &error);
    text_output_open(options, options_out(options), &output);
    result *r = result_new("deberta-bench-kernel/1");
    text_output_must(options, &output, bench_kernel_measure(r, &problems, o, &isas, &error), &error);
    finish_result_in(options, &output, r, format);
    scope_free(&problems.memory);
    return EXIT_OK;
}

static const option table[] = {
    BENCH_ISAS_OPTION(kernel_options, isas),
    {"reps", 0, "N", "samples of a problem and tier (default 15)", SIZE_AT(kernel_options, reps, 1, 10000)},
    {"cold", 0, NULL, "other weights for gemm at each call, more of them than caches hold",
     FLAG_AT(kernel_options, cold)},
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

const command command_bench_kernel = {
    .name = "bench kernel",
    .summary = "single kernels at the problems of files such as bench/shapes/base.txt, every tier on the same data",
    .arguments = "FILE...",
    .writes = WRITES_TABLE,
    .min_arguments = 1,
    .max_arguments = 64,
    .size = sizeof(kernel_options),
    .options = table,
    .example = "  deberta bench kernel bench/shapes/edges.txt --isa scalar --reps 1\n",
    .run = bench_kernel_run,
    .without = "threads reference precision memory-limit seed",
};
