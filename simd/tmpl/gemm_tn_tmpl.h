/* Implements gemm_tn_f32: products summed over rows. A tile of C stays in registers along a chunk of rows. After the
 * first tile of a block, a cache holds the part of the chunk that the block reads. So chunks are the outer loop, and
 * the sums of a block wait in memory. At the end of a chunk, a tile is added, on its way from the registers, to the
 * sums that it meets in the tree of core/kernels.h. Rows of B are as far apart as its matrix is wide, so they map to
 * few sets of a cache: the first tile copies them contiguously for the tiles below it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* Size of a block: columns of A, a multiple of every TILE_ROWS, and panels of B, a multiple of TILE_PANELS; 256 rows of
 * a block are 192 KB. Then the numbers of rows that are fetched ahead: of B, and of A from L2. With TN_A_ROWS, 3,072
 * columns times 768 run at 123 instead of 112 GFLOP/s, of 190; other shapes as before, within 2 % (one core of an
 * Emerald Rapids). */
enum { TN_COLUMNS = SUM_COLUMNS, TN_PANELS = 6, TN_AHEAD = 16, TN_A_ROWS = 8, TN_FLOATS = TN_COLUMNS * TN_PANELS * PANEL };

/* The sum of the current part, and the tree as a binary counter: level k holds the sum of 2^k parts that wait for their
 * neighbours. */
typedef struct tn_sums {
    _Alignas(64) float part[TN_FLOATS], level[MAX_ROW_TREE][TN_FLOATS];
    _Alignas(64) float rows[ROW_CHUNK * TILE_PANELS * PANEL]; /* rows of B: one chunk by the panels of a tile */
    bool there[MAX_ROW_TREE];
    column_sums columns[SUM_GROUPS]; /* sums of A's columns */
} tn_sums;

/* A chunk of rows, and the rows of the next chunk; NULL if there are none. */
typedef struct tn_chunk {
    row_chunk rows;
    const float *next_a, *next_b;
} tn_chunk;

/* A line that is fetched with every row. */
typedef struct tn_fetch {
    const float *at;
    size_t ld;
} tn_fetch;

/* Returns the number of trailing one bits of part: the level at which the tree keeps its sum. */
static size_t VF_NAME(tn_level)(size_t part)
{
    size_t level = 0;
    while (part >> level & 1) level++;
    return level;
}

/* Skips a part without rows: the waiting sums move up. */
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

/* A tile takes several times as long as its memory traffic: each of a block's tiles fetches one line of every row of
 * the next chunk, of A's columns first, then of B's panels, and the remaining tiles fetch nothing new. */
static tn_fetch VF_NAME(tn_fetch_of)(const gemm_tn_task *task, const tn_chunk *chunk, size_t tile)
{
    enum { LINES = TN_COLUMNS / PANEL };
    if (!chunk->next_a || tile >= LINES + TN_PANELS) return (tn_fetch){task->a, 0};
    if (tile < LINES) return (tn_fetch){chunk->next_a + tile * PANEL, task->lda};
    return (tn_fetch){chunk->next_b + (tile - LINES) * task->b_panel_stride, task->ldb};
}

/* Rows of B, whose panels lie `stride` apart. */
typedef struct tn_rows {
    const float *first;
    size_t ld, stride;
} tn_rows;

/* Computes one chain from x over `count` rows; keeps those of B if `kept` is not NULL. That, and the fetches, are
 * literals in every call. */
