/* A panel is drawn back to front: grid, ribbons, bars, rules, error bars, lines, markers, names, axes. Everything but
 * markers and names is clipped to the area, so that a range chosen by the caller cuts lines cleanly.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/chart_plot.h"

#include <math.h>
#include <stdlib.h>

#include "viz/palette.h"

static const draw_colour ink = {40, 40, 40, 255}, grid_grey = {226, 226, 226, 255}, nothing = {0, 0, 0, 0};
static const draw_colour white = {255, 255, 255, 255}, rule_grey = {90, 90, 90, 255};
static const draw_colour special_grey = {145, 145, 145, 255};
static const double longest_name = 20; /* mm, of a category */

/* ----------------------------------------------------------------------------------------------------------- looks */

enum { MARKER_DISC, MARKER_SQUARE, MARKER_TRIANGLE, MARKER_DIAMOND, MARKER_KINDS };

typedef struct series_look {
    draw_colour colour;
    draw_dash dash;
    int marker;
    bool open; /* an outlined marker on white */
    double width;
} series_look;

/* Colour, marker and dash change together, so that any one of them tells the series apart. Where colours begin again
 * dashes and markers are shifted: forty looks are different. */
static series_look look_of(const chart_series *series, size_t place)
{
    static const draw_dash dashes[] = {DRAW_SOLID, DRAW_DASHED, DRAW_DASH_DOT, DRAW_DOTTED};
    const size_t number = series->look ? series->look - 1 : place, shifted = number + number / PALETTE_SERIES_COUNT;
    return (series_look){.colour = series->faint ? rule_grey : palette_series(number),
                         .dash = series->faint ? DRAW_SOLID : dashes[(series->dash ? series->dash - 1 : shifted) % 4],
                         .marker = (int)(shifted % MARKER_KINDS),
                         .open = shifted / MARKER_KINDS % 2 == 1,
                         .width = series->faint ? 0.5 : 1.0};
}

static draw_colour faded(draw_colour colour, uint8_t alpha)
{
    colour.a = alpha;
    return colour;
}

/* Shapes of about the same area. The white rim keeps a marker readable where lines cross it. */
static void draw_marker(draw_list *list, double x, double y, const series_look *look)
{
    const double r = 0.85;
    const draw_pen outline = {look->open ? look->colour : white, look->open ? 0.9 : 0.4, DRAW_SOLID};
    draw_colour fill = look->open ? white : look->colour;
    switch (look->marker) {
    case MARKER_DISC: draw_disc(list, x, y, r, fill, &outline); break;
    case MARKER_SQUARE: draw_box(list, (draw_rect){x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r}, fill, &outline); break;
    case MARKER_TRIANGLE:
        draw_path(list, (draw_point[]){{x, y - 1.2 * r}, {x + 1.1 * r, y + 0.8 * r}, {x - 1.1 * r, y + 0.8 * r}}, 3,
                  DRAW_CLOSED, fill, &outline);
        break;
    default:
        draw_path(list, (draw_point[]){{x, y - 1.3 * r}, {x + 1.3 * r, y}, {x, y + 1.3 * r}, {x - 1.3 * r, y}}, 4,
                  DRAW_CLOSED, fill, &outline);
    }
}
double chart_plot_sample(draw_list *list, const chart_series *series, size_t place, double x, double y)
{
    series_look look = look_of(series, place);
    const draw_pen pen = {look.colour, look.width, look.dash};
    double width = series->kind == CHART_BARS ? 3.2 : series->kind == CHART_POINTS ? 2.2 : 6.5;
    if (!list) return width;
    if (series->kind == CHART_BARS) draw_box(list, (draw_rect){x, y - 1, width, 2}, look.colour, NULL);
    if (series->kind == CHART_BAND || (series->kind == CHART_CURVE && series->low))
        draw_box(list, (draw_rect){x, y - 1, width, 2}, faded(look.colour, 60), NULL);
    if (series->kind == CHART_LINE || series->kind == CHART_CURVE) draw_line(list, x, y, x + width, y, &pen);
    if (series->kind == CHART_LINE || series->kind == CHART_POINTS) draw_marker(list, x + width / 2, y, &look);
    return width;
}

