/* Draws the attention figure as attention_plan.c arranges it, from top to bottom: cells and their colours, labels,
 * numbers, colour bars, notes.
 *
 * SPDX-License-Identifier: MIT */
#include "output/scope.h"
#include "viz/attention_figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viz/attention_plan.h"
#include "viz/colour_bar.h"
#include "viz/ticks.h"

static const draw_colour black = {0, 0, 0, 255}, white = {255, 255, 255, 255}, nothing = {0, 0, 0, 0};

/* ------------------------------------------------------------------------------------------------------ checking */

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
        const char *name = attention_palette(spec, kind);
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

/* Prepares the cells before scales are chosen, because a scale depends on the drawn values, centred and pooled. */
static void prepare_cells(attention_plan *p, figure_notes *notes)
{
    const attention_figure *spec = p->spec;
    for (size_t i = 0; i < attention_panel_count(spec); i++) {
        const attention_panel *panel = &spec->panels[i];
        if (!attention_has_cells(spec, i)) continue;
        heatmap_matrix matrix = {panel->values, spec->queries, spec->keys, panel->stride};
        heatmap_prepare(&p->cells[i], &matrix, panel->kind, !spec->keep_row_mean, p->row_pool, p->pool);
        notes->not_a_number += p->cells[i].not_a_number;
        notes->infinite += p->cells[i].infinite;
        notes->not_positive += p->cells[i].not_positive;
    }
    notes->pooled = p->pool;
    notes->pooled_rows = p->row_pool;
}

/* Chooses the scale that the panels of a kind share, among `count` panels from `first` on, and stores it in *scale
 * and for each panel; without such panels nothing changes. together: room for as many panels. */
static void choose_scale(attention_plan *p, heatmap_kind kind, size_t first, size_t count,
                         const heatmap_cells **together, heatmap_scale *scale)
{
    size_t used = 0;
    for (size_t i = first; i < first + count; i++)
        if (p->cells[i].values && p->spec->panels[i].kind == kind) together[used++] = &p->cells[i];
    if (used == 0) return;
    heatmap_choose(scale, kind, &p->spec->scales[kind], together, used);
    for (size_t i = first; i < first + count; i++)
        if (p->spec->panels[i].kind == kind) p->scales[i] = *scale;
}

/* Chooses one scale for all panels of a kind, for each row of them, or for each panel. Clipped cells are counted only
 * if the limits were not the extremes. */
static void choose_scales(attention_plan *p, figure_notes *notes)
{
    const attention_figure *spec = p->spec;
    const size_t count = attention_panel_count(spec);
    const heatmap_cells **together = memory_take(count, sizeof *together);
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        const heatmap_policy policy = attention_policy(spec, kind);
        const size_t each = policy == HEATMAP_PANEL ? 1 : policy == HEATMAP_ROW ? spec->grid_columns : count;
        for (size_t i = 0; i < count; i += each) choose_scale(p, kind, i, each, together, &p->shared[kind]);
        if (!heatmap_has_own_bars(policy)) notes->clipped += p->shared[kind].below + p->shared[kind].above;
    }
    free(together);
}

static void free_cells(attention_plan *p)
{
    for (size_t i = 0; p->cells && i < attention_panel_count(p->spec); i++) heatmap_cells_free(&p->cells[i]);
}

/* Measures the numbers of bars at the right of panels: the layout depends on their width, and they depend on cells
 * that are not pooled yet. */
static void measure_bar_numbers(const draw_list *list, attention_plan *p)
{
    figure_notes unused = {0};
    bool any = attention_has_row_bars(p->spec);
    for (size_t i = 0; i < attention_panel_count(p->spec); i++) any |= attention_has_own_bar(p->spec, i);
    if (!any) return;
    p->pool = p->row_pool = 1;
    prepare_cells(p, &unused);
    choose_scales(p, &unused);
    for (size_t i = 0; i < attention_panel_count(p->spec); i++)
        if (heatmap_has_own_bars(attention_policy(p->spec, p->spec->panels[i].kind)) && p->cells[i].values)
            p->bar_numbers = fmax(p->bar_numbers, colour_bar_numbers_width(list, &p->scales[i], &p->small));
    free_cells(p);
}

