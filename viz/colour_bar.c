/* Draws colour bars: a strip of the map with numbers below it, at its right or at both ends, and legends with a
 * title.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/colour_bar.h"

#include <math.h>
#include <string.h>

#include "viz/ticks.h"

static const draw_colour ink = {40, 40, 40, 255};
static const draw_colour nothing = {0, 0, 0, 0};

/* Lengths in mm, and a factor of the type's height */
static const double bar_thickness = 2.4, bar_gap = 0.6, title_leading = 1.25, inline_bar = 12, inline_thickness = 1.8,
                    inline_gap = 1.2; /* gap after the title of a bar within a line */

enum { SHORT_BAR_NUMBERS = 3, BAR_NUMBERS = 5, LONG_BAR_NUMBERS = 7 }; /* most numbers, up to 20 mm, 40 mm, beyond */

/* Returns the numbers of a colour bar: both ends, then round numbers that keep clear of the ends. */
static tick_set bar_numbers(const heatmap_scale *scale, size_t most)
{
    tick_set inner = (scale->logarithmic ? ticks_log(scale->low, scale->high, 10, most + 2)
                                         : ticks_between(scale->low, scale->high, most));
    tick_set ticks = {.step = inner.step};
    ticks.at[ticks.count++] = scale->low;
    ticks.at[ticks.count++] = scale->high;
    for (size_t i = 0; i < inner.count; i++)
        if (inner.at[i] > scale->low && inner.at[i] < scale->high) ticks.at[ticks.count++] = inner.at[i];
    return ticks;
}

static void bar_number_text(const tick_set *ticks, size_t i, char text[TICK_TEXT_BYTES])
{
    tick_text(ticks->at[i], i < 2 ? 0 : ticks->step, text);
}

/* Draws 256 steps for any map, because a bar shows only the part of a diverging map that the scale uses. */
static void bar_image(draw_list *list, draw_rect bar, bool vertical, const heatmap_scale *scale, const palette *map)
{
    enum { STEPS = 256 };
    draw_colour table[PALETTE_LEVELS_MAX];
    size_t levels = palette_table(map, table);
    uint8_t rgb[STEPS * 3];
    for (size_t i = 0; i < STEPS; i++) {
        size_t step = vertical ? STEPS - 1 - i : i; /* from the bottom up */
        double part = ((double)step + 0.5) / STEPS;
        double value = scale->logarithmic ? scale->low * pow(scale->high / scale->low, part)
                                          : scale->low + (scale->high - scale->low) * part;
        draw_colour colour = table[palette_level(levels, heatmap_position(scale, palette_is_diverging(map), value))];
        memcpy(rgb + 3 * i, (uint8_t[]){colour.r, colour.g, colour.b}, 3);
    }
    draw_image(list, bar, rgb, vertical ? STEPS : 1, vertical ? 1 : STEPS);
}

/* Draws triangles beyond the ends where values were clipped. */
static void bar_points(draw_list *list, draw_rect bar, bool vertical, const heatmap_scale *scale, const palette *map,
                       const draw_pen *pen)
{
    double point = vertical ? bar.width : bar.height, right = bar.x + bar.width, bottom = bar.y + bar.height;
    double middle_x = bar.x + bar.width / 2, middle_y = bar.y + bar.height / 2;
    draw_colour low = heatmap_colour(scale, map, scale->low), high = heatmap_colour(scale, map, scale->high);
    if (scale->below && vertical)
        draw_path(list, (draw_point[]){{bar.x, bottom}, {middle_x, bottom + point}, {right, bottom}}, 3, DRAW_CLOSED,
                  low, pen);
    if (scale->below && !vertical)
        draw_path(list, (draw_point[]){{bar.x, bar.y}, {bar.x - point, middle_y}, {bar.x, bottom}}, 3, DRAW_CLOSED, low,
                  pen);
    if (scale->above && vertical)
        draw_path(list, (draw_point[]){{bar.x, bar.y}, {middle_x, bar.y - point}, {right, bar.y}}, 3, DRAW_CLOSED, high,
                  pen);
    if (scale->above && !vertical)
        draw_path(list, (draw_point[]){{right, bar.y}, {right + point, middle_y}, {right, bottom}}, 3, DRAW_CLOSED,
                  high, pen);
}

/* Returns the width of a number. On a scale that is symmetric about zero a number and its opposite get the same
 * width, so that both are shown or none. */
static double number_width(const draw_list *list, const heatmap_scale *scale, double value,
                           const char text[TICK_TEXT_BYTES], const draw_font *font)
{
    const double sign = scale->low == -scale->high && value > 0 ? draw_measure(list, DRAW_MINUS, font) : 0;
    return draw_measure(list, text, font) + sign;
}

double colour_bar_numbers_width(const draw_list *list, const heatmap_scale *scale, const draw_font *font)
{
    static const size_t most[] = {SHORT_BAR_NUMBERS, BAR_NUMBERS};
    double widest = 0;
    for (size_t length = 0; length < sizeof most / sizeof *most; length++) {
        const tick_set ticks = bar_numbers(scale, most[length]);
        for (size_t i = 0; i < ticks.count; i++) {
            char text[TICK_TEXT_BYTES];
            bar_number_text(&ticks, i, text);
            widest = fmax(widest, draw_measure(list, text, font));
        }
    }
    return widest;
}

