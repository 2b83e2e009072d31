/* Implements the kernels of training in plain C: backward passes of layer norm, activation and softmax, sums over rows,
 * AdamW, dropout. kernels_scalar.c includes this file once with its names set.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* ------------------------------------------------------------------------------------------------------ sums of parts */

/* The tree over the numbers of parts is a binary counter: level k holds the sum of 2^k parts that still wait for their
 * neighbours. */
typedef struct part_tree {
    float sums[MAX_ROW_TREE][PANEL];
    bool there[MAX_ROW_TREE];
    size_t parts; /* number of parts so far */
} part_tree;

static void tree_add(part_tree *tree, const float part[PANEL], bool is_there)
{
    float sum[PANEL];
    size_t level = 0;
    memcpy(sum, part, sizeof sum);
    for (; tree->parts >> level & 1; level++) {
        if (!tree->there[level]) continue;
        for (size_t l = 0; l < PANEL; l++) sum[l] = is_there ? tree->sums[level][l] + sum[l] : tree->sums[level][l];
        is_there = true;
    }
    memcpy(tree->sums[level], sum, sizeof sum);
    tree->there[level] = is_there;
    tree->parts++;
}

/* Writes the sum of a tree, whose number of parts is a power of two, to result. */
static void tree_result(const part_tree *tree, float result[PANEL])
{
    size_t level = 0;
    while ((size_t)1 << level < tree->parts) level++;
    for (size_t l = 0; l < PANEL; l++) result[l] = tree->parts && tree->there[level] ? tree->sums[level][l] : 0.0f;
}

/* Adds rows [first, end) as a chain to x. */
typedef void (*row_chain)(const void *task, size_t i, size_t p, size_t first, size_t end, float x[PANEL]);

static void sum_of_parts(const void *task, row_chain chain, size_t i, size_t p, const size_t *bounds, size_t parts,
                         float result[PANEL])
{
    part_tree tree = {.parts = 0};
    for (size_t part = 0; part < parts; part++) {
        float sum[PANEL] = {0};
        const size_t end = bounds[part + 1];
        for (size_t first = bounds[part]; first < end; first += ROW_CHUNK) {
            float x[PANEL] = {0};
            chain(task, i, p, first, end - first < ROW_CHUNK ? end : first + ROW_CHUNK, x);
            for (size_t l = 0; l < PANEL; l++) sum[l] = first == bounds[part] ? x[l] : sum[l] + x[l];
        }
        tree_add(&tree, sum, end > bounds[part]);
    }
    tree_result(&tree, result);
}

/* ------------------------------------------------------------------------------------------------------ sum_rows_f32 */

static void sum_rows_chain(const void *context, size_t i, size_t p, size_t first, size_t end, float x[PANEL])
{
    const sum_rows_task *task = context;
    (void)i;
    for (size_t r = first; r < end; r++)
        for (size_t l = 0, j = p * PANEL; l < PANEL && j < task->n; l++, j++)
            x[l] = task->b ? fmaf(task->a[r * task->lda + j], task->b[r * task->ldb + j], x[l])
                           : x[l] + task->a[r * task->lda + j];
}

static void SUFFIXED(sum_rows_f32)(const sum_rows_task *task)
{
    for (size_t p = 0; p * PANEL < task->n; p++) {
        float x[PANEL];
        sum_of_parts(task, sum_rows_chain, 0, p, task->bounds, task->parts, x);
        for (size_t l = 0, j = p * PANEL; l < PANEL && j < task->n; l++, j++) task->y[j] = x[l];
    }
}

/* ------------------------------------------------------------------------------------------------------- gemm_tn_f32 */

static void gemm_tn_chain(const void *context, size_t i, size_t p, size_t first, size_t end, float x[PANEL])
{
    const gemm_tn_task *task = context;
    for (size_t r = first; r < end; r++)
        for (size_t l = 0; l < PANEL; l++)
            x[l] = fmaf(task->a[r * task->lda + i], task->b[r * task->ldb + p * task->b_panel_stride + l], x[l]);
}

static void SUFFIXED(gemm_tn_f32)(const gemm_tn_task *task)
{
    gemm_tn_task_assert(task);
    for (size_t i = 0; i < task->columns; i++) {
        for (size_t p = 0; p < task->panels; p++) {
            float *c = task->c + i * task->ldc + p * task->c_panel_stride, x[PANEL] = {0};
            if (task->bounds) {
                sum_of_parts(task, gemm_tn_chain, i, p, task->bounds, task->parts, x);
            } else {
                if (task->accumulate) memcpy(x, c, sizeof x);
                gemm_tn_chain(task, i, p, 0, task->rows, x);
            }
            memcpy(c, x, sizeof x);
        }
    }
    if (!task->sums) return;
    SUFFIXED(sum_rows_f32)
    (&(sum_rows_task){.n = task->columns,
                      .a = task->a,
                      .lda = task->lda,
                      .bounds = task->bounds,
                      .parts = task->parts,
                      .y = task->sums});
}

/* ---------------------------------------------------------------------------------------------------------- dot_rows */

static float dot_of(const float *a, const float *b, size_t n)
{
    float partials[PANEL] = {0};
    for (size_t e = 0; e < n; e++) partials[e % PANEL] = fmaf(a[e], b[e], partials[e % PANEL]);
    return sum_of_partials(partials);
}

static void SUFFIXED(dot_rows_f32)(float *y, const float *a, size_t lda, const float *b, size_t ldb, size_t rows,
                                   size_t n)
{
    for (size_t i = 0; i < rows; i++) y[i] = dot_of(a + i * lda, b + i * ldb, n);
}

