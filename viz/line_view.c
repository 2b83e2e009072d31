/* Draws the line view. Signed values have the colours of the heat maps (positive vermilion, negative blue), and
 * negative lines are dashed, so the sign survives greyscale. Width and opacity grow with the value; weak lines are
 * drawn first.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/line_view.h"

#include <math.h>
#include <stdlib.h>

#include "output/scope.h"
#include "viz/ticks.h"

static const double margin = 0.5, longest_label = 20, smallest_gap = 14, panel_gap = 4;
static const draw_colour special_grey = {145, 145, 145, 255};

typedef struct plan {
    const line_view *spec;
    heatmap_cells *cells; /* [panel_count], centred */
    figure_style style;
    draw_font font, small, bold;
    double reach, smallest;                    /* largest |value|; least |value| of a drawn line */
    double query_width, key_width, gap, pitch; /* in mm: label columns, the space for lines, distance of tokens */
    double rows;                               /* tokens in the longer column */
    size_t first, drawn;                       /* queries with lines */
    size_t across;                             /* panels side by side */
    size_t left_out;
} plan;

typedef struct line_view_line {
    double value;
    size_t query, key;
} line_view_line;

static deberta_status check_view(const line_view *spec, deberta_error *err)
{
    DEBERTA_TRY(figure_check_style(&spec->style, err));
    if (!spec->panels || spec->panel_count == 0 || spec->queries == 0 || spec->keys == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a line view needs at least one panel, one query and one key");
    for (size_t i = 0; i < spec->panel_count; i++)
        if (!spec->panels[i].values || spec->panels[i].stride < spec->keys)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "panel %zu has no values, or rows shorter than %zu keys", i,
                         spec->keys);
    if (!spec->query_labels || !spec->key_labels) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a line view needs the tokens");
    if (spec->kind != HEATMAP_SIGNED && spec->kind != HEATMAP_POSITIVE)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a line view shows signed values or probabilities");
    if (!(spec->smallest >= 0 && spec->smallest < 1))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "line view threshold %g, expected 0 to 1", spec->smallest);
    if (spec->one_query && spec->query >= spec->queries)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "query %zu, but there are only %zu", spec->query, spec->queries);
    return DEBERTA_OK;
}

static double widest(const draw_list *list, const figure_label *labels, size_t count, const draw_font *font)
{
    double width = 0;
    for (size_t i = 0; i < count; i++) width = fmax(width, draw_measure(list, labels[i].text, font));
    return fmin(width, longest_label);
}

/* Prepares the drawn rows as a heat map does, so that both views of a matrix agree. */
static void line_view_prepare(plan *p, figure_notes *notes)
{
    const line_view *spec = p->spec;
    p->first = spec->one_query ? spec->query : 0;
    p->drawn = spec->one_query ? 1 : spec->queries;
    for (size_t i = 0; i < spec->panel_count; i++) {
        const line_view_panel *panel = &spec->panels[i];
        const heatmap_matrix matrix = {panel->values + p->first * panel->stride, p->drawn, spec->keys, panel->stride};
        heatmap_prepare(&p->cells[i], &matrix, spec->kind, !spec->keep_row_mean, 1, 1);
        notes->not_a_number += p->cells[i].not_a_number;
        notes->infinite += p->cells[i].infinite;
        for (size_t k = 0; k < p->drawn * spec->keys; k++)
            if (!isnan(p->cells[i].values[k])) p->reach = fmax(p->reach, fabsf(p->cells[i].values[k]));
    }
    if (!(p->reach > 0)) p->reach = 1;
    p->smallest = (spec->smallest > 0 ? spec->smallest : 0.05) * p->reach;
}

/* Orders lines, with a fixed order of equal ones: qsort alone gives none, and the bytes of the file depend on it. */
static int weaker_first(const void *a, const void *b)
{
    const line_view_line *s = a, *t = b;
    double x = fabs(s->value), y = fabs(t->value);
    if (x != y) return x < y ? -1 : 1;
    if (s->query != t->query) return s->query < t->query ? -1 : 1;
    return (s->key > t->key) - (s->key < t->key);
}

