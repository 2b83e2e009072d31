/* `--figure embeddings`: where absolute positions come in: content, position and their sum, with norms.
 *
 * Models with position_biased_input add them to the words, below the first layer. The others add them, if they have the
 * table, to the queries of the Enhanced Mask Decoder: there the content is H[L-1]. SPDX-License-Identifier: MIT */
#include <math.h>

#include "cli/figures/figure_kinds.h"
#include "cli/figures/figure_reference.h"
#include "viz/chart.h"

enum { CONTENT, POSITION, SUM, PARTS };
static const char *const part_names[PARTS] = {"content", "position", "sum"};

typedef struct embedding_parts {
    size_t width;         /* E, or h in the decoder */
    double *whole[PARTS]; /* [n][width] */
    const float *shown[PARTS];
    double *norm[PARTS]; /* [count] */
} embedding_parts;

static int take_parts(figure_job *job, embedding_parts *parts)
{
    parts->width = job->info.position_biased_input ? job->info.embedding_size : job->info.hidden_size;
    for (int p = 0; p < PARTS; p++) {
        parts->whole[p] = figure_job_allocate(job, job->view.span[1] * parts->width, sizeof(double));
        parts->norm[p] = figure_job_allocate(job, job->view.count, sizeof(double));
        if (!parts->whole[p] || !parts->norm[p]) return figure_job_out_of_memory(job);
    }
    return EXIT_OK;
}

/* Words and positions from the tables; in the decoder the words give way to H[L-1]. */
static int read_parts(figure_job *job, const reference_model *reference, embedding_parts *parts)
{
    const size_t cells = job->view.span[1] * parts->width;
    reference_input input;
    deberta_error error = {0};
    int status = figure_reference_input(job, &input);
    if (status != EXIT_OK) return status;
    if (reference_embedding_rows(reference, &input, parts->whole[CONTENT], parts->whole[POSITION], &error) !=
        DEBERTA_OK)
        return say_error(job->options, &error);
    if (!job->info.position_biased_input) {
        status = figure_job_encode(job);
        if (status == EXIT_OK) status = figure_hidden(job, job->info.layers - 1, &parts->whole[CONTENT]);
    }
    for (size_t k = 0; k < cells && status == EXIT_OK; k++)
        parts->whole[SUM][k] = parts->whole[CONTENT][k] + parts->whole[POSITION][k];
    for (int p = 0; p < PARTS && status == EXIT_OK; p++)
        status = figure_view_rows(job, parts->whole[p], parts->width, &parts->shown[p]);
    return status;
}

static int measure(figure_job *job, embedding_parts *parts)
{
    deberta_error error = {0};
    job->data.row_axis = "token";
    job->data.column_axis = "dimension";
    job->data.row_labels = job->view.labels;
    job->data.row_numbers = token_view_numbers(&job->view);
    for (int p = 0; p < PARTS; p++) {
        for (size_t t = 0; t < job->view.count; t++) {
            double squares = 0;
            for (size_t c = 0; c < parts->width; c++) {
                const double value = (double)parts->shown[p][t * parts->width + c];
                squares += value * value;
            }
            parts->norm[p][t] = sqrt(squares);
        }
        const figure_matrix matrix = {part_names[p],   no_index,        no_index,
                                      parts->shown[p], job->view.count, parts->width};
        if (figure_data_add_matrix(&job->data, &matrix, &error) != DEBERTA_OK) return say_error(job->options, &error);
    }
    return EXIT_OK;
}

/* -------------------------------------------------------------------------------------------------------- drawing */

typedef struct embedding_figure {
    attention_figure panels;
    chart_figure norms;
} embedding_figure;

/* The panels, and the norms under them. */
static deberta_status layout(draw_list *list, const void *what, figure_notes *notes, deberta_error *err)
{
    const embedding_figure *figure = what;
    figure_notes of_norms = {0};
    DEBERTA_TRY(attention_layout(list, &figure->panels, notes, err));
    const double height = draw_page_height(list) + 2;
    draw_set_origin(list, 0, height);
    const deberta_status status = chart_layout(list, &figure->norms, &of_norms, err);
    draw_set_origin(list, 0, 0);
    draw_set_page(list, draw_page_width(list), height + draw_page_height(list));
    return status;
}

