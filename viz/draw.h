/* Declares a drawing: a list of primitives on a page measured in millimetres, y growing downwards.
 *
 * Layout code (heatmap, chart, figure) appends primitives once; the list is then replayed onto any number of backends,
 * so every output of a figure holds the same things at the same places, and a test reads the list itself. Text is
 * measured by a ruler, which knows fonts (draw_cairo.h) or pretends, as in tests.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

#define DRAW_MM_PER_PT (25.4 / 72)
/* Distance from the top of an l to the foot of a p, as a fraction of the type size: lines that far apart do not
 * touch. */
#define DRAW_LETTERS  1.006
#define DRAW_ELLIPSIS "\xE2\x80\xA6"
#define DRAW_MINUS    "\xE2\x88\x92"

typedef struct draw_colour {
    uint8_t r, g, b, a; /* a: 0 transparent, 255 opaque */
} draw_colour;

typedef struct draw_point {
    double x, y;
} draw_point;

typedef struct draw_rect {
    double x, y, width, height;
} draw_rect;

typedef enum draw_dash { DRAW_SOLID, DRAW_DASHED, DRAW_DOTTED, DRAW_DASH_DOT } draw_dash;

/* Writes strokes and gaps in units of the line's width, the same in all formats; returns how many, 0: solid. */
size_t draw_dash_lengths(draw_dash dash, double lengths[4]);

typedef struct draw_pen {
    draw_colour colour;
    double width; /* in pt, as journals state it; a hairline is 0.25 */
    draw_dash dash;
} draw_pen;

typedef struct draw_font {
    double size; /* in pt */
    draw_colour colour;
    bool bold;
} draw_font;

typedef enum draw_anchor { DRAW_START, DRAW_MIDDLE, DRAW_END } draw_anchor;

/* Place of a text: its point, which end of it lies there, and its direction. The vertical middle is half the height
 * of a capital letter above the baseline, the same for all scripts, so that labels in a row line up. */
typedef struct draw_place {
    double x, y;
    draw_anchor along;                                    /* DRAW_START: the text begins at the point */
    enum { DRAW_BASELINE, DRAW_CENTRE, DRAW_CAP } across; /* DRAW_CAP: the top of a capital letter lies at the point */
    double degrees;                                       /* counter-clockwise; 90 reads upwards */
} draw_place;

typedef enum draw_shape { DRAW_OPEN, DRAW_CLOSED, DRAW_SEGMENTS } draw_shape; /* segments: points 0-1, 2-3, ... */

/* --------------------------------------------------------------------------------------------------------- ruler */

typedef struct draw_ruler_methods {
    /* Returns the advance width in mm. */
    double (*width)(void *self, const char *text, const draw_font *font);
    /* Returns the bytes of the longest beginning, in whole user-perceived characters, that is no wider than width
     * with an ellipsis. */
    size_t (*fit)(void *self, const char *text, const draw_font *font, double width);
} draw_ruler_methods;

typedef struct draw_ruler {
    const draw_ruler_methods *methods;
    void *self;
} draw_ruler;

/* Return the size of the type in mm, and of its capitals (a nominal value for all families, so that layouts do not
 * depend on them). */
double draw_type_height(const draw_font *font);
double draw_cap_height(const draw_font *font);
/* Returns the distance of the baseline below the point of a text, in mm. */
double draw_baseline(const draw_place *place, const draw_font *font);

/* ----------------------------------------------------------------------------------------------------- recording */

typedef struct draw_list draw_list;

void draw_list_create(draw_list **list, draw_ruler ruler);
void draw_list_free(draw_list **list);
void draw_set_page(draw_list *list, double width, double height);
double draw_page_width(const draw_list *list);
double draw_page_height(const draw_list *list);
/* Sets the size in mm of the pixels that the drawing becomes, where they are coarse; 0 until then. */
void draw_set_pixel(draw_list *list, double mm);
double draw_pixel(const draw_list *list);
/* Makes the page that wide, with the drawing in its middle. */
void draw_widen_page(draw_list *list, double width);
/* Moves everything that is appended from now on by (x, y). */
void draw_set_origin(draw_list *list, double x, double y);

