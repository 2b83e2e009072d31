/* Lays out charts: finds the margins of the panels, the same for all so that plot areas line up, then draws titles,
 * legends and panels.
 *
 * SPDX-License-Identifier: MIT */

#include <math.h>
#include <string.h>

#include "output/byte_buffer.h"
#include "viz/chart_inside.h"

/* -------------------------------------------------------------------------------------------- curves that are equal */

/* Curves that are equal hide each other, and a note below the chart says which do. */

static bool is_curve(const chart_series *s)
{
    return s->name && !s->faint && s->count > 1 && (s->kind == CHART_LINE || s->kind == CHART_CURVE);
}

static bool are_equal(const chart_series *a, const chart_series *b)
{
    const size_t bytes = a->count * sizeof(double);
    if (!is_curve(a) || !is_curve(b) || a->count != b->count || strcmp(a->name, b->name) == 0) return false;
    if (memcmp(a->y, b->y, bytes) != 0 || !a->x != !b->x) return false;
    return !a->x || memcmp(a->x, b->x, bytes) == 0;
}

/* Returns the first series before this one that is equal to it; NULL if there is none. */
static const chart_series *covered_by(const chart_panel *panel, size_t index)
{
    for (size_t k = 0; k < index; k++)
        if (are_equal(&panel->series[k], &panel->series[index])) return &panel->series[k];
    return NULL;
}

/* Returns true if the panel has series of both names, the second covering the first. */
static bool has_pair(const chart_panel *panel, const char *first, const char *second)
{
    bool found = false;
    for (size_t k = 0; k < panel->series_count && !found; k++) {
        const chart_series *covered = covered_by(panel, k);
        found = covered && strcmp(covered->name, first) == 0 && strcmp(panel->series[k].name, second) == 0;
    }
    return found;
}

static void say_pair(const chart_figure *spec, size_t panel, const char *first, const char *second, byte_buffer *text)
{
    byte_buffer_format(text, "%s and %s are equal, one covers the other", first, second);
    const char *before = " (";
    for (; panel < spec->panel_count && spec->panel_count > 1; panel++) {
        if (!spec->panels[panel].title || !has_pair(&spec->panels[panel], first, second)) continue;
        byte_buffer_format(text, "%s%s", before, spec->panels[panel].title);
        before = ", ";
    }
    byte_buffer_format(text, *before == ',' ? "). " : ". ");
}

/* Appends a sentence for each pair of equal series, with the panels in which they are equal. */
static void chart_say_equal(const chart_figure *spec, byte_buffer *text)
{
    enum { MOST_PAIRS = 3 };
    size_t pairs = 0;
    for (size_t p = 0; p < spec->panel_count; p++) {
        for (size_t k = 1; k < spec->panels[p].series_count; k++) {
            const chart_series *covered = covered_by(&spec->panels[p], k);
            bool said = !covered;
            for (size_t before = 0; before < p && !said; before++)
                said = has_pair(&spec->panels[before], covered->name, spec->panels[p].series[k].name);
            if (!said && pairs++ < MOST_PAIRS) say_pair(spec, p, covered->name, spec->panels[p].series[k].name, text);
        }
    }
    if (pairs > MOST_PAIRS) byte_buffer_format(text, "So are %zu other pairs. ", pairs - MOST_PAIRS);
}

/* ----------------------------------------------------------------------------------------------------------- layout */

static const double margin = 0.5;

/* --------------------------------------------------------------------------------------------------------- legend */

static bool same_entry(const chart_panel *a, size_t i, const chart_panel *b, size_t k)
{
    const chart_series *s = &a->series[i], *t = &b->series[k];
    return s->name && t->name && strcmp(s->name, t->name) == 0 && s->kind == t->kind &&
           (s->look ? s->look - 1 : i) == (t->look ? t->look - 1 : k) && s->dash == t->dash && s->shade == t->shade &&
           s->faint == t->faint;
}

