/* Drawing of the attention figure as attention_plan.c arranges it, from top to bottom: cells and their colours, labels,
 * numbers, colour bars, notes.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/attention_figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viz/attention_plan.h"
#include "viz/ticks.h"

static const draw_colour ink = {40, 40, 40, 255}, black = {0, 0, 0, 255}, white = {255, 255, 255, 255};
static const draw_colour special_grey = {145, 145, 145, 255}, nothing = {0, 0, 0, 0};

/* ------------------------------------------------------------------------------------------------------ checking */

static const char *palette_name_of(const attention_figure *spec, heatmap_kind kind)
{
    static const char *const defaults[] = {"polar", "blues", "viridis", "viridis"};
    return spec->palettes[kind] ? spec->palettes[kind] : defaults[kind];
}

static void unit_of(const attention_figure *spec, heatmap_kind kind, char text[HEATMAP_UNIT_BYTES])
{
    heatmap_unit_text(spec->units[kind], kind, spec->keep_row_mean, text);
}

static deberta_status check_spec(const attention_figure *spec, deberta_error *err)
{
    DEBERTA_TRY(figure_check_style(&spec->style, err));
    if (!spec->panels || spec->grid_rows == 0 || spec->grid_columns == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "an attention figure needs at least one panel");
    if (spec->queries == 0 || spec->keys == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "an attention figure needs at least one query and one key");
    for (size_t i = 0; i < attention_panel_count(spec); i++)
        if (spec->panels[i].values && spec->panels[i].stride < spec->keys)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "panel %zu has rows of %zu values, but there are %zu keys", i,
                         spec->panels[i].stride, spec->keys);
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        const char *name = palette_name_of(spec, kind);
        if (!palette_find(name))
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "unknown palette '%s', expected one of %s", name, palette_names());
        DEBERTA_TRY(heatmap_check_choice(&spec->scales[kind], kind, err));
    }
    if (!(spec->cell_aspect >= 0 && spec->cell_aspect <= ATTENTION_MOST_ASPECT))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "cell aspect %g, expected 0 to %d", spec->cell_aspect,
                     ATTENTION_MOST_ASPECT);
    for (size_t i = 0; i < spec->mark_count; i++)
        if (spec->marks[i].query >= spec->queries || spec->marks[i].key >= spec->keys)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "mark (%zu, %zu) is outside the matrix of %zu queries and %zu keys",
                         spec->marks[i].query, spec->marks[i].key, spec->queries, spec->keys);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------- cells and scales */

/* Before scales, because a scale is chosen from what is drawn: centred and pooled values. */
static deberta_status prepare_cells(attention_plan *p, figure_notes *notes, deberta_error *err)
{
    const attention_figure *spec = p->spec;
    for (size_t i = 0; i < attention_panel_count(spec); i++) {
        const attention_panel *panel = &spec->panels[i];
        if (!panel->values) continue;
        heatmap_matrix matrix = {panel->values, spec->queries, spec->keys, panel->stride};
        DEBERTA_TRY(
            heatmap_prepare(&p->cells[i], &matrix, panel->kind, !spec->keep_row_mean, p->row_pool, p->pool, err));
        notes->not_a_number += p->cells[i].not_a_number;
        notes->infinite += p->cells[i].infinite;
        notes->not_positive += p->cells[i].not_positive;
    }
    notes->pooled = p->pool;
    notes->pooled_rows = p->row_pool;
    return DEBERTA_OK;
}

/* One scale for all panels of a kind, or one for each. Clipped cells are counted only where the limits were not the
 * extremes. */
