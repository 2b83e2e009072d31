/* Tile sizes on AVX-512: 24 of 32 registers accumulate. 8 x 3 needs 11 loads for 24 multiply-adds and reads a third
 * less of B than 6 x 4. It reaches 192 against 168 GFLOP/s for 16 rows of 768 from L2. Both are equally fast where B is
 * in L1: 203 and 204 for 64 steps, of a peak of 243 (one core of a Sapphire Rapids server). 12 x 2 reaches 190. Tall
 * tiles process matrices of one or two panels.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define TILE_PANELS       3
#define TILE_MAX_PANELS   4
#define TILE_MAX_ROWS     12
#define TILE_ROWS(panels) ((panels) == 4 ? 6 : (panels) == 3 ? 8 : 12)
#define BIAS_SEGMENT      48 /* number of query rows for which one decision linear / saturated / general is made */