/* Returns true if one legend serves all panels: the first panel has every name of every panel, with the same look. */
static bool legend_is_shared(const chart_figure *spec)
{
    for (size_t k = 1; k < spec->panel_count; k++) {
        for (size_t i = 0; i < spec->panels[k].series_count; i++) {
            bool found = !spec->panels[k].series[i].name;
            for (size_t s = 0; s < spec->panels[0].series_count && !found; s++)
                found = same_entry(&spec->panels[k], i, &spec->panels[0], s);
            if (!found) return false;
        }
    }
    return true;
}

/* Lays out the names of one panel in rows between x and x + room. Returns the height; draws only if draw is set. */
static double legend_rows(draw_list *list, const chart_panel *panel, const figure_style *style, double left, double y,
                          double room, bool draw)
{
    const double gap = 1.2, between = 4;
    draw_font font = figure_font(style);
    double x = left, row = 1.5 * draw_type_height(&font), top = y;
    bool any = false;
    for (size_t s = 0; s < panel->series_count; s++) {
        const chart_series *series = &panel->series[s];
        if (!series->name) continue;
        double sample = chart_series_sample(NULL, series, s, 0, 0);
        double width = fmin(draw_measure(list, series->name, &font), room - sample - gap);
        if (x > left && x + sample + gap + width > left + room) {
            x = left;
            y += row;
        }
        if (draw) {
            chart_series_sample(list, series, s, x, y + row / 2);
            draw_text_within(list, series->name,
                             (draw_place){x + sample + gap, y + row / 2, DRAW_START, DRAW_CENTRE, 0}, &font,
                             width + 0.01);
        }
        x += sample + gap + width + between;
        any = true;
    }
    return any ? y + row - top : 0;
}

/* --------------------------------------------------------------------------------------------------------- figure */

static deberta_status check_axis(const chart_axis *axis, const char *which, deberta_error *err)
{
    if (chart_axis_is_log(axis) && axis->low < axis->high && axis->low <= 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "logarithmic %s axis from %g: it must be positive", which, axis->low);
    if (!isfinite(axis->low) || !isfinite(axis->high))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s axis from %g to %g: both must be finite", which, axis->low,
                     axis->high);
    if (axis->scale == CHART_CATEGORIES && axis->category_count && !axis->categories)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s axis has %zu categories but no names", which, axis->category_count);
    return DEBERTA_OK;
}

static deberta_status check_chart(const chart_figure *spec, deberta_error *err)
{
    DEBERTA_TRY(figure_check_style(&spec->style, err));
    if (!spec->panels || spec->panel_count == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a chart needs at least one panel");
    for (size_t k = 0; k < spec->panel_count; k++) {
        const chart_panel *panel = &spec->panels[k];
        DEBERTA_TRY(check_axis(&panel->x, "x", err));
        DEBERTA_TRY(check_axis(&panel->y, "y", err));
        if (panel->stacked && panel->x.scale != CHART_CATEGORIES)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "stacked bars need an x axis of categories");
        for (size_t s = 0; s < panel->series_count; s++) {
            const chart_series *series = &panel->series[s];
            bool has_values = series->kind == CHART_BAND ? series->low && series->high : series->y != NULL;
            if (series->count && !has_values)
                DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "series '%s' has %zu points but no values",
                             series->name ? series->name : "", series->count);
        }
    }
    return DEBERTA_OK;
}

static double draw_chart_notes(draw_list *list, const chart_figure *spec, const figure_style *style,
                               const figure_notes *notes, double y)
{
    byte_buffer text = {0};
    chart_say_equal(spec, &text);
    if (notes->not_a_number)
        byte_buffer_format(&text, "%zu %s not drawn: not finite, or not positive on a logarithmic axis. ",
                           notes->not_a_number, notes->not_a_number == 1 ? "point is" : "points are");
    if (notes->names_stride > 1)
        byte_buffer_format(&text, "Of every %zu names below the bars one is written. ", notes->names_stride);
    if (notes->clipped)
        byte_buffer_format(&text, "%zu %s outside the axes. ", notes->clipped,
                           notes->clipped == 1 ? "point lies" : "points lie");
    return figure_write_notes(list, style, y + 1, &text);
}

/* Margins of a plot area, the same for all panels, so that areas line up. */
typedef struct surroundings {
    double left, right, above, below; /* above: room for the title */
} surroundings;