/* Pools what is finer than the pixels of a PNG; the layout stays. */
static void pool_pixels(const draw_list *list, attention_plan *p, figure_notes *notes)
{
    const size_t columns = heatmap_pool(p->cell, draw_pixel(list)),
                 rows = heatmap_pool(p->cell_height, draw_pixel(list));
    notes->coarse = columns > p->pool || rows > p->row_pool;
    if (columns > p->pool) p->pool = columns;
    if (rows > p->row_pool) p->row_pool = rows;
}

/* ------------------------------------------------------------------------------------------------------- drawing */

/* Draws a rule at the beginning of the second text of a pair, which extends a little into the labels. */
static void draw_boundaries(draw_list *list, const attention_plan *p, double x, double y)
{
    /* visible on dark and on light cells */
    const draw_pen pens[] = {{white, 1.4, DRAW_SOLID}, {black, 0.6, DRAW_SOLID}};
    for (size_t k = 0; k < 2 * p->spec->boundary_count; k++) {
        const draw_pen *pen = &pens[k / p->spec->boundary_count];
        size_t token = p->spec->boundaries[k % p->spec->boundary_count];
        double across = x + (double)token * p->cell, down = y + (double)token * p->cell_height;
        if (token > 0 && token < p->spec->keys) draw_line(list, across, y, across, y + p->panel_height + 1, pen);
        if (token > 0 && token < p->spec->queries) draw_line(list, x - 1, down, x + p->panel_width, down, pen);
    }
}

/* Draws marks in white under black, as for the rules, so that one of them is visible on any cell. */
static void draw_marks(draw_list *list, const attention_plan *p, double x, double y)
{
    const draw_pen under = {white, 1.8, DRAW_SOLID}, over = {black, 0.8, DRAW_SOLID};
    for (size_t i = 0; i < p->spec->mark_count; i++) {
        double width = fmax(p->cell, 0.8), height = fmax(p->cell_height, 0.8); /* keeps tiny marks visible */
        draw_rect box = {x + ((double)p->spec->marks[i].key + 0.5) * p->cell - width / 2,
                         y + ((double)p->spec->marks[i].query + 0.5) * p->cell_height - height / 2, width, height};
        draw_box(list, box, nothing, &under);
        draw_box(list, box, nothing, &over);
    }
}

/* Writes a short number: three digits at most, and no zero before the point where values are small. A value too small
 * for these digits becomes 0, not a power of ten. */
static void cell_text(heatmap_kind kind, const heatmap_scale *scale, bool whole, double value,
                      char text[TICK_TEXT_BYTES])
{
    const double reach = fmax(fabs(scale->low), fabs(scale->high));
    const bool varied = kind == HEATMAP_LOG || (kind == HEATMAP_RANGE && reach < 1),
               small = kind == HEATMAP_POSITIVE || kind == HEATMAP_RANGE || reach < 2;
    if (!varied && fabs(value) < 1e-4) value = 0;
    tick_text(value, varied ? 0 : whole || reach >= 100 ? 1 : reach >= 10 || !small ? 0.1 : 0.01, text);
    if (varied || !small) return;
    char *digits = strncmp(text, DRAW_MINUS, strlen(DRAW_MINUS)) == 0 ? text + strlen(DRAW_MINUS) : text;
    if (digits[0] == '0' && digits[1] == '.') memmove(digits, digits + 1, strlen(digits));
}

/* least distance in mm between the numbers of neighbouring cells, which would otherwise read as one */
static const double numbers_gap = 0.35;

/* Finds the first number of a panel that exceeds its cell, or would need type below 6 pt; returns false if there is
 * none. */
static bool find_crowded(const draw_list *list, const attention_plan *p, size_t index, char text[TICK_TEXT_BYTES])
{
    const heatmap_cells *cells = &p->cells[index];
    const heatmap_kind kind = p->spec->panels[index].kind;
    const bool too_low = draw_type_height(&p->small) > p->cell_height, pooled = p->pool > 1 || p->row_pool > 1;
    for (size_t k = 0; k < cells->rows * cells->columns; k++) {
        if (isnan(cells->values[k])) continue;
        cell_text(kind, &p->scales[index], cells->whole, cells->values[k], text);
        if (too_low || pooled || draw_measure(list, text, &p->small) + numbers_gap > p->cell) return true;
    }
    return false;
}

