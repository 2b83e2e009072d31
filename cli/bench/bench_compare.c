/* `deberta bench compare`. SPDX-License-Identifier: MIT */
#include "bench/compare.h"

#include "cli/bench/bench_options.h"
#include "command/table_format.h"

typedef struct compare_options {
    common_options common;
    bool any_environment;
} compare_options;

static deberta_status check_alike(const bench_results *a, const bench_results *b, deberta_error *err)
{
    deberta_error found = {0};
    if (compare_environments(a, b, &found) == DEBERTA_OK) return DEBERTA_OK;
    return status_fail(err, found.code, "%.400s (--any-environment compares all the same)", found.message);
}

static deberta_status compare(compare_list *list, bench_results sides[2], const compare_options *o, deberta_error *err)
{
    const char *const *paths = o->common.arguments;
    for (size_t k = 0; k < 2; k++) DEBERTA_TRY(bench_results_read_file(&sides[k], paths[k], err));
    if (!o->any_environment) DEBERTA_TRY(check_alike(&sides[0], &sides[1], err));
    DEBERTA_TRY(compare_results(list, &sides[0], &sides[1], err));
    if (list->count) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s and %s have no measured point in common: nothing can be compared", paths[0],
                 paths[1]);
}

static int run(const common_options *options)
{
    const compare_options *o = (const compare_options *)options;
    bench_results sides[2] = {0};
    compare_list list = {0};
    deberta_error error = {0};
    table_format format;
    text_output output;
    if (!table_format_read_no_json(options, &format)) return EXIT_USAGE;
    deberta_status status = compare(&list, sides, o, &error);
    int code =
        status == DEBERTA_OK ? text_output_open(options, options_out(options), &output) : say_error(options, &error);
    if (code == EXIT_OK) {
        status = compare_print(&list, &sides[0], &sides[1], output.file, table_format_style(format), &error);
        code = bench_finish_output(options, &output, status, &error);
    }
    compare_free(&list);
    for (size_t k = 0; k < 2; k++) bench_results_free(&sides[k]);
    return code;
}

static const option table[] = {
    {"any-environment", 0, NULL, "compare results of unlike machines all the same",
     FLAG_AT(compare_options, any_environment)},
    BENCH_FORMAT_OPTION("table (default), md or csv; without it, what --out ends in", table_format_names_no_json),
    {NULL, .type = OPTION_UNTYPED},
};

const command command_bench_compare = {
    .name = "bench compare",
    .summary = "which points of two sweeps became faster or slower, and whether that can be chance",
    .arguments = "A.json B.json",
    .min_arguments = 2,
    .max_arguments = 2,
    .size = sizeof(compare_options),
    .options = table,
    .example = "  deberta bench compare before.json after.json\n",
    .run = run,
};
