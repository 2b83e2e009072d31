/* Implements gemm_f32, the one multiplication, as register tiles of TILE_PANELS panels (others for the remainder) and
 * TILE_ROWS(panels) rows.
 *
 * A tile's accumulators stay in registers over the whole depth; A is read in place, one broadcast per row and step; B
 * streams. Rows are cut into balanced groups (16 = 6 + 5 + 5), because a 5-row tile still runs at full rate and a 4-row
 * tile does not. Every output is one chain of fused multiply-adds in increasing k, so tile shape and cutting do not
 * change the bits.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "core/kernels.h"

/* While panels are multiplied, the next ones are fetched into L2: `requests` every FETCH_STEPS steps of depth,
 * `step` bytes apart, so that all row groups together ask for each line about once. With a request at every step,
 * many groups would request each line many times: 128 rows of a base model then take 232 ms instead of 218, 40 rows 73
 * instead of 68, 16 rows 29.4 instead of 27.8 (AVX2 on one core of a Zen 4; 2 % or less on AVX-512, whose panels are
 * read by fewer groups). With 4 steps most lengths are slower; requests in the first group only, or twice as far
 * ahead, are slower everywhere. One or two groups of a single panel would make 8 or 4 requests at once, in code that
 * already waits for memory most of the time, so they make one at every step. 6 rows of two layers then take 2.3 ms
 * instead of 2.9, 12 rows 3.3 instead of 3.7 (AVX2). */
enum { FETCH_STEPS = 8, FETCH_BYTES = 64, EVERY_STEP_GROUPS = 2 };
typedef struct gemm_fetch {
    size_t requests, step;
    bool every_step;
} gemm_fetch;

/* Where a matrix product is one of many, as in a step of training, A comes from beyond L2 and C leaves for there. So a
 * tile requests its lines of C before it multiplies, and the tiles of the first panels the rows of A below theirs, a
 * line of each every A_STEPS steps. 2,048 rows of 192 times 192 columns then run at 110 GFLOP/s instead of 100, 768
 * columns at 111 instead of 106, 384 times 1,536 at 112 instead of 110, of a peak of 118 (one core of a Zen 4,
 * AVX-512). */
enum { A_STEPS = FETCH_BYTES / sizeof(float) };

/* Returns the offset of vector v of row i of a tile, from its first number. */
VF size_t gemm_vector_place(const int i, size_t row_stride, const int v, size_t panel_stride)
{
    return (size_t)i * row_stride + (size_t)(v / VECTORS) * panel_stride + (size_t)(v % VECTORS * VF_LANES);
}

VF void gemm_fetch_tile(const int rows, const int panels, const gemm_task *task, const float *c)
{
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int p = 0; p < panels; p++)
            __builtin_prefetch(c + gemm_vector_place(i, task->ldc, p * VECTORS, task->c_panel_stride), 1);
}

/* Row i of A is read at a_bases[i / 3] + (i % 3) lda, and panel p of B likewise: base + {0, 1, 2} index is an
 * address that x86 has, so that the widest tile needs ten registers for its addresses. OPAQUE hides the relation
 * between the bases. Compilers that see it make a pointer of every row and keep a third of them on the stack: 12
 * rows then take 23.8 ms of a base model instead of 19.2, 16 rows 27.4 instead of 26.0, 512 rows 997 instead of 976
 * (gcc 12, one core of a Zen 4, AVX-512). */
#define BASES(count)    (((count) + 2) / 3)
#define OPAQUE(pointer) __asm__("" : "+r"(pointer))

VF const float *gemm_address(const char *const *bases, size_t stride_bytes, const int index)
{
    return (const float *)(bases[index / 3] + (size_t)(index % 3) * stride_bytes);
}

/* Runs one step of depth: the bases point to it and are advanced. */
VF void gemm_step(const int rows, const int panels, vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS], const char **a_bases,
                  size_t a_bytes, const char **b_bases, size_t b_bytes)
{
    UNROLL for (int i = 0; i < BASES(rows); i++) OPAQUE(a_bases[i]);
    UNROLL for (int p = 0; p < BASES(panels); p++) OPAQUE(b_bases[p]);
    vf y[TILE_MAX_PANELS * VECTORS];
    UNROLL for (int v = 0; v < panels * VECTORS; v++)
        y[v] = vf_load(gemm_address(b_bases, b_bytes, v / VECTORS) + v % VECTORS * VF_LANES);
    UNROLL for (int i = 0; i < rows; i++) {
        const vf s = vf_broadcast(gemm_address(a_bases, a_bytes, i));
        UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_fma(s, y[v], x[i][v]);
    }
    UNROLL for (int i = 0; i < BASES(rows); i++) a_bases[i] += sizeof(float);
    UNROLL for (int p = 0; p < BASES(panels); p++) b_bases[p] += PANEL * sizeof(float);
}

/* Computes the tile whose first row and panel are given. rows and panels are literals in every call, so that
 * all loops over them are unrolled and x lives in registers. */
