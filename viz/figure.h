/* Declares the common parts of figures: width, type, title, provenance, notes, and saving into several files at once.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "viz/draw.h"
#include "viz/png_metadata.h"

/* Members set to 0 or NULL mean the default. */
typedef struct figure_style {
    double width_mm;  /* 174, a page; a column is 85. Figures that need less are narrower (figure_page_width) */
    bool exact_width; /* and these get white margins, so that the page is as wide as asked for */
    double dpi;       /* 300: resolution of a PNG; it moves nothing */
    double font_size; /* 7 pt; nothing is ever set smaller than 5, and than 6 only where that was chosen or where
                         tokens would not fit otherwise */
    const char *font; /* families in order of preference, separated by commas; "serif": Times or its relatives */
    const char *title;
    const char *note;                   /* an own sentence under the figure */
    bool no_notes;                      /* nothing is written there */
    const provenance_entry *provenance; /* PNG text chunks, PDF subject, SVG metadata */
    size_t provenance_count;
} figure_style;

/* A token beside a row or a column. */
typedef struct figure_label {
    const char *text;
    bool special; /* drawn grey: [CLS], [SEP], padding */
} figure_label;

/* Facts that the reader of a figure needs; each is also written into the figure or its colour bar. */
typedef struct figure_notes {
    size_t clipped;                 /* cells outside the scale */
    size_t not_a_number;            /* cells, hatched */
    size_t infinite;                /* cells, hatched */
    size_t not_positive;            /* cells on a logarithmic scale, hatched */
    size_t pooled;                  /* columns that share one drawn cell, and rows unless pooled_rows; 0 or 1: none */
    size_t pooled_rows;             /* 0: as many */
    size_t missing_glyphs;          /* characters that no installed font has; not in the figure, they are seen there */
    bool positions;                 /* tokens did not fit; axes show positions */
    double page_width, page_height; /* mm; not in the figure either */
} figure_notes;

/* One letter's height of space, and the fonts of a figure. */
enum { FIGURE_SMALLEST_TYPE = 5 };
/* Layouts snap cells to this grid and pool what is finer, whatever the resolution of a PNG: every format and every
 * resolution shows one layout. */
static const double figure_grid_mm = 25.4 / 300;
figure_style figure_defaults(const figure_style *style);
draw_font figure_font(const figure_style *style);       /* text */
draw_font figure_small_font(const figure_style *style); /* numbers, notes */
draw_font figure_bold_font(const figure_style *style);  /* panel titles */

/* DEBERTA_E_ARGUMENT for a width outside 30-1000 mm, a resolution outside 36-2400 dpi or type outside 5-24 pt. */
deberta_status figure_check_style(const figure_style *style, deberta_error *err);

/* The width of a page for a figure that is `content` wide: as asked for, or without the empty part at the right where
 * that would be seen. */
double figure_page_width(const figure_style *style, double content);

/* Draws the title at the top, if any, and returns where the figure may begin. */
double figure_title(draw_list *list, const figure_style *style);
/* Writes text and style->note as a footnote at y, small and grey, broken to the page width, if there is anything to
 * say. Returns the y beneath; empties text. */
double figure_write_notes(draw_list *list, const figure_style *style, double y, byte_buffer *text);
/* Title of a panel, baseline at (x, y): bold, or in plain type after a bold letter (NULL: none). Smaller, and then
 * cut, where room is scarce. */
void figure_panel_title(draw_list *list, const figure_style *style, const char *letter, const char *title, double x,
                        double y, double room);
/* Appends a sentence for every note about cells (pooled, clipped, not finite), each ending in a space. */
void figure_cell_notes(const figure_notes *notes, byte_buffer *text);
/* "a", "b", ... "z", "aa" */
void figure_letter(size_t index, char text[8]);

/* Draws the figure that `what` describes on the list, sets the page size, and fills notes. */
typedef deberta_status (*figure_layout)(draw_list *list, const void *what, figure_notes *notes, deberta_error *err);

/* Whether the figure can be laid out: for several that are to appear together or not at all. notes may be NULL. */
deberta_status figure_check(figure_layout layout, const void *what, const figure_style *style, figure_notes *notes,
                            deberta_error *err);

/* Runs layout once and saves the drawing into every path, by suffix: .png .svg .pdf. All files are complete or none is
 * touched: suffixes are checked first, and that no path stands there twice; bytes are made in memory, written beside
 * the target and renamed. notes may be NULL. */
deberta_status figure_save(figure_layout layout, const void *what, const figure_style *style, const char *const *paths,
                           size_t path_count, figure_notes *notes, deberta_error *err);
