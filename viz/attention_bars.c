/* Draws colour bars and notes below or beside the panels of an attention figure. SPDX-License-Identifier: MIT */
#include <math.h>

#include "viz/attention_plan.h"
#include "viz/colour_bar.h"

/* The columns that have panels of a kind. */
typedef struct column_range {
    size_t first, last;
} column_range;

static column_range columns_of(const attention_plan *p, heatmap_kind kind)
{
    column_range range = {SIZE_MAX, 0};
    for (size_t k = 0; k < attention_panel_count(p->spec); k++) {
        if (!attention_has_cells(p->spec, k) || p->spec->panels[k].kind != kind) continue;
        const size_t column = k % p->spec->grid_columns;
        if (column < range.first) range.first = column;
        if (column > range.last) range.last = column;
    }
    return range;
}

static double range_width(const attention_plan *p, column_range range)
{
    return attention_plan_x(p, range.last) + p->panel_width - attention_plan_x(p, range.first);
}

/* Lists the kinds that have a bar, from left to right; returns how many. */
static size_t kinds_in_order(const attention_plan *p, heatmap_kind kinds[HEATMAP_KINDS])
{
    size_t count = 0;
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        if (!attention_plan_has_bar(p, kind)) continue;
        size_t place = count++;
        for (; place > 0 && columns_of(p, kinds[place - 1]).first > columns_of(p, kind).first; place--)
            kinds[place] = kinds[place - 1];
        kinds[place] = kind;
    }
    return count;
}

static const double narrowest_bar = 22, widest_bar = 80; /* mm */

/* Returns true if every bar has its own columns above it, wide enough for it; its title is broken into lines. */
static bool bars_have_columns(const attention_plan *p, const heatmap_kind *kinds, size_t bars)
{
    bool fits = p->lines_per_row == 1 && bars > 1;
    for (size_t k = 0; k < bars && fits; k++) {
        const column_range own = columns_of(p, kinds[k]);
        fits = range_width(p, own) >= narrowest_bar && (k == 0 || own.first > columns_of(p, kinds[k - 1]).last);
    }
    return fits;
}

/* Places each bar below its panels if every kind has separate columns; otherwise side by side, or one above the other
 * in a narrow space. Returns the y below; draws only if draw is set. */
static double place_bars(draw_list *list, const attention_plan *p, double x, double y, double width, bool draw)
{
    heatmap_kind kinds[HEATMAP_KINDS];
    const size_t bars = kinds_in_order(p, kinds);
    const bool own = bars_have_columns(p, kinds, bars), stacked = !own && width / (double)(bars ? bars : 1) < 45;
    double tallest = 0;
    for (size_t k = 0; k < bars; k++) {
        const column_range range = columns_of(p, kinds[k]);
        double each = stacked ? width : fmin((width - 6 * (double)(bars - 1)) / (double)bars, widest_bar);
        if (own) each = fmin(range_width(p, range), widest_bar);
        const double left = own ? attention_plan_x(p, range.first) : stacked ? x : x + (double)k * (each + 6);
        char title[HEATMAP_UNIT_BYTES];
        attention_unit(p->spec, kinds[k], title);
        colour_legend legend = {
            .title = title,
            .scale = &p->shared[kinds[k]],
            .map = palette_find(attention_palette(p->spec, kinds[k])),
            .font = p->font,
            .small = p->small,
            .width = each,
            .room = fmin(own ? each + p->gap_across - 1.5 : each + 4, p->style.width_mm - attention_margin - left)};
        double height = colour_legend_height(list, &legend);
        if (draw) colour_legend_draw(list, &legend, left, y);
        if (stacked)
            y += height;
        else
            tallest = fmax(tallest, height);
    }
    return y + tallest;
}