/* ---------------------------------------------------------------------------------------------------------- places */

static double plot_x(const chart_plot *p, double value)
{
    return p->area.x + chart_axis_fraction(&p->x, value) * p->area.width;
}
static double plot_y(const chart_plot *p, double value)
{
    return p->area.y + (1 - chart_axis_fraction(&p->y, value)) * p->area.height;
}

/* Far outside points would make absurd coordinates; the clip hides the difference. */
static draw_point plot_point(const chart_plot *p, double x, double y)
{
    double px = plot_x(p, x), py = plot_y(p, y), far = 1000;
    return (draw_point){fmin(fmax(px, p->area.x - far), p->area.x + p->area.width + far),
                        fmin(fmax(py, p->area.y - far), p->area.y + p->area.height + far)};
}

/* Not NaN, not infinite, and positive on a logarithmic axis. */
static bool drawable(const chart_plot *p, double x, double y)
{
    return isfinite(chart_axis_fraction(&p->x, x)) && isfinite(chart_axis_fraction(&p->y, y));
}

static bool inside(const chart_plot *p, draw_point at)
{
    const double slack = 1e-6;
    return at.x >= p->area.x - slack && at.x <= p->area.x + p->area.width + slack && at.y >= p->area.y - slack &&
           at.y <= p->area.y + p->area.height + slack;
}

/* Behind everything, in a grey that disappears in print before the data do. */
static void draw_grid(draw_list *list, const chart_plot *p)
{
    const draw_pen pen = {grid_grey, 0.4, DRAW_SOLID};
    for (size_t i = 0; i < p->x.ticks.count; i++) {
        double x = plot_x(p, p->x.ticks.at[i]);
        draw_line(list, x, p->area.y, x, p->area.y + p->area.height, &pen);
    }
    for (size_t i = 0; i < p->y.ticks.count; i++) {
        double y = plot_y(p, p->y.ticks.at[i]);
        draw_line(list, p->area.x, y, p->area.x + p->area.width, y, &pen);
    }
}

/* True when category names must be turned to fit. */
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

static void draw_category_names(draw_list *list, const chart_plot *p)
{
    const chart_axis *axis = p->x.axis;
    bool upright = names_upright(list, axis, p->area.width, &p->small);
    double each = p->area.width / (double)axis->category_count, bottom = p->area.y + p->area.height;
    /* No room for all, even turned: every second, every third ... */
    size_t stride = upright ? (size_t)fmax(1, ceil(0.92 * draw_type_height(&p->small) / each - 1e-9)) : 1;
    for (size_t i = 0; i < axis->category_count; i += stride) {
        draw_font font = p->small;
        if (axis->categories[i].special) font.colour = special_grey;
        draw_place place = {plot_x(p, (double)i), bottom + 1, upright ? DRAW_END : DRAW_MIDDLE,
                            upright ? DRAW_CENTRE : DRAW_CAP, upright ? 90 : 0};
        draw_text_within(list, axis->categories[i].text, place, &font, longest_name);
    }
}

