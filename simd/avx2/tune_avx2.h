/* Tile sizes on AVX2: 16 registers hold 6 x 2 accumulators, 2 vectors of B and 1 of A; one is spare.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define TILE_PANELS       1
#define TILE_MAX_PANELS   1
#define TILE_MAX_ROWS     6
#define TILE_ROWS(panels) 6
#define BIAS_SEGMENT      24 /* number of query rows for which one decision linear / saturated / general is made */
