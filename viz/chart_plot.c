/* Draws a panel back to front: grid, ribbons, bars, rules, error bars, lines, markers, axes. Everything but markers is
 * clipped to the area, so that a range chosen by the caller cuts lines cleanly.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/chart_inside.h"

#include <math.h>

static const draw_colour ink = {40, 40, 40, 255}, grid_grey = {226, 226, 226, 255}, rule_grey = {90, 90, 90, 255};
static const draw_colour special_grey = {145, 145, 145, 255};
static const double longest_name = 32; /* in mm, of a category */

/* ------------------------------------------------------------------------------------------------------------ axes */

/* Draws the grid below everything, in a grey that disappears in print before the data do. */
static void draw_grid(draw_list *list, const chart_plot *p)
{
    const draw_pen pen = {grid_grey, 0.4, DRAW_SOLID};
    for (size_t i = 0; i < p->x.ticks.count; i++) {
        double x = chart_plot_x(p, p->x.ticks.at[i]);
        draw_line(list, x, p->area.y, x, p->area.y + p->area.height, &pen);
    }
    for (size_t i = 0; i < p->y.ticks.count; i++) {
        double y = chart_plot_y(p, p->y.ticks.at[i]);
        draw_line(list, p->area.x, y, p->area.x + p->area.width, y, &pen);
    }
}

/* Returns true if category names must be turned to fit. */
static bool names_upright(const draw_list *list, const chart_axis *axis, double width, const draw_font *font)
{
    double each = width / (double)(axis->category_count ? axis->category_count : 1);
    for (size_t i = 0; i < axis->category_count; i++)
        if (draw_measure(list, axis->categories[i].text, font) > each - 0.8) return true;
    return false;
}

static double names_length(const draw_list *list, const chart_axis *axis, const draw_font *font)
{
    double longest = 0;
    for (size_t i = 0; i < axis->category_count; i++)
        longest = fmax(longest, draw_measure(list, axis->categories[i].text, font));
    return fmin(longest, longest_name);
}

/* Draws the names of categories: all or, where they have no room even if turned, every stride-th. Returns the stride.
 */
static size_t draw_category_names(draw_list *list, const chart_plot *p)
{
    const chart_axis *axis = p->x.axis;
    bool upright = names_upright(list, axis, p->area.width, &p->small);
    double each = p->area.width / (double)axis->category_count, bottom = p->area.y + p->area.height;
    size_t stride = upright ? (size_t)fmax(1, ceil(DRAW_LETTERS * draw_type_height(&p->small) / each - 1e-9)) : 1;
    for (size_t i = 0; i < axis->category_count; i += stride) {
        draw_font font = p->small;
        if (axis->categories[i].special) font.colour = special_grey;
        draw_place place = {chart_plot_x(p, (double)i), bottom + 1, upright ? DRAW_END : DRAW_MIDDLE,
                            upright ? DRAW_CENTRE : DRAW_CAP, upright ? 90 : 0};
        draw_text_within(list, axis->categories[i].text, place, &font, longest_name);
    }
    return stride;
}

/* Draws strokes without labels at 2 ... 9 of every decade. */
static void draw_minor_ticks(draw_list *list, const chart_plot *p, bool vertical, const draw_pen *pen)
{
    const chart_axis_map *map = vertical ? &p->y : &p->x;
    double decades = log10(map->high / map->low);
    if (map->axis->scale != CHART_LOG10 || decades > 6) return;
    for (double decade = pow(10, floor(log10(map->low))); decade <= map->high; decade *= 10) {
        for (int digit = 2; digit <= 9; digit++) {
            double value = digit * decade;
            if (value < map->low || value > map->high) continue;
            double x = chart_plot_x(p, value), y = chart_plot_y(p, value), bottom = p->area.y + p->area.height;
            if (vertical)
                draw_line(list, p->area.x - 0.5, y, p->area.x, y, pen);
            else
                draw_line(list, x, bottom, x, bottom + 0.5, pen);
        }
    }
}

static double axis_names_height(const draw_list *list, const chart_plot *p)
{
    if (p->x.axis->scale != CHART_CATEGORIES) return draw_type_height(&p->small) + 1.4;
    bool upright = names_upright(list, p->x.axis, p->area.width, &p->small);
    return 1 + (upright ? names_length(list, p->x.axis, &p->small) : draw_type_height(&p->small)) + 0.4;
}