VF void gemm_tn_chain(const int rows, const int panels, vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS], const float *a, size_t lda,
                      const tn_rows *from, size_t count, float *kept, tn_fetch fetch, const bool fetches_a, const bool fetches_b)
{
    const float *b = from->first;
    const size_t ldb = from->ld, stride = from->stride;
    UNROLL_DEPTH for (size_t r = 0; r < count; r++, a += lda, b += ldb, fetch.at += fetch.ld) {
        vf y[TILE_MAX_PANELS * VECTORS];
        if (fetches_a) { /* The rows lie further apart than hardware prefetchers look. */
            vf_prefetch_l2((const char *)fetch.at);
            __builtin_prefetch(a + TN_A_ROWS * lda);
        }
        if (fetches_b) UNROLL for (int p = 0; p < panels; p++) __builtin_prefetch(b + TN_AHEAD * ldb + (size_t)p * stride);
        UNROLL for (int v = 0; v < panels * VECTORS; v++) y[v] = vf_load(b + (size_t)(v / VECTORS) * stride + v % VECTORS * VF_LANES);
        if (kept) {
            UNROLL for (int v = 0; v < panels * VECTORS; v++) vf_store(kept + v * VF_LANES, y[v]);
            kept += panels * PANEL;
        }
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

/* Computes one tile of a block, `at` floats into its sums; rows and panels are literals in every call, so that the
 * loops over them are unrolled. */
VF void gemm_tn_chunk(const int rows, const int panels, const gemm_tn_task *task, const float *a, const tn_rows *b, size_t count,
                      tn_sums *sums, size_t at, const tn_chunk *chunk, float *kept, tn_fetch fetch)
{
    vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v] = vf_zero();
    gemm_tn_chain(rows, panels, x, a, task->lda, b, count, kept, fetch, true, kept != NULL);
    if (chunk->rows.continues) gemm_tn_add(rows, panels, x, sums->part + at);
    float *to = sums->part;
    if (chunk->rows.ends) {
        size_t level = 0;
        for (; chunk->rows.part >> level & 1; level++)
            if (sums->there[level]) gemm_tn_add(rows, panels, x, sums->level[level] + at);
        to = sums->level[level];
    }
    gemm_tn_put(rows, panels, x, to + at);
}

#ifdef TILES_APART
#define GEMM_TN_CHUNK_OF(n, p)                                                                                         \
    static __attribute__((noinline)) void VF_NAME(gemm_tn_chunk_##n##_##p)(                                            \
        const gemm_tn_task *task, const float *a, const tn_rows *b, size_t count, tn_sums *sums, size_t at, const tn_chunk *chunk, tn_fetch fetch) \
    {                                                                                                                  \
        if (n <= TILE_ROWS(p)) gemm_tn_chunk(n, p, task, a, b, count, sums, at, chunk, NULL, fetch);                    \
    }
#define GEMM_TN_CHUNKS(n) OF_PANELS(GEMM_TN_CHUNK_OF, n)
OF_ROWS(GEMM_TN_CHUNKS)
#define GEMM_TN_CHUNK_CASE(n, p)                                                                                       \
    if (panels == p && n <= TILE_ROWS(p))                                                                              \
        VF_NAME(gemm_tn_chunk_##n##_##p)(task, a + column, &from, count, sums, at + column * (size_t)(panels * PANEL), chunk, \
                                         VF_NAME(tn_fetch_of)(task, chunk, tile + column / TILE_ROWS(p)));
#define GEMM_TN_CHUNK(n) \
    case n: OF_PANELS(GEMM_TN_CHUNK_CASE, n) break;
#else
#define GEMM_TN_CHUNK(n)                                                                                               \
    case n:                                                                                                            \
        if (n <= TILE_ROWS(panels))                                                                                    \
            gemm_tn_chunk(n, panels, task, a + column, &from, count, sums, at + column * (size_t)(panels * PANEL), chunk, NULL, \
                          VF_NAME(tn_fetch_of)(task, chunk, tile + column / TILE_ROWS(panels)));                     \
        break;
#endif

/* Computes the tiles of a block that share some panels of B. */
VF void gemm_tn_tiles(const int panels, const gemm_tn_task *task, const float *a, const float *b, size_t columns, size_t count,
                      tn_sums *sums, size_t at, const tn_chunk *chunk, size_t tile)
{
    tn_rows from = {b, task->ldb, task->b_panel_stride};
    size_t column = 0;
    if (columns > TILE_ROWS(panels)) {
        gemm_tn_chunk(TILE_ROWS(panels), panels, task, a, &from, count, sums, at, chunk, sums->rows, VF_NAME(tn_fetch_of)(task, chunk, tile));
        from = (tn_rows){sums->rows, (size_t)(panels * PANEL), PANEL};
        column = TILE_ROWS(panels);
    }
    for (; column < columns; column += TILE_ROWS(panels)) {
        const size_t left = columns - column;
        switch (left < TILE_ROWS(panels) ? left : TILE_ROWS(panels)) {
            GEMM_TN_CHUNK(1) GEMM_TN_CHUNK(2) GEMM_TN_CHUNK(3) GEMM_TN_CHUNK(4) GEMM_TN_CHUNK(5) GEMM_TN_CHUNK(6)
#if TILE_MAX_ROWS > 6
            GEMM_TN_CHUNK(7) GEMM_TN_CHUNK(8) GEMM_TN_CHUNK(9) GEMM_TN_CHUNK(10) GEMM_TN_CHUNK(11) GEMM_TN_CHUNK(12)
#endif
        }
    }
}

/* Computes a chunk of rows: all tiles of a block. */
static void VF_NAME(gemm_tn_block)(const gemm_tn_task *task, const float *a, const float *b, size_t columns, size_t panels,
                                   tn_sums *sums, const tn_chunk *chunk)
{
    for (size_t panel = 0, here, tile = 0; panel < panels; panel += here, b += here * task->b_panel_stride) {
        const size_t at = columns * panel * PANEL;
        here = panels - panel < TILE_PANELS ? panels - panel : TILE_PANELS;
        switch (here) {
        case 1: gemm_tn_tiles(1, task, a, b, columns, chunk->rows.count, sums, at, chunk, tile); break;
#if TILE_PANELS > 1
        case 2: gemm_tn_tiles(2, task, a, b, columns, chunk->rows.count, sums, at, chunk, tile); break;
        case 3: gemm_tn_tiles(3, task, a, b, columns, chunk->rows.count, sums, at, chunk, tile); break;
#endif
        }
        tile += (columns + TILE_ROWS(here) - 1) / TILE_ROWS(here);
    }
}

/* Tiles follow each other in the sums, those of the first panels first. */
static void VF_NAME(gemm_tn_result)(const gemm_tn_task *task, const float *sums, float *c, size_t columns, size_t panels)
{
    for (size_t panel = 0, here; panel < panels; panel += here) {
        here = panels - panel < TILE_PANELS ? panels - panel : TILE_PANELS;
        for (size_t i = 0; i < columns; i++)
            for (size_t p = 0; p < here; p++, sums += PANEL)
                UNROLL for (int v = 0; v < VECTORS; v++)
                    vf_store(c + i * task->ldc + (panel + p) * task->c_panel_stride + v * VF_LANES, vf_load(sums + v * VF_LANES));
    }
}

/* Computes a chunk of rows of a block, and of the sums of A's columns where the block computes them. */
static void VF_NAME(gemm_tn_rows_of)(const gemm_tn_task *task, const sum_rows_task *columns, size_t panel, size_t panels, tn_sums *sums,
                                     const tn_chunk *chunk)
{
    const size_t row = chunk->rows.first;
    if (chunk->rows.count > 0)
        VF_NAME(gemm_tn_block)(task, columns->a + row * task->lda, task->b + panel * task->b_panel_stride + row * task->ldb, columns->n,
                               panels, sums, chunk);
    if (columns->y) VF_NAME(column_sums_chunk)(sums->columns, columns, &chunk->rows);
}

/* Computes a block from a column and panel on. It is not inlined, so that the sums are on the stack once. */
static __attribute__((noinline)) void VF_NAME(gemm_tn_parts)(const gemm_tn_task *task, size_t first, size_t columns, size_t panel,
                                                             size_t panels)
{
    const size_t floats = columns * panels * PANEL;
    const sum_rows_task left = {.n = columns,
                                .a = task->a + first,
                                .lda = task->lda,
                                .parts = task->parts,
                                .y = task->sums && panel == 0 ? task->sums + first : NULL};
    const float *b = task->b + panel * task->b_panel_stride;
    tn_sums sums;
    for (size_t part = 0; part < task->parts; part++) {
        const size_t begin = task->bounds[part], end = task->bounds[part + 1];
        size_t row = begin;
        do {
            const size_t count = end - row < ROW_CHUNK ? end - row : ROW_CHUNK;
            const bool more = row + count < task->bounds[task->parts];
            const tn_chunk chunk = {
                .rows = {.part = part, .first = row, .count = count, .continues = row > begin, .ends = row + count == end},
                .next_a = more ? left.a + (row + count) * task->lda : NULL,
                .next_b = more ? b + (row + count) * task->ldb : NULL};
            VF_NAME(gemm_tn_rows_of)(task, &left, panel, panels, &sums, &chunk);
            row += count;
        } while (row < end);
        if (begin == end)
            VF_NAME(tn_skip_part)(&sums, part, floats);
        else
            sums.there[VF_NAME(tn_level)(part)] = true;
    }
    VF_NAME(gemm_tn_result)(task, VF_NAME(tn_result)(&sums, task->parts, floats),
                            task->c + first * task->ldc + panel * task->c_panel_stride, columns, panels);
    if (left.y) VF_NAME(column_sums_result)(sums.columns, &left);
}

/* Computes a tile whose A and B are in a cache and whose C may be far away: it fetches the C of the next tile. */
VF void gemm_tn_whole(const int rows, const int panels, const gemm_tn_task *task, const float *a, const float *b, float *c)
{
    vf x[TILE_MAX_ROWS][TILE_MAX_PANELS * VECTORS];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++)
            x[i][v] = task->accumulate ? vf_load(c + gemm_vector_place(i, task->ldc, v, task->c_panel_stride)) : vf_zero();
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int p = 0; p < panels; p++)
            __builtin_prefetch(c + gemm_vector_place(rows + i, task->ldc, p * VECTORS, task->c_panel_stride), 1);
    const tn_rows from = {b, task->ldb, task->b_panel_stride};
    gemm_tn_chain(rows, panels, x, a, task->lda, &from, task->rows, NULL, (tn_fetch){a, 0}, false, false);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++)
            vf_store(c + gemm_vector_place(i, task->ldc, v, task->c_panel_stride), x[i][v]);
}

