/* `deberta bench merge` joins parts of one sweep, measured by the tasks of a job array, into one file.
 *
 * SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <string.h>

#include "bench/compare.h"
#include "core/base/status.h"
#include "output/json_text.h"
#include "output/scope.h"
#include "program/bench/bench_options.h"

/* The parts as typed results, for comparisons, and as JSON, for the output. */
typedef struct merge_job {
    const common_options *options;
    const char *const *names; /* [count] */
    size_t count;
    bench_results *parts;
    json_t **roots;
} merge_job;

/* Refuses parts of different builds. */
static void check_build(const merge_job *job, size_t part)
{
    static const char *const members[] = {"version", "commit"};
    const json_t *first = json_object_get(job->roots[0], "environment"),
                 *other = json_object_get(job->roots[part], "environment");
    for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
        const char *ours = json_string_value(json_object_get(first, members[k])),
                   *theirs = json_string_value(json_object_get(other, members[k]));
        if (strcmp(ours ? ours : "", theirs ? theirs : "") != 0)
            end_with(job->options, EXIT_INPUT, "%s was measured by %s %s, %s by %s", job->names[part], members[k],
                     theirs ? theirs : "nothing", job->names[0], ours ? ours : "nothing");
    }
}

/* Refuses a point that is in two files; `bench compare` takes repeated measurements, file by file. */
static void check_points(const merge_job *job, size_t part)
{
    for (size_t before = 0; before < part; before++)
        for (size_t k = 0; k < job->parts[part].count; k++)
            for (size_t j = 0; j < job->parts[before].count; j++) {
                const bench_result *r = &job->parts[part].result[k];
                if (bench_result_alike(r, &job->parts[before].result[j], 0))
                    end_with(job->options, EXIT_INPUT,
                             "%s and %s both have the point of %zu x %zu tokens, %zu layers, %zu threads, %s",
                             job->names[before], job->names[part], r->batch, r->n, r->layers, r->threads, r->isa);
                else if (!bench_same_model(r, &job->parts[before].result[j]) &&
                         strcmp(r->model, job->parts[before].result[j].model) == 0)
                    end_with(job->options, EXIT_INPUT,
                             "%s and %s measured different models named %s: the SHA-256 of their files begin with "
                             "%.8s and %.8s",
                             job->names[before], job->names[part], r->model, job->parts[before].result[j].model_sha256,
                             r->model_sha256);
            }
}

static void read_part(merge_job *job, size_t part)
{
    deberta_error error = {0};
    const char *name = job->names[part];
    must(job->options, bench_results_read_file(&job->parts[part], &job->roots[part], name, &error), &error);
    check_build(job, part);
    if (compare_environments(&job->parts[0], &job->parts[part], &error) != DEBERTA_OK)
        end_with(job->options, EXIT_INPUT, "%s and %s do not belong together: %.300s", job->names[0], name,
                 error.message);
    check_points(job, part);
}

/* Adds the environments of a part: those of its own parts where it is a merge itself. Returns how many. */
static size_t add_environments(const merge_job *job, size_t part, json_t *environments)
{
    json_t *own = json_object_get(job->roots[part], "environments"), *one;
    size_t k;
    if (own && json_array_size(own) == 0)
        end_with(job->options, EXIT_INPUT, "%s: \"environments\" is no list of them", job->names[part]);
    json_array_foreach(own, k, one)
    {
        if (!json_is_object(json_object_get(one, "environment")))
            end_with(job->options, EXIT_INPUT, "%s: entry %zu of \"environments\" has no \"environment\"",
                     job->names[part], k);
        json_array_append(environments, one);
    }
    if (own) return json_array_size(own);
    json_array_append_new(environments, json_pack("{s:o, s:O}", "file", json_clean_text(job->names[part]),
                                                  "environment", json_object_get(job->roots[part], "environment")));
    return 1;
}

/* Adds the points of a part, whose environments begin at `first` among all. A point of a merge names its own. */
static void add_points(const merge_job *job, size_t part, size_t first, size_t count, json_t *results)
{
    const bool is_merge = json_object_get(job->roots[part], "environments") != NULL;
    json_t *point;
    size_t k;
    json_array_foreach(json_object_get(job->roots[part], "results"), k, point)
    {
        const json_t *of = json_object_get(point, "of_environment");
        const json_int_t own = is_merge ? json_integer_value(of) : 0;
        if (is_merge && (!json_is_integer(of) || own < 0 || (size_t)own >= count))
            end_with(job->options, EXIT_INPUT,
                     "%s: \"of_environment\" of result %zu is none of the %zu \"environments\"", job->names[part], k,
                     count);
        json_object_set_new(point, "of_environment", json_integer((json_int_t)first + own));
        json_array_append(results, point);
    }
}

/* Returns the first file with the points of all; each point names its entry in "environments". Parts that are merges
 * give what merging their parts at once gives. */
static json_t *bench_merge_join(const merge_job *job)
{
    json_t *whole = json_copy(job->roots[0]), *environments = json_array(), *results = json_array();
    for (size_t part = 0; part < job->count; part++) {
        const size_t first = json_array_size(environments), count = add_environments(job, part, environments);
        add_points(job, part, first, count, results);
    }
    json_object_del(whole, "trends"); /* trends of a part do not hold for the whole */
    const int failed =
        json_object_set_new(whole, "environments", environments) | json_object_set_new(whole, "results", results);
    if (failed) memory_short();
    return whole;
}

static int bench_merge_run(const common_options *options)
{
    merge_job job = {.options = options, .names = options->arguments, .count = options->argument_count};
    job.parts = options_take(options, job.count, sizeof *job.parts);
    job.roots = options_take(options, job.count, sizeof *job.roots);
    for (size_t k = 0; k < job.count; k++) read_part(&job, k);
    print_json(options, bench_merge_join(&job));
    for (size_t k = 0; k < job.count; k++) {
        scope_free(&job.parts[k].memory);
        json_decref(job.roots[k]);
    }
    return EXIT_OK;
}

static const option table[] = {{.name = NULL}};

const command command_bench_merge = {
    .name = "bench merge",
    .summary = "parts of one sweep, as the tasks of a job array measured them, as one file",
    .arguments = "PART.json...",
    .writes = WRITES_JSON,
    .min_arguments = 2,
    .max_arguments = 4096,
    .options = table,
    .example = "  for n in 16 64; do deberta bench models/demo -n $n -o part-$n.json; done\n"
               "  deberta bench merge part-*.json -o merged.json\n",
    .run = bench_merge_run,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE " json",
};