/* Returns a pen of at least 0.3 pt, which prints; the width shows the value more than the opacity does. */
static draw_pen pen_of(const plan *p, double value)
{
    double strength = fabs(value) / p->reach;
    bool warm = p->spec->kind == HEATMAP_SIGNED && value >= 0;
    draw_colour colour = warm ? (draw_colour){208, 60, 42, 0} : (draw_colour){0, 63, 119, 0};
    colour.a = (uint8_t)(40 + 215 * strength + 0.5);
    return (draw_pen){colour, 0.3 + 1.5 * strength, value >= 0 ? DRAW_SOLID : DRAW_DASHED};
}

static void draw_lines(draw_list *list, plan *p, const heatmap_cells *cells, double x, double y)
{
    const line_view *spec = p->spec;
    line_view_line *lines = memory_take(p->drawn * spec->keys, sizeof *lines);
    size_t count = 0;
    for (size_t i = 0; i < p->drawn; i++) {
        for (size_t j = 0; j < spec->keys; j++) {
            double value = cells->values[i * spec->keys + j];
            if (isnan(value)) continue;
            if (fabs(value) >= p->smallest)
                lines[count++] = (line_view_line){value, p->first + i, j};
            else
                p->left_out++;
        }
    }
    qsort(lines, count, sizeof *lines, weaker_first);
    for (size_t k = 0; k < count; k++) {
        draw_pen pen = pen_of(p, lines[k].value);
        draw_line(list, x, y + ((double)lines[k].query + 0.5) * p->pitch, x + p->gap,
                  y + ((double)lines[k].key + 0.5) * p->pitch, &pen);
    }
    free(lines);
}

/* Draws tokens: the query columns end, the key columns begin at the lines. */
static void draw_tokens(draw_list *list, const plan *p, const figure_label *labels, size_t count, double x, double y,
                        bool left)
{
    for (size_t i = 0; i < count; i++) {
        draw_font font = p->font;
        if (labels[i].special) font.colour = special_grey;
        font.bold = left && p->spec->one_query && i == p->spec->query;
        draw_place place = {x, y + ((double)i + 0.5) * p->pitch, left ? DRAW_END : DRAW_START, DRAW_CENTRE, 0};
        draw_text_within(list, labels[i].text, place, &font, longest_label);
    }
}

/* Draws sample lines with their values as a legend for the widths. Returns the y below. */
static double draw_key(draw_list *list, const plan *p, double y)
{
    static const double parts[] = {1, 0.5, 0.2, -1, -0.5, -0.2};
    double x = margin, row = 1.5 * draw_type_height(&p->font), middle = y + draw_type_height(&p->font) / 2;
    bool is_signed = p->spec->kind == HEATMAP_SIGNED;
    char unit[HEATMAP_UNIT_BYTES];
    heatmap_unit_text(p->spec->unit, p->spec->kind, p->spec->keep_row_mean, unit);
    draw_place place = {x, middle, DRAW_START, DRAW_CENTRE, 0};
    x += 4 + draw_text_within(list, unit, place, &p->font, p->style.width_mm - 2 * margin);
    for (size_t i = 0; i < (is_signed ? 6 : 3); i++) {
        char text[TICK_TEXT_BYTES];
        draw_pen pen = pen_of(p, parts[i] * p->reach);
        tick_text(parts[i] * p->reach, 0, text);
        double width = 8 + draw_measure(list, text, &p->small);
        if (x > margin && x + width > p->style.width_mm - margin) {
            x = margin;
            middle += row;
        }
        draw_line(list, x, middle, x + 7, middle, &pen);
        draw_text(list, text, (draw_place){x + 8, middle, DRAW_START, DRAW_CENTRE, 0}, &p->small);
        x += width + 3;
    }
    return middle + row;
}

static double draw_view_notes(draw_list *list, const plan *p, const figure_notes *notes, double y)
{
    byte_buffer text = {0};
    size_t bad = notes->not_a_number + notes->infinite;
    char limit[TICK_TEXT_BYTES];
    tick_text(p->smallest, 0, limit);
    if (p->left_out) byte_buffer_format(&text, "%zu weaker pairs (below %s) are not drawn. ", p->left_out, limit);
    if (bad) byte_buffer_format(&text, "%zu pairs without a line: not finite. ", bad);
    return figure_write_notes(list, &p->style, y, &text);
}

