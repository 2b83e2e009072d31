/* Draws attributions: the text with its tokens shaded, and bars over distances and positions.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "output/scope.h"
#include "program/attention/figure_data.h"
#include "program/attribute/attribute_output.h"
#include "viz/chart_columns.h"
#include "viz/shaded_text.h"
#include "viz/ticks.h"

static double largest_attribution(const double *values, size_t count)
{
    double largest = 0;
    for (size_t t = 0; t < count; t++) largest = fmax(largest, fabs(values[t]));
    return largest;
}

static bool has_types(const deberta_attribution *a) { return largest_attribution(a->token_types, a->tokens) > 0; }

/* Returns true if positions or token types have an attribution worth a bar: below a hundredth of the largest it would
 * be a line. */
static bool shows_positions(const deberta_attribution *a)
{
    return attribute_has_positions(a) &&
           fmax(largest_attribution(a->positions, a->tokens), largest_attribution(a->token_types, a->tokens)) >=
               0.01 * attribute_largest(a);
}

static void fill_tokens(scope *memory, const attributed_text *text, shaded_text *to)
{
    const size_t count = text->found->tokens;
    figure_label *labels = scope_take(memory, count, sizeof *labels);
    bool *begins = scope_take(memory, count, sizeof *begins);
    for (size_t t = 0; t < count; t++) {
        const char *word = attribute_word(text->tokens[t].text);
        labels[t] = (figure_label){word, text->tokens[t].special};
        begins[t] = word != text->tokens[t].text || text->tokens[t].special || (t > 0 && text->tokens[t - 1].special);
    }
    to->tokens = labels;
    to->begins_word = begins;
    to->values = text->found->words;
    to->count = text->changed & DEBERTA_ATTRIBUTE_WORDS ? count : 0;
}

/* Returns the name of the distances that share a row: "-3", "+12 to +15". */
static const char *distance_name(chart_columns *c, const deberta_attribution_distance *d)
{
    const char *ends[2];
    for (size_t k = 0; k < 2; k++) {
        const ptrdiff_t at = k ? d->last : d->first;
        ends[k] = chart_text(c, "%s%td", at < 0 ? DRAW_MINUS : at > 0 ? "+" : "", at < 0 ? -at : at);
    }
    return d->first == d->last ? ends[0] : chart_text(c, "%s to %s", ends[0], ends[1]);
}

/* Returns one scale for all bars, up to the ends of the stacked parts. */
static chart_axis scale_of_bars(const deberta_attribution *a)
{
    chart_axis axis = {.label = "attribution", .from_zero = true};
    for (size_t k = 0; k < a->distance_count; k++) {
        const double c2p = a->distances[k].c2p, p2c = a->distances[k].p2c;
        axis.low = fmin(axis.low, fmin(c2p, 0) + fmin(p2c, 0));
        axis.high = fmax(axis.high, fmax(c2p, 0) + fmax(p2c, 0));
    }
    for (size_t t = 0; t < a->tokens; t++) {
        axis.low = fmin(axis.low, fmin(a->positions[t], 0) + fmin(a->token_types[t], 0));
        axis.high = fmax(axis.high, fmax(a->positions[t], 0) + fmax(a->token_types[t], 0));
    }
    axis.low *= 1.05; /* keeps the longest bar off the frame */
    axis.high *= 1.05;
    return axis;
}

/* Adds a bar for each row of the table. */
static void add_distances(chart_columns *c, const deberta_attribution *a, chart_axis scale)
{
    if (a->distance_count == 0) return;
    chart_add_panel(c, (chart_panel){.x = {.label = "distance, query minus key", .scale = CHART_CATEGORIES},
                                     .y = scale,
                                     .stacked = true});
    for (size_t k = 0; k < a->distance_count; k++) chart_add_category(c, distance_name(c, &a->distances[k]));
    for (size_t which = 0; which < 2; which++) {
        chart_add_series(c, (chart_series){.name = which ? "p2c" : "c2p", .kind = CHART_BARS, .look = which + 2});
        for (size_t k = 0; k < a->distance_count; k++) {
            const deberta_attribution_distance *d = &a->distances[k];
            chart_add_point(c, (double)k, which ? d->p2c : d->c2p);
        }
    }
}

