/* Implements position_bias_f32: the position terms c2p and p2c of the logits of one tile of 16 keys, read from the
 * strips at each relative position, without a transpose, a gather or an index matrix.
 *
 * Lane l of query i needs table row row_of[i - l].
 *   p2c: the strip is transposed, T[row][16 keys], so lane l must come from T[row_of[i - l]][l]. Blending does it for
 *        any row map: with t(D) = T[row_of[D]],  a(D) = lanes with bit 0 from t(D - 1), else t(D);  b(D) = lanes with
 *        bit 1 from a(D - 2), else a(D);  and so on:  lane l of the last stage is lane l of t(D - l). From query to
 *        query, each stage needs only its own last 1, 2, 4 (8) values, which stay in registers.
 *   c2p: the strip is reversed, so 16 growing keys read growing places. Where rows move in steps of 1 that is one load;
 *        where steps are 0 or 1, one load and one permutation whose indices are differences of position_of; otherwise a
 *        gather.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define BLEND_ROWS (VF_LANES / 2) /* number of rows done at once: the longest memory of a stage, so that no register
                                   * moves */

/* The memory of the blend stages. h8 exists only where vectors have 16 lanes. */
typedef struct blend_history {
    vf h1, h2[2], h4[4], h8[8];
} blend_history;

VF vf p2c_row(const position_bias_task *task, ptrdiff_t distance, size_t half)
{
    return vf_load(task->p2c + ((size_t)task->row_of[distance] - task->p2c_first) * PANEL + half);
}

/* Loads the history of the stages before query `first`; lane 0 of this part of the tile is `half` keys further. */
VF void blend_start(blend_history *h, const position_bias_task *task, ptrdiff_t first, size_t half)
{
    vf t[VF_LANES], a[VF_LANES], b[VF_LANES];
    UNROLL for (int k = 1; k < VF_LANES; k++) t[k] = p2c_row(task, first - (ptrdiff_t)half - k, half);
    h->h1 = t[1];
    UNROLL for (int k = 1; k + 1 < VF_LANES; k++) a[k] = vf_blend1(t[k], t[k + 1]);
    h->h2[0] = a[1];
    h->h2[1] = a[2];
#if VF_LANES >= 8
    UNROLL for (int k = 1; k + 3 < VF_LANES; k++) b[k] = vf_blend2(a[k], a[k + 2]);
    UNROLL for (int k = 0; k < 4; k++) h->h4[k] = b[k + 1];
#else
    (void)b;
#endif
#if VF_LANES >= 16
    UNROLL for (int k = 0; k < 8; k++) h->h8[k] = vf_blend4(b[k + 1], b[k + 5]);
#endif
}

/* Blends t, the T rows of BLEND_ROWS consecutive queries, into their p2c vectors. h*[k] was k + 1 queries ago. */
VF void blend_rows(vf t[BLEND_ROWS], blend_history *h)
{
    vf a[BLEND_ROWS], b[BLEND_ROWS];
    UNROLL for (int k = 0; k < BLEND_ROWS; k++) a[k] = vf_blend1(t[k], k >= 1 ? t[k - 1] : h->h1);
    h->h1 = t[BLEND_ROWS - 1];
    UNROLL for (int k = 0; k < BLEND_ROWS; k++) b[k] = vf_blend2(a[k], k >= 2 ? a[k - 2] : h->h2[1 - k]);
    h->h2[0] = a[BLEND_ROWS - 1];
    h->h2[1] = a[BLEND_ROWS - 2];
#if VF_LANES >= 8
    UNROLL for (int k = 0; k < BLEND_ROWS; k++) a[k] = vf_blend4(b[k], k >= 4 ? b[k - 4] : h->h4[3 - k]);
    UNROLL for (int k = 0; k < 4; k++) h->h4[k] = b[BLEND_ROWS - 1 - k];
#else
    UNROLL for (int k = 0; k < BLEND_ROWS; k++) a[k] = b[k];
#endif
#if VF_LANES >= 16
    UNROLL for (int k = 0; k < BLEND_ROWS; k++) t[k] = vf_blend8(a[k], h->h8[7 - k]);
    UNROLL for (int k = 0; k < 8; k++) h->h8[k] = a[7 - k];
#else
    UNROLL for (int k = 0; k < BLEND_ROWS; k++) t[k] = a[k];
#endif
}