void draw_box(draw_list *list, draw_rect rect, draw_colour fill, const draw_pen *outline);
void draw_path(draw_list *list, const draw_point *points, size_t count, draw_shape shape, draw_colour fill,
               const draw_pen *pen);
void draw_line(draw_list *list, double x0, double y0, double x1, double y1, const draw_pen *pen);
void draw_disc(draw_list *list, double x, double y, double radius, draw_colour fill, const draw_pen *outline);
/* Draws an image. rgb: rows * columns colours of 3 bytes, copied. Each colour fills one cell of rect, with sharp
 * edges. */
void draw_image(draw_list *list, draw_rect rect, const uint8_t *rgb, size_t rows, size_t columns);
/* Draws a text. Bytes that are not UTF-8 appear as U+FFFD, control characters as their pictures (U+2400...). */
void draw_text(draw_list *list, const char *text, draw_place place, const draw_font *font);
/* Draws a text that is cut with an ellipsis if it is wider than width. Returns the width drawn. */
double draw_text_within(draw_list *list, const char *text, draw_place place, const draw_font *font, double width);
/* Smallest type in pt to which a text is shrunk for want of room. */
enum { DRAW_SMALLEST_TYPE = 5 };
/* Draws a text as draw_text_within does, but in smaller type, down to DRAW_SMALLEST_TYPE, before it is cut. */
double draw_text_fitted(draw_list *list, const char *text, draw_place place, const draw_font *font, double width);
/* Draws a text whose middle is at place, or as near to it as a page of this width allows; one that is wider than width
 * is shrunk and cut as by draw_text_fitted. */
void draw_text_on_page(draw_list *list, const char *text, draw_place place, const draw_font *font, double width,
                       double page_width);
/* Breaks the text at spaces into lines of at most width, the first at place. Returns the number of lines. */
size_t draw_paragraph(draw_list *list, const char *text, draw_place place, const draw_font *font, double width,
                      double leading);
/* Returns the number of lines alone. */
size_t draw_count_lines(const draw_list *list, const char *text, const draw_font *font, double width);
/* Draws diagonal lines inside rect, which join those of its neighbours. */
void draw_hatch(draw_list *list, draw_rect rect, double spacing, const draw_pen *pen);
void draw_clip(draw_list *list, draw_rect rect);
void draw_unclip(draw_list *list);
/* Begin and end a group, which has no look, but names a part of an SVG and of a trace. */
void draw_group(draw_list *list, const char *name);
void draw_ungroup(draw_list *list);

double draw_measure(const draw_list *list, const char *text, const draw_font *font);
/* Returns a text as draw_text cleans it, allocated, for texts of a file next to the drawing. */
char *draw_clean_text(const char *text);

/* ------------------------------------------------------------------------------------------------------- replaying */

/* Functions of a backend. Coordinates are mm; strings are valid UTF-8 without control characters. width of a text is
 * the ruler's measure. A method that is NULL leaves its kind out. */
typedef struct draw_methods {
    void (*box)(void *self, draw_rect rect, draw_colour fill, const draw_pen *outline);
    void (*path)(void *self, const draw_point *points, size_t count, draw_shape shape, draw_colour fill,
                 const draw_pen *pen);
    void (*disc)(void *self, draw_point centre, double radius, draw_colour fill, const draw_pen *outline);
    void (*image)(void *self, draw_rect rect, const uint8_t *rgb, size_t rows, size_t columns);
    void (*text)(void *self, const char *text, draw_place place, const draw_font *font, double width);
    void (*clip)(void *self, draw_rect rect);
    void (*unclip)(void *self);
    void (*group)(void *self, const char *name);
    void (*ungroup)(void *self);
} draw_methods;

void draw_replay(const draw_list *list, const draw_methods *methods, void *self);
