/* Tile sizes on SIMD128. Engines have 16 registers on x86-64: 3 x 4 accumulators and one of A; B is read from memory.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define TILE_PANELS       1
#define TILE_MAX_PANELS   1
#define TILE_MAX_ROWS     3
#define TILE_ROWS(panels) 3
#define BIAS_SEGMENT      24 /* number of query rows for which one decision linear / saturated / general is made */
