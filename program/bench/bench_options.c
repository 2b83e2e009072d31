/* Lists of lengths, threads and tiers are parsed, and results are printed or written at the end.
 *
 * SPDX-License-Identifier: MIT */
#include "program/bench/bench_options.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/topology.h"
#include "core/base/utf8.h"

int bench_parse_list(common_options *options, const char *name, const char *text, size_t highest, bool repeated,
                     size_list *list)
{
    deberta_error error;
    if (range_parse(options_memory(options), list, text, name, 1, highest, repeated, &error) == DEBERTA_OK)
        return EXIT_OK;
    return say_usage(options, "%s", error.message);
}

int bench_parse_tokens(common_options *options, const char *text, void *size_list)
{
    return bench_parse_list(options, "--tokens", text, 1 << 24, false, size_list);
}

int bench_parse_threads(common_options *options, const char *text, void *list)
{
    *(size_list *)list = (size_list){0};
    return strcmp(text, "0") == 0 ? EXIT_OK
                                  : bench_parse_list(options, "--threads", text, TOPOLOGY_MAX_WORKERS, false, list);
}

static int add_isa(const common_options *options, const char *source, const char *name, isa_list *list)
{
    deberta_isa isa;
    deberta_error error;
    if (deberta_isa_from_name(&isa, name, &error) != DEBERTA_OK)
        return say_usage(options, "%s: %s", source, error.message);
    if (isa == DEBERTA_ISA_AUTO) isa = deberta_isa_best();
    if (deberta_isa_missing(isa))
        return say_usage(options, "%s: %s cannot run here: %s", source, name, deberta_isa_missing(isa));
    for (size_t k = 0; k < list->count; k++)
        if (list->values[k] == isa) return say_usage(options, "%s: %s is named twice", source, name);
    list->values[list->count++] = isa;
    return EXIT_OK;
}

static int read_isas(const common_options *options, const char *source, const char *text, isa_list *list)
{
    int status = EXIT_OK;
    *list = (isa_list){0};
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT && strcmp(text, "all") == 0; t++)
        if (!deberta_isa_missing((deberta_isa)t)) list->values[list->count++] = (deberta_isa)t;
    for (const char *at = list->count ? NULL : text; at && status == EXIT_OK; at = strchr(at, ',')) {
        char name[32];
        at += *at == ',' && at != text;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        status = add_isa(options, source, name, list);
    }
    return status;
}

int bench_parse_isas(common_options *options, const char *text, void *isa_list)
{
    return read_isas(options, "--isa", text, isa_list);
}

int bench_default_isas(const common_options *options, isa_list *list)
{
    const char *variable = getenv("DEBERTA_ISA"); /* one that is set to nothing is not set */
    if (list->count) return EXIT_OK;
    return read_isas(options, "DEBERTA_ISA", variable && *variable ? variable : "auto", list);
}

int bench_finish(const common_options *options, text_output *output, bench_results *results, result_format format,
                 deberta_status done, deberta_error *error)
{
    result *r = result_new(BENCH_RESULTS_SCHEMA);
    utf8_copy(results->command, sizeof results->command, options_command_line(options, false));
    if (done == DEBERTA_OK) bench_results_describe(r, results);
    return finish_result_in(options, output, r, format, done, error);
}