/* Draws two spines instead of a box, because the upper and right ones would carry nothing. */
static void draw_axes(draw_list *list, const chart_plot *p, figure_notes *notes)
{
    const draw_pen pen = {ink, 0.5, DRAW_SOLID};
    double bottom = p->area.y + p->area.height, right = p->area.x + p->area.width;
    draw_line(list, p->area.x, p->area.y, p->area.x, bottom, &pen);
    draw_line(list, p->area.x, bottom, right, bottom, &pen);
    for (size_t i = 0; i < p->x.ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        double x = chart_plot_x(p, p->x.ticks.at[i]);
        chart_axis_tick_text(&p->x, i, text);
        draw_line(list, x, bottom, x, bottom + 0.8, &pen);
        draw_text(list, text, (draw_place){x, bottom + 1.3, DRAW_MIDDLE, DRAW_CAP, 0}, &p->small);
    }
    for (size_t i = 0; i < p->y.ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        double y = chart_plot_y(p, p->y.ticks.at[i]);
        chart_axis_tick_text(&p->y, i, text);
        draw_line(list, p->area.x - 0.8, y, p->area.x, y, &pen);
        draw_text(list, text, (draw_place){p->area.x - 1.3, y, DRAW_END, DRAW_CENTRE, 0}, &p->small);
    }
    draw_minor_ticks(list, p, false, &pen);
    draw_minor_ticks(list, p, true, &pen);
    if (p->x.axis->scale == CHART_CATEGORIES) {
        const size_t stride = draw_category_names(list, p);
        if (stride > notes->names_stride) notes->names_stride = stride;
    }
    double below = bottom + axis_names_height(list, p) + 0.8;
    if (p->x.axis->label)
        draw_text_on_page(list, p->x.axis->label,
                          (draw_place){p->area.x + p->area.width / 2, below, DRAW_MIDDLE, DRAW_CAP, 0}, &p->font,
                          p->area.width + 8, p->page_width);
    double left =
        p->area.x - 1.3 - chart_axis_numbers_width(list, &p->y, &p->small) - 1.4; /* baseline of the turned text */
    if (p->y.axis->label)
        draw_text_fitted(list, p->y.axis->label,
                         (draw_place){left, p->area.y + p->area.height / 2, DRAW_MIDDLE, DRAW_BASELINE, 90}, &p->font,
                         p->area.height + 8);
}

double chart_plot_left(const draw_list *list, const chart_plot *p)
{
    double name = p->y.axis->label ? 1.4 + draw_type_height(&p->font) : 0;
    return 1.3 + chart_axis_numbers_width(list, &p->y, &p->small) + name;
}

double chart_plot_below(const draw_list *list, const chart_plot *p)
{
    return axis_names_height(list, p) + (p->x.axis->label ? 0.8 + 1.2 * draw_type_height(&p->font) : 0);
}

/* ----------------------------------------------------------------------------------------------------------- panel */

static bool holds(draw_rect box, double x, double y)
{
    return x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height;
}

/* Returns how many of the places along the lines and ribbons of all series, and of rules, are in a box. */
static size_t count_strikes(const chart_plot *p, draw_rect box)
{
    enum { STEPS = 24 }; /* between two points of a series */
    size_t strikes = 0;
    for (size_t s = 0; s < p->panel->series_count; s++) {
        const chart_series *series = &p->panel->series[s];
        const double *const edges[] = {series->y, series->low, series->high};
        for (size_t e = 0; e < 3 && series->kind != CHART_BARS; e++)
            for (size_t i = 0; edges[e] && i + 1 < series->count; i++) {
                const draw_point a = chart_plot_point(p, chart_series_x(series, i), edges[e][i]),
                                 b = chart_plot_point(p, chart_series_x(series, i + 1), edges[e][i + 1]);
                for (int step = 0; step <= STEPS; step++)
                    strikes += holds(box, a.x + (b.x - a.x) * step / STEPS, a.y + (b.y - a.y) * step / STEPS);
            }
    }
    for (size_t i = 0; i < p->panel->rule_count; i++) {
        const chart_rule *rule = &p->panel->rules[i];
        const double at = rule->vertical ? chart_plot_x(p, rule->at) : chart_plot_y(p, rule->at);
        strikes += rule->vertical ? at > box.x && at < box.x + box.width : at > box.y && at < box.y + box.height;
    }
    return strikes;
}

/* Writes the name of a rule on that side of it and at that end where least is drawn, from the left or the upper end
 * on. */