static deberta_status choose_scales(attention_plan *p, figure_notes *notes, deberta_error *err)
{
    const attention_figure *spec = p->spec;
    const heatmap_cells **together = calloc(attention_panel_count(spec), sizeof *together);
    if (!together) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the scales of a figure");
    deberta_status status = DEBERTA_OK;
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS && status == DEBERTA_OK; kind++) {
        size_t count = 0;
        for (size_t i = 0; i < attention_panel_count(spec); i++)
            if (p->cells[i].values && spec->panels[i].kind == kind) together[count++] = &p->cells[i];
        p->panels_of[kind] = count;
        if (count == 0) continue;
        bool alone = spec->scales[kind].policy == HEATMAP_PANEL;
        if (!alone) status = heatmap_choose(&p->shared[kind], kind, &spec->scales[kind], together, count, err);
        for (size_t i = 0; i < attention_panel_count(spec) && status == DEBERTA_OK; i++) {
            if (!p->cells[i].values || spec->panels[i].kind != kind) continue;
            const heatmap_cells *self = &p->cells[i];
            if (alone)
                status = heatmap_choose(&p->scales[i], kind, &spec->scales[kind], &self, 1, err);
            else
                p->scales[i] = p->shared[kind];
        }
        if (!alone) notes->clipped += p->shared[kind].below + p->shared[kind].above;
    }
    free(together);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- drawing */

/* Right-aligned against the panel. (x, y): upper left corner of the panel, here and below. */
static void draw_row_tokens(draw_list *list, const attention_plan *p, double x, double y)
{
    for (size_t i = 0; i < p->spec->queries; i++) {
        draw_font font = p->label;
        if (p->spec->query_labels[i].special) font.colour = special_grey;
        draw_place place = {x - 1, y + ((double)i + 0.5) * p->cell_height, DRAW_END, DRAW_CENTRE, 0};
        draw_text_within(list, p->spec->query_labels[i].text, place, &font, attention_longest_label);
    }
}

/* Turned to read upwards with their ends at the panel, or level where they fit over their cells. */
static void draw_column_tokens(draw_list *list, const attention_plan *p, double x, double y)
{
    for (size_t j = 0; j < p->spec->keys; j++) {
        draw_font font = p->label;
        if (p->spec->key_labels[j].special) font.colour = special_grey;
        draw_place place = {x + ((double)j + 0.5) * p->cell, y + 1, DRAW_END, DRAW_CENTRE, 90};
        if (p->level) place = (draw_place){place.x, y + 1, DRAW_MIDDLE, DRAW_CAP, 0};
        draw_text_within(list, p->spec->key_labels[j].text, place, &font, attention_longest_label);
    }
}

/* Numbers at round steps, with small strokes, down the left side or along the lower one: of what is counted one by one
 * round numbers, else (words, something left out) the numbers of every so many cells. */
static void draw_positions(draw_list *list, const attention_plan *p, double x, double y, bool down)
{
    const draw_pen pen = {ink, 0.4, DRAW_SOLID};
    const size_t *numbers = down ? p->spec->query_numbers : p->spec->key_numbers;
    const size_t count = down ? p->spec->queries : p->spec->keys, first = numbers ? numbers[0] : 0;
    const bool one_by_one = !numbers || numbers[count - 1] - first == count - 1;
    double cell = down ? p->cell_height : p->cell, begin = one_by_one ? (double)first : 0,
           size = down ? draw_type_height(&p->label) : attention_number_width(list, numbers, count, &p->label);
    size_t most = (size_t)fmax(2, cell * (double)count / (down ? 1.6 * size : size + 1.5));
    tick_set ticks = {.count = 1, .step = 1};
    ticks.at[0] = begin;
    if (count > 1) ticks = ticks_whole(begin, begin + (double)(count - 1), most);
    double before = -INFINITY;
    for (size_t i = 0; i < ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        const size_t place = (size_t)round(ticks.at[i] - begin);
        double at = ((double)place + 0.5) * cell;
        if (at - before < (down ? 1.1 * size : size + 0.4)) continue; /* two in a narrow place */
        before = at;
        tick_text((double)(numbers ? numbers[place] : place), 1, text);
        if (down) {
            draw_line(list, x - 0.7, y + at, x, y + at, &pen);
            draw_text(list, text, (draw_place){x - 1.2, y + at, DRAW_END, DRAW_CENTRE, 0}, &p->label);
        } else {
            draw_line(list, x + at, y, x + at, y + 0.7, &pen);
            draw_text(list, text, (draw_place){x + at, y + 1.3, DRAW_MIDDLE, DRAW_CAP, 0}, &p->label);
        }
    }
}

