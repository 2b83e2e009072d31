/* `--figure strips` and `--figure four-types`: the position terms as they are before they are gathered, and the fourth
 * product, which the model leaves out. SPDX-License-Identifier: MIT */
#include <math.h>

#include "cli/figures/figure_kinds.h"
#include "cli/figures/figure_reference.h"
#include "cli/figures/head_map.h"

/* Opens what both kinds need: the rule, the reference, the captured text. */
static int open_strips(figure_job *job, position_rule *rule, reference_model **reference)
{
    int status = figure_position_rule(job, rule);
    if (status == EXIT_OK) status = figure_job_encode(job);
    return status == EXIT_OK ? figure_reference_open(job, reference) : status;
}

/* -------------------------------------------------------------------------------------------------------- strips */

/* A line of type for each token, as far as two strips still stand on a page. */
static double cell_aspect(const figure_job *job, size_t rows)
{
    const double width = 150, most = 90, few = 22; /* mm, about */
    const double height = fmin(fmax(3.2 * (double)job->view.count, few), most);
    return fmin(height / (double)job->view.count * (double)rows / width, ATTENTION_MOST_ASPECT);
}

static int add_strip(figure_job *job, attention_panel *panel, const char *title, const char *name, const double *strip,
                     size_t layer, size_t head, size_t rows)
{
    deberta_error error = {0};
    *panel = (attention_panel){.stride = rows, .title = title, .kind = HEATMAP_SIGNED};
    const int status = figure_view_rows(job, strip, rows, &panel->values);
    if (status != EXIT_OK) return status;
    const figure_matrix matrix = {name, layer, head, panel->values, job->view.count, rows};
    return figure_data_add_matrix(&job->data, &matrix, &error) == DEBERTA_OK ? EXIT_OK
                                                                             : say_error(job->options, &error);
}

static int fill_strips(figure_job *job, const reference_model *reference, size_t rows, attention_figure *figure)
{
    const size_t n = job->view.span[1];
    attention_panel *panels;
    double *c2p = figure_job_allocate(job, n * rows, sizeof *c2p), *hidden = NULL;
    double *p2c = figure_job_allocate(job, n * rows, sizeof *p2c);
    if (!c2p || !p2c) return figure_job_out_of_memory(job);
    const reference_strips strips = {.c2p = c2p, .p2c = p2c};
    const int made = head_rows(job, figure, (size_t)job->info.has_c2p + (size_t)job->info.has_p2c, &panels);
    if (made != EXIT_OK) return made;
    for (size_t k = 0; k < head_count(job); k++) {
        const size_t layer = head_layer(job, k), head = head_number(job, k);
        deberta_error error = {0};
        int status = k % job->head_count == 0 ? figure_hidden(job, layer, &hidden) : EXIT_OK;
        if (status == EXIT_OK &&
            reference_position_strips(reference, layer, head, hidden, n, &strips, &error) != DEBERTA_OK)
            status = say_error(job->options, &error);
        if (status == EXIT_OK && job->info.has_c2p)
            status = add_strip(job, panels++, "c2p: queries against rows of PK", "c2p_strip", c2p, layer, head, rows);
        if (status == EXIT_OK && job->info.has_p2c)
            status = add_strip(job, panels++, "p2c: keys against rows of PQ", "p2c_strip", p2c, layer, head, rows);
        if (status != EXIT_OK) return status;
    }
    return EXIT_OK;
}

static int run_strips(figure_job *job)
{
    position_rule rule;
    reference_model *reference = NULL;
    int status = open_strips(job, &rule, &reference);
    if (status != EXIT_OK) return status;
    const ptrdiff_t reach = (ptrdiff_t)job->view.span[1] - 1;
    figure_job_note(job, "This text reads rows %zu to %zu; a pair reads row \u03b4(i,j) = %zu on the diagonal. ",
                    position_row(&rule, -reach), position_row(&rule, reach), rule.span);
    figure_job_caption(job, "Position terms of every row of the relative table, before they are gathered. ");
    job->data.row_axis = "token";
    job->data.column_axis = "table_row";
    job->data.row_labels = job->view.labels;
    job->data.row_numbers = token_view_numbers(&job->view);
    attention_figure figure = figure_job_attention(job);
    figure.columns = 1;
    figure.keys = 2 * rule.span;
    figure.key_labels = NULL;
    figure.key_numbers = NULL;
    figure.boundary_count = 0;
    figure.query_axis = "token";
    figure.key_axis = "row of the relative table";
    figure.cell_aspect = cell_aspect(job, figure.keys);
    figure.keep_row_mean = true;
    status = fill_strips(job, reference, figure.keys, &figure);
    reference_free(&reference);
    return status == EXIT_OK ? figure_job_finish(job, attention_layout, &figure) : status;
}