VF void gemm_tile(const int rows, const int panels, const gemm_task *task, size_t row, size_t panel, const gemm_fetch *fetch,
                  const char *next)
{
    const size_t lda = task->lda, depth = task->depth, stride = task->b_panel_stride;
    const float *a = task->a + row * lda;
    const float *b = task->b + panel * stride;
    float *c = task->c + row * task->ldc + panel * task->c_panel_stride;
    vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS];

    if (!task->accumulate) {
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_zero();
        gemm_fetch_tile(rows, panels, task, c);
    } else {
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < panels * VECTORS; v++)
                x[i][v] = vf_load(c + gemm_vector_place(i, task->ldc, v, task->c_panel_stride));
        if (task->c_scale) {
            UNROLL for (int i = 0; i < rows; i++) {
                const vf scale = vf_broadcast(task->c_scale + row + i);
                UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_mul(x[i][v], scale);
            }
        }
    }

    const char *a_bases[BASES(TILE_MAX_ROWS)], *b_bases[BASES(TILE_MAX_PANELS)];
    UNROLL for (int i = 0; i < BASES(rows); i++) a_bases[i] = (const char *)(a + (size_t)(i * 3) * lda);
    UNROLL for (int p = 0; p < BASES(panels); p++) b_bases[p] = (const char *)(b + (size_t)(p * 3) * stride);
    const size_t a_bytes = lda * sizeof(float), b_bytes = stride * sizeof(float);
    size_t k = 0;
    if (panels == 1 && fetch->every_step) /* The condition on panels keeps this loop out of wider tiles. */
        UNROLL_DEPTH for (; k < depth; k++, next += fetch->step) {
            vf_prefetch_l2(next);
            gemm_step(rows, panels, x, a_bases, a_bytes, b_bases, b_bytes);
        }
    const char *below = (const char *)(a + (size_t)rows * lda);
    const bool fetches_below = panel == 0 && row + 2 * (size_t)rows <= task->rows;
    for (; k + FETCH_STEPS <= depth; k += FETCH_STEPS) {
        if (fetches_below && k % A_STEPS == 0)
            UNROLL for (int i = 0; i < rows; i++) vf_prefetch_l2(below + (size_t)i * a_bytes + k * sizeof(float));
        for (size_t r = 0; r < fetch->requests; r++, next += fetch->step) vf_prefetch_l2(next);
        UNROLL_DEPTH for (int step = 0; step < FETCH_STEPS; step++)
            gemm_step(rows, panels, x, a_bases, a_bytes, b_bases, b_bytes);
    }
    for (; k < depth; k++) gemm_step(rows, panels, x, a_bases, a_bytes, b_bases, b_bytes);

    /* The epilogue follows the order of the contract. Its branches are the same for every tile of a call. */
    const float *bias = task->bias ? task->bias + panel * PANEL : NULL;
    if (bias)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_add(x[i][v], vf_load(bias + v * VF_LANES));
    if (task->gelu) { /* The sums do not pass through C, which may be the residual. */
        float tile[TILE_MAX_ROWS * TILE_MAX_PANELS * PANEL];
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < panels * VECTORS; v++) vf_store(tile + (i * panels * VECTORS + v) * VF_LANES, x[i][v]);
        VF_NAME(gelu_values)(tile, (size_t)(rows * panels * PANEL));
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_load(tile + (i * panels * VECTORS + v) * VF_LANES);
    }
    if (task->outer_column)
        UNROLL for (int i = 0; i < rows; i++) {
            const vf column = vf_broadcast(task->outer_column + (row + (size_t)i) * task->outer_ld);
            UNROLL for (int v = 0; v < panels * VECTORS; v++)
                x[i][v] = vf_add(x[i][v], vf_add(column, vf_load(task->outer_row + panel * PANEL + v * VF_LANES)));
        }
    if (task->residual) {
        const float *r = task->residual + row * task->ld_residual + panel * task->residual_panel_stride;
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < panels * VECTORS; v++)
                x[i][v] = vf_add(x[i][v], vf_load(r + gemm_vector_place(i, task->ld_residual, v, task->residual_panel_stride)));
    }
    if (task->row_scale)
        UNROLL for (int i = 0; i < rows; i++) {
            const vf scale = vf_broadcast(task->row_scale + row + i);
            UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_mul(x[i][v], scale);
        }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++)
            vf_store(c + gemm_vector_place(i, task->ldc, v, task->c_panel_stride), x[i][v]);
}

/* Each case has one literal row count, so that the compiler unrolls its tile. */
#ifdef TILES_APART
#define GEMM_TILE(n, p)                                                                                                \
    static __attribute__((noinline)) void VF_NAME(gemm_tile_##n##_##p)(const gemm_task *task, size_t row, size_t panel, \
                                                                       const gemm_fetch *fetch, const char *next)      \
    {                                                                                                                  \
        if (n <= TILE_ROWS(p)) gemm_tile(n, p, task, row, panel, fetch, next);                                         \
    }
