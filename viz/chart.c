/* Layout of charts: axes find their range and ticks, panels their margins; then everything is drawn back to front: grid,
 * areas, bars, rules, lines, markers, names.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/chart.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viz/palette.h"
#include "viz/ticks.h"

static const draw_colour ink = {40, 40, 40, 255}, grid_grey = {226, 226, 226, 255}, nothing = {0, 0, 0, 0};
static const draw_colour white = {255, 255, 255, 255}, rule_grey = {90, 90, 90, 255}, special_grey = {145, 145, 145, 255};
static const double margin = 0.5, longest_name = 20;
static const double largest_value = 1e200; /* axes end there: differences and ratios stay finite */

bool chart_fit(const double *x, const double *y, size_t count, double *slope, double *intercept)
{
    double sum_x = 0, sum_y = 0, used = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) continue;
        sum_x += x[i];
        sum_y += y[i];
        used++;
    }
    if (used < 2) return false;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) continue;
        double off = x[i] - sum_x / used;
        xx += off * off;
        xy += off * (y[i] - sum_y / used);
    }
    if (!(xx > 0)) return false;
    *slope = xy / xx;
    *intercept = (sum_y - *slope * sum_x) / used;
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- axes */

typedef struct axis_map {
    const chart_axis *axis;
    double low, high;   /* range in data units */
    double from, to;    /* the same, transformed */
    tick_set ticks;
} axis_map;

static double transform(const chart_axis *axis, double value)
{
    switch (axis->scale) {
    case CHART_LOG10:
    case CHART_LOG2: return value > 0 ? log(value) : (double)NAN;
    case CHART_SIGNED_LOG: return asinh(value / (axis->linear_to > 0 ? axis->linear_to : 10));
    default: return value;
    }
}

/* 0 at the low end, 1 at the high end; NaN for what the axis cannot show. */
static double fraction(const axis_map *map, double value)
{
    return (transform(map->axis, value) - map->from) / (map->to - map->from);
}

static bool is_log(const chart_axis *axis) { return axis->scale == CHART_LOG10 || axis->scale == CHART_LOG2; }