/* ---------------------------------------------------------------------------------------------------- four types */

/* Three captured terms and, of the tables alone, the product of both positions. */
static int add_types(figure_job *job, attention_panel *panels, const position_rule *rule,
                     const reference_model *reference, size_t layer, size_t head)
{
    const size_t n = job->view.span[1];
    double *p2p = figure_job_allocate(job, 2 * rule->span, sizeof *p2p);
    float *gathered = figure_job_allocate(job, n * n, sizeof *gathered);
    if (!p2p || !gathered) return figure_job_out_of_memory(job);
    const reference_strips strips = {.p2p = p2p};
    deberta_error error = {0};
    if (reference_position_strips(reference, layer, head, NULL, 0, &strips, &error) != DEBERTA_OK)
        return say_error(job->options, &error);
    position_gather(gathered, p2p, POSITION_STRIP_NONE, rule, n);
    int status = EXIT_OK;
    for (int c = 0; c < 4 && status == EXIT_OK; c++) {
        const bool captured = c <= DEBERTA_P2C;
        panels[c] = (attention_panel){.stride = job->view.count, .kind = HEATMAP_SIGNED};
        panels[c].title = captured ? component_title((deberta_component)c) : "position to position";
        status = captured ? figure_job_matrix(job, &job->capture, &job->view, layer, head, (deberta_component)c,
                                              &panels[c].values)
                          : figure_job_view_matrix(job, &job->view, gathered, TOKEN_VIEW_MEAN, &panels[c].values);
        if (status == EXIT_OK)
            status = figure_job_add_matrix(job, captured ? deberta_component_name((deberta_component)c) : "p2p", layer,
                                           head, panels[c].values);
    }
    return status;
}

static int fill_types(figure_job *job, const position_rule *rule, const reference_model *reference,
                      attention_figure *figure)
{
    attention_panel *panels;
    int status = head_rows(job, figure, 4, &panels);
    for (size_t k = 0; k < head_count(job) && status == EXIT_OK; k++)
        status = add_types(job, panels + 4 * k, rule, reference, head_layer(job, k), head_number(job, k));
    return status;
}

static int run_types(figure_job *job)
{
    position_rule rule;
    reference_model *reference = NULL;
    if (!job->info.has_c2p || !job->info.has_p2c)
        return say_usage(job->options, "--figure four-types: %s has no %s, and position to position is made of both",
                         job->info.name, job->info.has_c2p ? "p2c" : "c2p");
    int status = open_strips(job, &rule, &reference);
    if (status != EXIT_OK) return status;
    figure_job_note(job,
                    "Position to position is no part of the model's logits: it is computed here from the same tables, "
                    "PQ[\u03b4(i,j)] \u00b7 PK[\u03b4(i,j)], and depends on the distance alone%s. ",
                    job->look.keep_row_mean ? "" : ", but for the row mean");
    figure_job_caption(job, "Four types of attention: the three terms of a logit, and position to position, which the "
                            "model leaves out. ");
    attention_figure figure = figure_job_attention(job);
    if (!figure.columns) figure.columns = 2;
    status = fill_types(job, &rule, reference, &figure);
    reference_free(&reference);
    return status == EXIT_OK ? figure_job_finish(job, attention_layout, &figure) : status;
}

static const char *const strips_options[] = {"scale", "signed-palette", "letters", NULL};
static const char *const types_options[] = {"scale", "signed-palette", "center", "annotate",
                                            "mark",  "letters",        "layout", NULL};

const figure_kind figure_strips = {
    .name = "strips",
    .summary = "c2p and p2c against every row of the relative table, before gathering",
    .layers = "0",
    .heads = "0",
    .components = "logits",
    .hidden = true,
    .options = strips_options,
    .run = run_strips,
};

const figure_kind figure_four_types = {
    .name = "four-types",
    .summary = "c2c, c2p, p2c and, computed afterwards, p2p, two by two",
    .layers = "0",
    .heads = "0",
    .components = "c2c,c2p,p2c",
    .options = types_options,
    .run = run_types,
};