/* Unlabelled strokes at 2 ... 9 of every decade. */
static void draw_minor_ticks(draw_list *list, const chart_plot *p, bool vertical, const draw_pen *pen)
{
    const chart_axis_map *map = vertical ? &p->y : &p->x;
    double decades = log10(map->high / map->low);
    if (map->axis->scale != CHART_LOG10 || decades > 6) return;
    for (double decade = pow(10, floor(log10(map->low))); decade <= map->high; decade *= 10) {
        for (int digit = 2; digit <= 9; digit++) {
            double value = digit * decade;
            if (value < map->low || value > map->high) continue;
            double x = plot_x(p, value), y = plot_y(p, value), bottom = p->area.y + p->area.height;
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

/* Two spines, not a box: the upper and right ones would carry nothing. */
static void draw_axes(draw_list *list, const chart_plot *p)
{
    const draw_pen pen = {ink, 0.5, DRAW_SOLID};
    double bottom = p->area.y + p->area.height, right = p->area.x + p->area.width;
    draw_line(list, p->area.x, p->area.y, p->area.x, bottom, &pen);
    draw_line(list, p->area.x, bottom, right, bottom, &pen);
    for (size_t i = 0; i < p->x.ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        double x = plot_x(p, p->x.ticks.at[i]);
        chart_axis_tick_text(&p->x, i, text);
        draw_line(list, x, bottom, x, bottom + 0.8, &pen);
        draw_text(list, text, (draw_place){x, bottom + 1.3, DRAW_MIDDLE, DRAW_CAP, 0}, &p->small);
    }
    for (size_t i = 0; i < p->y.ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        double y = plot_y(p, p->y.ticks.at[i]);
        chart_axis_tick_text(&p->y, i, text);
        draw_line(list, p->area.x - 0.8, y, p->area.x, y, &pen);
        draw_text(list, text, (draw_place){p->area.x - 1.3, y, DRAW_END, DRAW_CENTRE, 0}, &p->small);
    }
    draw_minor_ticks(list, p, false, &pen);
    draw_minor_ticks(list, p, true, &pen);
    if (p->x.axis->scale == CHART_CATEGORIES) draw_category_names(list, p);
    double below = bottom + axis_names_height(list, p) + 0.8;
    if (p->x.axis->label)
        draw_text_within(list, p->x.axis->label,
                         (draw_place){p->area.x + p->area.width / 2, below, DRAW_MIDDLE, DRAW_CAP, 0}, &p->font,
                         p->area.width + 8);
    double left =
        p->area.x - 1.3 - chart_axis_numbers_width(list, &p->y, &p->small) - 1.4; /* baseline of turned text */
    if (p->y.axis->label)
        draw_text_within(list, p->y.axis->label,
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

/* ---------------------------------------------------------------------------------------------------------- series */

/* The line of a series, or the area between low and high: one piece for every stretch of points that can be drawn. */
static void draw_runs(draw_list *list, const chart_plot *p, const chart_series *series, bool area,
                      const series_look *look)
{
    draw_point *points = malloc((2 * series->count + 1) * sizeof *points);
    if (!points) {
        draw_fail(list);
        return;
    }
    size_t first = 0;
    while (first < series->count) {
        size_t used = 0, last = first;
        for (; last < series->count; last++, used++) {
            double x = chart_series_x(series, last), low = area ? series->low[last] : series->y[last];
            if (!drawable(p, x, low) || (area && !drawable(p, x, series->high[last]))) break;
            points[used] = plot_point(p, x, low);
        }
        if (area) /* back along the upper side */
            for (size_t i = last; i > first; i--)
                points[used++] = plot_point(p, chart_series_x(series, i - 1), series->high[i - 1]);
        const draw_pen pen = {look->colour, look->width, look->dash};
        if (area && used > 2) draw_path(list, points, used, DRAW_CLOSED, faded(look->colour, 60), NULL);
        if (!area && used > 1) draw_path(list, points, used, DRAW_OPEN, nothing, &pen);
        if (!area && used == 1 && series->kind == CHART_CURVE) /* with nothing to be joined to it would not be seen */
            draw_marker(list, points[0].x, points[0].y, look);
        first = last + 1;
    }
    free(points);
}

/* shift: of a bar beside its x. Whiskers are solid also for dashed series: a gap would look like a shorter bar. */
static void draw_error_bars(draw_list *list, const chart_plot *p, const chart_series *series, double shift,
                            const series_look *look)
{
    const draw_pen pen = {look->colour, 0.7, DRAW_SOLID};
    for (size_t i = 0; series->low && series->high && i < series->count; i++) {
        double x = chart_series_x(series, i);
        if (!drawable(p, x, series->y[i]) || !drawable(p, x, series->low[i]) || !drawable(p, x, series->high[i]))
            continue;
        draw_point low = plot_point(p, x, series->low[i]), high = plot_point(p, x, series->high[i]);
        draw_path(list,
                  (draw_point[]){{low.x + shift, low.y},
                                 {high.x + shift, high.y},
                                 {low.x + shift - 0.6, low.y},
                                 {low.x + shift + 0.6, low.y},
                                 {high.x + shift - 0.6, high.y},
                                 {high.x + shift + 0.6, high.y}},
                  6, DRAW_SEGMENTS, nothing, &pen);
    }
}

static void draw_markers(draw_list *list, const chart_plot *p, const chart_series *series, const series_look *look)
{
    for (size_t i = 0; i < series->count; i++) {
        double x = chart_series_x(series, i);
        if (!drawable(p, x, series->y[i])) continue;
        draw_point at = plot_point(p, x, series->y[i]);
        if (inside(p, at)) draw_marker(list, at.x, at.y, look);
    }
}

static size_t bar_series_count(const chart_panel *panel)
{
    size_t count = 0;
    for (size_t s = 0; s < panel->series_count; s++) count += panel->series[s].kind == CHART_BARS;
    return count;
}

/* Bars start at zero, or at the lower end of an axis without zero. */
static void draw_one_bar(draw_list *list, const chart_plot *p, double left, double width, double from, double to,
                         draw_colour colour)
{
    const draw_pen pen = {white, 0.25, DRAW_SOLID};
    double base = fmin(fmax(from, p->y.low), p->y.high), top = fmin(fmax(to, p->y.low), p->y.high);
    double y0 = plot_y(p, base), y1 = plot_y(p, top);
    draw_box(list, (draw_rect){left, fmin(y0, y1), width, fabs(y1 - y0)}, colour, width > 0.8 ? &pen : NULL);
}

/* 80 % of a place is filled by the bars of all series, side by side around its middle. */
static void draw_grouped_bars(draw_list *list, const chart_plot *p, double slot)
{
    size_t groups = bar_series_count(p->panel), place = 0;
    double each = 0.8 * slot / (double)groups;
    for (size_t s = 0; s < p->panel->series_count; s++) {
        const chart_series *series = &p->panel->series[s];
        if (series->kind != CHART_BARS) continue;
        series_look look = look_of(series, s);
        double shift = ((double)place - (double)(groups - 1) / 2) * each;
        for (size_t i = 0; i < series->count; i++) {
            double x = chart_series_x(series, i);
            if (!drawable(p, x, series->y[i])) continue;
            draw_one_bar(list, p, plot_x(p, x) + shift - each / 2, each, chart_axis_is_log(p->y.axis) ? p->y.low : 0,
                         series->y[i], look.colour);
        }
        look.colour = ink;
        draw_error_bars(list, p, series, shift, &look);
        place++;
    }
}

/* Two stacks at every place: positive values upwards from zero, negative ones downwards. */
static void draw_stacked_bars(draw_list *list, const chart_plot *p, double slot)
{
    size_t places = p->panel->x.category_count;
    double *tops = calloc(2 * places + 1, sizeof *tops); /* upper and lower end of the stack so far */
    if (!tops) {
        draw_fail(list);
        return;
    }
    for (size_t s = 0; s < p->panel->series_count; s++) {
        const chart_series *series = &p->panel->series[s];
        if (series->kind != CHART_BARS) continue;
        series_look look = look_of(series, s);
        for (size_t i = 0; i < series->count; i++) {
            double x = chart_series_x(series, i), value = series->y[i];
            if (!drawable(p, x, value) || x < 0 || x >= (double)places) continue;
            double *top = &tops[2 * (size_t)x + (value < 0)];
            draw_one_bar(list, p, plot_x(p, x) - 0.4 * slot, 0.8 * slot, *top, *top + value, look.colour);
            *top += value;
        }
    }
    free(tops);
}

/* Names stand beside their rule, on the side that has room. */
static void draw_rules(draw_list *list, const chart_plot *p)
{
    const draw_pen pen = {rule_grey, 0.7, DRAW_DASHED}, edge = {rule_grey, 0.5, DRAW_SOLID};
    draw_font font = p->small;
    font.colour = rule_grey;
    for (size_t i = 0; i < p->panel->rule_count; i++) {
        const chart_rule *rule = &p->panel->rules[i];
        if (rule->vertical) {
            double x = plot_x(p, rule->at);
            if (!(x >= p->area.x && x <= p->area.x + p->area.width)) continue;
            draw_line(list, x, p->area.y, x, p->area.y + p->area.height, &pen);
            bool at_left = x - p->area.x < draw_type_height(&font) + 0.7;
            draw_place place = {at_left ? x + 0.7 : x - 0.7, p->area.y + 1.5, DRAW_END,
                                at_left ? DRAW_CAP : DRAW_BASELINE, 90};
            if (rule->name) draw_text_within(list, rule->name, place, &font, p->area.height);
        } else {
            double y = plot_y(p, rule->at);
            if (!(y >= p->area.y && y <= p->area.y + p->area.height)) continue;
            draw_line(list, p->area.x, y, p->area.x + p->area.width, y, &pen);
            bool at_top = y - p->area.y < draw_type_height(&font) + 0.7; /* no room above the line */
            draw_place place = {p->area.x + 1, at_top ? y + 0.8 : y - 0.7, DRAW_START,
                                at_top ? DRAW_CAP : DRAW_BASELINE, 0};
            if (rule->name) draw_text_within(list, rule->name, place, &font, p->area.width);
        }
    }
    for (size_t i = 0; i < p->panel->edge_count; i++) {
        double x = plot_x(p, p->panel->edges[i]);
        if (x >= p->area.x && x <= p->area.x + p->area.width) draw_line(list, x, p->area.y, x, p->area.y + 1.2, &edge);
    }
}

/* ----------------------------------------------------------------------------------------------------------- names */

enum { NAMES_MAX = 256 };

/* Where something stands already. Beyond 256 names things may be written over; such a chart is black anyway. */
typedef struct taken_places {
    draw_rect places[NAMES_MAX];
    size_t count;
} taken_places;

static void take(taken_places *taken, draw_rect place)
{
    if (taken->count < NAMES_MAX) taken->places[taken->count++] = place;
}

static bool is_free(const chart_plot *p, const taken_places *taken, draw_rect r)
{
    const draw_rect *area = &p->area;
    if (r.x < area->x || r.x + r.width > area->x + area->width || r.y < area->y ||
        r.y + r.height > area->y + area->height)
        return false;
    for (size_t k = 0; k < taken->count; k++) {
        const draw_rect *t = &taken->places[k];
        if (r.x < t->x + t->width && t->x < r.x + r.width && r.y < t->y + t->height && t->y < r.y + r.height)
            return false;
    }
    return true;
}

/* Right, left, above or below the point, whichever is free first; to the right if none is: nothing is left out. */
static void draw_point_name(draw_list *list, const chart_plot *p, const char *name, draw_point at, taken_places *taken)
{
    const double gap = 1.3, height = draw_type_height(&p->small), width = draw_measure(list, name, &p->small);
    const draw_rect choices[] = {{at.x + gap, at.y - height / 2, width, height},
                                 {at.x - gap - width, at.y - height / 2, width, height},
                                 {at.x - width / 2, at.y - gap - height, width, height},
                                 {at.x - width / 2, at.y + gap, width, height}};
    size_t chosen = 0;
    while (chosen < 4 && !is_free(p, taken, choices[chosen])) chosen++;
    draw_rect r = choices[chosen % 4];
    draw_text(list, name, (draw_place){r.x, r.y + height / 2, DRAW_START, DRAW_CENTRE, 0}, &p->small);
    take(taken, r);
}

/* Markers take their places first, then the names find theirs in the order of the data. */
static void draw_point_names(draw_list *list, const chart_plot *p)
{
    taken_places taken = {.count = 0};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t s = 0; s < p->panel->series_count; s++) {
            const chart_series *series = &p->panel->series[s];
            for (size_t i = 0; series->point_names && i < series->count; i++) {
                if (!drawable(p, chart_series_x(series, i), series->y[i])) continue;
                draw_point at = plot_point(p, chart_series_x(series, i), series->y[i]);
                if (!inside(p, at)) continue;
                if (pass == 0)
                    take(&taken, (draw_rect){at.x - 0.9, at.y - 0.9, 1.8, 1.8});
                else if (series->point_names[i])
                    draw_point_name(list, p, series->point_names[i], at, &taken);
            }
        }
    }
}

/* What the reader would otherwise not know of. Stacks are left out: their pieces have no place of their own. */
static void count_lost_points(const chart_plot *p, figure_notes *notes)
{
    for (size_t s = 0; s < p->panel->series_count; s++) {
        const chart_series *series = &p->panel->series[s];
        for (size_t i = 0; i < series->count; i++) {
            double y = series->kind == CHART_BAND ? series->high[i] : series->y[i];
            if (!drawable(p, chart_series_x(series, i), y)) {
                notes->not_a_number++;
                continue;
            }
            draw_point at = plot_point(p, chart_series_x(series, i), y);
            bool chosen =
                at.x < p->area.x - 1e-6 || at.x > p->area.x + p->area.width + 1e-6; /* a stretch of x is a choice */
            if (!chosen && !inside(p, at) && !(p->panel->stacked && series->kind == CHART_BARS)) notes->clipped++;
        }
    }
}

/* Ribbons under bars under lines, over all series, so that no series hides the line of another. */
static void draw_series(draw_list *list, const chart_plot *p)
{
    const chart_panel *panel = p->panel;
    double slot = p->area.width / fmax(1, (double)panel->x.category_count);
    if (panel->x.scale != CHART_CATEGORIES) slot = p->area.width / 20;
    draw_clip(list, p->area);
    for (size_t s = 0; s < panel->series_count; s++) {
        const chart_series *series = &panel->series[s];
        series_look look = look_of(series, s);
        if ((series->kind == CHART_CURVE && series->low && series->high) || series->kind == CHART_BAND)
            draw_runs(list, p, series, true, &look);
    }
    if (bar_series_count(panel)) (panel->stacked ? draw_stacked_bars : draw_grouped_bars)(list, p, slot);
    draw_rules(list, p);
    for (size_t s = 0; s < panel->series_count; s++) {
        const chart_series *series = &panel->series[s];
        series_look look = look_of(series, s);
        if (series->kind == CHART_LINE || series->kind == CHART_POINTS) draw_error_bars(list, p, series, 0, &look);
        if (series->kind == CHART_LINE || series->kind == CHART_CURVE) draw_runs(list, p, series, false, &look);
    }
    draw_unclip(list);
    for (size_t s = 0; s < panel->series_count; s++) {
        series_look look = look_of(&panel->series[s], s);
        if (panel->series[s].kind == CHART_LINE || panel->series[s].kind == CHART_POINTS)
            draw_markers(list, p, &panel->series[s], &look);
    }
    draw_point_names(list, p);
}

/* Where bars and signed curves turn. */
static void draw_zero_line(draw_list *list, const chart_plot *p)
{
    const draw_pen pen = {ink, 0.4, DRAW_SOLID};
    double y = plot_y(p, 0);
    if (!chart_axis_is_log(p->y.axis) && p->y.low < 0 && p->y.high > 0)
        draw_line(list, p->area.x, y, p->area.x + p->area.width, y, &pen);
}

void chart_plot_draw(draw_list *list, const chart_plot *p, figure_notes *notes)
{
    draw_grid(list, p);
    draw_series(list, p);
    draw_zero_line(list, p);
    draw_axes(list, p);
    count_lost_points(p, notes);
}

chart_plot chart_plot_make(const draw_list *list, const chart_panel *panel, const figure_style *style, draw_rect area)
{
    chart_plot p = {.panel = panel, .area = area, .font = figure_font(style), .small = figure_small_font(style)};
    p.x = chart_axis_make(list, panel, false, area.width, &p.small);
    p.y = chart_axis_make(list, panel, true, area.height, &p.small);
    return p;
}
