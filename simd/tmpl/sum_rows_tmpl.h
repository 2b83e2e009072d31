/* Implements sum_rows_f32: sums of columns over rows, one chunk of rows at a time, for any loop over chunks:
 * gemm_tn_f32 sums its left operand while a chunk is in a cache.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* Number of columns at a time. Those of a group are chains that run side by side, because an addition takes several
 * steps; the columns after the groups go vector by vector. Then the number of rows that are fetched ahead. */
enum {
    SUM_COLUMNS = 96,
    SUM_GROUP = 48,
    SUM_VECTORS = SUM_GROUP / VF_LANES,
    SUM_GROUPS = SUM_COLUMNS / SUM_GROUP - 1 + SUM_VECTORS,
    SUM_AHEAD = 16
};

/* The tree over the parts of one vector's sums. */
typedef struct part_tree {
    float sums[MAX_ROW_TREE][VF_LANES];
    bool there[MAX_ROW_TREE];
} part_tree;

/* The sums of a group of columns: the current part, and the parts before it. */
typedef struct column_sums {
    vf part[SUM_VECTORS];
    part_tree trees[SUM_VECTORS];
} column_sums;

/* A chunk of the rows of a part: at most ROW_CHUNK rows, 0 for an empty part. */
typedef struct row_chunk {
    size_t part, first, count;
    bool continues, ends; /* whether the part has chunks before this one; whether it has none after it */
} row_chunk;

/* Adds a part to the tree. is_there false: the part has no rows, and sum is ignored. */
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

/* Returns the lanes of a group's last vector. */
VF size_t last_lanes(const sum_rows_task *task, size_t column, const int vectors)
{
    const size_t left = task->n - column - (size_t)(vectors - 1) * VF_LANES;
    return left < VF_LANES ? left : VF_LANES;
}

VF void column_sums_add(const int vectors, column_sums *sums, const sum_rows_task *task, size_t column, const row_chunk *chunk)
{
    const float *a = task->a + chunk->first * task->lda + column;
    const float *b = task->b ? task->b + chunk->first * task->ldb + column : NULL;
    const size_t last = last_lanes(task, column, vectors);
    vf x[SUM_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) x[v] = vf_zero();
    for (size_t r = 0; r < chunk->count; r++, a += task->lda) {
        UNROLL for (int v = 0; v < vectors; v += VECTORS) __builtin_prefetch(a + SUM_AHEAD * task->lda + v * VF_LANES);
        UNROLL for (int v = 0; v < vectors; v++) {
            const size_t here = v + 1 < vectors ? VF_LANES : last;
            const vf y = vf_load_n(a + v * VF_LANES, here, vf_zero());
            x[v] = b ? vf_fma(y, vf_load_n(b + v * VF_LANES, here, vf_zero()), x[v]) : vf_add(x[v], y);
        }
        if (b) b += task->ldb;
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        sums->part[v] = chunk->continues ? vf_add(sums->part[v], x[v]) : x[v];
        if (chunk->ends) VF_NAME(tree_add)(&sums->trees[v], chunk->part, sums->part[v], chunk->count > 0);
    }
}

/* Sums a chunk of all columns of a task of at most SUM_COLUMNS. Chunks come in order. */
static void VF_NAME(column_sums_chunk)(column_sums *groups, const sum_rows_task *task, const row_chunk *chunk)
{
    size_t column = 0;
    for (; column + SUM_GROUP <= task->n; column += SUM_GROUP) column_sums_add(SUM_VECTORS, groups++, task, column, chunk);
    for (; column < task->n; column += VF_LANES) column_sums_add(1, groups++, task, column, chunk);
}

static void VF_NAME(column_sums_result)(const column_sums *groups, const sum_rows_task *task)
{
    for (size_t column = 0; column < task->n; groups++) {
        const int vectors = column + SUM_GROUP <= task->n ? SUM_VECTORS : 1;
        for (int v = 0; v < vectors; v++, column += VF_LANES)
            vf_store_n(task->y + column, last_lanes(task, column, 1), VF_NAME(tree_result)(&groups->trees[v], task->parts));
    }
}

static void VF_NAME(sum_rows_f32)(const sum_rows_task *whole)
{
    for (size_t column = 0; column < whole->n; column += SUM_COLUMNS) {
        column_sums groups[SUM_GROUPS];
        sum_rows_task task = *whole;
        task.n = whole->n - column < SUM_COLUMNS ? whole->n - column : SUM_COLUMNS;
        task.a += column;
        if (task.b) task.b += column;
        task.y += column;
        for (size_t part = 0; part < task.parts; part++) {
            const size_t begin = task.bounds[part], end = task.bounds[part + 1];
            row_chunk chunk = {.part = part, .first = begin};
            do {
                chunk.count = end - chunk.first < ROW_CHUNK ? end - chunk.first : ROW_CHUNK;
                chunk.ends = chunk.first + chunk.count == end;
                VF_NAME(column_sums_chunk)(groups, &task, &chunk);
                chunk.first += chunk.count;
                chunk.continues = true;
            } while (!chunk.ends);
        }
        VF_NAME(column_sums_result)(groups, &task);
    }
}