static void draw_rule_name(draw_list *list, const chart_plot *p, const chart_rule *rule, double at,
                           const draw_font *font)
{
    const draw_rect area = p->area;
    const double high = draw_type_height(font), room = rule->vertical ? area.height : area.width,
                 width = fmin(draw_measure(list, rule->name, font), room), low = rule->vertical ? area.x : area.y,
                 end = rule->vertical ? area.x + area.width : area.y + area.height;
    const bool no_room = at - low < high + 0.7; /* to the left of the line, or above it */
    size_t least = SIZE_MAX;
    draw_place best = {0};
    for (int k = 0; k < 4; k++) {
        const bool after = no_room != (k >= 2), far_end = k % 2;
        if (k > 0 && (after ? end - at : at - low) < high + 0.8) continue;
        const double across = after ? at + (rule->vertical ? 0.7 : 0.8) : at - 0.7,
                     along = rule->vertical ? (far_end ? area.y + area.height - 1 - width : area.y + 1.5)
                                            : (far_end ? area.x + area.width - 1 - width : area.x + 1),
                     from = after ? across : across - high;
        const draw_rect box =
            rule->vertical ? (draw_rect){from, along, high, width} : (draw_rect){along, from, width, high};
        const size_t strikes = count_strikes(p, box);
        if (strikes >= least) continue;
        least = strikes;
        best = rule->vertical ? (draw_place){across, along, DRAW_END, after ? DRAW_CAP : DRAW_BASELINE, 90}
                              : (draw_place){along, across, DRAW_START, after ? DRAW_CAP : DRAW_BASELINE, 0};
    }
    draw_text_within(list, rule->name, best, font, room);
}

/* Draws rules with their names beside them. */
static void draw_rules(draw_list *list, const chart_plot *p)
{
    const draw_pen pen = {rule_grey, 0.7, DRAW_DASHED}, edge = {rule_grey, 0.5, DRAW_SOLID};
    const draw_rect area = p->area;
    draw_font font = p->small;
    font.colour = rule_grey;
    for (size_t i = 0; i < p->panel->rule_count; i++) {
        const chart_rule *rule = &p->panel->rules[i];
        const double at = rule->vertical ? chart_plot_x(p, rule->at) : chart_plot_y(p, rule->at);
        if (rule->vertical ? !(at >= area.x && at <= area.x + area.width)
                           : !(at >= area.y && at <= area.y + area.height))
            continue;
        if (rule->vertical)
            draw_line(list, at, area.y, at, area.y + area.height, &pen);
        else
            draw_line(list, area.x, at, area.x + area.width, at, &pen);
        if (rule->name) draw_rule_name(list, p, rule, at, &font);
    }
    for (size_t i = 0; i < p->panel->edge_count; i++) {
        double x = chart_plot_x(p, p->panel->edges[i]);
        if (x >= p->area.x && x <= p->area.x + p->area.width) draw_line(list, x, p->area.y, x, p->area.y + 1.2, &edge);
    }
}

/* Counts the points that the panel does not show. Stacks are left out, since their pieces have no position to
 * check. */
static void count_lost_points(const chart_plot *p, figure_notes *notes)
{
    for (size_t s = 0; s < p->panel->series_count; s++) {
        const chart_series *series = &p->panel->series[s];
        for (size_t i = 0; i < series->count; i++) {
            double y = series->kind == CHART_BAND ? series->high[i] : series->y[i];
            if (!chart_plot_shows(p, chart_series_x(series, i), y)) {
                notes->not_a_number++;
                continue;
            }
            draw_point at = chart_plot_point(p, chart_series_x(series, i), y);
            bool chosen =
                at.x < p->area.x - 1e-6 || at.x > p->area.x + p->area.width + 1e-6; /* a stretch of x is a choice */
            if (!chosen && !chart_plot_holds(p, at) && !(p->panel->stacked && series->kind == CHART_BARS))
                notes->clipped++;
        }
    }
}

/* Draws the line of zero, from which bars and signed curves rise and fall. */
static void draw_zero_line(draw_list *list, const chart_plot *p)
{
    const draw_pen pen = {ink, 0.4, DRAW_SOLID};
    double y = chart_plot_y(p, 0);
    if (!chart_axis_is_log(p->y.axis) && p->y.low < 0 && p->y.high > 0)
        draw_line(list, p->area.x, y, p->area.x + p->area.width, y, &pen);
}

void chart_plot_draw(draw_list *list, const chart_plot *p, figure_notes *notes)
{
    draw_grid(list, p);
    draw_clip(list, p->area);
    chart_series_draw_areas(list, p);
    draw_rules(list, p);
    chart_series_draw_lines(list, p);
    draw_unclip(list);
    chart_series_draw_markers(list, p);
    draw_zero_line(list, p);
    draw_axes(list, p, notes);
    count_lost_points(p, notes);
}

chart_plot chart_plot_make(const draw_list *list, const chart_panel *panel, const figure_style *style, draw_rect area)
{
    chart_plot p = {.panel = panel,
                    .area = area,
                    .page_width = style->width_mm,
                    .font = figure_font(style),
                    .small = figure_small_font(style)};
    p.x = chart_axis_make(list, panel, false, area.width, &p.small);
    p.y = chart_axis_make(list, panel, true, area.height, &p.small);
    return p;
}