static void include(const chart_axis *axis, double value, double *low, double *high)
{
    if (!(fabs(value) <= largest_value) || (is_log(axis) && value < 1 / largest_value)) return;
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

static double series_x(const chart_series *series, size_t i) { return series->x ? series->x[i] : (double)i; }

/* Height of the stacks over every x place, upwards and downwards. */
static void include_stacks(const chart_panel *panel, double *low, double *high)
{
    for (size_t place = 0; place < panel->x.category_count; place++) {
        double up = 0, down = 0;
        for (size_t s = 0; s < panel->series_count; s++) {
            const chart_series *series = &panel->series[s];
            for (size_t i = 0; series->kind == CHART_BARS && i < series->count; i++) {
                if (series_x(series, i) != (double)place || !isfinite(series->y[i])) continue;
                *(series->y[i] > 0 ? &up : &down) += series->y[i];
            }
        }
        *low = fmin(*low, down);
        *high = fmax(*high, up);
    }
}

static void data_range(const chart_panel *panel, bool vertical, double *low, double *high)
{
    const chart_axis *axis = vertical ? &panel->y : &panel->x;
    for (size_t s = 0; s < panel->series_count; s++) {
        const chart_series *series = &panel->series[s];
        for (size_t i = 0; i < series->count; i++) {
            if (!vertical) {
                include(axis, series_x(series, i), low, high);
                continue;
            }
            if (series->y) include(axis, series->y[i], low, high);
            if (series->low) include(axis, series->low[i], low, high);
            if (series->high) include(axis, series->high[i], low, high);
        }
        if (vertical && series->kind == CHART_BARS && !is_log(axis)) include(axis, 0, low, high);
    }
    if (vertical && panel->stacked) include_stacks(panel, low, high);
    for (size_t i = 0; i < panel->rule_count; i++)
        if (panel->rules[i].vertical != vertical) include(axis, panel->rules[i].at, low, high);
}

/* Some room around the data: 4 % of a linear axis but not beyond zero, and of the decades of a logarithmic one. */
static void widen(const chart_axis *axis, double *low, double *high)
{
    if (!(*low <= *high)) { /* no data at all */
        *low = is_log(axis) ? 1 : 0;
        *high = is_log(axis) ? 10 : 1;
    }
    if (is_log(axis)) {
        double factor = *low < *high ? pow(*high / *low, 0.04) : 2;
        *low /= factor;
        *high *= factor;
    } else {
        if (axis->from_zero) *low = fmin(*low, 0), *high = fmax(*high, 0);
        double room = *low < *high ? 0.04 * (*high - *low) : fmax(0.5, fabs(*low) / 2);
        *low = *low == 0 ? 0 : *low - room;
        *high = *high == 0 && *low < 0 ? 0 : *high + room;
    }
}

static tick_set signed_log_ticks(const axis_map *map, size_t most)
{
    double unit = map->axis->linear_to > 0 ? map->axis->linear_to : 10, reach = fmax(fabs(map->low), fabs(map->high));
    double decades = fmax(0, log10(reach / unit)), stride = pow(10, ceil((decades + 1) / (double)(most / 2 ? most / 2 : 1)));
    tick_set ticks = {.count = map->low <= 0 && map->high >= 0};
    for (double value = unit; value <= reach && ticks.count + 2 <= TICKS_MAX; value *= stride) {
        if (-value >= map->low) ticks.at[ticks.count++] = -value;
        if (value <= map->high) ticks.at[ticks.count++] = value;
        if (value * 3 <= reach && 4 * decades + 5 <= (double)most && ticks.count + 2 <= TICKS_MAX) {
            if (-value * 3 >= map->low) ticks.at[ticks.count++] = -value * 3;
            if (value * 3 <= map->high) ticks.at[ticks.count++] = value * 3;
        }
    }
    return ticks;
}

static tick_set make_ticks(const axis_map *map, size_t most)
{
    switch (map->axis->scale) {
    case CHART_LINEAR: return ticks_linear(map->low, map->high, most);
    case CHART_WHOLE: return ticks_whole(map->low, map->high, most);
    case CHART_LOG10: return ticks_log(map->low, map->high, 10, most);
    case CHART_LOG2: return ticks_log(map->low, map->high, 2, most);
    case CHART_SIGNED_LOG: return signed_log_ticks(map, most);
    case CHART_CATEGORIES: break;
    }
    return (tick_set){0};
}

/* Whether the numbers of two ticks keep clear of each other on an axis of that length. */
static bool two_clear(const draw_list *list, const axis_map *map, size_t i, size_t k, bool vertical, double length, const draw_font *font)
{
    double apart = fabs(fraction(map, map->ticks.at[i]) - fraction(map, map->ticks.at[k])) * length;
    if (vertical) return apart >= 1.3 * font->size * DRAW_MM_PER_PT;
    char one[TICK_TEXT_BYTES], two[TICK_TEXT_BYTES];
    tick_text(map->ticks.at[i], map->ticks.step, one);
    tick_text(map->ticks.at[k], map->ticks.step, two);
    bool even = map->axis->scale == CHART_LINEAR || map->axis->scale == CHART_WHOLE;
    return apart >= fmax(even ? 8 : 0, (draw_measure(list, one, font) + draw_measure(list, two, font)) / 2 + 2);
}

static bool ticks_clear(const draw_list *list, const axis_map *map, bool vertical, double length, const draw_font *font)
{
    for (size_t i = 0; i < map->ticks.count; i++)
        for (size_t k = 0; k < i; k++)
            if (!two_clear(list, map, i, k, vertical, length, font)) return false;
    return true;
}

/* Where nothing thins evenly (around the zero of a signed logarithm): keeps the first, then the outermost that are clear. */
static void drop_crowded(const draw_list *list, axis_map *map, bool vertical, double length, const draw_font *font)
{
    const tick_set all = map->ticks;
    map->ticks.count = 0;
    for (size_t i = 0; i < all.count; i++) {
        size_t next = i == 0 ? 0 : all.count - i, used = map->ticks.count;
        map->ticks.at[used] = all.at[next];
        bool clear = true;
        for (size_t k = 0; k < used && clear; k++) clear = two_clear(list, map, used, k, vertical, length, font);
        map->ticks.count += clear;
    }
}

static axis_map make_axis(const draw_list *list, const chart_panel *panel, bool vertical, double length, const draw_font *font)
{
    const chart_axis *axis = vertical ? &panel->y : &panel->x;
    axis_map map = {.axis = axis, .low = INFINITY, .high = -INFINITY};
    if (axis->scale == CHART_CATEGORIES) {
        map.low = -0.5;
        map.high = (double)axis->category_count - 0.5;
    } else if (axis->low < axis->high) {
        map.low = axis->low;
        map.high = axis->high;
    } else {
        data_range(panel, vertical, &map.low, &map.high);
        widen(axis, &map.low, &map.high);
    }
    map.from = transform(axis, map.low);
    map.to = transform(axis, map.high);
    size_t most = (size_t)fmax(2, length / (vertical ? 2.4 * font->size * DRAW_MM_PER_PT : 4));
    map.ticks = make_ticks(&map, most);
    for (; most > 2 && !ticks_clear(list, &map, vertical, length, font); most--) map.ticks = make_ticks(&map, most - 1);
    if (axis->scale == CHART_SIGNED_LOG) drop_crowded(list, &map, vertical, length, font);
    return map;
}

/* ------------------------------------------------------------------------------------------------------------- looks */

enum { MARKER_DISC, MARKER_SQUARE, MARKER_TRIANGLE, MARKER_DIAMOND, MARKER_KINDS };

typedef struct series_look {
    draw_colour colour;
    draw_dash dash;
    int marker;
    bool open; /* an outlined marker on white */
} series_look;

static series_look look_of(const chart_series *series, size_t place)
{
    static const draw_dash dashes[] = {DRAW_SOLID, DRAW_DASHED, DRAW_DASH_DOT, DRAW_DOTTED};
    size_t number = series->look ? series->look - 1 : place;
    return (series_look){palette_series(number), dashes[number % 4], (int)(number % MARKER_KINDS), number / MARKER_KINDS % 2 == 1};
}

static draw_colour faded(draw_colour colour, uint8_t alpha)
{
    colour.a = alpha;
    return colour;
}

static void draw_marker(draw_list *list, double x, double y, const series_look *look)
{
    const double r = 0.85;
    const draw_pen outline = {look->open ? look->colour : white, look->open ? 0.9 : 0.4, DRAW_SOLID};
    draw_colour fill = look->open ? white : look->colour;
    switch (look->marker) {
    case MARKER_DISC: draw_disc(list, x, y, r, fill, &outline); break;
    case MARKER_SQUARE: draw_box(list, (draw_rect){x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r}, fill, &outline); break;
    case MARKER_TRIANGLE:
        draw_path(list, (draw_point[]){{x, y - 1.2 * r}, {x + 1.1 * r, y + 0.8 * r}, {x - 1.1 * r, y + 0.8 * r}}, 3, DRAW_CLOSED, fill,
                  &outline);
        break;
    default:
        draw_path(list, (draw_point[]){{x, y - 1.3 * r}, {x + 1.3 * r, y}, {x, y + 1.3 * r}, {x - 1.3 * r, y}}, 4, DRAW_CLOSED, fill,
                  &outline);
    }
}

/* ------------------------------------------------------------------------------------------------------------- panel */

typedef struct plot {
    const chart_panel *panel;
    draw_rect area;
    axis_map x, y;
    draw_font font, small, bold;
    figure_notes *notes; /* not_a_number: points not drawn; clipped: points outside a given range */
} plot;

static double plot_x(const plot *p, double value) { return p->area.x + fraction(&p->x, value) * p->area.width; }
static double plot_y(const plot *p, double value) { return p->area.y + (1 - fraction(&p->y, value)) * p->area.height; }

/* Far outside points would make absurd coordinates; the clip hides the difference. */
static draw_point plot_point(const plot *p, double x, double y)
{
    double px = plot_x(p, x), py = plot_y(p, y), far = 1000;
    return (draw_point){fmin(fmax(px, p->area.x - far), p->area.x + p->area.width + far),
                        fmin(fmax(py, p->area.y - far), p->area.y + p->area.height + far)};
}

static bool drawable(const plot *p, double x, double y) { return isfinite(fraction(&p->x, x)) && isfinite(fraction(&p->y, y)); }

static bool inside(const plot *p, draw_point at)
{
    const double slack = 1e-6;
    return at.x >= p->area.x - slack && at.x <= p->area.x + p->area.width + slack && at.y >= p->area.y - slack &&
           at.y <= p->area.y + p->area.height + slack;
}

static double line_of(const draw_font *font) { return font->size * DRAW_MM_PER_PT; }

static void draw_grid(draw_list *list, const plot *p)
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

static double tick_text_width(const draw_list *list, const axis_map *map, const draw_font *font)
{
    double widest = 0;
    for (size_t i = 0; i < map->ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        tick_text(map->ticks.at[i], map->ticks.step, text);
        widest = fmax(widest, draw_measure(list, text, font));
    }
    return widest;
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
    for (size_t i = 0; i < axis->category_count; i++) longest = fmax(longest, draw_measure(list, axis->categories[i].text, font));
    return fmin(longest, longest_name);
}

static void draw_category_names(draw_list *list, const plot *p)
{
    const chart_axis *axis = p->x.axis;
    bool upright = names_upright(list, axis, p->area.width, &p->small);
    double each = p->area.width / (double)axis->category_count, bottom = p->area.y + p->area.height;
    size_t stride = upright ? (size_t)ceil(0.92 * line_of(&p->small) / each - 1e-9) : 1; /* no room for all: every second ... */
    if (stride == 0) stride = 1;
    for (size_t i = 0; i < axis->category_count; i += stride) {
        draw_font font = p->small;
        if (axis->categories[i].special) font.colour = special_grey;
        draw_place place = {plot_x(p, (double)i), bottom + 1, upright ? DRAW_END : DRAW_MIDDLE, upright ? DRAW_CENTRE : DRAW_CAP,
                            upright ? 90 : 0};
        draw_text_within(list, axis->categories[i].text, place, &font, longest_name);
    }
}

/* Unlabelled strokes at 2 ... 9 of every decade. */
static void draw_minor_ticks(draw_list *list, const plot *p, bool vertical, const draw_pen *pen)
{
    const axis_map *map = vertical ? &p->y : &p->x;
    double decades = log10(map->high / map->low);
    if (map->axis->scale != CHART_LOG10 || decades > 6) return;
    for (double decade = pow(10, floor(log10(map->low))); decade <= map->high; decade *= 10) {
        for (int digit = 2; digit <= 9; digit++) {
            double value = digit * decade;
            if (value < map->low || value > map->high) continue;
            double x = plot_x(p, value), y = plot_y(p, value), bottom = p->area.y + p->area.height;
            if (vertical) draw_line(list, p->area.x - 0.5, y, p->area.x, y, pen);
            else draw_line(list, x, bottom, x, bottom + 0.5, pen);
        }
    }
}

static double axis_names_height(const draw_list *list, const plot *p)
{
    if (p->x.axis->scale != CHART_CATEGORIES) return line_of(&p->small) + 1.4;
    bool upright = names_upright(list, p->x.axis, p->area.width, &p->small);
    return 1 + (upright ? names_length(list, p->x.axis, &p->small) : line_of(&p->small)) + 0.4;
}

static void draw_axes(draw_list *list, const plot *p)
{
    const draw_pen pen = {ink, 0.5, DRAW_SOLID};
    double bottom = p->area.y + p->area.height, right = p->area.x + p->area.width;
    draw_line(list, p->area.x, p->area.y, p->area.x, bottom, &pen);
    draw_line(list, p->area.x, bottom, right, bottom, &pen);
    for (size_t i = 0; i < p->x.ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        double x = plot_x(p, p->x.ticks.at[i]);
        tick_text(p->x.ticks.at[i], p->x.ticks.step, text);
        draw_line(list, x, bottom, x, bottom + 0.8, &pen);
        draw_text(list, text, (draw_place){x, bottom + 1.3, DRAW_MIDDLE, DRAW_CAP, 0}, &p->small);
    }
    for (size_t i = 0; i < p->y.ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        double y = plot_y(p, p->y.ticks.at[i]);
        tick_text(p->y.ticks.at[i], p->y.ticks.step, text);
        draw_line(list, p->area.x - 0.8, y, p->area.x, y, &pen);
        draw_text(list, text, (draw_place){p->area.x - 1.3, y, DRAW_END, DRAW_CENTRE, 0}, &p->small);
    }
    draw_minor_ticks(list, p, false, &pen);
    draw_minor_ticks(list, p, true, &pen);
    if (p->x.axis->scale == CHART_CATEGORIES) draw_category_names(list, p);
    double below = bottom + axis_names_height(list, p) + 0.8;
    if (p->x.axis->label)
        draw_text_within(list, p->x.axis->label, (draw_place){p->area.x + p->area.width / 2, below, DRAW_MIDDLE, DRAW_CAP, 0}, &p->font,
                         p->area.width + 8);
    double left = p->area.x - 1.3 - tick_text_width(list, &p->y, &p->small) - 1.4;
    if (p->y.axis->label)
        draw_text_within(list, p->y.axis->label, (draw_place){left, p->area.y + p->area.height / 2, DRAW_MIDDLE, DRAW_BASELINE, 90},
                         &p->font, p->area.height + 8);
}

/* A connected piece of a series goes to draw_run; pieces are separated by points that cannot be drawn. */
static void draw_runs(draw_list *list, const plot *p, const chart_series *series, bool area, const series_look *look)
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
            double x = series_x(series, last), low = area ? series->low[last] : series->y[last];
            if (!drawable(p, x, low) || (area && !drawable(p, x, series->high[last]))) break;
            points[used] = plot_point(p, x, low);
        }
        if (area) /* back along the upper side */
            for (size_t i = last; i > first; i--) points[used++] = plot_point(p, series_x(series, i - 1), series->high[i - 1]);
        const draw_pen pen = {look->colour, 1.0, look->dash};
        if (area && used > 2) draw_path(list, points, used, DRAW_CLOSED, faded(look->colour, 60), NULL);
        if (!area && used > 1) draw_path(list, points, used, DRAW_OPEN, nothing, &pen);
        first = last + 1;
    }
    free(points);
}