/* Decides whether cells show numbers; if the caller requires them, an error says what is too small. */
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
                         p->cell, p->cell_height, text, draw_measure(list, text, &p->small) + numbers_gap,
                         draw_type_height(&p->small));
        p->annotated = false;
    }
    return DEBERTA_OK;
}

static void draw_cell_numbers(draw_list *list, const attention_plan *p, size_t index, double x, double y)
{
    const heatmap_kind kind = p->spec->panels[index].kind;
    const heatmap_cells *cells = &p->cells[index];
    const palette *map = palette_find(attention_palette(p->spec, kind));
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

/* Crops the page to the drawing, which may be narrower, since cells have a largest size. */
static void crop_page(const draw_list *list, attention_plan *p)
{
    const double last = attention_plan_x(p, p->across - 1);
    double right = last + p->panel_width + attention_bar_room(p, p->across - 1) + p->right;
    for (size_t i = p->across - 1; i < attention_panel_count(p->spec) && p->spec->panels[i].title; i += p->across)
        right = fmax(right, last + draw_measure(list, p->spec->panels[i].title, &p->bold) + 1);
    const attention_row_bars bars = attention_plan_row_bars(p);
    right = fmax(right, attention_row_bars_end(list, &bars) + attention_margin);
    p->style.width_mm = figure_page_width(&p->style, right);
}

/* Returns the room for a title, which may extend over the gap to the next panel, or to the edge of the page. x: where
 * it begins. */
static double title_room(const attention_plan *p, size_t column, double x)
{
    const double to_edge = p->style.width_mm - attention_margin - x;
    if (p->across == 1) return to_edge;
    return fmin(p->panel_width + attention_bar_room(p, column) + p->gap_across - 1, to_edge);
}

static bool titles_fit(const draw_list *list, const attention_plan *p)
{
    const double letter = p->spec->panel_letters ? draw_measure(list, "m", &p->bold) + 1.2 : 0;
    const draw_font *font = p->spec->panel_letters ? &p->font : &p->bold;
    bool fit = true;
    for (size_t i = 0; i < attention_panel_count(p->spec) && fit; i++) {
        const char *title = p->spec->panels[i].title;
        const size_t column = i % p->spec->grid_columns % p->across;
        const double x = attention_plan_x(p, column);
        fit = !title || letter + draw_measure(list, title, font) <= title_room(p, column, x);
    }
    return fit;
}

static void draw_panel_title(draw_list *list, const attention_plan *p, size_t index, size_t number, double x, double y)
{
    char letter[8];
    figure_letter(number, letter);
    const char *title = p->short_titles ? p->spec->short_titles[index] : p->spec->panels[index].title;
    const size_t column = index % p->spec->grid_columns % p->across;
    figure_panel_title(list, &p->style, p->spec->panel_letters ? letter : NULL, title, x, y - 1.1,
                       title_room(p, column, x));
}

/* Draws a word in a pale frame, so that the place is not taken for a matrix without colour. */
static void draw_word(draw_list *list, const attention_plan *p, draw_rect rect, const char *word)
{
    const draw_pen frame = {{190, 190, 190, 255}, 0.4, DRAW_DASHED};
    draw_font font = p->font;
    font.colour = (draw_colour){110, 110, 110, 255};
    while (font.size > FIGURE_SMALLEST_TYPE && draw_measure(list, word, &font) > rect.width - 1) font.size -= 0.5;
    draw_box(list, rect, nothing, &frame);
    draw_place middle = {rect.x + rect.width / 2, rect.y + rect.height / 2, DRAW_MIDDLE, DRAW_CENTRE, 0};
    draw_text_within(list, word, middle, &font, rect.width - 1);
}

/* Draws a panel's own bar below the line of the titles, with its highest number and the point of a clipped end. */
static void draw_own_bar(draw_list *list, const attention_plan *p, size_t index, double x, double y)
{
    const heatmap_scale *scale = &p->scales[index];
    const palette *map = palette_find(attention_palette(p->spec, p->spec->panels[index].kind));
    const double end = scale->below || scale->above ? attention_own_bar : draw_type_height(&p->small) / 2;
    const draw_rect bar = {x + p->panel_width + attention_own_gap, y + end, attention_own_bar,
                           fmin(p->panel_height, 40) - 2 * end};
    colour_bar_draw(list, bar, true, scale, map, &p->small);
}

static void draw_panel(draw_list *list, const attention_plan *p, size_t index, double x, double y)
{
    const attention_figure *spec = p->spec;
    const attention_panel *panel = &spec->panels[index];
    const palette *map = palette_find(attention_palette(spec, panel->kind));
    const draw_pen frame = {attention_ink, 0.5, DRAW_SOLID};
    draw_rect rect = {x, y, p->panel_width, p->panel_height};
    draw_group(list, panel->title ? panel->title : "panel");
    if (!attention_has_cells(spec, index)) {
        draw_word(list, p, rect, spec->words[index]);
        draw_ungroup(list);
        return;
    }
    heatmap_draw(list, rect, &p->cells[index], spec->queries, spec->keys, &p->scales[index], map);
    if (p->annotated) draw_cell_numbers(list, p, index, x, y);
    draw_boundaries(list, p, x, y);
    draw_box(list, rect, nothing, &frame);
    draw_marks(list, p, x, y);
    if (attention_has_own_bar(spec, index)) draw_own_bar(list, p, index, x, y);
    draw_ungroup(list);
}

/* Returns true if the same column holds a panel in a later line, as the lowest panel has the tokens. */
static bool has_panel_below(const attention_plan *p, size_t row, size_t line, size_t column)
{
    const size_t lines = p->spec->grid_rows * p->lines_per_row;
    for (size_t next = row * p->lines_per_row + line + 1; next < lines; next++) {
        const size_t component = next % p->lines_per_row * p->across + column;
        if (component < p->spec->grid_columns &&
            p->spec->panels[next / p->lines_per_row * p->spec->grid_columns + component].values)
            return true;
    }
    return false;
}

/* Places the bars of a row in the line of its title, or between its rule and the titles of the panels. */
static void place_row_bars(draw_list *list, const attention_plan *p, size_t row, double top)
{
    if (!attention_has_row_bars(p->spec)) return;
    const attention_row_bars bars = attention_plan_row_bars(p);
    const double panels = attention_plan_y(p, top, row, 0) - p->title_height, line = attention_row_bars_height(&bars);
    const double under = panels - ((double)p->bar_lines - 0.5) * line, /* middle of the first line */
        beside = panels - p->header + 0.6 * draw_type_height(&p->bold);
    attention_row_bars_draw(list, &bars, row, p->bar_lines ? under : beside);
}

/* Draws the row title along the whole height of its lines, or above them with a rule. */
static void draw_row_title(draw_list *list, const attention_plan *p, size_t row, double top)
{
    place_row_bars(list, p, row, top);
    if (!p->spec->row_titles || !p->spec->row_titles[row]) return;
    const double from = attention_plan_y(p, top, row, 0),
                 to = attention_plan_y(p, top, row, p->lines_per_row - 1) + p->panel_height;
    const double high = draw_type_height(&p->bold), page = p->style.width_mm;
    if (!p->titles_above) {
        draw_place beside = {attention_margin + high * 0.8, (from + to) / 2, DRAW_MIDDLE, DRAW_BASELINE, 90};
        draw_text_within(list, p->spec->row_titles[row], beside, &p->bold, attention_plan_row_room(p));
        return;
    }
    const draw_pen rule = {attention_ink, 0.4, DRAW_SOLID};
    const double y = from - p->title_height - p->header;
    draw_place above = {attention_margin, y + high, DRAW_START, DRAW_BASELINE, 0};
    draw_text_within(list, p->spec->row_titles[row], above, &p->bold, page - 2 * attention_margin);
    if (p->spec->grid_rows > 1)
        draw_line(list, attention_margin, y + high + 1, page - attention_margin, y + high + 1, &rule);
}

static void draw_panels(draw_list *list, const attention_plan *p, double top)
{
    size_t letter = 0;
    for (size_t row = 0; row < p->spec->grid_rows; row++) {
        draw_row_title(list, p, row, top);
        for (size_t component = 0; component < p->spec->grid_columns; component++) {
            size_t index = row * p->spec->grid_columns + component, line = component / p->across,
                   column = component % p->across;
            double x = attention_plan_snap(p, attention_plan_x(p, column)),
                   y = attention_plan_snap(p, attention_plan_y(p, top, row, line));
            if (column == 0) attention_draw_left_axis(list, p, y);
            if (!p->spec->panels[index].values) continue;
            draw_panel_title(list, p, index, letter++, x, y);
            draw_panel(list, p, index, x, y);
            if (!has_panel_below(p, row, line, column)) attention_draw_lower_axis(list, p, x, y);
        }
    }
}

/* Fails before it draws anything, also if the panels would be higher than `highest`, in mm. */
static deberta_status attention_layout_once(draw_list *list, const attention_figure *spec, double highest,
                                            figure_notes *notes, deberta_error *err)
{
    DEBERTA_TRY(check_spec(spec, err));
    attention_plan p = {.spec = spec, .style = figure_defaults(&spec->style)};
    p.pixel = figure_grid_mm;
    p.font = figure_font(&p.style);
    p.small = figure_small_font(&p.style);
    p.bold = figure_bold_font(&p.style);
    p.cells = memory_take(attention_panel_count(spec), sizeof *p.cells);
    p.scales = memory_take(attention_panel_count(spec), sizeof *p.scales);
    p.bars_before = memory_take(spec->grid_columns + 1, sizeof *p.bars_before);
    deberta_status status = DEBERTA_OK;
    measure_bar_numbers(list, &p);
    DEBERTA_TRY_OR_FAIL(status, attention_plan_arrange(&p, list, err));
    notes->positions = !attention_plan_shows_tokens(&p);
    pool_pixels(list, &p, notes);
    prepare_cells(&p, notes);
    choose_scales(&p, notes);
    DEBERTA_TRY_OR_FAIL(status, plan_cell_numbers(list, &p, err));
    status = attention_plan_y(&p, 0, spec->grid_rows, 0) > highest ? DEBERTA_E_ARGUMENT : DEBERTA_OK;
    if (status != DEBERTA_OK) goto fail;
    crop_page(list, &p);
    p.short_titles = spec->short_titles && !titles_fit(list, &p);
    double top = figure_title(list, &p.style);
    draw_panels(list, &p, top);
    double bottom = attention_draw_bars(list, &p, notes, top);
    draw_set_page(list, p.style.width_mm, bottom + attention_margin);
fail:
    free_cells(&p);
    free(p.cells);
    free(p.scales);
    free(p.bars_before);
    return status;
}

static const double highest_for_numbers = 210; /* mm, which leave room for bars and notes on a page */

/* Lays out the figure, with fewer panels side by side where numbers would not fit into the cells, as far as a page
 * allows. */
deberta_status attention_layout(draw_list *list, const void *attention, figure_notes *notes, deberta_error *err)
{
    const attention_figure *spec = attention;
    const figure_notes before = *notes;
    deberta_error unused;
    deberta_status status = attention_layout_once(list, spec, INFINITY, notes, err);
    attention_figure other = *spec;
    other.columns = spec->annotate && !spec->columns && spec->panels ? spec->grid_columns : 0;
    while (status == DEBERTA_E_ARGUMENT && other.columns > 1) {
        *notes = before;
        other.columns--;
        status = attention_layout_once(list, &other, highest_for_numbers, notes, &unused);
    }
    return status;
}

deberta_status figure_attention(const attention_figure *spec, const char *const *paths, size_t path_count,
                                figure_notes *notes, deberta_error *err)
{
    return figure_save(attention_layout, spec, &spec->style, paths, path_count, notes, err);
}