/* Where the second text of a pair begins. The rule reaches a little into the labels. */
static void draw_boundaries(draw_list *list, const attention_plan *p, double x, double y)
{
    const draw_pen pens[] = {{white, 1.4, DRAW_SOLID}, {black, 0.6, DRAW_SOLID}}; /* seen on dark and on light cells */
    for (size_t k = 0; k < 2 * p->spec->boundary_count; k++) {
        const draw_pen *pen = &pens[k / p->spec->boundary_count];
        size_t token = p->spec->boundaries[k % p->spec->boundary_count];
        double across = x + (double)token * p->cell, down = y + (double)token * p->cell_height;
        if (token > 0 && token < p->spec->keys) draw_line(list, across, y, across, y + p->panel_height + 1, pen);
        if (token > 0 && token < p->spec->queries) draw_line(list, x - 1, down, x + p->panel_width, down, pen);
    }
}

/* White under black, as with the rules: one of them is seen on any cell. */
static void draw_marks(draw_list *list, const attention_plan *p, double x, double y)
{
    const draw_pen under = {white, 1.8, DRAW_SOLID}, over = {black, 0.8, DRAW_SOLID};
    for (size_t i = 0; i < p->spec->mark_count; i++) {
        double width = fmax(p->cell, 0.8), height = fmax(p->cell_height, 0.8); /* a mark on a tiny cell stays visible */
        draw_rect box = {x + ((double)p->spec->marks[i].key + 0.5) * p->cell - width / 2,
                         y + ((double)p->spec->marks[i].query + 0.5) * p->cell_height - height / 2, width, height};
        draw_box(list, box, nothing, &under);
        draw_box(list, box, nothing, &over);
    }
}

/* Short: three digits at most, and no zero before the point where all values are smaller than 1. */
static void cell_text(heatmap_kind kind, const heatmap_scale *scale, bool whole, double value,
                      char text[TICK_TEXT_BYTES])
{
    const double reach = fmax(fabs(scale->low), fabs(scale->high));
    const bool varied = kind == HEATMAP_RANGE || kind == HEATMAP_LOG, small = kind == HEATMAP_POSITIVE || reach < 1;
    tick_text(value, varied ? 0 : whole || reach >= 100 ? 1 : reach >= 10 || !small ? 0.1 : 0.01, text);
    if (varied || !small) return;
    char *digits = strncmp(text, DRAW_MINUS, strlen(DRAW_MINUS)) == 0 ? text + strlen(DRAW_MINUS) : text;
    if (digits[0] == '0' && digits[1] == '.') memmove(digits, digits + 1, strlen(digits));
}

/* A number that sticks out of its cell, or type below 6 pt, would not be readable. The first such number of a panel;
 * false: there is none. */
static bool find_crowded(const draw_list *list, const attention_plan *p, size_t index, char text[TICK_TEXT_BYTES])
{
    const heatmap_cells *cells = &p->cells[index];
    const heatmap_kind kind = p->spec->panels[index].kind;
    const bool too_low = draw_type_height(&p->small) > p->cell_height, pooled = p->pool > 1 || p->row_pool > 1;
    for (size_t k = 0; k < cells->rows * cells->columns; k++) {
        if (isnan(cells->values[k])) continue;
        cell_text(kind, &p->scales[index], cells->whole, cells->values[k], text);
        if (too_low || pooled || draw_measure(list, text, &p->small) > p->cell * 0.98) return true;
    }
    return false;
}

/* Whether numbers stand in the cells: if they were asked for without condition, the caller is told what is too small.
 */
