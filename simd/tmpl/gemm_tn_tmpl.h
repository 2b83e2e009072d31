/* Sums over rows: gemm_tn_f32 and sum_rows_f32. A tile of C stays in registers along a chunk of rows. What many tiles of neighbouring
 * columns read of a chunk then is in a cache, so chunks are the outer loop, and the sums of a block of columns wait in memory: at the
 * end of a chunk a tile is added to those that it meets in the tree of core/kernels.h, on its way from the registers.
 *
 * SPDX-License-Identifier: MIT */
#ifndef SIMD_TMPL_GEMM_TN_TMPL_H
#define SIMD_TMPL_GEMM_TN_TMPL_H

/* Columns of A in a block, a multiple of every TILE_ROWS; rows that are fetched ahead. 96 columns of 256 rows are 96 KB. */
enum { TN_COLUMNS = 96, TN_AHEAD = 16, TN_FLOATS = TN_COLUMNS * TILE_PANELS * PANEL };

/* The sum of the part at hand, and the tree as a binary counter: level k holds the sum of 2^k parts that wait for their neighbours. */
typedef struct tn_sums {
    float part[TN_FLOATS], level[MAX_ROW_TREE][TN_FLOATS];
    bool there[MAX_ROW_TREE];
} tn_sums;

/* What becomes of a chunk's sum. */
typedef struct tn_chunk {
    size_t part;
    bool continues, ends; /* the part has chunks before it; has none behind it */
} tn_chunk;

/* Where the sum of a part goes, behind those that it is added to. */
static size_t VF_NAME(tn_level)(size_t part)
{
    size_t level = 0;
    while (part >> level & 1) level++;
    return level;
}

/* A part without rows: what waits for it moves up. */
static void VF_NAME(tn_skip_part)(tn_sums *sums, size_t part, size_t floats)
{
    const size_t end = VF_NAME(tn_level)(part);
    float *carried = NULL;
    for (size_t level = 0; level < end; level++) {
        if (!sums->there[level]) continue;
        if (carried)
            for (size_t e = 0; e < floats; e += VF_LANES)
                vf_store(carried + e, vf_add(vf_load(carried + e), vf_load(sums->level[level] + e)));
        else
            carried = sums->level[level];
    }
    sums->there[end] = carried != NULL;
    for (size_t e = 0; carried && e < floats; e += VF_LANES) vf_store(sums->level[end] + e, vf_load(carried + e));
}

static const float *VF_NAME(tn_result)(tn_sums *sums, size_t parts, size_t floats)
{
    size_t level = 0;
    while ((size_t)1 << level < parts) level++;
    if (parts == 0 || !sums->there[level])
        for (size_t e = 0; e < floats; e++) sums->level[level][e] = 0.0f;
    return sums->level[level];
}

/* One chain from x over `count` rows. */
VF void gemm_tn_chain(const int rows, const int panels, vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS], const gemm_tn_task *task,
                      const float *a, const float *b, size_t count)
{
    const size_t lda = task->lda, ldb = task->ldb, stride = task->b_panel_stride;
    for (size_t r = 0; r < count; r++, a += lda, b += ldb) {
        vf y[TILE_MAX_PANELS * VECTORS];
        __builtin_prefetch(a + TN_AHEAD * lda); /* rows lie further apart than prefetchers look */
        UNROLL for (int p = 0; p < panels; p++) __builtin_prefetch(b + TN_AHEAD * ldb + (size_t)p * stride);
        UNROLL for (int v = 0; v < panels * VECTORS; v++) y[v] = vf_load(b + (size_t)(v / VECTORS) * stride + v % VECTORS * VF_LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            const vf s = vf_broadcast(a + i);
            UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_fma(s, y[v], x[i][v]);
        }
    }
}

VF void gemm_tn_add(const int rows, const int panels, vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS], const float *y)
{
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++)
            x[i][v] = vf_add(x[i][v], vf_load(y + (i * panels * VECTORS + v) * VF_LANES));
}

