/* Chooses ranges and ticks. Ranges follow the data with a little room; a logarithmic axis ignores values that are not
 * positive, any axis those that are not finite. Ticks are tried from many to few until their numbers have room, because
 * only the measured text knows how many fit.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/chart_inside.h"

#include <math.h>

/* Limit of an axis, which keeps differences and ratios of two ends finite. */
static const double largest_value = 1e200;

static double linear_part(const chart_axis *axis) { return axis->linear_to > 0 ? axis->linear_to : 10; }

/* Maps a value to the linear scale of the paper. asinh has no break at the end of its linear part, unlike the usual
 * "symlog". */
static double transform(const chart_axis *axis, double value)
{
    switch (axis->scale) {
    case CHART_LOG10:
    case CHART_LOG2: return value > 0 ? log(value) : (double)NAN;
    case CHART_SIGNED_LOG: return asinh(value / linear_part(axis));
    default: return value;
    }
}

double chart_axis_fraction(const chart_axis_map *map, double value)
{
    return (transform(map->axis, value) - map->from) / (map->to - map->from);
}

bool chart_axis_is_log(const chart_axis *axis) { return axis->scale == CHART_LOG10 || axis->scale == CHART_LOG2; }

double chart_series_x(const chart_series *series, size_t point) { return series->x ? series->x[point] : (double)point; }

/* ---------------------------------------------------------------------------------------------------------- range */

