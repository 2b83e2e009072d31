/* Tile sizes on NEON: 32 registers hold 6 x 4 accumulators, 4 vectors of B and the loaded values of A.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define TILE_PANELS       1
#define TILE_MAX_PANELS   1
#define TILE_MAX_ROWS     6
#define TILE_ROWS(panels) 6
#define BIAS_SEGMENT      24 /* number of query rows for which one decision linear / saturated / general is made */