VF void gemm_tn_put(const int rows, const int panels, vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS], float *y)
{
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++) vf_store(y + (i * panels * VECTORS + v) * VF_LANES, x[i][v]);
}

/* One tile of a block of columns, `at` floats into its sums; rows and panels are literals in every call, so that the loops over them
 * vanish. */
VF void gemm_tn_chunk(const int rows, const int panels, const gemm_tn_task *task, const float *a, const float *b, size_t count,
                      tn_sums *sums, size_t at, const tn_chunk *chunk)
{
    vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_zero();
    gemm_tn_chain(rows, panels, x, task, a, b, count);
    if (chunk->continues) gemm_tn_add(rows, panels, x, sums->part + at);
    float *to = sums->part;
    if (chunk->ends) {
        size_t level = 0;
        for (; chunk->part >> level & 1; level++)
            if (sums->there[level]) gemm_tn_add(rows, panels, x, sums->level[level] + at);
        to = sums->level[level];
    }
    gemm_tn_put(rows, panels, x, to + at);
}

#define GEMM_TN_CHUNK(n)                                                                                               \
    case n:                                                                                                            \
        if (n <= TILE_ROWS(panels)) gemm_tn_chunk(n, panels, task, a + column, b, count, sums, column * (size_t)(panels * PANEL), chunk); \
        break;

/* All tiles of a block. */
VF void gemm_tn_tiles(const int panels, const gemm_tn_task *task, const float *a, const float *b, size_t columns, size_t count,
                      tn_sums *sums, const tn_chunk *chunk)
{
    for (size_t column = 0; column < columns; column += TILE_ROWS(panels)) {
        const size_t left = columns - column;
        switch (left < TILE_ROWS(panels) ? left : TILE_ROWS(panels)) {
            GEMM_TN_CHUNK(1) GEMM_TN_CHUNK(2) GEMM_TN_CHUNK(3) GEMM_TN_CHUNK(4) GEMM_TN_CHUNK(5) GEMM_TN_CHUNK(6)
#if TILE_MAX_ROWS > 6
            GEMM_TN_CHUNK(7) GEMM_TN_CHUNK(8) GEMM_TN_CHUNK(9) GEMM_TN_CHUNK(10) GEMM_TN_CHUNK(11) GEMM_TN_CHUNK(12)
#endif
        }
    }
}

VF void gemm_tn_parts(const int panels, const gemm_tn_task *task, size_t first, size_t columns, size_t panel)
{
    const float *a = task->a + first, *b = task->b + panel * task->b_panel_stride;
    const size_t floats = columns * (size_t)(panels * PANEL);
    tn_sums sums;
    for (size_t part = 0; part < task->parts; part++) {
        const size_t begin = task->bounds[part], end = task->bounds[part + 1];
        for (size_t row = begin; row < end; row += ROW_CHUNK) {
            const size_t count = end - row < ROW_CHUNK ? end - row : ROW_CHUNK;
            const tn_chunk chunk = {.part = part, .continues = row > begin, .ends = row + count == end};
            gemm_tn_tiles(panels, task, a + row * task->lda, b + row * task->ldb, columns, count, &sums, &chunk);
        }
        if (begin == end)
            VF_NAME(tn_skip_part)(&sums, part, floats);
        else
            sums.there[VF_NAME(tn_level)(part)] = true;
    }
    const float *result = VF_NAME(tn_result)(&sums, task->parts, floats);
    for (size_t i = 0; i < columns; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++)
            vf_store(task->c + (first + i) * task->ldc + (panel + (size_t)(v / VECTORS)) * task->c_panel_stride + v % VECTORS * VF_LANES,
                     vf_load(result + (i * (size_t)(panels * VECTORS) + (size_t)v) * VF_LANES));
}

/* Not inlined, so that the sums are on the stack once. */
#define GEMM_TN_PARTS(panels)                                                                                          \
    static __attribute__((noinline)) void VF_NAME(gemm_tn_parts_##panels)(const gemm_tn_task *task, size_t first,      \
                                                                          size_t columns, size_t panel)                \
    {                                                                                                                  \
        gemm_tn_parts(panels, task, first, columns, panel);                                                            \
    }
