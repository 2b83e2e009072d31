/* The AMX kernels with plain C in the place of the tile instructions, so that all else of them runs on processors with
 * AVX-512 that lack AMX. Where the processor would raise an invalid opcode, this does, too.
 *
 * SPDX-License-Identifier: MIT */
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { REGISTERS = 8, MAX_ROWS = 16, MAX_BYTES = 64 };

/* The tile registers of a thread, and how they are configured: no rows, not in use. */
static _Thread_local struct {
    bool configured;
    size_t rows[REGISTERS], row_bytes[REGISTERS];
    uint8_t data[REGISTERS][MAX_ROWS][MAX_BYTES];
} file;

static void demand(bool allowed)
{
    if (!allowed) __builtin_trap();
}

static bool in_use(int t) { return file.configured && file.rows[t] > 0; }

/* Not the processor's rule: it may be configured twice. Here that means that a call before did not release it. */
static void stand_in_loadconfig(const void *config)
{
    uint8_t bytes[64];
    demand(!file.configured);
    memcpy(bytes, config, sizeof bytes);
    demand(bytes[0] == 1 && bytes[1] == 0);
    for (int i = 2; i < 16; i++) demand(bytes[i] == 0);
    for (int i = 0; i < 16; i++) {
        uint16_t row_bytes;
        memcpy(&row_bytes, bytes + 16 + 2 * i, sizeof row_bytes);
        const uint8_t rows = bytes[48 + i];
        demand(rows <= MAX_ROWS && row_bytes <= MAX_BYTES && !rows == !row_bytes && (i < REGISTERS || !rows));
        if (i >= REGISTERS) continue;
        file.rows[i] = rows;
        file.row_bytes[i] = row_bytes;
    }
    memset(file.data, 0, sizeof file.data);
    file.configured = true;
}

static void stand_in_release(void) { file.configured = false; }

static void stand_in_zero(int t)
{
    demand(in_use(t));
    memset(file.data[t], 0, sizeof file.data[t]);
}

static void stand_in_loadd(int t, const void *from, size_t stride)
{
    stand_in_zero(t);
    for (size_t r = 0; r < file.rows[t]; r++)
        memcpy(file.data[t][r], (const uint8_t *)from + r * stride, file.row_bytes[t]);
}

static void stand_in_stored(int t, void *to, size_t stride)
{
    demand(in_use(t));
    for (size_t r = 0; r < file.rows[t]; r++) memcpy((uint8_t *)to + r * stride, file.data[t][r], file.row_bytes[t]);
}

/* c += a b, of u8 and s8; sums wrap. */
static void stand_in_dpbusd(int c, int a, int b)
{
    demand(in_use(a) && in_use(b) && in_use(c) && a != b && a != c && b != c);
    demand(file.rows[c] == file.rows[a] && file.row_bytes[c] == file.row_bytes[b] &&
           file.row_bytes[a] == 4 * file.rows[b]);
    for (size_t row = 0; row < file.rows[c]; row++) {
        uint32_t sums[MAX_BYTES / 4];
        memcpy(sums, file.data[c][row], sizeof sums);
        for (size_t quad = 0; quad < file.rows[b]; quad++) {
            const uint8_t *x = file.data[a][row] + 4 * quad;
            const int8_t *y = (const int8_t *)file.data[b][quad];
            for (size_t column = 0; column < MAX_BYTES / 4; column++, y += 4) /* zeros beyond the row */
                sums[column] += (uint32_t)(x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3]);
        }
        memcpy(file.data[c][row], sums, sizeof sums);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbusd
#define _tile_loadconfig       stand_in_loadconfig
#define _tile_release          stand_in_release
#define _tile_zero             stand_in_zero
#define _tile_loadd            stand_in_loadd
#define _tile_stream_loadd     stand_in_loadd
#define _tile_stored           stand_in_stored
#define _tile_dpbusd           stand_in_dpbusd
#define kernels_init_avx512amx kernels_init_avx512amx_stand_in
#include "simd/avx512amx/kernels_avx512amx.c"
