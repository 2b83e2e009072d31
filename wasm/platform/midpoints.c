/* Tests multiply-adds on inputs that random ones do not reach. z + half an ulp of z times (1 - u^2) must give z back;
 * a second rounding gives z's even neighbour. Returns how many of `count` are wrong.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/dispatch.h"

enum { PANEL_WIDTH = 16 };

int __attribute__((export_name("midpoints_wrong"))) midpoints_wrong(int small, int negative);

typedef struct directed {
    float a, b, z;
} directed;

static directed make(uint32_t i, int e, int small, int negative)
{
    const uint32_t bits = small ? 0x00200000u + 977 * i : 0x3f800000u + 2039 * i;
    const float u = ldexpf(1, -e), half = small ? 0x1p-75f : 0x1p-12f;
    directed d;
    memcpy(&d.z, &bits, sizeof bits);
    d.a = half * (1 + u), d.b = half * (1 - u);
    if (negative) d.a = -d.a, d.z = -d.z;
    return d;
}

/* Does the same with a product of matrices of depth 1 and 2: the second step takes the result of the first one back
 * to a midpoint. */
static int gemm_wrong(const kernels *table, directed d)
{
    float panel[2 * PANEL_WIDTH], row[2] = {d.a, 0}, c[PANEL_WIDTH];
    for (int l = 0; l < PANEL_WIDTH; l++) panel[l] = d.b, panel[PANEL_WIDTH + l] = 1, c[l] = d.z;
    const gemm_task task = {.rows = 1,
                            .depth = 2,
                            .panels = 1,
                            .a = row,
                            .lda = 2,
                            .b = panel,
                            .b_panel_stride = 2 * PANEL_WIDTH,
                            .c = c,
                            .ldc = PANEL_WIDTH,
                            .c_panel_stride = PANEL_WIDTH,
                            .accumulate = true};
    table->gemm_f32(&task);
    int wrong = 0;
    for (int l = 0; l < PANEL_WIDTH; l++) wrong |= c[l] != d.z;
    return wrong;
}

int midpoints_wrong(int small, int negative)
{
    kernels table;
    int wrong = 0;
    if (kernels_select(&table, DEBERTA_ISA_AUTO, NULL) != DEBERTA_OK) return -1;
    for (uint32_t i = 0; i < 4096; i++)
        for (int e = 15; e <= 23; e++) {
            const directed d = make(i, e, small, negative);
            volatile float fused = fmaf(d.a, d.b, d.z);
            wrong += fused != d.z || gemm_wrong(&table, d);
        }
    return wrong;
}