#ifdef TILES_APART
#define GEMM_TN_WHOLE(n, p)                                                                                            \
    static __attribute__((noinline)) void VF_NAME(gemm_tn_whole_##n##_##p)(const gemm_tn_task *task, const float *a, const float *b, float *c) \
    {                                                                                                                  \
        if (n <= TILE_ROWS(p)) gemm_tn_whole(n, p, task, a, b, c);                                                      \
    }
#define GEMM_TN_WHOLES(n) OF_PANELS(GEMM_TN_WHOLE, n)
OF_ROWS(GEMM_TN_WHOLES)
#define GEMM_TN_CASE_OF(n, p) \
    if (panels == p && n <= TILE_ROWS(p)) VF_NAME(gemm_tn_whole_##n##_##p)(task, a + row, b, c + row * task->ldc);
#define GEMM_TN_CASE(n) \
    case n: OF_PANELS(GEMM_TN_CASE_OF, n) break;
#else
#define GEMM_TN_CASE(n)                                                                                                \
    case n:                                                                                                            \
        if (n <= TILE_ROWS(panels)) gemm_tn_whole(n, panels, task, a + row, b, c + row * task->ldc);                   \
        break;
#endif

/* Balances groups of columns, as gemm_f32 does with rows. */
VF void gemm_tn_rows(const int panels, const gemm_tn_task *task, size_t panel)
{
    const float *a = task->a, *b = task->b + panel * task->b_panel_stride;
    float *c = task->c + panel * task->c_panel_stride;
    const size_t groups = (task->columns + TILE_ROWS(panels) - 1) / TILE_ROWS(panels);
    for (size_t group = 0, row = 0, end; group < groups; group++, row = end) {
        end = task->columns * (group + 1) / groups;
        switch (end - row) {
            GEMM_TN_CASE(1) GEMM_TN_CASE(2) GEMM_TN_CASE(3) GEMM_TN_CASE(4) GEMM_TN_CASE(5) GEMM_TN_CASE(6)
#if TILE_MAX_ROWS > 6
            GEMM_TN_CASE(7) GEMM_TN_CASE(8) GEMM_TN_CASE(9) GEMM_TN_CASE(10) GEMM_TN_CASE(11) GEMM_TN_CASE(12)
#endif
        }
    }
}

static void VF_NAME(gemm_tn_blocks)(const gemm_tn_task *task)
{
    for (size_t panel = 0; panel < task->panels; panel += TN_PANELS)
        for (size_t first = 0; first < task->columns; first += TN_COLUMNS)
            VF_NAME(gemm_tn_parts)(task, first, task->columns - first < TN_COLUMNS ? task->columns - first : TN_COLUMNS, panel,
                                   task->panels - panel < TN_PANELS ? task->panels - panel : TN_PANELS);
}

static void VF_NAME(gemm_tn_f32)(const gemm_tn_task *task)
{
    gemm_tn_task_assert(task);
    if (task->bounds) {
        VF_NAME(gemm_tn_blocks)(task);
        return;
    }
    for (size_t panel = 0, here; panel < task->panels; panel += here) {
        here = next_tile_panels(task->panels - panel);
        switch (here) {
        case 1: gemm_tn_rows(1, task, panel); break;
#if TILE_PANELS > 1
        case 2: gemm_tn_rows(2, task, panel); break;
        case 3: gemm_tn_rows(3, task, panel); break;
        case 4: gemm_tn_rows(4, task, panel); break;
#endif
        }
    }
}