static deberta_status plan_cell_numbers(const draw_list *list, attention_plan *p, deberta_error *err)
{
    char text[TICK_TEXT_BYTES];
    p->annotated = p->spec->annotate || p->spec->annotate_if_room;
    for (size_t i = 0; i < attention_panel_count(p->spec) && p->annotated; i++) {
        if (!p->cells[i].values || !find_crowded(list, p, i, text)) continue;
        if (p->spec->annotate)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                         "numbers do not fit into cells of %.1f x %.1f mm ('%s' needs %.1f x %.1f): fewer tokens, "
                         "fewer panels side by side or a wider figure",
                         p->cell, p->cell_height, text, draw_measure(list, text, &p->small) / 0.98,
                         draw_type_height(&p->small));
        p->annotated = false;
    }
    return DEBERTA_OK;
}

static void draw_cell_numbers(draw_list *list, const attention_plan *p, size_t index, double x, double y)
{
    const heatmap_kind kind = p->spec->panels[index].kind;
    const heatmap_cells *cells = &p->cells[index];
    const palette *map = palette_find(palette_name_of(p->spec, kind));
    for (size_t k = 0; k < cells->rows * cells->columns; k++) {
        if (isnan(cells->values[k])) continue;
        char text[TICK_TEXT_BYTES];
        draw_font font = p->small;
        cell_text(kind, &p->scales[index], cells->whole, cells->values[k], text);
        font.colour = palette_ink_on(heatmap_colour(&p->scales[index], map, cells->values[k]));
        draw_place place = {x + ((double)(k % cells->columns) + 0.5) * p->cell,
                            y + ((double)(k / cells->columns) + 0.5) * p->cell_height, DRAW_MIDDLE, DRAW_CENTRE, 0};
        draw_text(list, text, place, &font);
    }
}

/* What is drawn may be narrower than the page: cells do not grow without end. */
static void crop_page(const draw_list *list, attention_plan *p)
{
    const double step = p->panel_width + p->right_bar + p->gap_across, last = p->left + (double)(p->across - 1) * step;
    double right = last + p->panel_width + p->right_bar + p->right;
    for (size_t i = p->across - 1; i < attention_panel_count(p->spec) && p->spec->panels[i].title; i += p->across)
        right = fmax(right, last + draw_measure(list, p->spec->panels[i].title, &p->bold) + 1);
    p->style.width_mm = figure_page_width(&p->style, right);
}

/* A title may run on over the gap to the next panel, or to the edge of the page. x: where it begins. */
static double title_room(const attention_plan *p, double x)
{
    const double to_edge = p->style.width_mm - attention_margin - x;
    return p->across > 1 ? fmin(p->panel_width + p->right_bar + p->gap_across - 1, to_edge) : to_edge;
}

static bool titles_fit(const draw_list *list, const attention_plan *p)
{
    const double letter = p->spec->panel_letters ? draw_measure(list, "m", &p->bold) + 1.2 : 0;
    const draw_font *font = p->spec->panel_letters ? &p->font : &p->bold;
    bool fit = true;
    for (size_t i = 0; i < attention_panel_count(p->spec) && fit; i++) {
        const char *title = p->spec->panels[i].title;
        const size_t column = i % p->spec->grid_columns % p->across;
        const double x = p->left + (double)column * (p->panel_width + p->right_bar + p->gap_across);
        fit = !title || letter + draw_measure(list, title, font) <= title_room(p, x);
    }
    return fit;
}

static void draw_panel_title(draw_list *list, const attention_plan *p, size_t index, size_t number, double x, double y)
{
    char letter[8];
    figure_letter(number, letter);
    const char *title = p->short_titles ? p->spec->short_titles[index] : p->spec->panels[index].title;
    figure_panel_title(list, &p->style, p->spec->panel_letters ? letter : NULL, title, x, y - 1.1, title_room(p, x));
}

