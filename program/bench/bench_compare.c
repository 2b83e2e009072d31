/* `deberta bench compare` reads files, compares the two sides, and prints a table of the points that differ.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/compare.h"

#include <string.h>

#include "program/bench/bench_options.h"
#include "program/frame/same_files.h"

typedef struct compare_options {
    common_options common;
    int by; /* index in facet_names */
    bool any_environment;
} compare_options;

static const char *const facet_names[] = {"file", "threads", "isa", "model", "depth", NULL};
static const unsigned facets[] = {0, BENCH_THREADS, BENCH_ISA, BENCH_MODEL, BENCH_LAYERS};

/* The files of both sides and their contents. */
typedef struct compare_job {
    bench_results *runs; /* [a.count + b.count] */
    compare_side a, b;
} compare_job;

/* Splits the files into two sides: A.json B.json, or A1.json A2.json with B1.json B2.json. With --by, all files are
 * runs of one side. */
static void find_sides(compare_job *job, const compare_options *o)
{
    const common_options *options = &o->common;
    const char *const *paths = options->arguments;
    const size_t count = options->argument_count;
    size_t with = 0;
    while (with < count && strcmp(paths[with], "with") != 0) with++;
    if (o->by && with < count) option_wrong(options, &o->by, "compares within each file: give no 'with'");
    if (!o->by && with == count && count > 2)
        usage_wrong(options, "%zu files and no 'with' between the two sides", count);
    if (!o->by && with == count && count != 2)
        usage_wrong(options, "expected A.json B.json, or A1.json A2.json ... with B1.json B2.json ...");
    if (with < count && (with == 0 || with + 1 == count))
        usage_wrong(options, "expected files on both sides of 'with'");
    job->runs = options_take(options, count + 1, sizeof *job->runs);
    const size_t gap = with < count, first = o->by || gap ? with : 1;
    job->a = (compare_side){job->runs, paths, first};
    job->b = (compare_side){job->runs + first, paths + first + gap, count - first - gap};
}

/* Refuses a file with two results of one point, of which only one would be compared. */
static void refuse_doubles(const bench_results *run, const char *name, const common_options *options)
{
    for (size_t k = 1; k < run->count; k++)
        for (size_t before = 0; before < k; before++)
            if (bench_result_alike(&run->result[k], &run->result[before], 0))
                end_with(options, EXIT_INPUT,
                         "%s: results[%zu] and results[%zu] are of one point, and one of them would not be compared: "
                         "give each run a file of its own",
                         name, before, k);
}

static void read_side(const compare_side *side, bench_results *runs, const compare_job *job, const compare_options *o)
{
    deberta_error error = {0};
    for (size_t k = 0; k < side->count; k++) {
        must(&o->common, bench_results_read_file(&runs[k], NULL, side->names[k], &error), &error);
        refuse_doubles(&runs[k], side->names[k], &o->common);
        if (!o->any_environment && compare_environments(&job->runs[0], &runs[k], &error) != DEBERTA_OK)
            end_with(&o->common, EXIT_INPUT, "%.400s (--any-environment compares all the same)", error.message);
    }
}

static const char *compared_name(const compare_job *job, size_t k)
{
    return k < job->a.count ? job->a.names[k] : job->b.names[k - job->a.count];
}

/* Notes a run that is given twice, also as a copy, once. */
static void note_same(const compare_job *job, const compare_options *o)
{
    for (size_t k = 0; k < job->a.count + job->b.count; k++)
        for (size_t i = 0; i < k; i++) {
            if (!files_are_same(compared_name(job, i), compared_name(job, k))) continue;
            say_note(&o->common,
                     "note: %s and %s hold the same run: it differs from itself in nothing, and tells nothing about "
                     "chance",
                     compared_name(job, i), compared_name(job, k));
            return;
        }
}

static void bench_compare_all(compare_list *list, const compare_job *job, const compare_options *o)
{
    read_side(&job->a, job->runs, job, o);
    read_side(&job->b, job->runs + job->a.count, job, o);
    if (o->by)
        compare_within(list, &job->a, facets[o->by]);
    else
        compare_sides(list, &job->a, &job->b);
    if (list->count) return;
    if (o->by)
        end_with(&o->common, EXIT_INPUT, "%s has no two points that differ in %s alone", job->a.names[0],
                 facet_names[o->by]);
    char difference[BENCH_DIFFERENCE_BYTES];
    const bool known = compare_difference(difference, &job->a, &job->b);
    end_with(&o->common, EXIT_INPUT, "%s and %s have no measured point in common%s%s: nothing can be compared",
             job->a.names[0], job->b.names[0], known ? "; the two that are most alike have " : "",
             known ? difference : "");
}

static void print(const compare_list *list, const compare_job *job, const compare_options *o, result_format format)
{
    result *r = result_new("deberta-compare/1");
    compare_describe(r, list, &job->a, &job->b, facets[o->by]);
    finish_result(&o->common, options_out(&o->common), r, format);
}

static int bench_compare_run(const common_options *options)
{
    const compare_options *o = (const compare_options *)options;
    compare_job job = {0};
    compare_list list = {0};
    const result_format format = result_format_read(options);
    find_sides(&job, o);
    bench_compare_all(&list, &job, o);
    note_same(&job, o);
    print(&list, &job, o, format);
    scope_free(&list.memory);
    for (size_t k = 0; k < job.a.count + job.b.count; k++) scope_free(&job.runs[k].memory);
    return EXIT_OK;
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
    .writes = WRITES_TABLE,
    .min_arguments = 1,
    .max_arguments = 256,
    .size = sizeof(compare_options),
    .options = table,
    .example = "  for run in before-{1..4} after-{1..4}; do deberta bench models/demo -n 16,64 -o $run.json; done\n"
               "  deberta bench compare before-1.json after-1.json\n"
               "  deberta bench compare before-*.json with after-*.json\n"
               "  deberta bench compare sweep.json --by threads\n",
    .run = bench_compare_run,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE " quiet",
};
