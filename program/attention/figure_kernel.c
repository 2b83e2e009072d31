/* `attention kernel` draws the position terms c2p and p2c at each distance, over all texts of the input.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/attention_statistics.h"
#include "analysis/distance_sample.h"
#include "program/attention/distance_curves.h"
#include "program/attention/figure_kind.h"
#include "program/frame/progress.h"

typedef struct kernel_work {
    figure_source *source;
    size_t texts;             /* number of texts that have tokens */
    distance_sample *samples; /* [heads][components]; values NULL where unwanted */
} kernel_work;

static size_t sample_count(const kernel_work *w) { return source_heads(w->source) * DEBERTA_COMPONENT_COUNT; }

static deberta_component component_of(size_t sample) { return (deberta_component)(sample % DEBERTA_COMPONENT_COUNT); }

static void open_samples(kernel_work *w, size_t reach)
{
    const common_options *options = w->source->options;
    w->samples = options_take(options, sample_count(w), sizeof *w->samples);
    for (size_t k = 0; k < sample_count(w); k++)
        if (w->source->components[component_of(k)]) distance_sample_create(&w->samples[k], reach, options->seed);
}

/* Adds one captured text to the samples. Terms lose the part that is constant over the keys, unless --center keeps
 * it. */
static void figure_kernel_add_text(kernel_work *w, const capture *captured, const token_view *view)
{
    const figure_source *source = w->source;
    const unsigned char *mask = source->input.mask ? source->input.mask + view->first_token : NULL;
    for (size_t k = 0; k < sample_count(w); k++) {
        const deberta_component c = k % DEBERTA_COMPONENT_COUNT;
        const size_t index = k / DEBERTA_COMPONENT_COUNT;
        if (!source->components[c]) continue;
        float *matrix = capture_matrix(captured, source_layer(source, index), source_head(source, index), c, 0);
        if (distance_curves_centred(source, c)) attention_centre_rows(matrix, matrix, view->span[1], mask);
        distance_sample_add(&w->samples[k], matrix, view->span[1], mask);
    }
}

static void run_text(kernel_work *w, size_t row)
{
    figure_source *source = w->source;
    const token_view_choice everything = {.end = SIZE_MAX};
    token_view view = {0};
    capture captured = {0};
    deberta_error error = {0};
    source_must(source, token_view_make(&view, &source->input, row, &everything, &error), &error);
    source_open_capture(source, &source->info, &view, &captured);
    const deberta_observer observer = capture_observer(&captured);
    source_observe(source, source->session, row, &observer);
    figure_kernel_add_text(w, &captured, &view);
    capture_free(&captured);
    token_view_free(&view);
}

static void run_texts(kernel_work *w)
{
    figure_source *source = w->source;
    source->session = source_open_session(source, source->options, source->model, DEBERTA_OBSERVE_ATTENTION);
    progress_bar bar = progress_begin(source->options, "kernel", source->input.rows);
    for (size_t row = 0; row < source->input.rows; row++) {
        if (source->input.row[row].tokens == 0) continue;
        w->texts++;
        run_text(w, row);
        progress_step(&bar, row + 1, NULL);
    }
    progress_end(&bar);
}

/* Writes all distances of one sample to the lines of its head. */
static void summarise(const kernel_work *w, size_t k, const distance_curves *curves)
{
    const distance_sample *sample = &w->samples[k];
    double *const *column = curves->column[component_of(k)];
    const double part = w->source->asked->ribbon, parts[3] = {part, 0.5, 1 - part};
    const size_t first = k / DEBERTA_COMPONENT_COUNT * curves->entries;
    for (size_t e = 0; e < curves->entries; e++) {
        const ptrdiff_t distance = (ptrdiff_t)e - (ptrdiff_t)curves->reach;
        double found[3];
        distance_sample_quantiles(sample, distance, parts, 3, found);
        column[DISTANCE_COUNT][first + e] = (double)sample->values[e].count;
        column[DISTANCE_MEAN][first + e] = distance_sample_mean(sample, distance);
        column[DISTANCE_LOW][first + e] = found[0];
        column[DISTANCE_MEDIAN][first + e] = found[1];
        column[DISTANCE_HIGH][first + e] = found[2];
    }
}

static void figure_kernel_draw(figure_source *source, figure_sheet *sheet)
{
    kernel_work w = {.source = source};
    if (option_given(source->options, &source->asked->row))
        usage_wrong(source->options, "--row: kernel draws all texts of the input as one");
    size_t longest = 1;
    for (size_t r = 0; r < source->input.rows; r++)
        if (source->input.row[r].tokens > longest) longest = source->input.row[r].tokens;
    distance_curves curves = distance_curves_open(source, longest - 1);
    open_samples(&w, longest - 1);
    run_texts(&w);
    for (size_t k = 0; k < sample_count(&w); k++) {
        if (source->components[component_of(k)]) summarise(&w, k, &curves);
        scope_free(&w.samples[k].memory);
    }
    sheet_caption(sheet, "Position terms against the distance between query and key, over a corpus. ");
    distance_curves_draw(
        sheet, &curves, true,
        options_text(source->options, "all pairs of tokens of %zu text%s", w.texts, w.texts == 1 ? "" : "s"));
}

static const option part[] = {HEADS_ROWS, COMPONENTS_ROW, CURVES_ROWS, NO_MORE_ROWS},
                    look[] = {CENTER_ROW, LETTERS_ROW, LAYOUT_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_kernel = {
    FIGURE_COMMAND_WITHOUT("json", "kernel", "position terms against the distance, mean and quantiles over all texts",
                           "--file texts.txt --layers 2 --heads all -o kernel.pdf", groups, FIRST_HEAD,
                           .components = 1u << DEBERTA_C2P | 1u << DEBERTA_P2C, .statistic = STATISTIC_MEAN),
    .all_rows = true,
    .draw = figure_kernel_draw,
};