static void include(const chart_axis *axis, double value, double *low, double *high)
{
    if (!(fabs(value) <= largest_value) || (chart_axis_is_log(axis) && value < 1 / largest_value)) return;
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

/* Includes the ends of the stacks, upwards and downwards, which no single value reaches. */
static void include_stacks(const chart_panel *panel, double *low, double *high)
{
    for (size_t place = 0; place < panel->x.category_count; place++) {
        double up = 0, down = 0;
        for (size_t s = 0; s < panel->series_count; s++) {
            const chart_series *series = &panel->series[s];
            for (size_t i = 0; series->kind == CHART_BARS && i < series->count; i++) {
                if (chart_series_x(series, i) != (double)place || !isfinite(series->y[i])) continue;
                *(series->y[i] > 0 ? &up : &down) += series->y[i];
            }
        }
        include(&panel->y, down, low, high);
        include(&panel->y, up, low, high);
    }
}

/* Finds the range of everything drawn: error bars, ribbons and rules as well as points. */
static void data_range(const chart_panel *panel, bool vertical, double *low, double *high)
{
    const chart_axis *axis = vertical ? &panel->y : &panel->x;
    for (size_t s = 0; s < panel->series_count; s++) {
        const chart_series *series = &panel->series[s];
        for (size_t i = 0; i < series->count; i++) {
            if (!vertical) {
                include(axis, chart_series_x(series, i), low, high);
                continue;
            }
            if (series->y) include(axis, series->y[i], low, high);
            if (series->low) include(axis, series->low[i], low, high);
            if (series->high) include(axis, series->high[i], low, high);
        }
        /* A bar shows its length, so an axis that cut it off at the bottom would mislead. */
        if (vertical && series->kind == CHART_BARS && !chart_axis_is_log(axis)) include(axis, 0, low, high);
    }
    if (vertical && panel->stacked) include_stacks(panel, low, high);
    for (size_t i = 0; i < panel->rule_count; i++)
        if (panel->rules[i].vertical != vertical) include(axis, panel->rules[i].at, low, high);
}

/* Adds room around the data: 4 % of a linear axis but never beyond zero, and of the decades of a logarithmic one. */
static void widen(const chart_axis *axis, double *low, double *high)
{
    if (!(*low <= *high)) { /* there are no data */
        *low = chart_axis_is_log(axis) ? 1 : 0;
        *high = chart_axis_is_log(axis) ? 10 : 1;
    }
    if (chart_axis_is_log(axis)) {
        double factor = *low < *high ? pow(*high / *low, 0.04) : 2;
        *low /= factor;
        *high *= factor;
        return;
    }
    if (axis->from_zero) {
        *low = fmin(*low, 0);
        *high = fmax(*high, 0);
    }
    double room = *low < *high ? 0.04 * (*high - *low) : fmax(0.5, fabs(*low) / 2);
    const bool never_below = *low >= 0, never_above = *high <= 0 && *low < 0;
    *low = never_below ? fmax(0, *low - room) : *low - room;
    *high = never_above ? fmin(0, *high + room) : *high + room;
}

/* ---------------------------------------------------------------------------------------------------------- ticks */

void chart_axis_tick_text(const chart_axis_map *map, size_t tick, char text[TICK_TEXT_BYTES])
{
    tick_text(map->ticks.at[tick], map->ticks.step, text);
}

double chart_axis_numbers_width(const draw_list *list, const chart_axis_map *map, const draw_font *font)
{
    double widest = 0;
    for (size_t i = 0; i < map->ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        chart_axis_tick_text(map, i, text);
        widest = fmax(widest, draw_measure(list, text, font));
    }
    return widest;
}

static void add_both_signs(tick_set *ticks, const chart_axis_map *map, double value)
{
    if (ticks->count + 2 > TICKS_MAX) return;
    if (-value >= map->low) ticks->at[ticks->count++] = -value;
    if (value <= map->high) ticks->at[ticks->count++] = value;
}

/* Returns 0, powers of ten times the end of the linear part with both signs, and 3 times them where there is room. */
static tick_set signed_log_ticks(const chart_axis_map *map, size_t most)
{
    double unit = linear_part(map->axis), reach = fmax(fabs(map->low), fabs(map->high));
    double decades = fmax(0, log10(reach / unit)), pairs = fmax(1, (double)(most / 2));
    double stride = pow(10, ceil((decades + 1) / pairs));
    tick_set ticks = {.count = map->low <= 0 && map->high >= 0};
    for (double value = unit; value <= reach && ticks.count < TICKS_MAX; value *= stride) {
        add_both_signs(&ticks, map, value);
        if (value * 3 <= reach && 4 * decades + 5 <= (double)most) add_both_signs(&ticks, map, value * 3);
    }
    return ticks;
}

static tick_set make_ticks(const chart_axis_map *map, size_t most)
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

/* Returns true if the numbers of two ticks do not touch on an axis of that length. */
static bool two_clear(const draw_list *list, const chart_axis_map *map, size_t i, size_t k, bool vertical,
                      double length, const draw_font *font)
{
    double at = chart_axis_fraction(map, map->ticks.at[i]), other = chart_axis_fraction(map, map->ticks.at[k]);
    double apart = fabs(at - other) * length;
    if (vertical) return apart >= 1.3 * draw_type_height(font);
    char one[TICK_TEXT_BYTES], two[TICK_TEXT_BYTES];
    chart_axis_tick_text(map, i, one);
    chart_axis_tick_text(map, k, two);
    /* An even axis looks crowded long before its numbers touch. */
    bool even = map->axis->scale == CHART_LINEAR || map->axis->scale == CHART_WHOLE;
    return apart >= fmax(even ? 8 : 0, (draw_measure(list, one, font) + draw_measure(list, two, font)) / 2 + 2);
}

static bool all_clear(const draw_list *list, const chart_axis_map *map, bool vertical, double length,
                      const draw_font *font)
{
    for (size_t i = 0; i < map->ticks.count; i++)
        for (size_t k = 0; k < i; k++)
            if (!two_clear(list, map, i, k, vertical, length, font)) return false;
    return true;
}

/* Returns true if the number of the last tick is clear of all others. */
static bool last_clear(const draw_list *list, const chart_axis_map *map, bool vertical, double length,
                       const draw_font *font)
{
    for (size_t k = 0; k + 1 < map->ticks.count; k++)
        if (!two_clear(list, map, map->ticks.count - 1, k, vertical, length, font)) return false;
    return true;
}

/* Drops ticks around the zero of a signed logarithm, where they are crowded whatever the stride: keeps 0, if asked,
 * then the outermost that are clear. A tick and its opposite stay or go together: their numbers have one meaning. */
static void drop_crowded(const draw_list *list, chart_axis_map *map, bool with_zero, bool vertical, double length,
                         const draw_font *font)
{
    const tick_set all = map->ticks;
    map->ticks.count = 0;
    if (with_zero && all.count && all.at[0] == 0) map->ticks.at[map->ticks.count++] = 0;
    for (size_t end = all.count; end > 0;) {
        const bool pair = end > 1 && all.at[end - 2] == -all.at[end - 1];
        end -= pair ? 2 : 1;
        if (all.at[end] == 0) continue;
        const size_t before = map->ticks.count;
        bool clear = true;
        for (size_t i = 0; i < (pair ? 2 : 1) && clear; i++) {
            map->ticks.at[map->ticks.count++] = all.at[end + i];
            clear = last_clear(list, map, vertical, length, font);
        }
        if (!clear) map->ticks.count = before;
    }
}

/* Chooses among all sets of a signed logarithm the one of which most is left; of equal ones the one of rounder
 * numbers. Zero gives way where it alone would be left. */
static void choose_signed(const draw_list *list, chart_axis_map *map, size_t most, bool vertical, double length,
                          const draw_font *font)
{
    tick_set best = {0};
    for (int with_zero = 1; with_zero >= 0 && best.count < 2; with_zero--)
        for (size_t count = most; count >= 2; count--) {
            map->ticks = make_ticks(map, count);
            drop_crowded(list, map, with_zero, vertical, length, font);
            if (map->ticks.count >= best.count) best = map->ticks;
        }
    map->ticks = best;
}

/* Keeps the first and the last tick. */
static void keep_outermost(tick_set *ticks)
{
    if (ticks->count < 2) return;
    ticks->at[1] = ticks->at[ticks->count - 1];
    ticks->count = 2;
}

/* Chooses the ticks: as many as have numbers that keep clear of each other, but two wherever two have room, because
 * one number shows no scale. Where no two round numbers have room, the ends of the axis have theirs. */
static void choose_ticks(const draw_list *list, chart_axis_map *map, bool vertical, double length,
                         const draw_font *font)
{
    const size_t most = (size_t)fmax(2, length / (vertical ? 2.4 * draw_type_height(font) : 4));
    size_t count = most;
    map->ticks = make_ticks(map, count);
    bool clear;
    while (!(clear = all_clear(list, map, vertical, length, font)) && count > 2) map->ticks = make_ticks(map, --count);
    if (map->axis->scale == CHART_CATEGORIES || (clear && map->ticks.count >= 2)) return;
    /* One whole number in a range that has no other one. */
    if (map->axis->scale == CHART_WHOLE && floor(map->high) - ceil(map->low) < 1) return;
    if (map->axis->scale == CHART_SIGNED_LOG) {
        choose_signed(list, map, most, vertical, length, font);
        if (map->ticks.count >= 2) return;
    }
    const tick_set few = map->ticks;
    map->ticks = make_ticks(map, most);
    keep_outermost(&map->ticks);
    if (map->ticks.count == 2 && all_clear(list, map, vertical, length, font)) return;
    map->ticks = (tick_set){.at = {map->low, map->high}, .count = 2};
    if (all_clear(list, map, vertical, length, font)) return;
    map->ticks = few; /* not even two short numbers have room */
}

chart_axis_map chart_axis_make(const draw_list *list, const chart_panel *panel, bool vertical, double length,
                               const draw_font *font)
{
    const chart_axis *axis = vertical ? &panel->y : &panel->x;
    chart_axis_map map = {.axis = axis, .low = INFINITY, .high = -INFINITY};
    if (axis->scale == CHART_CATEGORIES) {
        map.low = -0.5; /* every category has a place of width 1 around its index */
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
    choose_ticks(list, &map, vertical, length, font);
    return map;
}
