/* SPDX-License-Identifier: MIT */
#include "cli/bench/bench_lists.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"

bool bench_read_list(const parsed_options *options, const char *name, size_t highest, size_list *list)
{
    char what[32];
    deberta_error error;
    const char *text = options_value(options, name, NULL);
    snprintf(what, sizeof what, "--%s", name);
    if (!text || range_parse(list, text, what, 1, highest, &error) == DEBERTA_OK) return true;
    say_usage(options, "%s", error.message);
    return false;
}

bool bench_read_threads(const parsed_options *options, size_t highest, size_list *list)
{
    return strcmp(options_value(options, "threads", ""), "0") == 0 ||
           bench_read_list(options, "threads", highest, list);
}

bool bench_read_isas(const parsed_options *options, deberta_isa isas[DEBERTA_ISA_COUNT], size_t *count)
{
    const char *environment = getenv("DEBERTA_ISA"), *source = options_has(options, "isa") ? "--isa" : "DEBERTA_ISA";
    const char *text = options_value(options, "isa", environment && *environment ? environment : "auto");
    *count = 0;
    if (strcmp(text, "all") == 0) {
        for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++)
            if (!deberta_isa_missing((deberta_isa)t)) isas[(*count)++] = (deberta_isa)t;
        return true;
    }
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char name[32];
        deberta_isa isa;
        deberta_error error;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (deberta_isa_from_name(&isa, name, &error) != DEBERTA_OK) {
            say_usage(options, "%s: %s", source, error.message);
            return false;
        }
        if (isa == DEBERTA_ISA_AUTO) isa = deberta_isa_best();
        if (deberta_isa_missing(isa)) {
            say_usage(options, "%s: %s cannot run here: %s", source, name, deberta_isa_missing(isa));
            return false;
        }
        for (size_t k = 0; k < *count; k++)
            if (isas[k] == isa) {
                say_usage(options, "%s: %s is named twice", source, name);
                return false;
            }
        isas[(*count)++] = isa;
    }
    return true;
}

void bench_note_command(const parsed_options *options, bench_report *report)
{
    char *line = options_command_line(options, false);
    if (line) utf8_copy(report->command, sizeof report->command, line);
    free(line);
}

int bench_finish_output(const parsed_options *options, text_output *output, deberta_status status,
                        const deberta_error *error)
{
    if (status == DEBERTA_OK) return text_output_close(options, output);
    text_output_discard(output);
    return say_error(options, error);
}