static void add_positions(chart_columns *c, const deberta_attribution *a, const figure_label *tokens, chart_axis scale)
{
    if (!shows_positions(a)) return;
    chart_add_panel(c, (chart_panel){.x = {.label = "token", .scale = CHART_CATEGORIES}, .y = scale, .stacked = true});
    for (size_t t = 0; t < a->tokens; t++) chart_add_category(c, tokens[t].text);
    for (size_t which = 0; which < (has_types(a) ? 2 : 1); which++) {
        chart_add_series(c, (chart_series){.name = which ? "token types" : "absolute positions",
                                           .kind = CHART_BARS,
                                           .look = which + 4});
        for (size_t t = 0; t < a->tokens; t++)
            chart_add_point(c, (double)t, which ? a->token_types[t] : a->positions[t]);
    }
}

/* Writes the figure, and the LaTeX file where one is asked for: both or none. */
static deberta_status save_all(const attributed_text *text, const shaded_text *figure, const char *caption,
                               const char *const *paths, size_t path_count, deberta_error *err)
{
    figure_latex_facts facts = {0};
    figure_notes page = {0}, notes = {0};
    atomic_file *latex = NULL;
    deberta_status status = DEBERTA_OK;
    if (text->latex) status = figure_check(shaded_text_layout, figure, &figure->style, &page, err);
    if (text->latex && status == DEBERTA_OK)
        status = figure_latex_write(text->latex, figure_latex_includes(text->options, &(text_list){paths, path_count}),
                                    &figure->style, caption, &page, &facts, &latex, err);
    if (status == DEBERTA_OK)
        status = figure_save(shaded_text_layout, figure, &figure->style, paths, path_count, &notes, err);
    if (status == DEBERTA_OK && latex) status = atomic_file_commit(&latex, err);
    atomic_file_discard(&latex);
    if (status == DEBERTA_OK && text->latex)
        figure_latex_tell(text->options, text->latex, &facts, page.page_height, "--parts");
    if (notes.names_stride > 1)
        say_note(text->options, "note: one of every %zu names is written below the bars; more with --width-mm MM",
                 notes.names_stride);
    return status;
}

/* Appends facts about the source to the provenance of the style: model, digest, texts. An anonymous figure has none,
 * and no command. */
static void add_source(const attributed_text *text, figure_style *style, provenance_entry *entries)
{
    const provenance_entry own[] = {
        {"Model", text->model}, {"Model SHA-256", text->digest}, {"Text", text->text}, {"Pair", text->pair}};
    size_t count = 0;
    for (size_t k = 0; k < style->provenance_count; k++)
        if (text->model || strcmp(style->provenance[k].key, "Command") != 0) entries[count++] = style->provenance[k];
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        if (own[k].value) entries[count++] = own[k];
    style->provenance = entries;
    style->provenance_count = count;
}