GEMM_TN_PARTS(1)
#if TILE_PANELS > 1
GEMM_TN_PARTS(2)
GEMM_TN_PARTS(3)
#endif

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

#define GEMM_TN_CASE(n)                                                                                                \
    case n:                                                                                                            \
        if (n <= TILE_ROWS(panels)) gemm_tn_whole(n, panels, task, a + row, b, c + row * task->ldc);                   \
        break;

VF void gemm_tn_rows(const int panels, const gemm_tn_task *task, size_t panel)
{
    const float *a = task->a, *b = task->b + panel * task->b_panel_stride;
    float *c = task->c + panel * task->c_panel_stride;
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
    for (size_t panel = 0, here; panel < task->panels; panel += here) {
        const size_t left = task->panels - panel;
        here = left < TILE_PANELS ? left : TILE_PANELS;
        for (size_t first = 0; task->bounds && first < task->columns; first += TN_COLUMNS) {
            const size_t columns = task->columns - first < TN_COLUMNS ? task->columns - first : TN_COLUMNS;
            switch (here) {
            case 1: VF_NAME(gemm_tn_parts_1)(task, first, columns, panel); break;
#if TILE_PANELS > 1
            case 2: VF_NAME(gemm_tn_parts_2)(task, first, columns, panel); break;
            case 3: VF_NAME(gemm_tn_parts_3)(task, first, columns, panel); break;
#endif
            }
        }
        if (task->bounds) continue;
        switch (here) {
        case 1: gemm_tn_rows(1, task, panel); break;
#if TILE_PANELS > 1
        case 2: gemm_tn_rows(2, task, panel); break;
        case 3: gemm_tn_rows(3, task, panel); break;
#endif
        }
    }
}

/* The tree of sum_rows_f32, of one vector. */
typedef struct part_tree {
    float sums[MAX_ROW_TREE][VF_LANES];
    bool there[MAX_ROW_TREE];
} part_tree;

/* sum is the part's, and is overwritten; without is_there it holds nothing. */
static void VF_NAME(tree_add)(part_tree *tree, size_t part, vf sum, bool is_there)
{
    size_t level = 0;
    for (; part >> level & 1; level++) {
        if (!tree->there[level]) continue;
        const vf other = vf_load(tree->sums[level]);
        sum = is_there ? vf_add(sum, other) : other;
        is_there = true;
    }
    if (is_there) vf_store(tree->sums[level], sum);
    tree->there[level] = is_there;
}

static vf VF_NAME(tree_result)(const part_tree *tree, size_t parts)
{
    size_t level = 0;
    while ((size_t)1 << level < parts) level++;
    return parts > 0 && tree->there[level] ? vf_load(tree->sums[level]) : vf_zero();
}

/* One chunk of `lanes` columns. */
VF vf sum_rows_chunk(const sum_rows_task *task, size_t column, size_t lanes, size_t first, size_t count)
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
    return x;
}

static void VF_NAME(sum_rows_f32)(const sum_rows_task *task)
{
    for (size_t column = 0; column < task->n; column += VF_LANES) {
        const size_t lanes = task->n - column < VF_LANES ? task->n - column : VF_LANES;
        part_tree tree;
        for (size_t part = 0; part < task->parts; part++) {
            const size_t begin = task->bounds[part], end = task->bounds[part + 1];
            vf sum = vf_zero();
            for (size_t first = begin; first < end; first += ROW_CHUNK) {
                const size_t count = end - first < ROW_CHUNK ? end - first : ROW_CHUNK;
                const vf chunk = sum_rows_chunk(task, column, lanes, first, count);
                sum = first > begin ? vf_add(sum, chunk) : chunk;
            }
            VF_NAME(tree_add)(&tree, part, sum, end > begin);
        }
        vf_store_n(task->y + column, lanes, VF_NAME(tree_result)(&tree, task->parts));
    }
}

#endif
