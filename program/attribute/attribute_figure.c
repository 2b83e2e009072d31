/* Draws attributions: the text with its tokens shaded, and bars over distances and positions.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "output/scope.h"
#include "program/attribute/attribute_output.h"
#include "viz/chart_columns.h"
#include "viz/shaded_text.h"

/* The mark of a word's beginning in a token's name, which is left out; 0 bytes: there is none. */
static size_t word_mark(const char *token)
{
    static const char *const marks[] = {"\xE2\x96\x81", "\xC4\xA0"};
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        if (strncmp(token, marks[k], strlen(marks[k])) == 0) return strlen(marks[k]);
    return 0;
}

static bool has_positions(const deberta_attribution *a)
{
    for (size_t t = 0; t < a->tokens; t++)
        if (a->positions[t] != 0 || a->token_types[t] != 0) return true;
    return false;
}

static void fill_tokens(scope *memory, const attributed_text *text, shaded_text *to)
{
    const size_t count = text->found->tokens;
    figure_label *labels = scope_take(memory, count, sizeof *labels);
    bool *begins = scope_take(memory, count, sizeof *begins);
    for (size_t t = 0; t < count; t++) {
        const size_t mark = word_mark(text->tokens[t].text);
        labels[t] = (figure_label){text->tokens[t].text + mark, text->tokens[t].special};
        begins[t] = mark > 0 || text->tokens[t].special || (t > 0 && text->tokens[t - 1].special);
    }
    to->tokens = labels;
    to->begins_word = begins;
    to->values = text->found->words;
    to->count = text->changed & DEBERTA_ATTRIBUTE_WORDS ? count : 0;
}

/* "-3", "+12 to +15": the distances that share a row. */
static const char *distance_name(chart_columns *c, const deberta_attribution_distance *d)
{
    if (d->first == d->last) return chart_text(c, "%+td", d->first);
    return chart_text(c, "%+td to %+td", d->first, d->last);
}

/* A bar for each row of the table. */
static void add_distances(chart_columns *c, const deberta_attribution *a, const char *unit)
{
    if (a->distance_count == 0) return;
    chart_add_panel(c, (chart_panel){.x = {.label = "distance, query minus key", .scale = CHART_CATEGORIES},
                                     .y = {.label = unit, .from_zero = true},
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

static void add_positions(chart_columns *c, const deberta_attribution *a, const figure_label *tokens, const char *unit)
{
    if (!has_positions(a)) return;
    chart_add_panel(c, (chart_panel){.x = {.label = "token", .scale = CHART_CATEGORIES},
                                     .y = {.label = unit, .from_zero = true},
                                     .stacked = true});
    for (size_t t = 0; t < a->tokens; t++) chart_add_category(c, tokens[t].text);
    for (size_t which = 0; which < 2; which++) {
        chart_add_series(c, (chart_series){.name = which ? "token types" : "absolute positions",
                                           .kind = CHART_BARS,
                                           .look = which + 4});
        for (size_t t = 0; t < a->tokens; t++)
            chart_add_point(c, (double)t, which ? a->token_types[t] : a->positions[t]);
    }
}

deberta_status attribute_draw(const void *what, const figure_style *style, const char *const *paths, size_t path_count,
                              deberta_error *err)
{
    const attributed_text *text = what;
    const deberta_attribution *a = text->found;
    scope memory = {0};
    chart_columns columns = {0};
    shaded_text figure = {.style = *style};
    const bool is_ig = strcmp(text->method, "ig") == 0;
    const char *contrast = text->contrast ? chart_text(&columns, " minus that of \u201c%s\u201d", text->contrast) : "";
    const char *at = text->asked ? chart_text(&columns, " at \u201c%s\u201d", text->asked) : "";
    figure.unit = chart_text(&columns, "attribution to words (%s)", text->of);
    figure.style.note = chart_text(
        &columns,
        "%s of the %s of \u201c%s\u201d%s%s: %.4g, baseline (%s) %.4g; attributions add up to %.4g (%zu point%s, gap "
        "%.2g %%).",
        is_ig ? "Integrated gradients" : "Gradient times input", text->of, text->answer, contrast, at, a->value,
        text->baseline, a->baseline_value, a->sum, a->steps, a->steps == 1 ? "" : "s", 100 * a->gap);
    fill_tokens(&memory, text, &figure);
    add_distances(&columns, a, "attribution");
    add_positions(&columns, a, figure.tokens, "attribution");
    figure.panels = chart_columns_panels(&columns, &figure.panel_count);
    const deberta_status status = figure_save(shaded_text_layout, &figure, &figure.style, paths, path_count, NULL, err);
    chart_columns_free(&columns);
    scope_free(&memory);
    return status;
}
