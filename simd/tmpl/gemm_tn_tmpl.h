/* Sums over rows: gemm_tn_f32 and sum_rows_f32. A tile of C stays in registers along a chunk of rows; chunks and parts are added in
 * memory, in the tree of core/kernels.h, once every ROW_CHUNK rows.
 *
 * SPDX-License-Identifier: MIT */
#ifndef SIMD_TMPL_GEMM_TN_TMPL_H
#define SIMD_TMPL_GEMM_TN_TMPL_H

enum { TILE_FLOATS = TILE_MAX_ROWS * TILE_MAX_PANELS * PANEL };

/* The tree as a binary counter: level k holds the sum of 2^k parts that wait for their neighbours. */
typedef struct part_tree {
    float sums[MAX_ROW_TREE][TILE_FLOATS];
    bool there[MAX_ROW_TREE];
} part_tree;

/* Neither is worth being written out in every tile. */
static __attribute__((noinline)) void VF_NAME(add_floats)(float *x, const float *y, size_t floats)
{
    for (size_t e = 0; e < floats; e += VF_LANES) vf_store(x + e, vf_add(vf_load(x + e), vf_load(y + e)));
}

static __attribute__((noinline)) void VF_NAME(copy_floats)(float *x, const float *y, size_t floats)
{
    for (size_t e = 0; e < floats; e += VF_LANES) vf_store(x + e, vf_load(y + e));
}

/* sum is the part's, and is overwritten; without is_there it holds nothing. */
static void VF_NAME(tree_add)(part_tree *tree, size_t part, float *sum, bool is_there, size_t floats)
{
    size_t level = 0;
    for (; part >> level & 1; level++) {
        if (!tree->there[level]) continue;
        if (is_there)
            VF_NAME(add_floats)(sum, tree->sums[level], floats);
        else
            VF_NAME(copy_floats)(sum, tree->sums[level], floats);
        is_there = true;
    }
    if (is_there) VF_NAME(copy_floats)(tree->sums[level], sum, floats);
    tree->there[level] = is_there;
}

static const float *VF_NAME(tree_result)(part_tree *tree, size_t parts, size_t floats)
{
    size_t level = 0;
    while ((size_t)1 << level < parts) level++;
    if (parts == 0 || !tree->there[level])
        for (size_t e = 0; e < floats; e++) tree->sums[level][e] = 0.0f;
    return tree->sums[level];
}

/* One chain from x over `count` rows. */
VF void gemm_tn_chain(const int rows, const int panels, vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS], const gemm_tn_task *task,
                      const float *a, const float *b, size_t count)
{
    const size_t lda = task->lda, ldb = task->ldb, stride = task->b_panel_stride;
    for (size_t r = 0; r < count; r++, a += lda, b += ldb) {
        vf y[TILE_MAX_PANELS * VECTORS];
        UNROLL for (int v = 0; v < panels * VECTORS; v++) y[v] = vf_load(b + (size_t)(v / VECTORS) * stride + v % VECTORS * VF_LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            const vf s = vf_broadcast(a + i);
            UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_fma(s, y[v], x[i][v]);
        }
    }
}

VF void gemm_tn_chunk(const int rows, const int panels, const gemm_tn_task *task, const float *a, const float *b, size_t count,
                      float *tile)
{
    vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_zero();
    gemm_tn_chain(rows, panels, x, task, a, b, count);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++) vf_store(tile + (i * panels * VECTORS + v) * VF_LANES, x[i][v]);
}

/* rows and panels are literals in every call, so that the loops over them vanish. */
VF void gemm_tn_parts(const int rows, const int panels, const gemm_tn_task *task, const float *a, const float *b, float *c)
{
    const size_t floats = (size_t)(rows * panels * PANEL);
    part_tree tree;
    for (size_t part = 0; part < task->parts; part++) {
        const size_t begin = task->bounds[part], end = task->bounds[part + 1];
        float sum[TILE_FLOATS], tile[TILE_FLOATS];
        for (size_t first = begin; first < end; first += ROW_CHUNK) {
            const size_t count = end - first < ROW_CHUNK ? end - first : ROW_CHUNK;
            gemm_tn_chunk(rows, panels, task, a + first * task->lda, b + first * task->ldb, count, first > begin ? tile : sum);
            if (first > begin) VF_NAME(add_floats)(sum, tile, floats);
        }
        VF_NAME(tree_add)(&tree, part, sum, end > begin, floats);
    }
    const float *result = VF_NAME(tree_result)(&tree, task->parts, floats);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++)
            vf_store(c + i * task->ldc + v / VECTORS * task->c_panel_stride + v % VECTORS * VF_LANES,
                     vf_load(result + (i * panels * VECTORS + v) * VF_LANES));
}