static void draw_error_bars(draw_list *list, const plot *p, const chart_series *series, double shift, const series_look *look)
{
    const draw_pen pen = {look->colour, 0.7, DRAW_SOLID};
    for (size_t i = 0; series->low && series->high && i < series->count; i++) {
        double x = series_x(series, i);
        if (!drawable(p, x, series->y[i]) || !drawable(p, x, series->low[i]) || !drawable(p, x, series->high[i])) continue;
        draw_point low = plot_point(p, x, series->low[i]), high = plot_point(p, x, series->high[i]);
        draw_path(list,
                  (draw_point[]){{low.x + shift, low.y}, {high.x + shift, high.y}, {low.x + shift - 0.6, low.y}, {low.x + shift + 0.6, low.y},
                                 {high.x + shift - 0.6, high.y}, {high.x + shift + 0.6, high.y}},
                  6, DRAW_SEGMENTS, nothing, &pen);
    }
}

static void draw_markers(draw_list *list, const plot *p, const chart_series *series, const series_look *look)
{
    for (size_t i = 0; i < series->count; i++) {
        double x = series_x(series, i);
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
static void draw_one_bar(draw_list *list, const plot *p, double left, double width, double from, double to, draw_colour colour)
{
    const draw_pen pen = {white, 0.25, DRAW_SOLID};
    double base = fmin(fmax(from, p->y.low), p->y.high), top = fmin(fmax(to, p->y.low), p->y.high);
    double y0 = plot_y(p, base), y1 = plot_y(p, top);
    draw_box(list, (draw_rect){left, fmin(y0, y1), width, fabs(y1 - y0)}, colour, width > 0.8 ? &pen : NULL);
}

static void draw_grouped_bars(draw_list *list, const plot *p, double slot)
{
    size_t groups = bar_series_count(p->panel), place = 0;
    double each = 0.8 * slot / (double)groups;
    for (size_t s = 0; s < p->panel->series_count; s++) {
        const chart_series *series = &p->panel->series[s];
        if (series->kind != CHART_BARS) continue;
        series_look look = look_of(series, s);
        double shift = ((double)place - (double)(groups - 1) / 2) * each;
        for (size_t i = 0; i < series->count; i++) {
            double x = series_x(series, i);
            if (!drawable(p, x, series->y[i])) continue;
            draw_one_bar(list, p, plot_x(p, x) + shift - each / 2, each, is_log(p->y.axis) ? p->y.low : 0, series->y[i], look.colour);
        }
        look.colour = ink;
        draw_error_bars(list, p, series, shift, &look);
        place++;
    }
}

static void draw_stacked_bars(draw_list *list, const plot *p, double slot)
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
            double x = series_x(series, i), value = series->y[i];
            if (!drawable(p, x, value) || x < 0 || x >= (double)places) continue;
            double *top = &tops[2 * (size_t)x + (value < 0)];
            draw_one_bar(list, p, plot_x(p, x) - 0.4 * slot, 0.8 * slot, *top, *top + value, look.colour);
            *top += value;
        }
    }
    free(tops);
}