#define GEMM_TILES(n) OF_PANELS(GEMM_TILE, n)
OF_ROWS(GEMM_TILES)
#define GEMM_CASE_OF(n, p) \
    if (panels == p && n <= TILE_ROWS(p)) VF_NAME(gemm_tile_##n##_##p)(task, row, panel, fetch, next);
#define GEMM_CASE(n) \
    case n: OF_PANELS(GEMM_CASE_OF, n) break;
#else
#define GEMM_CASE(n)                                                                                                   \
    case n:                                                                                                            \
        if (n <= TILE_ROWS(panels)) gemm_tile(n, panels, task, row, panel, fetch, next);                 \
        break;
#endif

VF void gemm_rows(size_t rows, const int panels, const gemm_task *task, size_t row, size_t panel, const gemm_fetch *fetch,
                  const char *next)
{
    switch (rows) {
        GEMM_CASE(1) GEMM_CASE(2) GEMM_CASE(3) GEMM_CASE(4) GEMM_CASE(5) GEMM_CASE(6)
#if TILE_MAX_ROWS > 6
        GEMM_CASE(7) GEMM_CASE(8) GEMM_CASE(9) GEMM_CASE(10) GEMM_CASE(11) GEMM_CASE(12)
#endif
    }
}

/* Multiplies all rows by `panels` panels. Row group g fetches the g-th part of the next panels. */
VF void gemm_panels(const int panels, const gemm_task *task, size_t panel)
{
    const size_t groups = (task->rows + TILE_ROWS(panels) - 1) / TILE_ROWS(panels), behind = panel + (size_t)panels;
    const char *next = (const char *)(behind < task->panels ? task->b + behind * task->b_panel_stride : task->next);
    gemm_fetch fetch = {0};
    if (task->next) {
        const size_t bytes = FETCH_STEPS * PANEL * sizeof(float) * (size_t)panels / groups;
        fetch.requests = (bytes + FETCH_BYTES - 1) / FETCH_BYTES;
        fetch.step = fetch.requests ? bytes / fetch.requests : 0; /* The length is 0 where each of the many groups
                                                                   * has no byte to request. */
        fetch.every_step = panels == 1 && groups <= EVERY_STEP_GROUPS;
        if (fetch.every_step) fetch.step = bytes / FETCH_STEPS;
    }
    const size_t group_bytes =
        fetch.every_step ? task->depth * fetch.step : task->depth / FETCH_STEPS * fetch.requests * fetch.step;
    for (size_t group = 0, row = 0; group < groups; group++) {
        const size_t end = task->rows * (group + 1) / groups;
        gemm_rows(end - row, panels, task, row, panel, &fetch, next + group * group_bytes);
        row = end;
    }
}

/* Returns the panels that the next tiles span: TILE_PANELS, except for the remainder. */
VF size_t next_tile_panels(size_t left)
{
#if TILE_PANELS == 3 /* 3 is best and 4 as good; together they sum to every number but 1, 2 and 5. */
    if (left >= 4 && left != 5 && left % 3 != 0) return 4;
#endif
    return left < TILE_PANELS ? left : TILE_PANELS;
}

static void VF_NAME(gemm_f32)(const gemm_task *task)
{
    gemm_task_assert(task);
    if (task->rows == 0) return;
    for (size_t panel = 0; panel < task->panels;) {
        const size_t here = next_tile_panels(task->panels - panel);
        switch (here) {
        case 1: gemm_panels(1, task, panel); break;
#if TILE_PANELS > 1
        case 2: gemm_panels(2, task, panel); break;
        case 3: gemm_panels(3, task, panel); break;
        case 4: gemm_panels(4, task, panel); break;
#endif
        }
        panel += here;
    }
}

/* Implements pack_panels_f32: VF_LANES rows at a time through an in-register transpose. */
static void VF_NAME(pack_panels_f32)(float *panels, size_t panel_stride, const float *x, size_t ldx, size_t rows, size_t depth)
{
    for (size_t first = 0; first < rows; first += VF_LANES) {
        const size_t here = rows - first < VF_LANES ? rows - first : VF_LANES;
        const float *source = x + first * ldx;
        float *panel = panels + first / PANEL * panel_stride + first % PANEL;
        size_t k = 0;
        for (; k + VF_LANES <= depth; k += VF_LANES) {
            vf r[VF_LANES];
            for (size_t l = 0; l < VF_LANES; l++) r[l] = l < here ? vf_load(source + l * ldx + k) : vf_zero();
            vf_transpose(r);
            for (size_t l = 0; l < VF_LANES; l++) vf_store(panel + (k + l) * PANEL, r[l]);
        }
        for (; k < depth; k++)
            for (size_t l = 0; l < VF_LANES; l++) panel[k * PANEL + l] = l < here ? source[l * ldx + k] : 0.0f;
    }
    for (size_t lane = (rows + VF_LANES - 1) / VF_LANES * VF_LANES; lane % PANEL != 0; lane += VF_LANES)
        for (size_t k = 0; k < depth; k++)
            vf_store(panels + lane / PANEL * panel_stride + k * PANEL + lane % PANEL, vf_zero());
}
