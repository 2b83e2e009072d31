/* Declares the common parts of figures: width, type, title, provenance, notes, and saving into several files at once.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "viz/draw.h"
#include "viz/png_metadata.h"

/* Style of a figure. Members set to 0 or NULL mean the default. */
typedef struct figure_style {
    double width_mm;  /* default 174, a page; a column is 85. Figures that need less are narrower
                       * (figure_page_width) */
    bool exact_width; /* true: these get white margins instead, for a page of exactly this width */
    double dpi;       /* resolution of a PNG, default 300; it does not change the layout */
    /* default 7 pt; type is never smaller than 5, and smaller than 6 only by choice or where tokens would not fit
     * otherwise */
    double font_size;
    const char *font; /* families in order of preference, separated by commas; "serif": Times or its relatives */
    const char *title;
    const char *note;                   /* additional sentence under the figure */
    bool no_notes;                      /* true: no notes under the figure */
    const provenance_entry *provenance; /* written as PNG text chunks, PDF subject, SVG metadata */
    size_t provenance_count;
    /* NULL, or where figure_save leaves how many characters no installed font has: the most of several figures */
    size_t *missing_glyphs;
} figure_style;

/* A token beside a row or a column. */
typedef struct figure_label {
    const char *text;
    bool special; /* true: drawn grey: [CLS], [SEP], padding */
} figure_label;

/* Facts for the reader of a figure; each is also written into the figure or its colour bar. */
typedef struct figure_notes {
    size_t clipped;      /* number of cells outside the scale */
    size_t not_a_number; /* number of cells, hatched */
    size_t infinite;     /* number of cells, hatched */
    size_t not_positive; /* number of cells on a logarithmic scale, hatched */
    /* columns that share one drawn cell, and rows unless pooled_rows is set; 0 or 1: none */
    size_t pooled;
    size_t pooled_rows; /* rows that share one drawn cell; 0: as many as columns */
    bool coarse;        /* true: they share it because a PNG has fewer dots per inch than layouts have */
    /* characters that no installed font has; without a note in the figure, where they are visible */
    size_t missing_glyphs;
    size_t names_stride;            /* of so many names below the bars of a chart one is written; 0 or 1: all are */
    bool positions;                 /* true: tokens did not fit, and axes show positions */
    double page_width, page_height; /* in mm; not in the figure either */
} figure_notes;

/* Smallest type of a figure in pt, and its fonts. */
enum { FIGURE_SMALLEST_TYPE = DRAW_SMALLEST_TYPE };
/* Grid in mm to which layouts snap cells, whatever the resolution of a PNG, so that every format and every resolution
 * shows one layout. Finer cells are pooled, in a PNG also cells that are finer than its pixels. */
static const double figure_grid_mm = 25.4 / 300;
figure_style figure_defaults(const figure_style *style);
draw_font figure_font(const figure_style *style);       /* for text */
draw_font figure_small_font(const figure_style *style); /* for numbers and notes */
draw_font figure_bold_font(const figure_style *style);  /* for panel titles */

/* Fails with DEBERTA_E_ARGUMENT for a width outside 30-1000 mm, a resolution outside 36-2400 dpi or type outside 5-24
 * pt. */
deberta_status figure_check_style(const figure_style *style, deberta_error *err);

/* Returns the width of a page for a figure that is `content` wide: as asked for, or without a visibly empty part at
 * the right. */
double figure_page_width(const figure_style *style, double content);

/* Draws the title at the top, if any, and returns where the figure may begin. */
double figure_title(draw_list *list, const figure_style *style);
/* Writes text and style->note as a footnote at y, small and grey, broken to the page width, unless both are empty.
 * Returns the y below; empties text. */
double figure_write_notes(draw_list *list, const figure_style *style, double y, byte_buffer *text);
/* Writes the title of a panel, baseline at (x, y): bold, or in plain type after a bold letter (NULL: none). It
 * becomes smaller, and is then cut, where room is scarce. */
void figure_panel_title(draw_list *list, const figure_style *style, const char *letter, const char *title, double x,
                        double y, double room);
/* Appends a sentence for every note about cells (pooled, clipped, not finite), each ending in a space. */
void figure_cell_notes(const figure_notes *notes, byte_buffer *text);
/* Writes "a", "b", ... "z", "aa". */
void figure_letter(size_t index, char text[8]);

/* Draws the figure that `what` describes on the list, sets the page size, and fills notes. */
typedef deberta_status (*figure_layout)(draw_list *list, const void *what, figure_notes *notes, deberta_error *err);

/* Checks that the figure can be laid out, for several that are written together or not at all. notes may be NULL. */
deberta_status figure_check(figure_layout layout, const void *what, const figure_style *style, figure_notes *notes,
                            deberta_error *err);

/* Saves a figure into every path, by suffix: .png .svg .pdf. Runs layout once, and again for a PNG of few dots per
 * inch, whose cells may have to be pooled. All files are complete or none is changed: suffixes are checked first, and
 * that no path occurs twice; bytes are made in memory, written next to the target and renamed. notes may be NULL. */
deberta_status figure_save(figure_layout layout, const void *what, const figure_style *style, const char *const *paths,
                           size_t path_count, figure_notes *notes, deberta_error *err);
