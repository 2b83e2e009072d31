/* Configures the tile registers for this part: eight, of maximal size. SPDX-License-Identifier: MIT */
#ifndef SIMD_AVX512AMX_TILES_AVX512AMX_H
#define SIMD_AVX512AMX_TILES_AVX512AMX_H

#include <immintrin.h>
#include <stdint.h>

enum { TILE_REGISTER_ROWS = 16, TILE_REGISTER_LINE = 64 /* bytes of a row */ };

/* Operand of LDTILECFG. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "the layout is the processor's");

static const tile_config tiles_of_16_lines __attribute__((aligned(64))) = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};
_Static_assert(TILE_REGISTER_ROWS == 16 && TILE_REGISTER_LINE == 64, "what is configured");

static inline void tiles_take(void)
{
    _tile_loadconfig(&tiles_of_16_lines);
    /* The barrier is needed because gcc 12's tile loads do not declare the memory that they read. */
    __asm__ volatile("" ::: "memory");
}

/* Releases the tiles; otherwise every switch of threads would save 8 KiB from then on. */
static inline void tiles_give_back(void) { _tile_release(); }

#endif