/* Draws one sentence for each fact that the picture does not show. */
static double draw_notes(draw_list *list, const attention_plan *p, const figure_notes *notes, double y)
{
    byte_buffer text = {0};
    figure_cell_notes(notes, &text);
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        const heatmap_policy policy = attention_policy(p->spec, kind);
        if (!heatmap_has_own_bars(policy) || !p->panels_of[kind]) continue;
        static const char *const kinds[] = {"signed", "probability", "other", "other"};
        char unit[HEATMAP_UNIT_BYTES];
        attention_unit(p->spec, kind, unit);
        if (policy == HEATMAP_PANEL)
            byte_buffer_format(&text, "Every %s panel has its own colour scale (%s). ", kinds[kind], unit);
        else
            byte_buffer_format(&text, "Every row of %s panels has its own colour scale (%s). ", kinds[kind], unit);
    }
    return figure_write_notes(list, &p->style, y, &text);
}

/* Places bars into the empty places that the lines of a row of panels leave, below the axis of the panel above
 * them. */
static bool place_bars_among_panels(draw_list *list, const attention_plan *p, double top, size_t row, double bottom)
{
    const size_t line = p->lines_per_row - 1, used = p->spec->grid_columns - line * p->across;
    if (p->lines_per_row < 2 || used == p->across || p->panel_width < narrowest_bar) return false;
    const double x = attention_plan_x(p, used), width = fmin(p->panel_width, 44);
    const double axis = row + 1 == p->spec->grid_rows ? attention_plan_axis_height(p) + 2 : p->gap_down;
    const double y = attention_plan_y(p, top, row, line - 1) + p->panel_height + axis;
    if (place_bars(list, p, x, y, width, false) > bottom) return false;
    place_bars(list, p, x, y, width, true);
    return true;
}

/* Draws bars among the panels of the last row, or of the first one, else below everything, no wider than the panels
 * unless these are narrow. */
static double draw_bars_below(draw_list *list, const attention_plan *p, double top, double bottom)
{
    if (place_bars_among_panels(list, p, top, p->spec->grid_rows - 1, bottom)) return bottom;
    if (p->spec->grid_rows > 1) {
        const double next = attention_plan_y(p, top, 1, 0) - p->title_height - p->header;
        if (place_bars_among_panels(list, p, top, 0, next)) return bottom;
    }
    const double page = p->style.width_mm - attention_margin - p->left,
                 panels = attention_plan_x(p, p->across - 1) + p->panel_width + attention_bar_room(p, p->across - 1) -
                          p->left;
    return place_bars(list, p, p->left, bottom, fmin(page, fmax(panels, 45)), true);
}

/* ---------------------------------------------------------------------------------------------------- at the side */

static void draw_side_bar(draw_list *list, const attention_plan *p, double top)
{
    char lines[2][HEATMAP_UNIT_BYTES];
    const heatmap_kind kind = attention_plan_only_kind(p);
    const heatmap_scale *scale = &p->shared[kind];
    const size_t count = attention_plan_side_title(p, lines);
    const double y = attention_plan_y(p, top, 0, 0), point = scale->below || scale->above ? attention_side_bar : 0,
                 x = attention_plan_x(p, p->across - 1) + p->panel_width + p->right - attention_margin - p->side_bar,
                 titles = x + p->side_bar - ((double)count - 0.7) * attention_plan_leading(p);
    const draw_rect bar = {x + attention_side_gap, y + point, attention_side_bar, p->panel_height - 2 * point};
    colour_bar_draw(list, bar, true, scale, palette_find(attention_palette(p->spec, kind)), &p->small);
    for (size_t k = 0; k < count; k++) {
        const draw_place place = {titles + (double)k * attention_plan_leading(p), y + p->panel_height / 2, DRAW_MIDDLE,
                                  DRAW_BASELINE, 90};
        draw_text(list, lines[k], place, &p->font);
    }
}

double attention_draw_bars(draw_list *list, const attention_plan *p, const figure_notes *notes, double top)
{
    double bottom = attention_plan_y(p, top, p->spec->grid_rows - 1, p->lines_per_row - 1) + p->panel_height +
                    attention_plan_axis_height(p) + 1;
    if (p->side_bar > 0)
        draw_side_bar(list, p, top);
    else
        bottom = draw_bars_below(list, p, top, bottom);
    return draw_notes(list, p, notes, bottom);
}
