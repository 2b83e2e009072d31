/* Draws colour bars of an attention figure whose rows have separate scales: the bars lie in the line of the row's
 * title, or below it, and take no width from the panels.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/attention_kinds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "viz/colour_bar.h"

static const double bars_apart = 4; /* distance in mm */
enum { NAME_BYTES = 64, RANGE_BYTES = 2 * NAME_BYTES + 4 };

/* Copies a panel's name without a part in brackets, such as "(ablated)". */
static void panel_name(const attention_figure *spec, size_t index, char name[NAME_BYTES])
{
    const char *title = spec->short_titles ? spec->short_titles[index] : NULL;
    if (!title) title = spec->panels[index].title ? spec->panels[index].title : "";
    const char *bracket = strstr(title, " (");
    snprintf(name, NAME_BYTES, "%.*s", bracket ? (int)(bracket - title) : NAME_BYTES - 1, title);
}

/* Writes the panels of the row that share the scale, by the first and the last: "c2c to logits". Returns false if
 * there are none. */
static bool find_range(const attention_figure *spec, size_t row, heatmap_kind kind, size_t *first,
                       char name[RANGE_BYTES])
{
    char from[NAME_BYTES], to[NAME_BYTES];
    size_t count = 0, last = 0;
    for (size_t k = row * spec->grid_columns; k < (row + 1) * spec->grid_columns; k++) {
        if (!attention_has_cells(spec, k) || spec->panels[k].kind != kind) continue;
        if (count++ == 0) *first = k;
        last = k;
    }
    if (count == 0 || attention_policy(spec, kind) != HEATMAP_ROW) return false;
    panel_name(spec, *first, from);
    panel_name(spec, last, to);
    snprintf(name, RANGE_BYTES, count == 1 ? "%s" : "%s to %s", from, to);
    return true;
}

static colour_legend bar_of(const attention_row_bars *p, heatmap_kind kind, size_t first, const char *name)
{
    return (colour_legend){.title = name,
                           .scale = &p->scales[first],
                           .map = palette_find(attention_palette(p->spec, kind)),
                           .small = p->small};
}

/* Returns the width of the bars of a row side by side, and their number. */
static double bars_width(const draw_list *list, const attention_row_bars *p, size_t row, size_t *count)
{
    char name[RANGE_BYTES];
    double width = 0;
    size_t first;
    *count = 0;
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        if (!find_range(p->spec, row, kind, &first, name)) continue;
        const colour_legend legend = bar_of(p, kind, first, name);
        width += colour_bar_inline_width(list, &legend) + (*count > 0 ? bars_apart : 0);
        (*count)++;
    }
    return width;
}

static double title_width(const draw_list *list, const attention_row_bars *p, size_t row)
{
    const char *title = p->spec->row_titles ? p->spec->row_titles[row] : NULL;
    return title ? draw_measure(list, title, &p->bold) + bars_apart : 0;
}

size_t attention_row_bars_lines(const draw_list *list, const attention_row_bars *p)
{
    const double page = p->right - p->left;
    size_t lines = 0;
    for (size_t row = 0; row < p->spec->grid_rows && attention_has_row_bars(p->spec); row++) {
        size_t count;
        const double width = bars_width(list, p, row, &count);
        if (width > page && count > lines) lines = count;
        if (title_width(list, p, row) + width > page && lines == 0) lines = 1;
    }
    return lines;
}

double attention_row_bars_end(const draw_list *list, const attention_row_bars *p)
{
    const double page = p->right;
    double right = 0;
    for (size_t row = 0; row < p->spec->grid_rows; row++) {
        size_t count;
        const double x = p->left + (p->lines ? 0 : title_width(list, p, row)), width = bars_width(list, p, row, &count);
        if (count > 0) right = fmax(right, fmin(page, x + width));
    }
    return right;
}

void attention_row_bars_draw(draw_list *list, const attention_row_bars *p, size_t row, double y)
{
    double x = p->left + (p->lines ? 0 : title_width(list, p, row));
    char name[RANGE_BYTES];
    size_t first;
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        if (!find_range(p->spec, row, kind, &first, name)) continue;
        colour_legend legend = bar_of(p, kind, first, name);
        legend.room = p->right - x;
        const double right = colour_bar_draw_inline(list, &legend, x, y);
        if (p->lines > 1)
            y += attention_row_bars_height(p);
        else
            x = right + bars_apart;
    }
}

double attention_row_bars_height(const attention_row_bars *p) { return draw_type_height(&p->small) + 2; }