static void draw_rules(draw_list *list, const plot *p)
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
            bool at_left = x - p->area.x < line_of(&font) + 0.7;
            draw_place place = {at_left ? x + 0.7 : x - 0.7, p->area.y + 1.5, DRAW_END, at_left ? DRAW_CAP : DRAW_BASELINE, 90};
            if (rule->name) draw_text_within(list, rule->name, place, &font, p->area.height);
        } else {
            double y = plot_y(p, rule->at);
            if (!(y >= p->area.y && y <= p->area.y + p->area.height)) continue;
            draw_line(list, p->area.x, y, p->area.x + p->area.width, y, &pen);
            bool at_top = y - p->area.y < line_of(&font) + 0.7; /* no room above the line */
            draw_place place = {p->area.x + 1, at_top ? y + 0.8 : y - 0.7, DRAW_START, at_top ? DRAW_CAP : DRAW_BASELINE, 0};
            if (rule->name) draw_text_within(list, rule->name, place, &font, p->area.width);
        }
    }
    for (size_t i = 0; i < p->panel->edge_count; i++) {
        double x = plot_x(p, p->panel->edges[i]);
        if (x >= p->area.x && x <= p->area.x + p->area.width) draw_line(list, x, p->area.y, x, p->area.y + 1.2, &edge);
    }
}