/* ------------------------------------------------------------------------------------------- backward of row kernels */

static void layernorm_backward_row(const layernorm_backward_task *task, size_t i)
{
    const float *x = task->x + i * task->ldx, *dy = task->dy + i * task->lddy;
    float *dx = task->dx + i * task->lddx, *normal = task->normal + i * task->ld_normal;
    float sum[PANEL] = {0}, product[PANEL] = {0};
    const float mean = mean_of(x, task->n), r = 1.0f / sqrtf(variance_of(x, task->n, mean) + task->eps);
    for (size_t e = 0; e < task->n; e++) {
        const float u = task->gamma ? task->gamma[e] * dy[e] : dy[e];
        normal[e] = (x[e] - mean) * r;
        sum[e % PANEL] = sum[e % PANEL] + u;
        product[e % PANEL] = fmaf(u, normal[e], product[e % PANEL]);
    }
    const float a = sum_of_partials(sum) / (float)task->n, b = sum_of_partials(product) / (float)task->n;
    for (size_t e = 0; e < task->n; e++) {
        const float u = task->gamma ? task->gamma[e] * dy[e] : dy[e];
        dx[e] = r * fmaf(-normal[e], b, u - a);
    }
}

static void SUFFIXED(layernorm_backward_f32)(const layernorm_backward_task *task)
{
    assert(task->n >= 1);
    for (size_t i = 0; i < task->rows; i++) layernorm_backward_row(task, i);
}

static void SUFFIXED(activate_backward_f32)(float *dy, float *y, const float *x, size_t n, activation function)
{
    for (size_t e = 0; e < n; e++) dy[e] = dy[e] * scalar_derivative(x[e], function);
    for (size_t e = 0; y && e < n; e++) y[e] = x[e];
    if (y) SUFFIXED(activate_f32)(y, n, function);
}

static void SUFFIXED(softmax_backward_f32)(const softmax_backward_task *task)
{
    for (size_t i = 0; i < task->rows; i++) {
        float *s = task->s + i * task->lds, *dp = task->dp + i * task->lddp;
        if (task->exponentials) {
            const float *exponentials = task->exponentials + i * task->ld_exponentials;
            for (size_t j = 0; j < task->keys; j++) s[j] = exponentials[j] * task->inverse_total[i];
        } else {
            const float shift = task->maximum[i] == -INFINITY ? 0.0f : task->maximum[i];
            for (size_t j = 0; j < task->keys; j++) {
                const float logit = task->key_bias ? s[j] + task->key_bias[j] : s[j];
                s[j] = scalar_exp(logit - shift) * task->inverse_total[i];
            }
        }
        const float delta = task->delta ? task->delta[i] : dot_of(s, dp, task->keys);
        for (size_t j = 0; j < task->keys; j++) dp[j] = s[j] * (dp[j] - delta);
    }
}

/* --------------------------------------------------------------------------------------------------- fold_runs, adam */

/* unit_steps only permits shortcuts. */
static void SUFFIXED(fold_runs_f32)(const fold_runs_task *task)
{
    for (size_t i = 0; i < task->rows; i++) {
        for (size_t j = 0; j < task->columns; j++) {
            const int32_t place = task->place_of[(ptrdiff_t)j - (ptrdiff_t)i];
            float *x = task->strip + i * task->ld_strip + (size_t)(place - task->first);
            *x = *x + task->s[i * task->row_step + j * task->column_step];
        }
    }
}

static void SUFFIXED(adam_f32)(const adam_task *task)
{
    for (size_t e = 0; e < task->n; e++) {
        const float g = task->scale * task->g[e];
        const float m = fmaf(task->b1, task->m[e], task->c1 * g), v = fmaf(task->b2, task->v[e], task->c2 * g * g);
        const float w = task->w[e], root = sqrtf(v);
        task->m[e] = m;
        task->v[e] = v;
        task->w[e] = task->coupled ? fmaf(task->rate, m / (root + task->eps) + task->decay * w, w)
                                   : fmaf(task->rate, m / fmaf(root, task->inverse_root, task->eps), task->keep * w);
    }
}

/* ---------------------------------------------------------------------------------------------------------- dropout */

/* Computes Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011) in place. */
static void random_words(uint32_t counter[4], uint32_t key, uint32_t other_key)
{
    for (int round = 0; round < 10; round++) {
        const uint64_t even = UINT64_C(0xD2511F53) * counter[0], odd = UINT64_C(0xCD9E8D57) * counter[2];
        counter[0] = (uint32_t)(odd >> 32) ^ counter[1] ^ key;
        counter[1] = (uint32_t)odd;
        counter[2] = (uint32_t)(even >> 32) ^ counter[3] ^ other_key;
        counter[3] = (uint32_t)even;
        key += 0x9E3779B9;
        other_key += 0xBB67AE85;
    }
}

static void SUFFIXED(dropout_f32)(const dropout_task *task)
{
    for (size_t i = 0; i < task->rows; i++) {
        float *x = task->x + i * task->ldx;
        uint32_t words[4];
        for (size_t c = 0; c < task->n; c++) {
            const dropout_row *of = &task->of[i];
            const uint32_t counter[4] = {task->first + (uint32_t)(c / 4), of->place, of->sequence, of->site};
            if (c % 4 == 0) {
                memcpy(words, counter, sizeof words);
                random_words(words, task->seed, task->step);
            }
            x[c] = words[c % 4] < task->threshold ? 0 : x[c] * task->scale;
        }
    }
}
