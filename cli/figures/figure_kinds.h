/* The kinds of figures that `deberta attention` draws, one file each: figure_<kind>.c.
 *
 * How to add one stands in CONTRIBUTING.md. SPDX-License-Identifier: MIT */
#ifndef CLI_FIGURES_FIGURE_KINDS_H
#define CLI_FIGURES_FIGURE_KINDS_H

#include "cli/figures/figure_job.h"

typedef struct figure_kind {
    const char *name, *summary; /* one line, lower case, no full stop */
    /* What the lists choose where the option was not given; NULL components: the kind captures what it needs itself */
    const char *layers, *heads, *components;
    /* Options of the command that only some kinds take, and this one does; ends with NULL. An option that stands in no
     * kind's list is for all of them. */
    const char *const *options;
    bool all_rows;               /* shows more of the input than --row */
    bool hidden;                 /* hidden states are captured too */
    int (*run)(figure_job *job); /* an exit code, after saying why */
} figure_kind;

/* Those of a heat map of panels: what figure_job_attention fills in. */
#define HEATMAP_FIGURE_OPTIONS                                                                                         \
    "scale", "palette", "signed-palette", "center", "annotate", "mark", "letters", "layout", "log"

extern const figure_kind figure_components, figure_grid, figure_mean, figure_rollout, figure_shares, figure_entropy,
    figure_distance, figure_delta, figure_difference, figure_query, figure_lines, figure_value_weighted, figure_strips,
    figure_four_types, figure_rows, figure_distances, figure_embeddings, figure_kernel, figure_error;

extern const figure_kind *const figure_kinds[];        /* NULL-terminated */
const figure_kind *figure_kind_find(const char *name); /* NULL: there is none */

/* False, after saying so, where an option was given that the kind does not take. */
bool figure_kind_takes_all(const figure_kind *kind, const parsed_options *options);
/* `--figure list`: name and summary of each, to --out or standard output. Returns the exit code. */
int figure_kinds_print(const parsed_options *options);

#endif
