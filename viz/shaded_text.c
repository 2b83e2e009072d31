/* Sets tokens as lines of boxes, each in the colour of its value. SPDX-License-Identifier: MIT */
#include "viz/shaded_text.h"

#include <math.h>

#include "viz/colour_bar.h"
#include "viz/palette.h"

static const double text_margin = 1.5, padding = 0.35, word_gap = 0.9, line_gap = 0.7, bar_width = 40;

static double largest_value(const shaded_text *spec)
{
    double most = 0;
    for (size_t t = 0; t < spec->count; t++) most = fmax(most, isfinite(spec->values[t]) ? fabs(spec->values[t]) : 0);
    return most > 0 ? most : 1;
}

/* Draws the tokens. A token that begins a word and does not fit begins a line; a piece of a word stays beside the one
 * before it. */
static double draw_tokens(draw_list *list, const shaded_text *spec, const figure_style *style,
                          const heatmap_scale *scale, const palette *map, double top)
{
    const draw_font font = figure_font(style);
    const double height = draw_type_height(&font) + 2 * padding, room = style->width_mm - text_margin;
    double x = text_margin, y = top;
    draw_group(list, "tokens");
    for (size_t t = 0; t < spec->count; t++) {
        const figure_label *token = &spec->tokens[t];
        const double width = draw_measure(list, token->text, &font) + 2 * padding;
        const double gap = spec->begins_word[t] && x > text_margin ? word_gap : 0;
        const draw_colour colour = heatmap_colour(scale, map, spec->values[t]);
        draw_font ink = font;
        if (x + gap + width > room && x > text_margin)
            x = text_margin, y += height + line_gap;
        else
            x += gap;
        ink.colour = palette_ink_on(colour);
        if (token->special) ink.colour = (draw_colour){120, 120, 120, 255};
        draw_box(list, (draw_rect){x, y, width, height}, colour, NULL);
        draw_text_within(
            list, token->text,
            (draw_place){.x = x + padding, .y = y + height / 2, .along = DRAW_START, .across = DRAW_CENTRE}, &ink,
            room - text_margin);
        x += width;
    }
    draw_ungroup(list);
    return y + height;
}

static double draw_legend(draw_list *list, const shaded_text *spec, const figure_style *style,
                          const heatmap_scale *scale, const palette *map, double top)
{
    const colour_legend legend = {.title = spec->unit,
                                  .scale = scale,
                                  .map = map,
                                  .font = figure_font(style),
                                  .small = figure_small_font(style),
                                  .width = fmin(bar_width, style->width_mm - 2 * text_margin),
                                  .room = style->width_mm - 2 * text_margin};
    colour_legend_draw(list, &legend, text_margin, top);
    return top + colour_legend_height(list, &legend);
}

deberta_status shaded_text_layout(draw_list *list, const void *text, figure_notes *notes, deberta_error *err)
{
    const shaded_text *spec = text;
    const figure_style style = figure_defaults(&spec->style);
    const palette *map = palette_find("polar");
    const double most = largest_value(spec);
    const heatmap_scale scale = {.low = -most, .high = most};
    double top = figure_title(list, &style);
    top = top > 0 ? top + 0.8 : text_margin;
    if (spec->count > 0) {
        top = draw_tokens(list, spec, &style, &scale, map, top) + 1.5;
        top = draw_legend(list, spec, &style, &scale, map, top) + 1;
    }
    if (spec->count > 0 && spec->panel_count == 0) {
        byte_buffer own = {0};
        draw_set_page(list, style.width_mm, figure_write_notes(list, &style, top, &own) + text_margin);
        return DEBERTA_OK;
    }
    chart_figure charts = {
        .style = style, .panels = spec->panels, .panel_count = spec->panel_count, .columns = 1, .panel_height = 30};
    charts.style.title = NULL;
    draw_set_origin(list, 0, top);
    DEBERTA_TRY(chart_layout(list, &charts, notes, err));
    draw_set_page(list, draw_page_width(list), draw_page_height(list) + top);
    draw_set_origin(list, 0, 0);
    return DEBERTA_OK;
}