static void draw_panel(draw_list *list, const attention_plan *p, size_t index, double x, double y)
{
    const attention_figure *spec = p->spec;
    const attention_panel *panel = &spec->panels[index];
    const palette *map = palette_find(palette_name_of(spec, panel->kind));
    const draw_pen frame = {ink, 0.5, DRAW_SOLID};
    draw_rect rect = {x, y, p->panel_width, p->panel_height};
    draw_group(list, panel->title ? panel->title : "panel");
    heatmap_draw(list, rect, &p->cells[index], spec->queries, spec->keys, &p->scales[index], map);
    if (p->annotated) draw_cell_numbers(list, p, index, x, y);
    draw_boundaries(list, p, x, y);
    draw_box(list, rect, nothing, &frame);
    draw_marks(list, p, x, y);
    if (spec->scales[panel->kind].policy == HEATMAP_PANEL) {
        draw_rect bar = {x + p->panel_width + 1.2, y, 2, fmin(p->panel_height, 40)};
        heatmap_colour_bar(list, bar, true, &p->scales[index], map, &p->small);
    }
    draw_ungroup(list);
}

/* Top of the panels of a line. */
static double line_top(const attention_plan *p, double top, size_t row, size_t line)
{
    double each = p->title_height + p->panel_height + p->gap_down;
    return top + (double)(row * p->lines_per_row + line) * each + (double)row * p->row_gap + p->title_height;
}

/* True when the same column holds a panel in the next line. */
static bool has_panel_below(const attention_plan *p, size_t row, size_t line, size_t column)
{
    size_t next_row = line + 1 < p->lines_per_row ? row : row + 1,
           next_line = line + 1 < p->lines_per_row ? line + 1 : 0;
    size_t component = next_line * p->across + column;
    return next_row < p->spec->grid_rows && component < p->spec->grid_columns &&
           p->spec->panels[next_row * p->spec->grid_columns + component].values;
}

/* The caller's name, else "query", or "query position" where numbers stand and the room allows. */
static void draw_axis_name(draw_list *list, const attention_plan *p, const char *given, const char *of_tokens,
                           const char *of_positions, bool tokens, draw_place place, double room)
{
    bool positions = !tokens && draw_measure(list, of_positions, &p->font) <= room;
    draw_text(list, given ? given : positions ? of_positions : of_tokens, place, &p->font);
}

/* Only beside the first panel of a line: the panels of a line have the same queries. */
static void draw_left_axis(draw_list *list, const attention_plan *p, double y)
{
    double middle = y + p->panel_height / 2, labels_left;
    if (p->tokens) {
        draw_row_tokens(list, p, p->left, y);
        labels_left = p->left - 1 - attention_label_width(list, p->spec->query_labels, p->spec->queries, &p->label);
    } else {
        draw_positions(list, p, p->left, y, true);
        labels_left = p->left - 2 - attention_number_width(list, p->spec->query_numbers, p->spec->queries, &p->label);
    }
    draw_place place = {labels_left - 1.2, middle, DRAW_MIDDLE, DRAW_BASELINE, 90};
    draw_axis_name(list, p, p->spec->query_axis, "query", "query position", p->tokens, place, p->panel_height);
}

static void draw_lower_axis(draw_list *list, const attention_plan *p, double x, double y)
{
    double bottom = y + p->panel_height;
    if (p->key_tokens)
        draw_column_tokens(list, p, x, bottom);
    else
        draw_positions(list, p, x, bottom, false);
    draw_place place = {x + p->panel_width / 2, bottom + p->label_height + 2, DRAW_MIDDLE, DRAW_CAP, 0};
    draw_axis_name(list, p, p->spec->key_axis, "key", "key position", p->key_tokens, place, p->panel_width);
}

/* Along the whole height of the lines that the row takes. */
static void draw_row_title(draw_list *list, const attention_plan *p, size_t row, double top)
{
    if (!p->spec->row_titles || !p->spec->row_titles[row]) return;
    double from = line_top(p, top, row, 0), to = line_top(p, top, row, p->lines_per_row - 1) + p->panel_height;
    draw_place place = {attention_margin + draw_type_height(&p->bold) * 0.8, (from + to) / 2, DRAW_MIDDLE,
                        DRAW_BASELINE, 90};
    draw_text_within(list, p->spec->row_titles[row], place, &p->bold, to - from + p->gap_down);
}

