/* Writes SVG with real text: selectable, searchable, editable, accessible to screen readers. cairo is not used,
 * because its SVG turns letters into outlines.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/draw.h"
#include "viz/png_metadata.h"

/* Writes an SVG with coordinates in points. families are the fonts of the ruler; each text states its measured width,
 * so that the layout holds with a substitute font. title may be NULL. */
void draw_svg(const draw_list *list, const char *families, const char *title, const provenance_entry *entries,
              size_t entry_count, byte_buffer *out);