/* Names beside points, at the first of four places that hides no other name and no point. */
static void draw_point_names(draw_list *list, const plot *p)
{
    enum { NAMES_MAX = 256 };
    draw_rect taken[NAMES_MAX];
    size_t taken_count = 0;
    const chart_panel *panel = p->panel;
    for (size_t s = 0; s < panel->series_count; s++)
        for (size_t i = 0; panel->series[s].point_names && i < panel->series[s].count && taken_count < NAMES_MAX; i++)
            if (drawable(p, series_x(&panel->series[s], i), panel->series[s].y[i])) {
                draw_point at = plot_point(p, series_x(&panel->series[s], i), panel->series[s].y[i]);
                taken[taken_count++] = (draw_rect){at.x - 0.9, at.y - 0.9, 1.8, 1.8};
            }
    for (size_t s = 0; s < panel->series_count; s++) {
        const chart_series *series = &panel->series[s];
        for (size_t i = 0; series->point_names && i < series->count; i++) {
            if (!drawable(p, series_x(series, i), series->y[i])) continue;
            draw_point at = plot_point(p, series_x(series, i), series->y[i]);
            double width = draw_measure(list, series->point_names[i], &p->small), height = line_of(&p->small), gap = 1.3;
            if (!inside(p, at)) continue;
            draw_rect choices[] = {{at.x + gap, at.y - height / 2, width, height},
                                   {at.x - gap - width, at.y - height / 2, width, height},
                                   {at.x - width / 2, at.y - gap - height, width, height},
                                   {at.x - width / 2, at.y + gap, width, height}};
            for (size_t c = 0; c < 4; c++) {
                draw_rect r = choices[c];
                bool clear = r.x >= p->area.x && r.x + r.width <= p->area.x + p->area.width && r.y >= p->area.y &&
                             r.y + r.height <= p->area.y + p->area.height;
                for (size_t k = 0; k < taken_count && clear; k++)
                    clear = r.x >= taken[k].x + taken[k].width || taken[k].x >= r.x + r.width || r.y >= taken[k].y + taken[k].height ||
                            taken[k].y >= r.y + r.height;
                if (!clear && c < 3) continue;
                if (!clear) r = choices[0]; /* no free place: to the right all the same, nothing is left out */
                draw_text(list, series->point_names[i], (draw_place){r.x, r.y + height / 2, DRAW_START, DRAW_CENTRE, 0}, &p->small);
                if (taken_count < NAMES_MAX) taken[taken_count++] = r;
                break;
            }
        }
    }
}