static void draw_panels(draw_list *list, const attention_plan *p, double top)
{
    size_t letter = 0;
    for (size_t row = 0; row < p->spec->grid_rows; row++) {
        draw_row_title(list, p, row, top);
        for (size_t component = 0; component < p->spec->grid_columns; component++) {
            size_t index = row * p->spec->grid_columns + component, line = component / p->across,
                   column = component % p->across;
            double x =
                attention_plan_snap(p, p->left + (double)column * (p->panel_width + p->right_bar + p->gap_across));
            double y = attention_plan_snap(p, line_top(p, top, row, line));
            if (column == 0) draw_left_axis(list, p, y);
            if (!p->spec->panels[index].values) continue;
            draw_panel_title(list, p, index, letter++, x, y);
            draw_panel(list, p, index, x, y);
            if (!has_panel_below(p, row, line, column)) draw_lower_axis(list, p, x, y);
        }
    }
}

/* --------------------------------------------------------------------------------------- colour bars and footnotes */

/* Bars shared by the panels of a kind; panels with own scales have theirs beside them. */
static size_t bar_count(const attention_plan *p)
{
    size_t bars = 0;
    for (size_t kind = 0; kind < HEATMAP_KINDS; kind++)
        bars += p->panels_of[kind] && p->spec->scales[kind].policy != HEATMAP_PANEL;
    return bars;
}

/* The column that has all panels of a kind, or SIZE_MAX. */
static size_t column_of(const attention_plan *p, heatmap_kind kind)
{
    size_t column = SIZE_MAX;
    for (size_t k = 0; k < attention_panel_count(p->spec); k++) {
        if (!p->spec->panels[k].values || p->spec->panels[k].kind != kind) continue;
        if (column != SIZE_MAX && column != k % p->spec->grid_columns) return SIZE_MAX;
        column = k % p->spec->grid_columns;
    }
    return column;
}

static const double narrowest_bar = 22; /* mm, under a panel; its title is broken */

/* Whether every bar has a column of its own to stand under, wide enough for it. */
static bool bars_have_columns(const attention_plan *p)
{
    bool fits = p->lines_per_row == 1 && p->panel_width >= narrowest_bar && bar_count(p) > 1;
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS && fits; kind++)
        if (p->panels_of[kind] && p->spec->scales[kind].policy != HEATMAP_PANEL) fits = column_of(p, kind) != SIZE_MAX;
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS && fits; kind++)
        for (heatmap_kind other = 0; other < kind; other++)
            if (p->panels_of[kind] && p->panels_of[other]) fits = fits && column_of(p, kind) != column_of(p, other);
    return fits;
}

/* Each under its panels where every kind has a column of its own; else side by side, or one above the other in a narrow
 * space. Returns the y beneath; draws only if draw is set. */
static double place_bars(draw_list *list, const attention_plan *p, double x, double y, double width, bool draw)
{
    size_t bars = bar_count(p), placed = 0;
    const bool own = bars_have_columns(p), stacked = !own && width / (double)(bars ? bars : 1) < 45;
    double each = stacked ? width : fmin((width - 6 * (double)(bars - 1)) / (double)bars, 80), tallest = 0;
    if (own) each = fmin(p->panel_width, 80);
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        if (!p->panels_of[kind] || p->spec->scales[kind].policy == HEATMAP_PANEL) continue;
        char title[HEATMAP_UNIT_BYTES];
        unit_of(p->spec, kind, title);
        double left = stacked ? x : x + (double)placed * (each + 6);
        if (own) left = p->left + (double)column_of(p, kind) * (p->panel_width + p->right_bar + p->gap_across);
        heatmap_legend legend = {
            .title = title,
            .scale = &p->shared[kind],
            .map = palette_find(palette_name_of(p->spec, kind)),
            .font = p->font,
            .small = p->small,
            .width = each,
            .room = fmin(own ? each + p->gap_across - 1.5 : each + 4, p->style.width_mm - attention_margin - left)};
        double height = heatmap_legend_height(list, &legend);
        if (draw) heatmap_legend_draw(list, &legend, left, y);
        if (stacked)
            y += height;
        else
            tallest = fmax(tallest, height);
        placed++;
    }
    return y + tallest;
}