typedef enum bias_shape { BIAS_LINEAR, BIAS_UNIT_STEPS, BIAS_ANY } bias_shape;

VF vf c2p_vector(const bias_shape shape, const position_bias_task *task, size_t query, size_t half)
{
    const int32_t *position = task->position_of + (ptrdiff_t)half - (ptrdiff_t)query;
    const float *strip = task->c2p + query * task->ld_c2p;
    if (shape == BIAS_ANY) return vf_gather(strip, vi_sub(vi_load(position), vi_set1((int32_t)task->c2p_first)));
    const vf entries = vf_load(strip + ((size_t)position[0] - task->c2p_first));
    if (shape == BIAS_LINEAR) return entries;
    return vf_permute(entries, vi_sub(vi_load(position), vi_set1(position[0])));
}

/* Computes queries [first, end) of the part of the tile whose lane 0 is key `half`. */
VF void bias_segment(const bias_shape shape, const bool c2p, const bool p2c, const position_bias_task *task, size_t first,
                     size_t end, size_t half)
{
    blend_history history;
    if (p2c) blend_start(&history, task, (ptrdiff_t)first, half);
    for (size_t query = first; query < end; query += BLEND_ROWS) {
        const size_t rows = end - query < BLEND_ROWS ? end - query : BLEND_ROWS;
        vf t[BLEND_ROWS];
        if (p2c) {
            /* After the last query its row is read again; those vectors are not stored. */
            UNROLL for (size_t k = 0; k < BLEND_ROWS; k++)
                t[k] = p2c_row(task, (ptrdiff_t)(query + (k < rows ? k : rows - 1)) - (ptrdiff_t)half, half);
            blend_rows(t, &history);
        }
        if (rows == BLEND_ROWS) {
            UNROLL for (size_t k = 0; k < BLEND_ROWS; k++) {
                const vf c = c2p ? c2p_vector(shape, task, query + k, half) : vf_zero();
                vf_store(task->bias + (query + k) * PANEL + half, c2p && p2c ? vf_add(c, t[k]) : c2p ? c : t[k]);
            }
        } else {
            UNROLL for (size_t k = 0; k < BLEND_ROWS; k++) {
                if (k < rows) {
                    const vf c = c2p ? c2p_vector(shape, task, query + k, half) : vf_zero();
                    vf_store(task->bias + (query + k) * PANEL + half, c2p && p2c ? vf_add(c, t[k]) : c2p ? c : t[k]);
                }
            }
        }
    }
}

VF void bias_tile(const bool c2p, const bool p2c, const position_bias_task *task)
{
    for (size_t half = 0; half < PANEL; half += VF_LANES)
        for (size_t first = 0; first < task->rows; first += BIAS_SEGMENT) {
            const size_t end = task->rows - first < BIAS_SEGMENT ? task->rows : first + BIAS_SEGMENT;
            /* Rows never fall and rise by at most 1, so they rise by 1 everywhere if and only if the ends differ by
             * the number of steps. */
            const ptrdiff_t nearest = (ptrdiff_t)first - (ptrdiff_t)half - (VF_LANES - 1);
            const ptrdiff_t farthest = (ptrdiff_t)end - 1 - (ptrdiff_t)half;
            if (!task->unit_steps)
                bias_segment(BIAS_ANY, c2p, p2c, task, first, end, half);
            else if (task->row_of[farthest] - task->row_of[nearest] == farthest - nearest)
                bias_segment(BIAS_LINEAR, c2p, p2c, task, first, end, half);
            else
                bias_segment(BIAS_UNIT_STEPS, c2p, p2c, task, first, end, half);
        }
}

static void VF_NAME(position_bias_f32)(const position_bias_task *task)
{
    position_bias_task_assert(task);
    if (task->c2p && task->p2c)
        bias_tile(true, true, task);
    else if (task->c2p)
        bias_tile(true, false, task);
    else
        bias_tile(false, true, task);
}