static void count_lost_points(const plot *p)
{
    for (size_t s = 0; s < p->panel->series_count; s++) {
        const chart_series *series = &p->panel->series[s];
        for (size_t i = 0; i < series->count; i++) {
            double y = series->kind == CHART_BAND ? series->high[i] : series->y[i];
            if (!drawable(p, series_x(series, i), y)) {
                p->notes->not_a_number++;
                continue;
            }
            draw_point at = plot_point(p, series_x(series, i), y);
            bool chosen = at.x < p->area.x - 1e-6 || at.x > p->area.x + p->area.width + 1e-6; /* a stretch of x is a choice */
            if (!chosen && !inside(p, at) && !(p->panel->stacked && series->kind == CHART_BARS)) p->notes->clipped++;
        }
    }
}

static void draw_series(draw_list *list, const plot *p)
{
    const chart_panel *panel = p->panel;
    double slot = p->area.width / fmax(1, (double)panel->x.category_count);
    if (panel->x.scale != CHART_CATEGORIES) slot = p->area.width / 20;
    draw_clip(list, p->area);
    for (size_t s = 0; s < panel->series_count; s++) {
        const chart_series *series = &panel->series[s];
        series_look look = look_of(series, s);
        if ((series->kind == CHART_CURVE && series->low && series->high) || series->kind == CHART_BAND) draw_runs(list, p, series, true, &look);
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
        if (panel->series[s].kind == CHART_LINE || panel->series[s].kind == CHART_POINTS) draw_markers(list, p, &panel->series[s], &look);
    }
    draw_point_names(list, p);
}

static void draw_zero_line(draw_list *list, const plot *p)
{
    const draw_pen pen = {ink, 0.4, DRAW_SOLID};
    double y = plot_y(p, 0);
    if (!is_log(p->y.axis) && p->y.low < 0 && p->y.high > 0) draw_line(list, p->area.x, y, p->area.x + p->area.width, y, &pen);
}

/* raised: how far above the area the title stands, over the panel's own legend */
static void draw_panel(draw_list *list, const plot *p, const char *letter, double raised)
{
    draw_group(list, p->panel->title ? p->panel->title : "chart");
    draw_place place = {p->area.x, p->area.y - 1.4 - raised, DRAW_START, DRAW_BASELINE, 0};
    if (letter) {
        draw_text(list, letter, place, &p->bold);
        place.x += draw_measure(list, letter, &p->bold) + 1.2;
    }
    if (p->panel->title) draw_text_within(list, p->panel->title, place, letter ? &p->font : &p->bold, p->area.x + p->area.width - place.x);
    draw_grid(list, p);
    draw_series(list, p);
    draw_zero_line(list, p);
    draw_axes(list, p);
    count_lost_points(p);
    draw_ungroup(list);
}

