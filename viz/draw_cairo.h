/* Provides real fonts and pixels: a ruler that knows fonts, and the backends for PNG pixels and PDF.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "output/byte_buffer.h"
#include "viz/draw.h"

/* Creates the ruler. families: fonts in order of preference, separated by commas; characters they lack come from
 * other installed fonts. */
void draw_cairo_ruler_create(draw_ruler *ruler, const char *families);
void draw_cairo_ruler_free(draw_ruler *ruler);

/* Returns true if a font of that name is installed; of several names, separated by commas, any. */
bool draw_cairo_has_font(const char *families);

/* The ruler of the functions below must come from draw_cairo_ruler_create, best that of the list. */

/* Returns the number of characters of the list for which no installed font has a glyph (drawn as boxes with their
 * code). */
size_t draw_cairo_missing_glyphs(const draw_list *list, const draw_ruler *ruler);

/* Draws pixels on white: *rgb is allocated, rows * columns * 3 bytes, and belongs to the caller. */
deberta_status draw_cairo_pixels(const draw_list *list, const draw_ruler *ruler, double dpi, uint8_t **rgb,
                                 size_t *rows, size_t *columns, deberta_error *err);

/* Writes a PDF of one page, without dates. title and subject may be NULL. */
deberta_status draw_cairo_pdf(const draw_list *list, const draw_ruler *ruler, const char *title, const char *subject,
                              byte_buffer *out, deberta_error *err);