static surroundings measure_surroundings(draw_list *list, const chart_figure *spec, const figure_style *style,
                                         double width, double height)
{
    surroundings around = {.above = 1.4};
    draw_font bold = figure_bold_font(style), small = figure_small_font(style);
    for (size_t k = 0; k < spec->panel_count; k++) {
        const chart_panel *panel = &spec->panels[k];
        chart_plot p = chart_plot_make(list, panel, style, (draw_rect){0, 0, width, height});
        around.left = fmax(around.left, chart_plot_left(list, &p));
        around.below = fmax(around.below, chart_plot_below(list, &p));
        around.right = fmax(around.right, chart_axis_numbers_width(list, &p.x, &small) / 2); /* half of a last number */
        if (panel->title || spec->panel_letters) around.above = fmax(around.above, 1.4 + draw_type_height(&bold));
    }
    return around;
}

static const double pleasant_height = 150, lowest_panel = 25, highest_panel = 90, between_lines = 3; /* mm */

/* Returns the height of a plot area of this width. Many lines of panels get lower ones, so that the figure fits on a
 * page. */
static double panel_height(const chart_figure *spec, size_t lines, double width, const surroundings *around)
{
    const double extra = around->above + around->below + between_lines, room = pleasant_height / (double)lines - extra;
    if (spec->panel_height > 0) return spec->panel_height;
    return fmin(fmin(fmax(0.62 * width, lowest_panel), highest_panel), fmax(room, lowest_panel));
}

/* Returns the height of the highest legend over the panels of a line, with the space below it. */
static double line_legend(draw_list *list, const chart_figure *spec, const figure_style *style, size_t first,
                          size_t columns, double width)
{
    double highest = 0;
    for (size_t k = first; k < first + columns && k < spec->panel_count; k++)
        highest = fmax(highest, legend_rows(list, &spec->panels[k], style, 0, 0, width, false));
    return highest > 0 ? highest + 0.8 : 0;
}

/* Puts as many panels side by side as are 50 mm wide, or 38 if that would be more than three lines; lines have equal
 * length where that takes no more of them. */
static size_t choose_columns(const chart_figure *spec, const figure_style *style)
{
    const size_t count = spec->panel_count;
    if (spec->columns) return spec->columns < count ? spec->columns : count;
    size_t columns = (size_t)fmax(1, style->width_mm / 50);
    if (count > 3 * columns) columns = (size_t)fmax(1, style->width_mm / 38);
    if (columns > count) columns = count;
    const size_t lines = (count + columns - 1) / columns;
    return (count + lines - 1) / lines;
}

static void draw_panel(draw_list *list, const chart_figure *spec, const figure_style *style, size_t index,
                       draw_rect area, bool shared, figure_notes *notes)
{
    const chart_panel *panel = &spec->panels[index];
    chart_plot p = chart_plot_make(list, panel, style, area);
    char letter[8];
    figure_letter(index, letter);
    draw_group(list, panel->title ? panel->title : "chart");
    const double legend = shared ? 0 : legend_rows(list, panel, style, 0, 0, area.width, false);
    double raised = legend > 0 ? legend + 2 : 1.4; /* above the panel's own legend */
    figure_panel_title(list, style, spec->panel_letters ? letter : NULL, panel->title, area.x, area.y - raised,
                       area.width);
    if (!shared) legend_rows(list, panel, style, area.x, area.y - 1 - legend, area.width, true);
    chart_plot_draw(list, &p, notes);
    draw_ungroup(list);
}

/* ----------------------------------------------------------------------------------------------------------- table */

static const double between_cells = 4; /* distance in mm */

static double column_width(const draw_list *list, const chart_table *table, size_t column, const figure_style *style)
{
    const draw_font font = figure_font(style), bold = figure_bold_font(style);
    double widest = 0;
    for (size_t row = 0; row < table->rows; row++) {
        const char *cell = table->cells[row * table->columns + column];
        if (cell) widest = fmax(widest, draw_measure(list, cell, row == 0 ? &bold : &font));
    }
    return widest;
}

