/* SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kinds.h"

#include <stdio.h>
#include <string.h>

const figure_kind *const figure_kinds[] = {
    &figure_components, &figure_grid,           &figure_mean,       &figure_rollout,    &figure_shares,
    &figure_entropy,    &figure_distance,       &figure_delta,      &figure_difference, &figure_query,
    &figure_lines,      &figure_value_weighted, &figure_four_types, &figure_strips,     &figure_rows,
    &figure_distances,  &figure_kernel,         &figure_embeddings, &figure_error,      NULL,
};

const figure_kind *figure_kind_find(const char *name)
{
    for (size_t k = 0; figure_kinds[k]; k++)
        if (strcmp(figure_kinds[k]->name, name) == 0) return figure_kinds[k];
    return NULL;
}

static bool takes(const figure_kind *kind, const char *option)
{
    for (const char *const *name = kind->options; *name; name++)
        if (strcmp(*name, option) == 0) return true;
    return false;
}

/* "components, grid": the kinds that take the option; empty when it is for all. */
static void list_takers(const char *option, char *text, size_t capacity)
{
    text[0] = 0;
    for (size_t k = 0; figure_kinds[k]; k++) {
        const size_t used = strlen(text);
        if (takes(figure_kinds[k], option))
            snprintf(text + used, capacity - used, "%s%s", used ? ", " : "", figure_kinds[k]->name);
    }
}

bool figure_kind_takes_all(const figure_kind *kind, const parsed_options *options)
{
    for (const option_spec *spec = options_command(options)->options; spec->name; spec++) {
        char takers[512];
        if (!options_has(options, spec->name) || takes(kind, spec->name)) continue;
        list_takers(spec->name, takers, sizeof takers);
        if (!*takers) continue;
        say_usage(options, "--%s: --figure %s does not take it; these do: %s", spec->name, kind->name, takers);
        return false;
    }
    return true;
}

int figure_kinds_print(const parsed_options *options)
{
    text_output output;
    if (!run_check_text_path(options)) return EXIT_USAGE;
    const int status = text_output_open(options, options_value(options, "out", NULL), &output);
    if (status != EXIT_OK) return status;
    for (size_t k = 0; figure_kinds[k]; k++)
        fprintf(output.file, "%-16s %s\n", figure_kinds[k]->name, figure_kinds[k]->summary);
    return text_output_close(options, &output);
}
