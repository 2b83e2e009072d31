/* Measures the peak of byte products with six tiles of sums: one product takes 16 cycles and its sum 52, so four would
 * do. The process must have requested tiles (core/base/cpu.h).
 *
 * SPDX-License-Identifier: MIT */
#include "simd/avx512amx/tiles_avx512amx.h"
#include "simd/peak.h"

enum { SUM_TILES = 6, TILE_PRODUCTS = TILE_REGISTER_ROWS * TILE_REGISTER_ROWS * TILE_REGISTER_LINE };

static float run_tiles(size_t rounds)
{
    static int8_t bytes[TILE_REGISTER_ROWS * TILE_REGISTER_LINE] __attribute__((aligned(64)));
    int32_t sums[TILE_REGISTER_ROWS * TILE_REGISTER_ROWS];
    tiles_take();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_loadd(6, bytes, TILE_REGISTER_LINE);
    _tile_loadd(7, bytes, TILE_REGISTER_LINE);
    for (size_t round = 0; round < rounds; round++) {
        _tile_dpbusd(0, 6, 7);
        _tile_dpbusd(1, 6, 7);
        _tile_dpbusd(2, 6, 7);
        _tile_dpbusd(3, 6, 7);
        _tile_dpbusd(4, 6, 7);
        _tile_dpbusd(5, 6, 7);
    }
    _tile_stored(0, sums, TILE_REGISTER_LINE); /* Storing the tiles waits for all products, which finish in order. */
    tiles_give_back();
    __asm__ volatile("" ::"r"(sums) : "memory");
    return (float)sums[0];
}

const peak_kernel peak_bytes_avx512amx = {.run = run_tiles, .flops_per_round = (size_t)SUM_TILES * TILE_PRODUCTS * 2};