deberta_status attribute_draw(const void *what, const figure_style *style, const char *const *paths, size_t path_count,
                              deberta_error *err)
{
    const attributed_text *text = what;
    const deberta_attribution *a = text->found;
    scope memory = {0};
    chart_columns columns = {0};
    shaded_text figure = {.style = *style};
    provenance_entry *entries = scope_take(&memory, style->provenance_count + 4, sizeof *entries);
    add_source(text, &figure.style, entries);
    const bool is_ig = strcmp(text->method, "ig") == 0;
    const char *answer = text->model ? chart_text(&columns, " of \u201c%s\u201d", attribute_word(text->answer)) : "";
    const char *contrast = text->contrast && !text->model ? " minus that of another"
                           : text->contrast
                               ? chart_text(&columns, " minus that of \u201c%s\u201d", attribute_word(text->contrast))
                               : "";
    const char *at =
        text->asked && text->model ? chart_text(&columns, " at \u201c%s\u201d", attribute_word(text->asked)) : "";
    const double values[] = {a->value, a->baseline_value, a->sum};
    char numbers[3][TICK_TEXT_BYTES], gap[TICK_TEXT_BYTES];
    for (size_t k = 0; k < 3; k++) tick_number(values[k], 4, false, numbers[k]);
    tick_number(100 * a->gap, 2, false, gap);
    figure.unit = chart_text(&columns, "attribution to words (%s)", text->of);
    figure.style.note =
        chart_text(&columns,
                   "%s of the %s%s%s%s: %s, baseline (%s) %s; attributions add up to %s (%zu point%s, gap "
                   "%s %%).%s",
                   is_ig ? "Integrated gradients" : "Gradient times input", text->of, answer, contrast, at, numbers[0],
                   text->baseline, numbers[1], numbers[2], a->steps, a->steps == 1 ? "" : "s", gap,
                   attribute_has_positions(a) && !shows_positions(a)
                       ? " Those of positions are below 1 % of the largest, and not drawn."
                       : "");
    fill_tokens(&memory, text, &figure);
    add_distances(&columns, a, scale_of_bars(a));
    add_positions(&columns, a, figure.tokens, scale_of_bars(a));
    figure.panels = chart_columns_panels(&columns, &figure.panel_count);
    const char *caption = chart_text(&columns, "%s%s", figure.count ? "Shaded: attribution to words." : "",
                                     a->distance_count ? " Bars: attribution to distances, query minus key." : "");
    const deberta_status status = save_all(text, &figure, caption, paths, path_count, err);
    chart_columns_free(&columns);
    scope_free(&memory);
    return status;
}

/* Columns of the numbers as they are filled, line by line. */
typedef struct number_lines {
    const char **parts, **labels;
    double *indices, *values;
    size_t count;
} number_lines;

static void add_line(number_lines *lines, const char *part, size_t index, const char *label, double value)
{
    lines->parts[lines->count] = part;
    lines->indices[lines->count] = (double)index;
    lines->labels[lines->count] = label;
    lines->values[lines->count++] = value;
}

static void add_lines(const common_options *options, const attributed_text *text, number_lines *lines)
{
    static const char *const names[] = {"word", "position", "token type"};
    const deberta_attribution *a = text->found;
    const double *const by_token[] = {a->words, a->positions, a->token_types};
    for (size_t which = 0; which < 3; which++)
        for (size_t t = 0; t < a->tokens; t++) {
            /* a token has the name of all other tables, where a space alone keeps its mark */
            const char *word = attribute_word(text->tokens[t].text);
            add_line(lines, names[which], t, *word ? word : text->tokens[t].text, by_token[which][t]);
        }
    for (size_t which = 0; which < 2; which++)
        for (size_t k = 0; k < a->distance_count; k++) {
            const deberta_attribution_distance *d = &a->distances[k];
            const char *label = options_text(options, "%td to %td", d->first, d->last);
            add_line(lines, which ? "p2c" : "c2p", d->row, label, which ? d->p2c : d->c2p);
        }
}

deberta_status attribute_write_numbers(const common_options *options, const attributed_text *text, const char *path,
                                       deberta_error *err)
{
    const size_t most = 3 * text->found->tokens + 2 * text->found->distance_count;
    number_lines lines = {.parts = options_take(options, most, sizeof *lines.parts),
                          .labels = options_take(options, most, sizeof *lines.labels),
                          .indices = options_take(options, most, sizeof *lines.indices),
                          .values = options_take(options, most, sizeof *lines.values)};
    add_lines(options, text, &lines);
    figure_data data = {.options = options, .line_count = lines.count};
    figure_data_file file = {0};
    figure_data_add_column(&data, (figure_column){.name = "part", .texts = lines.parts});
    figure_data_add_column(&data, (figure_column){.name = "index", .numbers = lines.indices});
    figure_data_add_column(&data, (figure_column){.name = "label", .texts = lines.labels});
    figure_data_add_column(&data, (figure_column){.name = "attribution", .numbers = lines.values});
    DEBERTA_TRY(figure_data_write(&data, path, NULL, 0, &file, err));
    return figure_data_commit(&file, err);
}
