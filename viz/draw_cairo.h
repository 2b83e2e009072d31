/* Provides real fonts and pixels: a ruler that knows fonts, and the backends for PNG pixels and PDF.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "output/byte_buffer.h"
#include "viz/draw.h"

/* families: fonts in order of preference, separated by commas; what they lack comes from other installed fonts. */
void draw_cairo_ruler_create(draw_ruler *ruler, const char *families);
void draw_cairo_ruler_free(draw_ruler *ruler);

/* Whether a font of that name is installed; of several, separated by commas, any of them. */
bool draw_cairo_has_font(const char *families);

/* The ruler given to the functions below must be one of draw_cairo_ruler_create, best that of the list. */

/* Characters of the list for which no installed font has a glyph (drawn as boxes with their code). */
size_t draw_cairo_missing_glyphs(const draw_list *list, const draw_ruler *ruler);

/* Pixels on white: *rgb is allocated, rows * columns * 3 bytes, and belongs to the caller. */
deberta_status draw_cairo_pixels(const draw_list *list, const draw_ruler *ruler, double dpi, uint8_t **rgb,
                                 size_t *rows, size_t *columns, deberta_error *err);

/* A PDF of one page, without dates. title and subject may be NULL. */
deberta_status draw_cairo_pdf(const draw_list *list, const draw_ruler *ruler, const char *title, const char *subject,
                              byte_buffer *out, deberta_error *err);
