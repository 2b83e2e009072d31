/* Parses lists of lengths, threads and tiers, and prints or writes results at the end.
 *
 * SPDX-License-Identifier: MIT */
#include "program/bench/bench_options.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/base/tiers.h"
#include "core/base/topology.h"

void bench_parse_list(common_options *options, const char *name, const char *text, size_t highest, bool repeated,
                      size_list *list)
{
    deberta_error error;
    if (range_parse(options_memory(options), list, text, name, 1, highest, repeated, &error) != DEBERTA_OK)
        usage_wrong(options, "%s", error.message);
}

void bench_parse_tokens(common_options *options, const char *text, void *size_list)
{
    bench_parse_list(options, "--tokens", text, 1 << 24, false, size_list);
}

void bench_parse_threads(common_options *options, const char *text, void *list)
{
    *(size_list *)list = (size_list){0};
    if (strcmp(text, "0") != 0) bench_parse_list(options, "--threads", text, TOPOLOGY_MAX_WORKERS, false, list);
}

static void add_isa(const common_options *options, const char *source, const char *name, isa_list *list)
{
    deberta_isa isa;
    deberta_error error;
    if (deberta_isa_from_name(&isa, name, &error) != DEBERTA_OK) usage_wrong(options, "%s: %s", source, error.message);
    if (isa == DEBERTA_ISA_AUTO) isa = deberta_isa_best();
    if (deberta_isa_missing(isa))
        usage_wrong(options, "%s: %s cannot run here: %s", source, name, deberta_isa_missing(isa));
    for (size_t k = 0; k < list->count; k++)
        if (list->values[k] == isa) usage_wrong(options, "%s: %s is named twice", source, name);
    list->values[list->count++] = isa;
}

static void read_isas(const common_options *options, const char *source, const char *text, isa_list *list)
{
    *list = (isa_list){0};
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT && strcmp(text, "all") == 0; t++)
        if (!deberta_isa_missing((deberta_isa)t)) list->values[list->count++] = (deberta_isa)t;
    for (const char *at = list->count ? NULL : text; at; at = strchr(at, ',')) {
        char name[32];
        at += *at == ',' && at != text;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        add_isa(options, source, name, list);
    }
}

#define X(NAME, name, ...) #name,
const char *const bench_isa_choices[] = {"auto", "all", TIER_LIST(X) NULL};
#undef X

void bench_parse_isas(common_options *options, const char *text, void *isa_list)
{
    read_isas(options, "--isa", text, isa_list);
}

void bench_default_isas(const common_options *options, isa_list *list)
{
    const char *variable = getenv("DEBERTA_ISA"); /* an empty variable counts as not set */
    if (list->count) return;
    read_isas(options, "DEBERTA_ISA", variable && *variable ? variable : "auto", list);
}

void bench_finish(const common_options *options, text_output *output, bench_results *results, result_format format)
{
    result *r = result_new(BENCH_RESULTS_SCHEMA);
    utf8_copy(results->command, sizeof results->command, options_command_line(options, false));
    bench_results_describe(r, results);
    finish_result_in(options, output, r, format);
}