/* ------------------------------------------------------------------------------------------------------------ legend */

static bool same_entry(const chart_panel *a, size_t i, const chart_panel *b, size_t k)
{
    const chart_series *s = &a->series[i], *t = &b->series[k];
    return s->name && t->name && strcmp(s->name, t->name) == 0 && s->kind == t->kind && (s->look ? s->look - 1 : i) == (t->look ? t->look - 1 : k);
}

/* One legend serves all panels when every name of every panel is in the first one, with the same look. */
static bool legend_is_shared(const chart_figure *spec)
{
    for (size_t k = 1; k < spec->panel_count; k++) {
        for (size_t i = 0; i < spec->panels[k].series_count; i++) {
            bool found = !spec->panels[k].series[i].name;
            for (size_t s = 0; s < spec->panels[0].series_count && !found; s++) found = same_entry(&spec->panels[k], i, &spec->panels[0], s);
            if (!found) return false;
        }
    }
    return true;
}

/* Draws how the series looks with its left end at x; returns the width. With no list it only tells the width. */
static double draw_legend_sample(draw_list *list, const chart_series *series, const series_look *look, double x, double y)
{
    const draw_pen pen = {look->colour, 1.0, look->dash};
    double width = series->kind == CHART_BARS ? 3.2 : series->kind == CHART_POINTS ? 2.2 : 6.5;
    if (!list) return width;
    if (series->kind == CHART_BARS) draw_box(list, (draw_rect){x, y - 1, width, 2}, look->colour, NULL);
    if (series->kind == CHART_BAND || (series->kind == CHART_CURVE && series->low))
        draw_box(list, (draw_rect){x, y - 1, width, 2}, faded(look->colour, 60), NULL);
    if (series->kind == CHART_LINE || series->kind == CHART_CURVE) draw_line(list, x, y, x + width, y, &pen);
    if (series->kind == CHART_LINE || series->kind == CHART_POINTS) draw_marker(list, x + width / 2, y, look);
    return width;
}

/* Names of one panel in rows between x and x + room. Returns the height; draws only if draw is set. */
static double legend_rows(draw_list *list, const chart_panel *panel, const figure_style *style, double left, double y, double room, bool draw)
{
    const double gap = 1.2, between = 4;
    draw_font font = figure_font(style);
    double x = left, row = 1.5 * line_of(&font), top = y;
    bool any = false;
    for (size_t s = 0; s < panel->series_count; s++) {
        const chart_series *series = &panel->series[s];
        if (!series->name) continue;
        series_look look = look_of(series, s);
        double sample = draw_legend_sample(NULL, series, &look, 0, 0);
        double width = fmin(draw_measure(list, series->name, &font), room - sample - gap);
        if (x > left && x + sample + gap + width > left + room) {
            x = left;
            y += row;
        }
        if (draw) {
            draw_legend_sample(list, series, &look, x, y + row / 2);
            draw_text_within(list, series->name, (draw_place){x + sample + gap, y + row / 2, DRAW_START, DRAW_CENTRE, 0}, &font, width + 0.01);
        }
        x += sample + gap + width + between;
        any = true;
    }
    return any ? y + row - top : 0;
}

/* ------------------------------------------------------------------------------------------------------------ figure */

static deberta_status check_axis(const chart_axis *axis, const char *which, deberta_error *err)
{
    if (is_log(axis) && axis->low < axis->high && axis->low <= 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "logarithmic %s axis from %g: it must be positive", which, axis->low);
    if (!isfinite(axis->low) || !isfinite(axis->high))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s axis from %g to %g: both must be finite", which, axis->low, axis->high);
    if (axis->scale == CHART_CATEGORIES && axis->category_count && !axis->categories)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s axis has %zu categories but no names", which, axis->category_count);
    return DEBERTA_OK;
}

static deberta_status check_chart(const chart_figure *spec, deberta_error *err)
{
    DEBERTA_TRY(figure_check_style(&spec->style, err));
    if (!spec->panels || spec->panel_count == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a chart needs at least one panel");
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
                DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "series '%s' has %zu points but no values", series->name ? series->name : "",
                             series->count);
        }
    }
    return DEBERTA_OK;
}

/* Axes of one panel for a plot area of that size. */
static plot make_plot(const draw_list *list, const chart_panel *panel, const figure_style *style, draw_rect area, figure_notes *notes)
{
    plot p = {.panel = panel, .area = area, .notes = notes, .font = figure_font(style), .small = figure_small_font(style),
              .bold = figure_bold_font(style)};
    p.x = make_axis(list, panel, false, area.width, &p.small);
    p.y = make_axis(list, panel, true, area.height, &p.small);
    return p;
}

