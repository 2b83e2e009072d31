/* The epilogue of integer products: from the sums of a tile of at most INTEGER_MAX_ROWS rows and INTEGER_MAX_VECTORS
 * vectors to C. Each usual combination of a task's requests is compiled separately, so that the loops over rows and
 * vectors contain no tests.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* Steps of the epilogue that a task requests. */
enum {
    ASKS_ACCUMULATE = 1,
    ASKS_C_SCALE = 2,
    ASKS_GELU = 4,
    ASKS_OUTER = 8,
    ASKS_RESIDUAL = 16,
    ASKS_ROW_SCALE = 32,
};

VF unsigned integer_asks(const integer_gemm_task *task)
{
    return (task->accumulate ? ASKS_ACCUMULATE : 0) | (task->c_scale ? ASKS_C_SCALE : 0) | (task->gelu ? ASKS_GELU : 0) |
           (task->outer_column ? ASKS_OUTER : 0) | (task->residual ? ASKS_RESIDUAL : 0) |
           (task->row_scale ? ASKS_ROW_SCALE : 0);
}

/* Returns the offset of vector v of a row of panels. */
VF size_t integer_vector_place(const int v, size_t panel_stride)
{
    return (size_t)(v / VECTORS) * panel_stride + (size_t)(v % VECTORS * VF_LANES);
}

/* Applies the steps after gelu to a row, and stores it in C. The tests are outside the loops over vectors, which
 * clang would otherwise split before it unrolls them. */
VF void integer_leave(const int panels, const unsigned asks, const integer_gemm_task *task, size_t row, size_t panel, vf *x)
{
    const int vectors = panels * VECTORS;
    if (asks & ASKS_OUTER) {
        const vf column = vf_broadcast(task->outer_column + row * task->outer_ld);
        UNROLL for (int v = 0; v < vectors; v++)
            x[v] = vf_add(x[v], vf_add(column, vf_load(task->outer_row + panel * PANEL + (size_t)v * VF_LANES)));
    }
    if (asks & ASKS_RESIDUAL) {
        const float *residual = task->residual + row * task->ld_residual + panel * task->residual_panel_stride;
        UNROLL for (int v = 0; v < vectors; v++)
            x[v] = vf_add(x[v], vf_load(residual + integer_vector_place(v, task->residual_panel_stride)));
    }
    if (asks & ASKS_ROW_SCALE) {
        const vf scale = vf_broadcast(task->row_scale + row);
        UNROLL for (int v = 0; v < vectors; v++) x[v] = vf_mul(x[v], scale);
    }
    float *c = task->c + row * task->ldc + panel * task->c_panel_stride;
    UNROLL for (int v = 0; v < vectors; v++) vf_store(c + integer_vector_place(v, task->c_panel_stride), x[v]);
}

/* Converts the sums of `rows` rows (at most INTEGER_MAX_ROWS) and `panels` panels to C; sums:
 * [row][panel][digit][16]. It loads the data of the columns once. */
VF void integer_finish_rows(const integer_format format, const enum integer_operand of, const int panels, const unsigned asks,
                            const integer_gemm_task *task, size_t rows, size_t row, size_t panel, const int32_t *sums)
{
    const int digits = FORMAT_DIGITS(format), vectors = panels * VECTORS;
    float tile[INTEGER_MAX_ROWS * INTEGER_MAX_VECTORS * VF_LANES];
    vf b_scale[INTEGER_MAX_VECTORS], start[INTEGER_MAX_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) b_scale[v] = vf_load(task->b_scale + panel * PANEL + (size_t)v * VF_LANES);
    UNROLL for (int v = 0; v < vectors; v++) start[v] = vf_zero();
    if (task->bias)
        UNROLL for (int v = 0; v < vectors; v++) start[v] = vf_load(task->bias + panel * PANEL + (size_t)v * VF_LANES);
    for (size_t i = 0; i < rows; i++, sums += panels * digits * PANEL) {
        const vf a_scale = vf_broadcast(task->a_scale + row + i);
        const float *c = task->c + (row + i) * task->ldc + panel * task->c_panel_stride;
        vf x[INTEGER_MAX_VECTORS], from[INTEGER_MAX_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) from[v] = start[v];
        if (asks & ASKS_ACCUMULATE)
            UNROLL for (int v = 0; v < vectors; v++) from[v] = vf_load(c + integer_vector_place(v, task->c_panel_stride));
        if (asks & ASKS_C_SCALE) {
            const vf scale = vf_broadcast(task->c_scale + row + i);
            UNROLL for (int v = 0; v < vectors; v++) from[v] = vf_mul(from[v], scale);
        }
        UNROLL for (int v = 0; v < vectors; v++) {
            const int place = v / VECTORS * digits * PANEL + v % VECTORS * VF_LANES;
            const vi both[2] = {vi_load(sums + place), digits == 2 ? vi_load(sums + place + PANEL) : vi_set1(0)};
            const int32_t *b_sum = task->b_sum + panel * (size_t)digits * PANEL + place;
            x[v] = vf_fma(integer_value_of(format, of, task->a_zero + row + i, b_sum, both), vf_mul(a_scale, b_scale[v]), from[v]);
        }
        if (asks & ASKS_GELU)
            UNROLL for (int v = 0; v < vectors; v++) vf_store(tile + (i * (size_t)vectors + (size_t)v) * VF_LANES, x[v]);
        else
            integer_leave(panels, asks, task, row + i, panel, x);
    }
    if (!(asks & ASKS_GELU)) return;
    VF_NAME(gelu_values)(tile, rows * (size_t)(panels * PANEL)); /* gelu takes all rows at once, several vectors at a
                                                                  * time. */
    for (size_t i = 0; i < rows; i++) {
        vf x[INTEGER_MAX_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) x[v] = vf_load(tile + (i * (size_t)vectors + (size_t)v) * VF_LANES);
        integer_leave(panels, asks, task, row + i, panel, x);
    }
}

/* The usual combinations are compiled: those of linear layers (two digits have no others), of attention's logits, and of its
 * sums of values. */
VF void integer_finish(const integer_format format, const enum integer_operand of, const int panels, const integer_gemm_task *task,
                       size_t rows, size_t row, size_t panel, const int32_t *sums)
{
    const unsigned asks = integer_asks(task);
#define FINISH_CASE(formats, what)                                                                                     \
    if ((formats) && asks == (what)) {                                                                                 \
        integer_finish_rows(format, of, panels, what, task, rows, row, panel, sums);                                   \
        return;                                                                                                        \
    }
    FINISH_CASE(true, 0)
    FINISH_CASE(format != FIFTEEN_BITS, ASKS_ACCUMULATE)
    FINISH_CASE(format != FIFTEEN_BITS, ASKS_GELU)
    FINISH_CASE(format != FIFTEEN_BITS, ASKS_RESIDUAL)
    FINISH_CASE(format != FIFTEEN_BITS, ASKS_ACCUMULATE | ASKS_RESIDUAL)
    FINISH_CASE(format == ONE_DIGIT, ASKS_OUTER)
    FINISH_CASE(format == FIFTEEN_BITS, ASKS_ROW_SCALE)
#undef FINISH_CASE
    integer_finish_rows(format, of, panels, asks, task, rows, row, panel, sums);
}
