/* Maps values to places on the plot area, and draws series in their colours, markers and dashes.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/chart_inside.h"

#include <math.h>
#include <stdlib.h>

#include "output/scope.h"
#include "viz/palette.h"

static const draw_colour ink = {40, 40, 40, 255}, nothing = {0, 0, 0, 0}, white = {255, 255, 255, 255};
static const draw_colour faint_grey = {90, 90, 90, 255};

/* ---------------------------------------------------------------------------------------------------------- places */

double chart_plot_x(const chart_plot *p, double value)
{
    return p->area.x + chart_axis_fraction(&p->x, value) * p->area.width;
}
double chart_plot_y(const chart_plot *p, double value)
{
    return p->area.y + (1 - chart_axis_fraction(&p->y, value)) * p->area.height;
}

/* Returns the point of the page. Values far outside are limited to 1 m beyond the area, which keeps coordinates
 * small; the clip hides the difference. */
draw_point chart_plot_point(const chart_plot *p, double x, double y)
{
    double px = chart_plot_x(p, x), py = chart_plot_y(p, y), far = 1000;
    return (draw_point){fmin(fmax(px, p->area.x - far), p->area.x + p->area.width + far),
                        fmin(fmax(py, p->area.y - far), p->area.y + p->area.height + far)};
}

bool chart_plot_shows(const chart_plot *p, double x, double y)
{
    return isfinite(chart_axis_fraction(&p->x, x)) && isfinite(chart_axis_fraction(&p->y, y));
}

bool chart_plot_holds(const chart_plot *p, draw_point at)
{
    const double slack = 1e-6;
    return at.x >= p->area.x - slack && at.x <= p->area.x + p->area.width + slack && at.y >= p->area.y - slack &&
           at.y <= p->area.y + p->area.height + slack;
}

/* ----------------------------------------------------------------------------------------------------------- looks */

enum { MARKER_DISC, MARKER_SQUARE, MARKER_TRIANGLE, MARKER_DIAMOND, MARKER_KINDS };

typedef struct series_look {
    draw_colour colour;
    draw_dash dash;
    int marker;
    bool open; /* true: an outlined marker on white */
    double width;
} series_look;

/* Returns the look of a series. Colour, marker and dash change together, so that any one of them identifies the
 * series. When the colours repeat, dashes and markers are shifted: forty looks are different. */
static series_look look_of(const chart_series *series, size_t place)
{
    static const draw_dash dashes[] = {DRAW_SOLID, DRAW_DASHED, DRAW_DASH_DOT, DRAW_DOTTED};
    const size_t number = series->look ? series->look - 1 : place, shifted = number + number / PALETTE_SERIES_COUNT;
    const draw_colour own = palette_series(number),
                      colour = series->shade > 0 ? palette_shade(own, series->shade) : own;
    return (series_look){.colour = series->faint ? faint_grey : colour,
                         .dash = dashes[(series->dash    ? series->dash - 1
                                         : series->faint ? 0
                                                         : shifted) %
                                        4],
                         .marker = (int)(shifted % MARKER_KINDS),
                         .open = shifted / MARKER_KINDS % 2 == 1,
                         .width = series->faint ? 0.5 : 1.0};
}

static draw_colour faded(draw_colour colour, uint8_t alpha)
{
    colour.a = alpha;
    return colour;
}

/* Draws a marker; all shapes have about the same area. The white rim keeps it readable where lines cross it. */
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

double chart_series_sample(draw_list *list, const chart_series *series, size_t place, double x, double y)
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

/* --------------------------------------------------------------------------------------------------- ribbons, lines */

/* Draws the line of a series, or the area between low and high: one piece for every run of points that can be
 * drawn. */
static void draw_runs(draw_list *list, const chart_plot *p, const chart_series *series, bool area,
                      const series_look *look)
{
    draw_point *points = memory_take(2 * series->count + 1, sizeof *points);
    size_t first = 0;
    while (first < series->count) {
        size_t used = 0, last = first;
        for (; last < series->count; last++, used++) {
            double x = chart_series_x(series, last), low = area ? series->low[last] : series->y[last];
            if (!chart_plot_shows(p, x, low) || (area && !chart_plot_shows(p, x, series->high[last]))) break;
            points[used] = chart_plot_point(p, x, low);
        }
        if (area) /* back along the upper side */
            for (size_t i = last; i > first; i--)
                points[used++] = chart_plot_point(p, chart_series_x(series, i - 1), series->high[i - 1]);
        const draw_pen pen = {look->colour, look->width, look->dash};
        if (area && used > 2) draw_path(list, points, used, DRAW_CLOSED, faded(look->colour, 60), NULL);
        if (!area && used > 1) draw_path(list, points, used, DRAW_OPEN, nothing, &pen);
        if (!area && used == 1 && series->kind == CHART_CURVE) /* a single point would be invisible */
            draw_marker(list, points[0].x, points[0].y, look);
        first = last + 1;
    }
    free(points);
}