static double draw_chart_notes(draw_list *list, const figure_style *style, const figure_notes *notes, double y)
{
    byte_buffer text = {0};
    if (notes->not_a_number)
        byte_buffer_format(&text, "%zu %s not drawn: not finite, or not positive on a logarithmic axis. ", notes->not_a_number,
                           notes->not_a_number == 1 ? "point is" : "points are");
    if (notes->clipped)
        byte_buffer_format(&text, "%zu %s outside the axes. ", notes->clipped, notes->clipped == 1 ? "point lies" : "points lie");
    if (style->note) byte_buffer_text(&text, style->note);
    byte_buffer_append(&text, "", 1);
    if (text.failed) draw_fail(list);
    else if (text.size_bytes > 1) y = figure_footnote(list, style, y + 1, (const char *)text.data);
    byte_buffer_free(&text);
    return y;
}

/* What stands around a plot area, for all panels alike, so that areas line up. */
typedef struct surroundings {
    double left, right, above, below; /* above: the title, and the panel's own legend over it */
    double legend;
} surroundings;

static surroundings measure_surroundings(draw_list *list, const chart_figure *spec, const figure_style *style, bool shared, double width,
                                         double height)
{
    surroundings around = {.above = 1.4};
    figure_notes ignored = {0};
    for (size_t k = 0; k < spec->panel_count; k++) {
        plot p = make_plot(list, &spec->panels[k], style, (draw_rect){0, 0, width, height}, &ignored);
        double left = 1.3 + tick_text_width(list, &p.y, &p.small) + (p.y.axis->label ? 1.4 + line_of(&p.font) : 0);
        double below = axis_names_height(list, &p) + (p.x.axis->label ? 0.8 + 1.2 * line_of(&p.font) : 0);
        around.left = fmax(around.left, left);
        around.below = fmax(around.below, below);
        around.right = fmax(around.right, tick_text_width(list, &p.x, &p.small) / 2);
        if (spec->panels[k].title || spec->panel_letters) around.above = fmax(around.above, 1.4 + line_of(&p.bold));
        if (!shared) around.legend = fmax(around.legend, legend_rows(list, &spec->panels[k], style, 0, 0, width, false));
    }
    around.above += around.legend > 0 ? around.legend + 0.8 : 0;
    return around;
}

deberta_status chart_layout(draw_list *list, const void *chart, figure_notes *notes, deberta_error *err)
{
    const chart_figure *spec = chart;
    DEBERTA_TRY(check_chart(spec, err));
    figure_style style = figure_defaults(&spec->style);
    size_t columns = spec->columns ? spec->columns : (size_t)fmax(1, style.width_mm / 50);
    if (columns > spec->panel_count) columns = spec->panel_count;
    double each = (style.width_mm - 2 * margin) / (double)columns, width = each, height = 30;
    surroundings around = {0};
    bool shared = legend_is_shared(spec);
    for (int pass = 0; pass < 2; pass++) { /* margins depend on the ticks, the ticks on the width */
        height = spec->panel_height > 0 ? spec->panel_height : fmin(fmax(0.62 * width, 25), 90);
        around = measure_surroundings(list, spec, &style, shared, width, height);
        width = each - around.left - around.right - (columns > 1 ? 2 : 0);
    }
    if (width < 10)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu charts side by side leave no room in %g mm: fewer columns or a wider figure", columns,
                     style.width_mm);
    double top = figure_title(list, &style);
    top += top > 0 ? 0.5 : margin;
    double full = style.width_mm - 2 * margin, legend = shared ? legend_rows(list, &spec->panels[0], &style, margin, top, full, true) : 0;
    top += legend > 0 ? legend + 0.8 : 0;
    size_t rows = (spec->panel_count + columns - 1) / columns;
    double step = around.above + height + around.below + 3;
    for (size_t k = 0; k < spec->panel_count; k++) {
        char letter[8];
        figure_letter(k, letter);
        draw_rect area = {margin + (double)(k % columns) * each + around.left, top + (double)(k / columns) * step + around.above, width,
                          height};
        plot p = make_plot(list, &spec->panels[k], &style, area, notes);
        if (!shared) legend_rows(list, &spec->panels[k], &style, area.x, area.y - 1 - around.legend, width, true);
        draw_panel(list, &p, spec->panel_letters ? letter : NULL, shared ? 0 : around.legend + 0.6);
    }
    double bottom = draw_chart_notes(list, &style, notes, top + (double)rows * step - 3);
    draw_set_page(list, style.width_mm, bottom + margin);
    return DEBERTA_OK;
}

deberta_status figure_chart(const chart_figure *spec, const char *const *paths, size_t path_count, figure_notes *notes,
                            deberta_error *err)
{
    return figure_save(chart_layout, spec, &spec->style, paths, path_count, notes, err);
}