/* Returns the width of a panel with so many side by side. */
static double width_of_each(const plan *p, size_t across)
{
    return (p->style.width_mm - 2 * margin - panel_gap * (double)(across - 1)) / (double)across;
}

/* Returns the width that remains for the lines between the tokens. */
static double lines_room(const plan *p, size_t across)
{
    return width_of_each(p, across) - p->query_width - p->key_width - 2;
}

/* Draws the view. each: width of a panel. Returns the y below everything. */
static double draw_view(draw_list *list, plan *p, double each, const figure_notes *notes)
{
    const line_view *spec = p->spec;
    bool titled = false;
    for (size_t k = 0; k < spec->panel_count; k++) titled |= spec->panels[k].title != NULL;
    const double title_height = titled ? draw_type_height(&p->bold) + 1 : 0,
                 line = p->rows * p->pitch + title_height + 2, /* height of a line of panels */
        top = draw_key(list, p, figure_title(list, &p->style) + margin) + title_height;
    for (size_t k = 0; k < spec->panel_count; k++) {
        const double x = margin + (double)(k % p->across) * (each + panel_gap) + p->query_width + 1,
                     y = top + (double)(k / p->across) * line;
        const char *title = spec->panels[k].title;
        draw_group(list, title ? title : "lines");
        if (title)
            draw_text_within(list, title, (draw_place){x + p->gap / 2, y - 1, DRAW_MIDDLE, DRAW_BASELINE, 0}, &p->bold,
                             each);
        draw_lines(list, p, &p->cells[k], x, y);
        draw_tokens(list, p, spec->query_labels, spec->queries, x - 1, y, true);
        draw_tokens(list, p, spec->key_labels, spec->keys, x + p->gap + 1, y, false);
        draw_ungroup(list);
    }
    const size_t lines = (spec->panel_count + p->across - 1) / p->across;
    return draw_view_notes(list, p, notes, top + (double)(lines - 1) * line + p->rows * p->pitch + 1.5);
}

deberta_status line_view_layout(draw_list *list, const void *view, figure_notes *notes, deberta_error *err)
{
    const line_view *spec = view;
    DEBERTA_TRY(check_view(spec, err));
    plan p = {.spec = spec, .style = figure_defaults(&spec->style)};
    p.font = figure_font(&p.style);
    p.small = figure_small_font(&p.style);
    p.bold = figure_bold_font(&p.style);
    p.pitch = 1.15 * draw_type_height(&p.font);
    draw_font measured = p.font;
    measured.bold = spec->one_query;
    p.query_width = widest(list, spec->query_labels, spec->queries, &measured);
    p.key_width = widest(list, spec->key_labels, spec->keys, &p.font);
    p.across = spec->columns && spec->columns < spec->panel_count ? spec->columns : spec->panel_count;
    while (!spec->columns && p.across > 1 && lines_room(&p, p.across) < smallest_gap) p.across--;
    p.gap = fmin(lines_room(&p, p.across), 70);
    if (p.gap < smallest_gap)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%zu line view%s side by side leave%s %.1f mm for the lines in %g mm: %s wider figure", p.across,
                     p.across == 1 ? "" : "s", p.across == 1 ? "s" : "", fmax(p.gap, 0), p.style.width_mm,
                     p.across == 1 ? "they need a" : "fewer of them or a");
    double each = p.query_width + p.gap + p.key_width + 2;
    p.style.width_mm =
        figure_page_width(&p.style, 2 * margin + (double)p.across * each + panel_gap * (double)(p.across - 1));
    each = width_of_each(&p, p.across);
    p.rows = (double)(spec->queries > spec->keys ? spec->queries : spec->keys);
    if (p.rows * p.pitch > 2000)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a line view of %.0f tokens would be %.0f mm high", p.rows,
                     p.rows * p.pitch);
    p.cells = memory_take(spec->panel_count, sizeof *p.cells);
    line_view_prepare(&p, notes);
    deberta_status status = DEBERTA_OK;
    if (status == DEBERTA_OK) draw_set_page(list, p.style.width_mm, draw_view(list, &p, each, notes) + margin);
    for (size_t i = 0; i < spec->panel_count; i++) heatmap_cells_free(&p.cells[i]);
    free(p.cells);
    return status;
}
