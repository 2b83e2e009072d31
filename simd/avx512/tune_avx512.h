/* Tile sizes on AVX-512: 24 of 32 registers accumulate. Few rows over many panels are best where there is a choice (6 x 4: 10 loads
 * for 24 multiply-adds, measured 92 % of the peak; 12 x 2: 14 loads, 85 %); tall tiles serve what has one or two panels.
 *
 * SPDX-License-Identifier: MIT */
#ifndef SIMD_AVX512_TUNE_AVX512_H
#define SIMD_AVX512_TUNE_AVX512_H

#define TILE_PANELS 4
#define TILE_MAX_ROWS 12
#define TILE_ROWS(panels) ((panels) == 4 ? 6 : (panels) == 3 ? 8 : 12)
#define BIAS_SEGMENT 48 /* query rows for which one decision linear / saturated / general is made */

#endif
