/* Implements the kernels of training that work row by row or number by number: backward passes of layer norm,
 * activation and softmax, sums of gradients by table row (fold_runs_f32), and the arithmetic of AdamW and XAdam
 * (adam_f32). Sums have the 16 partials of row_tmpl.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

VF float dot_row(const float *a, const float *b, size_t n)
{
    vf sums[PARTIALS];
    UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
    for (size_t e = 0; e < n; e += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t at = e + v * VF_LANES, here = lanes_left(n, at);
            if (here == 0) break;
            sums[v] = vf_fma(vf_load_n(a + at, here, vf_zero()), vf_load_n(b + at, here, vf_zero()), sums[v]);
        }
    return sum_of_partials(sums);
}

static void VF_NAME(dot_rows_f32)(float *y, const float *a, size_t lda, const float *b, size_t ldb, size_t rows, size_t n)
{
    for (size_t row = 0; row < rows; row++) y[row] = dot_row(a + row * lda, b + row * ldb, n);
}

typedef struct row_statistics {
    float mean, r;
} row_statistics;

/* Computes the statistics of layernorm_f32. */
VF row_statistics statistics_of(const float *x, size_t n, float eps)
{
    vf sums[PARTIALS];
    UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
    for (size_t e = 0; e < n; e += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t at = e + v * VF_LANES, here = lanes_left(n, at);
            if (here == 0) break;
            sums[v] = vf_add(sums[v], vf_load_n(x + at, here, vf_zero()));
        }
    const float mean = sum_of_partials(sums) / (float)n;
    const vf mu = vf_set1(mean);
    UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
    for (size_t e = 0; e < n; e += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t at = e + v * VF_LANES, here = lanes_left(n, at);
            if (here == 0) break;
            const vf d = vf_sub(vf_load_n(x + at, here, mu), mu);
            sums[v] = vf_fma(d, d, sums[v]);
        }
    const float variance = sum_of_partials(sums) / (float)n;
    return (row_statistics){mean, 1.0f / __builtin_sqrtf(variance + eps)};
}

VF vf scaled_gradient(const layernorm_backward_task *task, const float *dy, size_t e, size_t here)
{
    const vf y = vf_load_n(dy + e, here, vf_zero());
    return task->gamma ? vf_mul(vf_load_n(task->gamma + e, here, vf_zero()), y) : y;
}

static void VF_NAME(layernorm_backward_f32)(const layernorm_backward_task *task)
{
    const size_t n = task->n;
    for (size_t row = 0; row < task->rows; row++) {
        const float *x = task->x + row * task->ldx, *dy = task->dy + row * task->lddy;
        float *dx = task->dx + row * task->lddx, *normal = task->normal + row * task->ld_normal;
        const row_statistics statistics = statistics_of(x, n, task->eps);
        const vf mu = vf_set1(statistics.mean), r = vf_set1(statistics.r);
        vf sums[PARTIALS], products[PARTIALS];
        UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = products[v] = vf_zero();
        for (size_t e = 0; e < n; e += PANEL)
            UNROLL for (size_t v = 0; v < PARTIALS; v++) {
                const size_t at = e + v * VF_LANES, here = lanes_left(n, at);
                if (here == 0) break;
                const vf u = scaled_gradient(task, dy, at, here);
                const vf y = vf_mul(vf_sub(vf_load_n(x + at, here, mu), mu), r);
                vf_store_n(normal + at, here, y);
                sums[v] = vf_add(sums[v], u);
                products[v] = vf_fma(u, y, products[v]);
            }
        const vf a = vf_set1(sum_of_partials(sums) / (float)n), b = vf_set1(sum_of_partials(products) / (float)n);
        for (size_t e = 0; e < n; e += VF_LANES) {
            const size_t here = lanes_left(n, e);
            const vf u = vf_sub(scaled_gradient(task, dy, e, here), a);
            vf_store_n(dx + e, here, vf_mul(r, vf_fnma(vf_load_n(normal + e, here, vf_zero()), b, u)));
        }
    }
}