/* Draws error bars. shift: of a bar beside its x. Whiskers are solid also for dashed series: a gap would look like a
 * shorter bar. */
static void draw_error_bars(draw_list *list, const chart_plot *p, const chart_series *series, double shift,
                            const series_look *look)
{
    const draw_pen pen = {look->colour, 0.7, DRAW_SOLID};
    for (size_t i = 0; series->low && series->high && i < series->count; i++) {
        double x = chart_series_x(series, i);
        if (!chart_plot_shows(p, x, series->y[i]) || !chart_plot_shows(p, x, series->low[i]) ||
            !chart_plot_shows(p, x, series->high[i]))
            continue;
        draw_point low = chart_plot_point(p, x, series->low[i]), high = chart_plot_point(p, x, series->high[i]);
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
        if (!chart_plot_shows(p, x, series->y[i])) continue;
        draw_point at = chart_plot_point(p, x, series->y[i]);
        if (chart_plot_holds(p, at)) draw_marker(list, at.x, at.y, look);
    }
}

static size_t bar_series_count(const chart_panel *panel)
{
    size_t count = 0;
    for (size_t s = 0; s < panel->series_count; s++) count += panel->series[s].kind == CHART_BARS;
    return count;
}

/* Draws a bar from zero, or from the lower end of an axis without zero. */
static void draw_one_bar(draw_list *list, const chart_plot *p, double left, double width, double from, double to,
                         draw_colour colour)
{
    const draw_pen pen = {white, 0.25, DRAW_SOLID};
    double base = fmin(fmax(from, p->y.low), p->y.high), top = fmin(fmax(to, p->y.low), p->y.high);
    double y0 = chart_plot_y(p, base), y1 = chart_plot_y(p, top);
    draw_box(list, (draw_rect){left, fmin(y0, y1), width, fabs(y1 - y0)}, colour, width > 0.8 ? &pen : NULL);
}

/* Draws the bars of all series side by side; together they fill 80 % of a place, around its middle. */
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
            if (!chart_plot_shows(p, x, series->y[i])) continue;
            draw_one_bar(list, p, chart_plot_x(p, x) + shift - each / 2, each,
                         chart_axis_is_log(p->y.axis) ? p->y.low : 0, series->y[i], look.colour);
        }
        look.colour = ink;
        draw_error_bars(list, p, series, shift, &look);
        place++;
    }
}

/* Draws two stacks at every place: positive values upwards from zero, negative ones downwards. */
static void draw_stacked_bars(draw_list *list, const chart_plot *p, double slot)
{
    size_t places = p->panel->x.category_count;
    double *tops = memory_take(2 * places + 1, sizeof *tops); /* upper and lower end of each stack so far */
    for (size_t s = 0; s < p->panel->series_count; s++) {
        const chart_series *series = &p->panel->series[s];
        if (series->kind != CHART_BARS) continue;
        series_look look = look_of(series, s);
        for (size_t i = 0; i < series->count; i++) {
            double x = chart_series_x(series, i), value = series->y[i];
            if (!chart_plot_shows(p, x, value) || x < 0 || x >= (double)places) continue;
            double *top = &tops[2 * (size_t)x + (value < 0)];
            draw_one_bar(list, p, chart_plot_x(p, x) - 0.4 * slot, 0.8 * slot, *top, *top + value, look.colour);
            *top += value;
        }
    }
    free(tops);
}

/* ----------------------------------------------------------------------------------------------------- in their order */

void chart_series_draw_areas(draw_list *list, const chart_plot *p)
{
    const chart_panel *panel = p->panel;
    double slot = p->area.width / fmax(1, (double)panel->x.category_count);
    if (panel->x.scale != CHART_CATEGORIES) slot = p->area.width / 20;
    for (size_t s = 0; s < panel->series_count; s++) {
        const chart_series *series = &panel->series[s];
        series_look look = look_of(series, s);
        if ((series->kind == CHART_CURVE && series->low && series->high) || series->kind == CHART_BAND)
            draw_runs(list, p, series, true, &look);
    }
    if (bar_series_count(panel)) (panel->stacked ? draw_stacked_bars : draw_grouped_bars)(list, p, slot);
}

void chart_series_draw_lines(draw_list *list, const chart_plot *p)
{
    for (size_t s = 0; s < p->panel->series_count; s++) {
        const chart_series *series = &p->panel->series[s];
        series_look look = look_of(series, s);
        if (series->kind == CHART_LINE || series->kind == CHART_POINTS) draw_error_bars(list, p, series, 0, &look);
        if (series->kind == CHART_LINE || series->kind == CHART_CURVE) draw_runs(list, p, series, false, &look);
    }
}

void chart_series_draw_markers(draw_list *list, const chart_plot *p)
{
    for (size_t s = 0; s < p->panel->series_count; s++) {
        series_look look = look_of(&p->panel->series[s], s);
        if (p->panel->series[s].kind == CHART_LINE || p->panel->series[s].kind == CHART_POINTS)
            draw_markers(list, p, &p->panel->series[s], &look);
    }
}
