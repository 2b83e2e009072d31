/* Arranges the parts of an attention figure: how many panels fit side by side, with tokens or positions as labels, in
 * cells of which size. attention_layout.c draws the panels accordingly, attention_axes.c and attention_bars.c draw
 * the parts around them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/attention_kinds.h"

/* Lengths in mm */
static const double attention_margin = 0.5, attention_longest_label = 20;

/* Lengths of a bar that belongs to a panel: the gap before it, its width, its strokes with the gap before its
 * numbers. */
static const double attention_own_gap = 1.2, attention_own_bar = 2, attention_own_stroke = 1.3;
/* the same for a bar at the side: the gap before it, its width */
static const double attention_side_gap = 2, attention_side_bar = 2;

static const draw_colour attention_ink = {40, 40, 40, 255};

typedef struct attention_plan {
    const attention_figure *spec;
    figure_style style;
    draw_font font, small, bold, label;
    bool shrinks;      /* true: labels may be smaller than `small`, down to least_type */
    double least_type; /* in pt */
    double letters;    /* least distance of labels, as a fraction of their type size */

    size_t across, lines_per_row; /* panels side by side; lines that one grid row takes */
    bool tokens, key_tokens;      /* true: rows, columns show tokens; false: positions */
    double pixel;                 /* figure_grid_mm; panels begin and end on whole pixels */
    double largest_cell;          /* largest width of a cell, in mm */
    size_t bar_lines;             /* lines of the header for the bars of a row's scales; 0: they follow its title */
    double left, right;           /* lengths before the first panel of a line and after the last */
    double side_bar;              /* part of `right` for the only colour bar; 0: bars are below the panels */
    double right_bar, room;       /* widths for a panel's own colour bar; for its cells */
    double bar_numbers;           /* width of the widest number of such bars */
    size_t *bars_before;          /* [grid_columns + 1] number of columns with their own bars before each column */
    double panel_width, panel_height, cell, cell_height; /* cell: width of a cell */
    bool level; /* true: key labels are level, not turned, because they are no wider than a cell */
    bool short_titles;
    bool titles_above; /* true: each grid row has its title above it; false: rotated at the left */
    bool annotated;    /* true: numbers in the cells */
    double gap_across, gap_down, row_gap, header, title_height; /* header: height of a title above a grid row */
    double label_height;                                        /* height of the rotated tokens below a panel */
    size_t pool, row_pool;                                      /* columns and rows that share a drawn cell */

    heatmap_cells *cells;  /* [grid_rows * grid_columns] */
    heatmap_scale *scales; /* [grid_rows * grid_columns] scale of each panel */
    heatmap_scale shared[HEATMAP_KINDS];
    size_t panels_of[HEATMAP_KINDS];
} attention_plan;

static inline attention_row_bars attention_plan_row_bars(const attention_plan *plan)
{
    return (attention_row_bars){plan->spec,     plan->scales,     plan->small,
                                plan->bold,     attention_margin, plan->style.width_mm - attention_margin,
                                plan->bar_lines};
}

static inline size_t attention_panel_count(const attention_figure *spec)
{
    return spec->grid_rows * spec->grid_columns;
}

/* Fills in the lengths, from the specification, the style, the pixel and the fonts. Fails with DEBERTA_E_ARGUMENT if
 * nothing readable fits on a page. */
deberta_status attention_plan_arrange(attention_plan *plan, const draw_list *list, deberta_error *err);

bool attention_plan_shows_tokens(const attention_plan *plan);
/* Return the upper left corner of a panel; top: of the first grid row. */
double attention_plan_x(const attention_plan *plan, size_t column);
double attention_plan_y(const attention_plan *plan, double top, size_t row, size_t line);
/* Returns the width that a panel's own bar takes in this column: 0 if no panel has one. */
double attention_bar_room(const attention_plan *plan, size_t column);
/* Returns the room for a title beside a row, along its panels. */
double attention_plan_row_room(const attention_plan *plan);
/* Rounds to whole pixels, on which panels begin; nearest-neighbour cells would otherwise differ by one. */
double attention_plan_snap(const attention_plan *plan, double mm);
/* Returns the gap between "query" and the labels beside the rows. */
double attention_plan_name_gap(const attention_plan *plan);
/* Return the height of tokens or numbers below a panel, and of the name of the axis. */
double attention_plan_axis_height(const attention_plan *plan);
/* Returns true if the panels of this kind share a colour bar. */
bool attention_plan_has_bar(const attention_plan *plan, heatmap_kind kind);
/* Return the kind of the only bar, and its title at the side in one line or two: "logit," and the part that was
 * subtracted. */
heatmap_kind attention_plan_only_kind(const attention_plan *plan);
size_t attention_plan_side_title(const attention_plan *plan, char lines[2][HEATMAP_UNIT_BYTES]);
/* Returns the distance between these lines. */
double attention_plan_leading(const attention_plan *plan);
/* Return the width of the widest label as shown, and of the largest number (numbers NULL: 0, 1, 2 ...). */
double attention_label_width(const draw_list *list, const figure_label *labels, size_t count, const draw_font *font);
double attention_number_width(const draw_list *list, const size_t *numbers, size_t count, const draw_font *font);

/* Draw the axis at the left of a line's first panel, and that below a column's lowest one; (x, y): the panel's upper
 * left corner. */
void attention_draw_left_axis(draw_list *list, const attention_plan *plan, double y);
void attention_draw_lower_axis(draw_list *list, const attention_plan *plan, double x, double y);
/* Draws colour bars and notes. Returns the y below. */
double attention_draw_bars(draw_list *list, const attention_plan *plan, const figure_notes *notes, double top);