static double table_width(const draw_list *list, const chart_table *table, const figure_style *style)
{
    double width = (double)(table->columns - 1) * between_cells;
    for (size_t column = 0; column < table->columns; column++) width += column_width(list, table, column, style);
    return width;
}

/* Draws a table with its upper left corner at (x, y), and a rule below its titles. Returns the y below. */
static double draw_table(draw_list *list, const chart_table *table, const figure_style *style, double x, double y)
{
    const draw_font font = figure_font(style), bold = figure_bold_font(style);
    const double leading = 1.4 * draw_type_height(&font), head = y + 1.15 * draw_type_height(&bold) + 0.6;
    const draw_pen rule = {{40, 40, 40, 255}, 0.4, DRAW_SOLID};
    double right = x;
    draw_group(list, "table");
    for (size_t column = 0; column < table->columns; column++) {
        const double width = column_width(list, table, column, style);
        right += width + (column ? between_cells : 0);
        for (size_t row = 0; row < table->rows; row++) {
            const char *cell = table->cells[row * table->columns + column];
            const double top = row == 0 ? y : head + 0.8 + (double)(row - 1) * leading;
            const draw_place place = {column ? right : x, top, column ? DRAW_END : DRAW_START, DRAW_CAP, 0};
            if (cell) draw_text(list, cell, place, row == 0 ? &bold : &font);
        }
    }
    draw_line(list, x, head, right, head, &rule);
    draw_ungroup(list);
    return head + 0.8 + (double)(table->rows - 1) * leading;
}

deberta_status chart_layout(draw_list *list, const void *chart, figure_notes *notes, deberta_error *err)
{
    const chart_figure *spec = chart;
    DEBERTA_TRY(check_chart(spec, err));
    figure_style style = figure_defaults(&spec->style);
    const size_t columns = choose_columns(spec, &style), lines = (spec->panel_count + columns - 1) / columns;
    double each = (style.width_mm - 2 * margin) / (double)columns, width = each, height = 30;
    surroundings around = {0};
    bool shared = legend_is_shared(spec);
    for (int pass = 0; pass < 2; pass++) { /* margins depend on the ticks, the ticks on the width */
        height = panel_height(spec, lines, width, &around);
        around = measure_surroundings(list, spec, &style, width, height);
        width = each - around.left - around.right - (columns > 1 ? 2 : 0);
    }
    if (width < 10)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%zu charts side by side leave no room in %g mm: take a wider figure, or fewer columns with "
                     "--layout where there is that option",
                     columns, style.width_mm);
    double top = figure_title(list, &style);
    top += top > 0 ? 0.5 : margin;
    double full = style.width_mm - 2 * margin,
           legend = shared ? legend_rows(list, &spec->panels[0], &style, margin, top, full, true) : 0;
    top += legend > 0 ? legend + 0.8 : 0;
    double own = 0;
    for (size_t k = 0; k < spec->panel_count; k++) {
        if (k % columns == 0) {
            if (k > 0) top += height + around.below + between_lines;
            own = shared ? 0 : line_legend(list, spec, &style, k, columns, width);
            top += around.above + own;
        }
        draw_rect area = {margin + (double)(k % columns) * each + around.left, top, width, height};
        draw_panel(list, spec, &style, k, area, shared, notes);
    }
    double bottom = top + height + around.below;
    if (spec->table) {
        const size_t used = spec->panel_count % columns; /* panels of the last line */
        const bool beside = used && table_width(list, spec->table, &style) <= (double)(columns - used) * each - 4;
        const double x = margin + (beside ? (double)used * each + 4 : 0), y = beside ? top : bottom + 3;
        bottom = fmax(bottom, draw_table(list, spec->table, &style, x, y));
    }
    bottom = draw_chart_notes(list, spec, &style, notes, bottom);
    draw_set_page(list, style.width_mm, bottom + margin);
    return DEBERTA_OK;
}

deberta_status figure_chart(const chart_figure *spec, const char *const *paths, size_t path_count, figure_notes *notes,
                            deberta_error *err)
{
    return figure_save(chart_layout, spec, &spec->style, paths, path_count, notes, err);
}
