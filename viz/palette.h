/* Provides colours: maps from a number in [0, 1] to a colour, and the fixed set for the series of a chart.
 *
 * Sequential maps have 256 levels and luminance that only grows (viridis, cividis, magma) or, from white to one colour,
 * only falls (blues, greys), so they read in greyscale and with every colour vision. The diverging map (polar) has 257
 * levels, so that zero is exactly white.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "viz/draw.h"

enum { PALETTE_LEVELS_MAX = 257, PALETTE_SERIES_COUNT = 10 };

typedef struct palette palette;

/* Returns the palette of that name; NULL if there is none. */
const palette *palette_find(const char *name);
extern const char *const palette_list[]; /* names of the palettes, NULL-terminated */
/* Returns the names of all palettes for a message, separated by ", ". */
const char *palette_names(void);
bool palette_is_diverging(const palette *map);

/* Writes all levels and returns how many there are (256 or 257). */
size_t palette_table(const palette *map, draw_colour table[PALETTE_LEVELS_MAX]);
/* Returns the level for a position in [0, 1]; a position outside is clamped. */
size_t palette_level(size_t levels, double position);

/* Returns the luma of a colour in [0, 1] (0.299 R + 0.587 G + 0.114 B), which a greyscale print keeps of it. */
double palette_grey(draw_colour colour);
/* Returns black or white, whichever is readable on the colour. */
draw_colour palette_ink_on(draw_colour background);

/* Returns colour number `index` of a chart, repeating after PALETTE_SERIES_COUNT. Neighbours differ in greyscale
 * too. */
draw_colour palette_series(size_t index);
/* Returns the colour mixed with black or white so that its palette_grey is `grey`, above 0 and at most 1. */
draw_colour palette_shade(draw_colour colour, double grey);
