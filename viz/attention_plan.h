/* Where the parts of an attention figure stand: how many panels fit side by side, with tokens or positions as labels,
 * in cells of which size. Inside of attention_layout.c, which draws by it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VIZ_ATTENTION_PLAN_H
#define VIZ_ATTENTION_PLAN_H

#include "viz/attention_figure.h"

/* In mm. */
static const double attention_margin = 0.5, attention_longest_label = 20;

typedef struct attention_plan {
    const attention_figure *spec;
    figure_style style;
    draw_font font, small, bold, label;
    bool shrinks; /* labels may be as small as FIGURE_SMALLEST_TYPE */

    size_t across, lines_per_row;                        /* panels side by side; lines that one grid row takes */
    bool tokens, key_tokens;                             /* rows, columns show tokens; else positions */
    double pixel;                                        /* of a PNG, in mm: panels begin and end on whole ones */
    double left, right;                                  /* before the first panel of a line and after the last */
    double right_bar, room;                              /* for a panel's own colour bar; for its cells */
    double panel_width, panel_height, cell, cell_height; /* cell: its width */
    bool level; /* key labels stand level, not turned, because they are no wider than a cell */
    bool short_titles;
    bool annotated; /* numbers stand in the cells */
    double gap_across, gap_down, row_gap, title_height,
        label_height;      /* label_height: of the rotated tokens under a panel */
    size_t pool, row_pool; /* columns and rows that share a drawn cell */

    heatmap_cells *cells;  /* [grid_rows * grid_columns] */
    heatmap_scale *scales; /* the same, each panel's */
    heatmap_scale shared[HEATMAP_KINDS];
    size_t panels_of[HEATMAP_KINDS];
} attention_plan;

static inline size_t attention_panel_count(const attention_figure *spec)
{
    return spec->grid_rows * spec->grid_columns;
}

/* Fills in the lengths, from the specification, the style, the pixel and the fonts. DEBERTA_E_ARGUMENT where nothing
 * readable fits on a page. */
deberta_status attention_plan_arrange(attention_plan *plan, const draw_list *list, deberta_error *err);

bool attention_plan_shows_tokens(const attention_plan *plan);
/* Panels begin on whole pixels: nearest-neighbour cells would otherwise differ by one. */
double attention_plan_snap(const attention_plan *plan, double mm);
/* Tokens or numbers under a panel, and the name of the axis. */
double attention_plan_axis_height(const attention_plan *plan);
/* Of the widest label as it is shown, and of the largest number (numbers NULL: 0, 1, 2 ...). */
double attention_label_width(const draw_list *list, const figure_label *labels, size_t count, const draw_font *font);
double attention_number_width(const draw_list *list, const size_t *numbers, size_t count, const draw_font *font);

#endif
