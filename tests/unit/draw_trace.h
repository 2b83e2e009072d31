/* A drawing as text, one primitive a line, rounded to 0.01 mm: for tests that compare layouts without fonts or pixels.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "output/byte_buffer.h"
#include "viz/draw.h"

/* Every character is half as wide as the type is high. Holds no memory. */
draw_ruler draw_trace_ruler(void);

/* Images of at most 64 cells are spelt out, larger ones appear as a hash of their bytes. */
void draw_trace(const draw_list *list, byte_buffer *out);