/* One sentence for each thing the eye would not see. */
static double draw_notes(draw_list *list, const attention_plan *p, const figure_notes *notes, double y)
{
    byte_buffer text = {0};
    figure_cell_notes(notes, &text);
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        if (p->spec->scales[kind].policy != HEATMAP_PANEL || !p->panels_of[kind]) continue;
        static const char *const kinds[] = {"signed", "probability", "other", "other"};
        char unit[HEATMAP_UNIT_BYTES];
        unit_of(p->spec, kind, unit);
        byte_buffer_format(&text, "Every %s panel has its own colour scale (%s). ", kinds[kind], unit);
    }
    return figure_write_notes(list, &p->style, y, &text);
}

/* The bars go into the empty places of the last line when two or more lines leave one, else under everything. */
static double draw_below(draw_list *list, const attention_plan *p, const figure_notes *notes, double top)
{
    size_t row = p->spec->grid_rows - 1, line = p->lines_per_row - 1, used = p->spec->grid_columns - line * p->across;
    double bottom = line_top(p, top, row, line) + p->panel_height + attention_plan_axis_height(p) + 1;
    if (p->lines_per_row > 1 && used < p->across && p->panel_width >= 30) {
        double x = p->left + (double)used * (p->panel_width + p->right_bar + p->gap_across),
               width = fmin(p->panel_width, 44);
        double y = line_top(p, top, row, line - 1) + p->panel_height + attention_plan_axis_height(p) + 2;
        if (place_bars(list, p, x, y, width, false) <= bottom) {
            place_bars(list, p, x, y, width, true);
            return draw_notes(list, p, notes, bottom);
        }
    }
    return draw_notes(list, p, notes,
                      place_bars(list, p, p->left, bottom, p->style.width_mm - attention_margin - p->left, true));
}

deberta_status attention_layout(draw_list *list, const void *attention, figure_notes *notes, deberta_error *err)
{
    const attention_figure *spec = attention;
    DEBERTA_TRY(check_spec(spec, err));
    attention_plan p = {.spec = spec, .style = figure_defaults(&spec->style)};
    p.pixel = 25.4 / p.style.dpi;
    p.font = figure_font(&p.style);
    p.small = figure_small_font(&p.style);
    p.bold = figure_bold_font(&p.style);
    p.cells = calloc(attention_panel_count(spec), sizeof *p.cells);
    p.scales = calloc(attention_panel_count(spec), sizeof *p.scales);
    deberta_status status =
        p.cells && p.scales ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "no memory for a figure");
    if (status != DEBERTA_OK) goto fail;
    DEBERTA_TRY_OR_FAIL(status, attention_plan_arrange(&p, list, err));
    notes->positions = !attention_plan_shows_tokens(&p);
    DEBERTA_TRY_OR_FAIL(status, prepare_cells(&p, notes, err));
    DEBERTA_TRY_OR_FAIL(status, choose_scales(&p, notes, err));
    DEBERTA_TRY_OR_FAIL(status, plan_cell_numbers(list, &p, err));
    crop_page(list, &p);
    p.short_titles = spec->short_titles && !titles_fit(list, &p);
    double top = figure_title(list, &p.style);
    draw_panels(list, &p, top);
    double bottom = draw_below(list, &p, notes, top);
    draw_set_page(list, p.style.width_mm, bottom + attention_margin);
fail:
    for (size_t i = 0; p.cells && i < attention_panel_count(spec); i++) heatmap_cells_free(&p.cells[i]);
    free(p.cells);
    free(p.scales);
    return status;
}

deberta_status figure_attention(const attention_figure *spec, const char *const *paths, size_t path_count,
                                figure_notes *notes, deberta_error *err)
{
    return figure_save(attention_layout, spec, &spec->style, paths, path_count, notes, err);
}