/* The function and its derivative share most of their work, which the compiler detects. */
#define ACTIVATE_BACKWARD_CASE(name, function, derivative)                                                             \
    case name:                                                                                                         \
        for (; e + VS_LANES <= n; e += VS_LANES) {                                                                     \
            const vs u = vs_load(x + e);                                                                               \
            if (y) vs_store(y + e, vs_##function(u));                                                                  \
            vs_store(dy + e, vs_mul(vs_load(dy + e), vs_##derivative(u)));                                             \
        }                                                                                                              \
        for (; e < n; e += VF_LANES) {                                                                                 \
            const size_t here = lanes_left(n, e);                                                                      \
            const vf u = vf_load_n(x + e, here, vf_zero());                                                            \
            if (y) vf_store_n(y + e, here, vf_##function(u));                                                          \
            vf_store_n(dy + e, here, vf_mul(vf_load_n(dy + e, here, vf_zero()), vf_##derivative(u)));                  \
        }                                                                                                              \
        break;

#define ACTIVATE_BACKWARD_LISTED(NAME, name, ...)                                                                      \
    ACTIVATE_BACKWARD_CASE(ACTIVATION_##NAME, name, name##_derivative)

static void VF_NAME(activate_backward_f32)(float *dy, float *y, const float *x, size_t n, activation function)
{
    size_t e = 0;
    switch (function) {
    case ACTIVATION_NONE: break;
        ACTIVATIONS(ACTIVATE_BACKWARD_LISTED)
        ACTIVATE_BACKWARD_CASE(ACTIVATION_EXP, exp_any, exp_any)
    }
}

/* Writes the probabilities of a row to s, and returns the sum of p dp. Absent keys add nothing. */
VF float backward_probabilities(const softmax_backward_task *task, size_t row, float *s, const float *dp)
{
    const float maximum = task->maximum[row];
    const vf shift = vf_set1(maximum == -__builtin_inff() ? 0.0f : maximum), inverse = vf_set1(task->inverse_total[row]);
    const vf lowest = vf_set1(-__builtin_inff());
    vf sums[PARTIALS];
    UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
    for (size_t j = 0; j < task->keys; j += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t at = j + v * VF_LANES, here = lanes_left(task->keys, at);
            if (here == 0) break;
            vf x = vf_load_n(s + at, here, lowest);
            if (task->key_bias) x = vf_add(x, vf_load_n(task->key_bias + at, here, vf_zero()));
            const vf p = vf_mul(vf_exp(vf_sub(x, shift)), inverse);
            vf_store_n(s + at, here, p);
            sums[v] = vf_fma(p, vf_load_n(dp + at, here, vf_zero()), sums[v]);
        }
    return sum_of_partials(sums);
}

/* Computes the same from kept exponentials, without logits. */
VF float kept_probabilities(const softmax_backward_task *task, size_t row, float *s, const float *dp)
{
    const float *exponentials = task->exponentials + row * task->ld_exponentials;
    const vf inverse = vf_set1(task->inverse_total[row]);
    vf sums[PARTIALS];
    UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
    for (size_t j = 0; j < task->keys; j += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t at = j + v * VF_LANES, here = lanes_left(task->keys, at);
            if (here == 0) break;
            const vf p = vf_mul(vf_load_n(exponentials + at, here, vf_zero()), inverse);
            vf_store_n(s + at, here, p);
            sums[v] = vf_fma(p, vf_load_n(dp + at, here, vf_zero()), sums[v]);
        }
    return sum_of_partials(sums);
}

static void VF_NAME(softmax_backward_f32)(const softmax_backward_task *task)
{
    for (size_t row = 0; row < task->rows; row++) {
        float *s = task->s + row * task->lds, *dp = task->dp + row * task->lddp;
        const float own =
            task->exponentials ? kept_probabilities(task, row, s, dp) : backward_probabilities(task, row, s, dp);
        const vf delta = vf_set1(task->delta ? task->delta[row] : own);
        for (size_t j = 0; j < task->keys; j += VF_LANES) {
            const size_t here = lanes_left(task->keys, j);
            const vf difference = vf_sub(vf_load_n(dp + j, here, vf_zero()), delta);
            vf_store_n(dp + j, here, vf_mul(vf_load_n(s + j, here, vf_zero()), difference));
        }
    }
}

/* The remaining rows of a task: row q reads column j at s[q row_step + j column_step] and adds it at place_of[j - q]
 * of its strip. */
typedef struct fold_rows {
    const fold_runs_task *task;
    const float *s;
    float *strip;
    const int32_t *place_of;
} fold_rows;

VF float *fold_place(const fold_rows *f, size_t q, int32_t place)
{
    return f->strip + q * f->task->ld_strip + (place - f->task->first);
}

/* Folds columns of row q one by one; neighbours that share a place wait for an addition each, not for memory. */
VF void fold_columns(const fold_rows *f, size_t q, size_t first, size_t end)
{
    const int32_t *place_of = f->place_of - q;
    const float *s = f->s + q * f->task->row_step;
    for (size_t j = first; j < end;) {
        const int32_t place = place_of[j];
        float *x = fold_place(f, q, place), sum = *x;
        do {
            sum = sum + s[j++ * f->task->column_step];
        } while (j < end && place_of[j] == place);
        *x = sum;
    }
}

/* Returns the end of the run or the range that begins at u: neighbours in one place, or in consecutive places. */
VF size_t fold_piece(const int32_t *place_of, size_t u, size_t end)
{
    const int32_t step = u + 1 < end ? place_of[u + 1] - place_of[u] : 0;
    size_t next = u + 1;
    while (next < end && place_of[next] - place_of[next - 1] == step) next++;
    return step && next < end ? next - 1 : next; /* The last place of a stretch begins a run. */
}

/* Folds row q where its columns are neighbours in memory, and places are consecutive. */
VF void fold_neighbours(const fold_rows *f, size_t q, size_t first, size_t end)
{
    const float *s = f->s + q * f->task->row_step + first;
    float *x = fold_place(f, q, f->place_of[(ptrdiff_t)first - (ptrdiff_t)q]);
    for (size_t e = 0; e < end - first; e += VF_LANES) {
        const size_t here = lanes_left(end - first, e);
        vf_store_n(x + e, here, vf_add(vf_load_n(x + e, here, vf_zero()), vf_load_n(s + e, here, vf_zero())));
    }
}

/* Folds one of the remaining rows. */
VF void fold_row(const fold_rows *f, size_t q)
{
    const int32_t *place_of = f->place_of - q;
    const bool has_neighbours = f->task->unit_steps && f->task->column_step == 1;
    for (size_t j = 0, next; j < f->task->columns; j = next) {
        next = has_neighbours ? fold_piece(place_of, j, f->task->columns) : f->task->columns;
        if (has_neighbours && place_of[next - 1] - place_of[j] + 1 == (int32_t)(next - j))
            fold_neighbours(f, q, j, next);
        else
            fold_columns(f, q, j, next);
    }
}

/* Folds columns u + q of the rows q, u = first ... end - 1, which are all in one place: one chain per row, several side
 * by side, because an addition takes several steps. */
VF void fold_run(const fold_rows *f, size_t first, size_t end)
{
    enum { CHAINS = VF_LANES < 8 ? VF_LANES : 8 };
    const size_t step = f->task->column_step, diagonal = f->task->row_step + step, ld = f->task->ld_strip;
    float *x = fold_place(f, 0, f->place_of[first]);
    const float *rows = f->s + first * step;
    for (size_t q = 0; q < VF_LANES; q += CHAINS, x += CHAINS * ld, rows += CHAINS * diagonal) {
        const float *s = rows;
        float sums[CHAINS];
        UNROLL for (size_t i = 0; i < CHAINS; i++) sums[i] = x[i * ld];
        for (size_t u = first; u < end; u++, s += step) UNROLL for (size_t i = 0; i < CHAINS; i++) sums[i] = sums[i] + s[i * diagonal];
        UNROLL for (size_t i = 0; i < CHAINS; i++) x[i * ld] = sums[i];
    }
}

/* Folds a range of consecutive places. Where rows are neighbours in memory, squares of them are transposed; columns
 * that not all rows share are folded one by one. */
VF void fold_stretch(const fold_rows *f, size_t first, size_t end)
{
    const fold_runs_task *task = f->task;
    if (task->column_step == 1) {
        for (size_t q = 0; q < VF_LANES; q++) fold_neighbours(f, q, first + q, end + q);
        return;
    }
    if (end - first < 2 * VF_LANES) {
        for (size_t u = first; u < end; u++) fold_run(f, u, u + 1);
        return;
    }
    size_t column = first + VF_LANES - 1;
    for (size_t q = 0; q < VF_LANES; q++) fold_columns(f, q, first + q, column);
    for (; column + VF_LANES <= end; column += VF_LANES) {
        vf r[VF_LANES];
        for (size_t k = 0; k < VF_LANES; k++) r[k] = vf_load(f->s + (column + k) * task->column_step);
        vf_transpose(r);
        for (size_t q = 0; q < VF_LANES; q++) {
            float *x = fold_place(f, q, f->place_of[column - q]);
            vf_store(x, vf_add(vf_load(x), r[q]));
        }
    }
    for (size_t q = 0; q < VF_LANES; q++) fold_columns(f, q, column, end + q);
}

/* Folds as many rows as a vector has lanes, each column of which has a separate place: squares throughout, except for
 * the remaining columns. */
VF void fold_squares(const fold_rows *f)
{
    const fold_runs_task *task = f->task;
    for (size_t column = 0; column < task->columns; column += VF_LANES) {
        const size_t here = lanes_left(task->columns, column);
        vf r[VF_LANES];
        for (size_t k = 0; k < VF_LANES; k++) r[k] = k < here ? vf_load(f->s + (column + k) * task->column_step) : vf_zero();
        vf_transpose(r);
        for (size_t q = 0; q < VF_LANES; q++) {
            float *x = fold_place(f, q, f->place_of[(ptrdiff_t)column - (ptrdiff_t)q]);
            vf_store_n(x, here, vf_add(vf_load_n(x, here, vf_zero()), r[q]));
        }
    }
}

/* Folds as many rows as a vector has lanes. A place begins and ends one column later in each of them, so they share
 * diagonals. */
VF void fold_diagonals(const fold_rows *f)
{
    const size_t columns = f->task->columns, end = columns - (VF_LANES - 1), steps = columns + VF_LANES - 2;
    if (f->task->column_step != 1 && f->place_of[columns - 1] - f->place_of[1 - VF_LANES] == (int32_t)steps) {
        fold_squares(f);
        return;
    }
    for (size_t q = 0; q < VF_LANES; q++) fold_columns(f, q, 0, q);
    for (size_t u = 0, next; u < end; u = next) {
        next = fold_piece(f->place_of, u, end);
        if (next - u > 1 && f->place_of[u] == f->place_of[u + 1])
            fold_run(f, u, next);
        else
            fold_stretch(f, u, next);
    }
    for (size_t q = 0; q < VF_LANES; q++) fold_columns(f, q, end + q, columns);
}

/* Folds one column of all rows, where columns are processed one by one. */
VF void fold_column(const fold_rows *f, size_t column)
{
    const float *s = f->s + column * f->task->column_step;
    const int32_t *place_of = f->place_of + column;
    for (size_t q = 0; q < f->task->rows; q++) {
        float *x = fold_place(f, q, place_of[-(ptrdiff_t)q]);
        *x = *x + s[q * f->task->row_step];
    }
}

static void VF_NAME(fold_runs_f32)(const fold_runs_task *task)
{
    if (task->columns < VF_LANES && task->columns < task->rows) {
        const fold_rows rows = {task, task->s, task->strip, task->place_of};
        for (size_t column = 0; column < task->columns; column++) fold_column(&rows, column);
        return;
    }
    const bool has_diagonals = task->unit_steps && task->columns >= VF_LANES && (task->row_step == 1 || task->column_step == 1);
    for (size_t row = 0, here; row < task->rows; row += here) {
        const fold_rows rows = {task, task->s + row * task->row_step, task->strip + row * task->ld_strip, task->place_of - row};
        here = has_diagonals && task->rows - row >= VF_LANES ? VF_LANES : 1;
        if (here > 1)
            fold_diagonals(&rows);
        else
            fold_row(&rows, 0);
    }
}

static void VF_NAME(adam_f32)(const adam_task *task)
{
    const vf scale = vf_set1(task->scale), b1 = vf_set1(task->b1), c1 = vf_set1(task->c1), b2 = vf_set1(task->b2), c2 = vf_set1(task->c2);
    const vf eps = vf_set1(task->eps), rate = vf_set1(task->rate), root = vf_set1(task->inverse_root), keep = vf_set1(task->keep);
    const vf decay = vf_set1(task->decay), zero = vf_zero();
    for (size_t e = 0; e < task->n; e += VF_LANES) {
        const size_t here = lanes_left(task->n, e);
        const vf g = vf_mul(scale, vf_load_n(task->g + e, here, zero)), w = vf_load_n(task->w + e, here, zero);
        const vf m = vf_fma(b1, vf_load_n(task->m + e, here, zero), vf_mul(c1, g));
        const vf v = vf_fma(b2, vf_load_n(task->v + e, here, zero), vf_mul(vf_mul(c2, g), g));
        vf_store_n(task->m + e, here, m);
        vf_store_n(task->v + e, here, v);
        const vf deviation = vf_sqrt(v);
        if (task->coupled)
            vf_store_n(task->w + e, here, vf_fma(rate, vf_add(vf_div(m, vf_add(deviation, eps)), vf_mul(decay, w)), w));
        else
            vf_store_n(task->w + e, here, vf_fma(rate, vf_div(m, vf_fma(deviation, root, eps)), vf_mul(keep, w)));
    }
}
