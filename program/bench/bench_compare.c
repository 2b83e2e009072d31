/* `deberta bench compare`: files are read, sides are compared, and a table says which points differ.
 * SPDX-License-Identifier: MIT */
#include "bench/compare.h"

#include <string.h>

#include "program/bench/bench_options.h"

typedef struct compare_options {
    common_options common;
    int by; /* place in facet_names */
    bool any_environment;
} compare_options;

static const char *const facet_names[] = {"file", "threads", "isa", "model", "depth", NULL};
static const unsigned facets[] = {0, BENCH_THREADS, BENCH_ISA, BENCH_MODEL, BENCH_LAYERS};

/* The files of both sides and what is in them. */
typedef struct compare_job {
    bench_results *runs; /* [a.count + b.count] */
    compare_side a, b;
} compare_job;

/* A.json B.json; A1.json A2.json with B1.json B2.json; with --by, all files are runs of one side. */
static int find_sides(compare_job *job, const compare_options *o)
{
    const common_options *options = &o->common;
    const char *const *paths = options->arguments;
    const size_t count = options->argument_count;
    size_t with = 0;
    while (with < count && strcmp(paths[with], "with") != 0) with++;
    if (o->by && with < count) return option_wrong(options, &o->by, "compares within each file: give no 'with'");
    if (!o->by && with == count && count > 2)
        return say_usage(options, "%zu files and no 'with' between the two sides", count);
    if (!o->by && with == count && count != 2)
        return say_usage(options, "expected A.json B.json, or A1.json A2.json ... with B1.json B2.json ...");
    if (with < count && (with == 0 || with + 1 == count))
        return say_usage(options, "expected files on both sides of 'with'");
    job->runs = options_take(options, count + 1, sizeof *job->runs);
    const size_t gap = with < count, first = o->by || gap ? with : 1;
    job->a = (compare_side){job->runs, paths, first};
    job->b = (compare_side){job->runs + first, paths + first + gap, count - first - gap};
    return EXIT_OK;
}

static deberta_status check_alike(const bench_results *a, const bench_results *b, deberta_error *err)
{
    deberta_error found = {0};
    if (compare_environments(a, b, &found) == DEBERTA_OK) return DEBERTA_OK;
    return status_fail(err, found.code, "%.400s (--any-environment compares all the same)", found.message);
}

static deberta_status read_side(const compare_side *side, bench_results *runs, const compare_job *job, bool any,
                                deberta_error *err)
{
    for (size_t k = 0; k < side->count; k++) {
        DEBERTA_TRY(bench_results_read_file(&runs[k], side->names[k], err));
        if (!any) DEBERTA_TRY(check_alike(&job->runs[0], &runs[k], err));
    }
    return DEBERTA_OK;
}

static deberta_status compare(compare_list *list, const compare_job *job, const compare_options *o, deberta_error *err)
{
    DEBERTA_TRY(read_side(&job->a, job->runs, job, o->any_environment, err));
    DEBERTA_TRY(read_side(&job->b, job->runs + job->a.count, job, o->any_environment, err));
    if (o->by)
        compare_within(list, &job->a, facets[o->by]);
    else
        compare_sides(list, &job->a, &job->b);
    if (list->count) return DEBERTA_OK;
    if (o->by)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s has no two points that differ in %s alone", job->a.names[0],
                     facet_names[o->by]);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s and %s have no measured point in common: nothing can be compared",
                 job->a.names[0], job->b.names[0]);
}

static int print(const compare_list *list, const compare_job *job, const compare_options *o, result_format format)
{
    result *r = result_new("deberta-compare/1");
    compare_describe(r, list, &job->a, &job->b, facets[o->by]);
    return finish_result(&o->common, options_out(&o->common), r, format);
}

static int run(const common_options *options)
{
    const compare_options *o = (const compare_options *)options;
    compare_job job = {0};
    compare_list list = {0};
    deberta_error error = {0};
    result_format format;
    if (!result_format_read(options, &format)) return EXIT_USAGE;
    int code = find_sides(&job, o);
    if (code != EXIT_OK) return code;
    const deberta_status status = compare(&list, &job, o, &error);
    code = status == DEBERTA_OK ? print(&list, &job, o, format) : say_error(options, &error);
    scope_free(&list.memory);
    for (size_t k = 0; k < job.a.count + job.b.count; k++) scope_free(&job.runs[k].memory);
    return code;
}

static const option table[] = {
    {"by", 0, "WHAT", "file: the first with the second (default); threads, isa, model or depth: within each file",
     CHOICE_AT(compare_options, by, facet_names)},
    {"any-environment", 0, NULL, "compare results of unlike machines all the same",
     FLAG_AT(compare_options, any_environment)},
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

const command command_bench_compare = {
    .name = "bench compare",
    .summary = "which points became faster or slower, and whether that can be chance: runs against runs",
    .arguments = "A.json B.json | A.json... with B.json... | F.json... --by WHAT",
    .min_arguments = 1,
    .max_arguments = 256,
    .size = sizeof(compare_options),
    .options = table,
    .example = "  deberta bench compare before.json after.json\n"
               "  deberta bench compare before1.json before2.json with after1.json after2.json\n"
               "  deberta bench compare sweep.json --by threads\n",
    .run = run,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE " quiet",
};
