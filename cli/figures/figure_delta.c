/* `--figure delta`: what each term does to the probabilities. SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"

static const char *const titles[ATTENTION_TERMS] = {"\u0394p of content to content", "\u0394p of content to position",
                                                    "\u0394p of position to content"};

/* Computed on the whole text: what is not shown takes part in the softmax. */
static int add_change(figure_job *job, attention_panel *panel, size_t layer, size_t head, size_t term)
{
    deberta_error error = {0};
    const size_t n = job->view.span[1];
    logit_terms terms = {.tokens = n, .mask = job->input.mask ? job->input.mask + job->view.first_token : NULL};
    for (int c = 0; c < ATTENTION_TERMS; c++)
        terms.term[c] = capture_matrix(&job->capture, layer, head, (deberta_component)c, 0);
    float *change = figure_job_allocate(job, n * n, sizeof *change);
    if (!change) return figure_job_out_of_memory(job);
    if (attention_term_change(change, &terms, term, &error) != DEBERTA_OK) return say_error(job->options, &error);
    *panel = (attention_panel){.stride = job->view.count, .title = titles[term], .kind = HEATMAP_SIGNED};
    const int status = figure_job_view_matrix(job, &job->view, change, TOKEN_VIEW_SUM_KEYS, &panel->values);
    if (status != EXIT_OK) return status;
    const char *name = figure_job_text(job, "delta_%s", deberta_component_name((deberta_component)term));
    return name ? figure_job_add_matrix(job, name, layer, head, panel->values) : figure_job_out_of_memory(job);
}

/* The probabilities, then a panel for each term. */
static int add_row(figure_job *job, attention_panel *panels, size_t layer, size_t head)
{
    *panels = (attention_panel){.stride = job->view.count,
                                .title = component_title(DEBERTA_PROBABILITIES),
                                .kind = figure_job_kind_of(job, DEBERTA_PROBABILITIES)};
    int status = figure_job_matrix(job, &job->capture, &job->view, layer, head, DEBERTA_PROBABILITIES, &panels->values);
    if (status == EXIT_OK) status = figure_job_add_matrix(job, "probs", layer, head, panels->values);
    for (size_t term = 0; term < ATTENTION_TERMS && status == EXIT_OK; term++)
        if (job->components[term]) status = add_change(job, ++panels, layer, head, term);
    return status;
}

static int run(figure_job *job)
{
    int status = figure_job_encode(job);
    if (status != EXIT_OK) return status;
    figure_job_note(job, "\u0394p: softmax of all terms minus softmax without this one. ");
    figure_job_caption(job, "Attention, and how it changes when one term of the logits is left out. ");
    attention_figure figure = figure_job_attention(job);
    attention_panel *panels;
    size_t columns = 1;
    for (size_t term = 0; term < ATTENTION_TERMS; term++) columns += job->components[term];
    figure.keep_row_mean = true;
    figure.units[HEATMAP_SIGNED] = "change of probability";
    status = head_rows(job, &figure, columns, &panels);
    for (size_t k = 0; k < head_count(job) && status == EXIT_OK; k++)
        status = add_row(job, panels + k * columns, head_layer(job, k), head_number(job, k));
    return status == EXIT_OK ? figure_job_finish(job, attention_layout, &figure) : status;
}

static const char *const options[] = {"scale", "palette", "signed-palette", "annotate", "mark", "letters", "layout",
                                      "log",   NULL};

const figure_kind figure_delta = {
    .name = "delta",
    .summary = "the probabilities, and their change when one term is left out",
    .layers = "0",
    .heads = "0",
    .components = "c2c,c2p,p2c,probs",
    .options = options,
    .run = run,
};