void colour_bar_draw(draw_list *list, draw_rect bar, bool vertical, const heatmap_scale *scale, const palette *map,
                     const draw_font *font)
{
    const draw_pen pen = {ink, 0.4, DRAW_SOLID};
    const double tick = 0.7, gap = 0.6;
    double length = vertical ? bar.height : bar.width, line = font->size * DRAW_MM_PER_PT;
    draw_group(list, "colour bar");
    bar_image(list, bar, vertical, scale, map);
    draw_box(list, bar, nothing, &pen);
    bar_points(list, bar, vertical, scale, map, &pen);
    tick_set ticks = bar_numbers(scale, length > 40 ? LONG_BAR_NUMBERS : length > 20 ? BAR_NUMBERS : SHORT_BAR_NUMBERS);
    double taken_low[TICKS_MAX], taken_high[TICKS_MAX];
    size_t taken = 0;
    for (size_t i = 0; i < ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        bar_number_text(&ticks, i, text);
        double along = heatmap_position(scale, false, ticks.at[i]) * length;
        /* Numbers at the ends of a horizontal bar stay within it, so that it may reach the edge of the page. */
        draw_anchor anchor = i >= 2 ? DRAW_MIDDLE : i == 0 ? DRAW_START : DRAW_END;
        double width = number_width(list, scale, ticks.at[i], text, font),
               from = along - (anchor == DRAW_MIDDLE ? width / 2
                               : anchor == DRAW_END  ? width
                                                     : fmax(0, width - length));
        double low = vertical ? along - 0.7 * line : from - 0.8,
               high = vertical ? along + 0.7 * line : from + width + 0.8;
        bool free_place = vertical || i < 2 || from + width <= length;
        for (size_t k = 0; k < taken; k++) free_place &= low >= taken_high[k] || high <= taken_low[k];
        if (!free_place) continue;
        taken_low[taken] = low;
        taken_high[taken++] = high;
        if (vertical) {
            double y = bar.y + bar.height - along, x = bar.x + bar.width;
            draw_line(list, x, y, x + tick, y, &pen);
            draw_text(list, text, (draw_place){x + tick + gap, y, DRAW_START, DRAW_CENTRE, 0}, font);
        } else {
            double x = bar.x + along, y = bar.y + bar.height;
            draw_line(list, x, y, x, y + tick, &pen);
            draw_text(list, text,
                      (draw_place){anchor == DRAW_START ? bar.x + from : x, y + tick + gap, anchor, DRAW_CAP, 0}, font);
        }
    }
    draw_ungroup(list);
}

/* Numbers of a bar within a line, and the room that its title leaves. */
typedef struct inline_numbers {
    char low[TICK_TEXT_BYTES], high[TICK_TEXT_BYTES];
    double low_width, high_width, rest;
} inline_numbers;

static inline_numbers measure_inline(const draw_list *list, const colour_legend *legend)
{
    inline_numbers all;
    tick_text(legend->scale->low, 0, all.low);
    tick_text(legend->scale->high, 0, all.high);
    all.low_width = draw_measure(list, all.low, &legend->small);
    all.high_width = draw_measure(list, all.high, &legend->small);
    all.rest = inline_gap + all.low_width + all.high_width + 2 * bar_gap + inline_bar;
    return all;
}

double colour_bar_inline_width(const draw_list *list, const colour_legend *legend)
{
    return draw_measure(list, legend->title, &legend->small) + measure_inline(list, legend).rest;
}

double colour_bar_draw_inline(draw_list *list, const colour_legend *legend, double x, double y)
{
    const draw_pen pen = {ink, 0.4, DRAW_SOLID};
    const draw_font *font = &legend->small;
    const inline_numbers numbers = measure_inline(list, legend);
    const double title = fmin(draw_measure(list, legend->title, font), legend->room - numbers.rest);
    draw_group(list, "colour bar");
    draw_text_within(list, legend->title, (draw_place){x, y, DRAW_START, DRAW_CENTRE, 0}, font, title);
    x += title + inline_gap;
    draw_text(list, numbers.low, (draw_place){x, y, DRAW_START, DRAW_CENTRE, 0}, font);
    x += numbers.low_width + bar_gap;
    const draw_rect bar = {x, y - inline_thickness / 2, inline_bar, inline_thickness};
    bar_image(list, bar, false, legend->scale, legend->map);
    draw_box(list, bar, nothing, &pen);
    x += inline_bar + bar_gap;
    draw_text(list, numbers.high, (draw_place){x, y, DRAW_START, DRAW_CENTRE, 0}, font);
    draw_ungroup(list);
    return x + numbers.high_width;
}

double colour_legend_height(const draw_list *list, const colour_legend *legend)
{
    size_t lines = draw_count_lines(list, legend->title, &legend->font, legend->room);
    double title = title_leading * draw_type_height(&legend->font) * (double)lines;
    return title + bar_gap + bar_thickness + 1.3 + draw_type_height(&legend->small) + 1.5;
}

void colour_legend_draw(draw_list *list, const colour_legend *legend, double x, double y)
{
    double leading = title_leading * draw_type_height(&legend->font);
    draw_place place = {x, y, DRAW_START, DRAW_CAP, 0};
    y += leading * (double)draw_paragraph(list, legend->title, place, &legend->font, legend->room, leading);
    double ends = legend->scale->below || legend->scale->above ? bar_thickness : 0; /* room for the triangles */
    draw_rect bar = {x + ends, y, legend->width - 2 * ends, bar_thickness};
    colour_bar_draw(list, bar, false, legend->scale, legend->map, &legend->small);
}
