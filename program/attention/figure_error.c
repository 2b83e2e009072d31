/* `attention error` draws the difference between the engine and the float64 reference, cell by cell.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"
#include "program/attention/figure_reference.h"

/* Differences of the chosen layers, heads and components, [n][n] each. */
typedef struct error_work {
    const figure_source *source;
    float **difference; /* [heads][components] */
    double worst;
} error_work;

/* Subtracts the reference's attention from what was captured; called for every query of every layer. */
static void on_row(void *context, const reference_attention_row *row)
{
    error_work *work = context;
    const figure_source *source = work->source;
    const size_t n = source->view.span[1];
    for (size_t k = 0; k < source_heads(source) * DEBERTA_COMPONENT_COUNT; k++) {
        const size_t index = k / DEBERTA_COMPONENT_COUNT, head = source_head(source, index);
        const deberta_component c = k % DEBERTA_COMPONENT_COUNT;
        float *out = work->difference[k];
        if (source_layer(source, index) != row->layer || !out || !row->value[c]) continue;
        const float *found = capture_matrix(&source->capture, row->layer, head, c, 0);
        for (size_t j = 0; j < n; j++) {
            const size_t cell = row->query * n + j;
            const double off = fabs((double)found[cell] - row->value[c][head * n + j]);
            out[cell] = (float)off;
            work->worst = fmax(work->worst, off);
        }
    }
}

/* Runs the float64 reference on the same ids, from the embeddings on. */
static void figure_error_compare(error_work *work)
{
    const figure_source *source = work->source;
    const size_t n = source->view.span[1], matrices = source_heads(source) * DEBERTA_COMPONENT_COUNT;
    const reference_input input = figure_reference_input(source);
    const reference_observer observer = {work, on_row};
    double *hidden =
        options_take(source->options, (source->info.layers + 1) * n * source->info.hidden_size, sizeof *hidden);
    deberta_error error = {0};
    work->difference = options_take(source->options, matrices, sizeof *work->difference);
    for (size_t k = 0; k < matrices; k++)
        if (source->components[k % DEBERTA_COMPONENT_COUNT])
            work->difference[k] = options_take(source->options, n * n, sizeof(float));
    reference_model *reference = figure_reference_open(source);
    must(source->options, reference_encode(reference, &input, hidden, &observer, &error), &error);
    reference_free(&reference);
}

static const float *figure_error_matrix_of(void *context, const figure_source *source, size_t index,
                                           const panel_column *column)
{
    (void)source;
    return ((error_work *)context)->difference[index * DEBERTA_COMPONENT_COUNT + column->component];
}

static void figure_error_draw(figure_source *source, figure_sheet *sheet)
{
    panel_column columns[DEBERTA_COMPONENT_COUNT];
    error_work work = {.source = source};
    const char *precision = deberta_precision_name(source->info.precision);
    attention_figure figure;
    source_encode(source);
    figure_error_compare(&work);
    sheet_note(sheet, "|%s \u2212 float64|, %s; largest%s %.3g. ", precision,
               deberta_isa_name(deberta_session_isa(source->session)),
               source->asked->shown.words ? " between two pieces, which words average," : "", work.worst);
    sheet_caption(sheet, "Absolute error of %s against float64. ", precision);
    panels_open(sheet, &figure);
    figure.units[HEATMAP_POSITIVE] = options_text(source->options, "error, %s", source->unit);
    figure.units[HEATMAP_RANGE] = figure.units[HEATMAP_LOG] = "error of a probability";
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++)
        if (!figure.palettes[kind]) figure.palettes[kind] = "greys"; /* blue is used for the values themselves */
    const size_t count = component_columns(source, columns);
    for (size_t c = 0; c < count; c++) {
        columns[c].name = options_text(source->options, "%s_error", columns[c].name);
        columns[c].rule = TOKEN_VIEW_MEAN;
        /* errors of logits and of probabilities have separate scales */
        columns[c].kind = columns[c].component != DEBERTA_PROBABILITIES ? HEATMAP_POSITIVE
                          : source->asked->logarithmic                  ? HEATMAP_LOG
                                                                        : HEATMAP_RANGE;
    }
    panels_of_heads(sheet, &figure, columns, count, figure_error_matrix_of, &work);
    panels_begin_at_zero(&figure, 0);
    panels_finish(sheet, &figure);
}

static const option part[] = {PART_ROWS, COMPONENTS_ROW, NO_MORE_ROWS};
static const option look[] = {SCALE_ROW, PALETTE_ROW, LOG_ROW, MARK_ROW, LETTERS_ROW, LAYOUT_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_error = {
    FIGURE_COMMAND("error", "the absolute error of float32 (or --precision) against the float64 reference, by cell",
                   FIGURE_TEXT " --layers all --components probs -o error.pdf", groups, FIRST_HEAD,
                   .components = SHOW_LOGITS | SHOW_PROBABILITIES),
    .draw = figure_error_draw,
};