VF void gemm_tn_whole(const int rows, const int panels, const gemm_tn_task *task, const float *a, const float *b, float *c)
{
    vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++)
            x[i][v] = task->accumulate
                          ? vf_load(c + i * task->ldc + v / VECTORS * task->c_panel_stride + v % VECTORS * VF_LANES)
                          : vf_zero();
    gemm_tn_chain(rows, panels, x, task, a, b, task->rows);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++)
            vf_store(c + i * task->ldc + v / VECTORS * task->c_panel_stride + v % VECTORS * VF_LANES, x[i][v]);
}

VF void gemm_tn_tile(const int rows, const int panels, const gemm_tn_task *task, size_t row, size_t panel)
{
    const float *a = task->a + row, *b = task->b + panel * task->b_panel_stride;
    float *c = task->c + row * task->ldc + panel * task->c_panel_stride;
    if (task->bounds)
        gemm_tn_parts(rows, panels, task, a, b, c);
    else
        gemm_tn_whole(rows, panels, task, a, b, c);
}

#define GEMM_TN_CASE(n)                                                                                                \
    case n:                                                                                                            \
        if (n <= TILE_ROWS(panels)) gemm_tn_tile(n, panels, task, row, panel);                                         \
        break;

VF void gemm_tn_panels(const int panels, const gemm_tn_task *task, size_t panel)
{
    for (size_t row = 0; row < task->columns; row += TILE_ROWS(panels)) {
        const size_t left = task->columns - row;
        switch (left < TILE_ROWS(panels) ? left : TILE_ROWS(panels)) {
            GEMM_TN_CASE(1) GEMM_TN_CASE(2) GEMM_TN_CASE(3) GEMM_TN_CASE(4) GEMM_TN_CASE(5) GEMM_TN_CASE(6)
#if TILE_MAX_ROWS > 6
            GEMM_TN_CASE(7) GEMM_TN_CASE(8) GEMM_TN_CASE(9) GEMM_TN_CASE(10) GEMM_TN_CASE(11) GEMM_TN_CASE(12)
#endif
        }
    }
}

static void VF_NAME(gemm_tn_f32)(const gemm_tn_task *task)
{
    gemm_tn_task_assert(task);
    for (size_t panel = 0; panel < task->panels;) {
        const size_t left = task->panels - panel, here = left < TILE_PANELS ? left : TILE_PANELS;
        switch (here) {
        case 1: gemm_tn_panels(1, task, panel); break;
#if TILE_PANELS > 1
        case 2: gemm_tn_panels(2, task, panel); break;
        case 3: gemm_tn_panels(3, task, panel); break;
#endif
        }
        panel += here;
    }
}

/* One chunk of `lanes` columns into tile. */
VF void sum_rows_chunk(const sum_rows_task *task, size_t column, size_t lanes, size_t first, size_t count, float *tile)
{
    vf x = vf_zero();
    const float *a = task->a + first * task->lda + column, *b = task->b ? task->b + first * task->ldb + column : NULL;
    for (size_t r = 0; r < count; r++, a += task->lda) {
        const vf y = lanes == VF_LANES ? vf_load(a) : vf_load_n(a, lanes, vf_zero());
        if (b) {
            x = vf_fma(y, lanes == VF_LANES ? vf_load(b) : vf_load_n(b, lanes, vf_zero()), x);
            b += task->ldb;
        } else {
            x = vf_add(x, y);
        }
    }
    vf_store(tile, x);
}

static void VF_NAME(sum_rows_f32)(const sum_rows_task *task)
{
    for (size_t column = 0; column < task->n; column += VF_LANES) {
        const size_t lanes = task->n - column < VF_LANES ? task->n - column : VF_LANES;
        part_tree tree;
        for (size_t part = 0; part < task->parts; part++) {
            const size_t begin = task->bounds[part], end = task->bounds[part + 1];
            float sum[VF_LANES], tile[VF_LANES];
            for (size_t first = begin; first < end; first += ROW_CHUNK) {
                const size_t count = end - first < ROW_CHUNK ? end - first : ROW_CHUNK;
                sum_rows_chunk(task, column, lanes, first, count, first > begin ? tile : sum);
                if (first > begin) VF_NAME(add_floats)(sum, tile, VF_LANES);
            }
            VF_NAME(tree_add)(&tree, part, sum, end > begin, VF_LANES);
        }
        vf_store_n(task->y + column, lanes, vf_load(VF_NAME(tree_result)(&tree, task->parts, VF_LANES)));
    }
}

#endif