/* A line of type for each token, as long as that is not higher than wide. */
static double cell_aspect(const figure_job *job, size_t width)
{
    const double across = 45; /* mm of a panel, about: three side by side */
    return fmin(fmin(3.2, 120 / (double)job->view.count) * (double)width / across, ATTENTION_MOST_ASPECT);
}

static attention_figure describe_panels(const figure_job *job, const embedding_parts *parts, attention_panel *panels)
{
    const bool decoder = !job->info.position_biased_input;
    const char *const titles[PARTS] = {decoder ? "content: H[L\u22121]" : "content: words", "position",
                                       decoder ? "sum: the decoder\u2019s queries" : "sum"};
    attention_figure figure = figure_job_attention(job);
    for (int p = 0; p < PARTS; p++)
        panels[p] = (attention_panel){parts->shown[p], parts->width, titles[p], HEATMAP_SIGNED};
    figure.panels = panels;
    figure.grid_rows = 1;
    figure.grid_columns = figure.columns = PARTS;
    figure.keys = parts->width;
    figure.key_labels = NULL;
    figure.key_numbers = NULL;
    figure.boundary_count = 0;
    figure.query_axis = "token";
    figure.key_axis = "dimension";
    figure.cell_aspect = cell_aspect(job, parts->width);
    figure.keep_row_mean = true;
    figure.units[HEATMAP_SIGNED] = "embedding";
    figure.style.note = NULL; /* under the norms */
    /* a few dimensions are often far larger than all others */
    if (!options_has(job->options, "scale")) figure.scales[HEATMAP_SIGNED].policy = HEATMAP_ROBUST;
    return figure;
}

static int draw(figure_job *job, const embedding_parts *parts)
{
    attention_panel panels[PARTS];
    chart_series series[PARTS];
    for (int p = 0; p < PARTS; p++)
        series[p] =
            (chart_series){.name = part_names[p], .kind = CHART_BARS, .y = parts->norm[p], .count = job->view.count};
    const chart_panel norms = {
        .title = "norms",
        .x = {.scale = CHART_CATEGORIES, .categories = job->view.labels, .category_count = job->view.count},
        .y = {.label = "length of the vector"},
        .series = series,
        .series_count = PARTS};
    if (job->info.position_biased_input)
        figure_job_note(job, "The sum enters the first layer norm%s. ",
                        job->info.token_types ? " together with the token types, which are not drawn" : "");
    else
        figure_job_note(job, "Positions enter the Enhanced Mask Decoder alone, where they are added to H[L\u22121]. ");
    figure_job_caption(job, "Content, absolute position and their sum, and the lengths of these vectors. ");
    embedding_figure figure = {.panels = describe_panels(job, parts, panels),
                               .norms = {.panels = &norms, .panel_count = 1, .panel_height = 30}};
    figure.norms.style = job->style;
    figure.norms.style.title = NULL;
    return figure_job_finish(job, layout, &figure);
}

static int run(figure_job *job)
{
    embedding_parts parts;
    reference_model *reference = NULL;
    if (!job->info.has_position_table)
        return say_usage(job->options, "--figure embeddings: %s has no absolute positions", job->info.name);
    if (!job->info.position_biased_input && job->info.embedding_size != job->info.hidden_size)
        return say_usage(job->options,
                         "--figure embeddings: %s has positions of %zu numbers for hidden states of %zu: there is no "
                         "decoder that adds them",
                         job->info.name, job->info.embedding_size, job->info.hidden_size);
    if (!figure_job_takes_limits(job, job->look.scales, (bool[HEATMAP_KINDS]){[HEATMAP_SIGNED] = true}))
        return EXIT_USAGE;
    int status = take_parts(job, &parts);
    if (status == EXIT_OK) status = figure_reference_open(job, &reference);
    if (status == EXIT_OK) status = read_parts(job, reference, &parts);
    reference_free(&reference);
    if (status == EXIT_OK) status = measure(job, &parts);
    return status == EXIT_OK ? draw(job, &parts) : status;
}

static const char *const options[] = {"scale", "signed-palette", "letters", NULL};

const figure_kind figure_embeddings = {
    .name = "embeddings",
    .summary = "content, absolute position and their sum, where the model adds them, with norms",
    .layers = "0",
    .heads = "0",
    .components = "logits",
    .hidden = true,
    .options = options,
    .run = run,
};
