/* The kernel table: every numeric inner loop of the encoder and of its training, its contract, and the one list that
 * generates struct members, prototypes, names and test coverage. simd/tmpl has the bodies.
 *
 * One arithmetic. Every implementation of a slot gives the same float32 bits (docs/design.md): the contracts below fix
 * the order of every sum and where a multiply and an add are fused. Written `fma(a, b, c)` = one rounding of a b + c;
 * any other operator rounds by itself. Division and square root are IEEE; subnormals are kept. Zeros may differ in sign
 * only where a contract says so. NaN inputs give NaN somewhere in the outputs they reach, with unspecified bits;
 * nothing else is promised.
 *
 * All pointers may have any alignment of a float. Kernels never touch memory outside the described arrays, not even to
 * read; they cannot fail; they assert their further preconditions. Strides ("ld", "stride") count floats. In error
 * bounds eps is 2^-24.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/activation_list.h"

/* These flags let the compiler reorder sums and ignore NaN, which would silently break the one arithmetic. */
#if defined __FAST_MATH__ || (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__)
#error "-ffast-math and -ffinite-math-only change results: build without them"
#endif

#include "core/base/tiers.h"
#include "core/integer_kernels.h"

/* Columns of a panel: the unit in which matrices are packed, the same on every tier, so that one packed model serves
 * all of them. It is also the number of partial sums of every row reduction, and divides every supported vector
 * length. */
enum { PANEL = 16 };

/* Keys of one softmax chunk; longer rows carry a running maximum and sum. This is part of the arithmetic: do not tune
 * it. */
enum { KEY_CHUNK = 512 };

/* C = epilogue(A B), B packed in panels of 16 columns.
 *
 *   for every row i < rows, panel p < panels, lane l < 16, with  b(k) = b[p b_panel_stride + k 16 + l]
 *       x = 0, or c if accumulate, or c * c_scale[i] if c_scale too
 *       for k = 0 ... depth - 1:  x = fma(a[i lda + k], b(k), x)
 *       if bias:      x = x + bias[p 16 + l]
 *       if gelu:      x = gelu(x)                                        (see activate_f32)
 *       if outer_column: x = x + (outer_column[i outer_ld] + outer_row[p 16 + l])
 *       if residual:  x = x + residual[i ld_residual + p residual_panel_stride + l]
 *       if row_scale: x = x * row_scale[i]
 *       c[i ldc + p c_panel_stride + l] = x
 *
 * so a row-major C has c_panel_stride 16. C may be the residual; it overlaps nothing else. rows, depth, panels >= 0;
 * depth 0 is an empty sum. Error against exact arithmetic before the epilogue: at most depth eps sum|a b|.
 *
 * next points to the operand of the next call, or is NULL where B is in a cache already. While panel p is multiplied, p
 * + 1 is fetched into L2, spread evenly over the row groups; after the last panel, next is fetched. It is never read,
 * changes no result and cannot fault. */
typedef struct gemm_task {
    size_t rows, depth, panels;
    const float *a;
    size_t lda;
    const float *b;
    size_t b_panel_stride;
    float *c;
    size_t ldc, c_panel_stride;
    const float *c_scale; /* [rows] */
    const float *bias;    /* [panels][16] */
    const float *outer_column;
    size_t outer_ld;
    const float *outer_row; /* [panels][16] */
    const float *residual;
    size_t ld_residual, residual_panel_stride;
    const float *row_scale; /* [rows] */
    bool accumulate, gelu;
    const float *next;
} gemm_task;

static inline void gemm_task_assert(const gemm_task *task)
{
    assert(!task->c_scale || task->accumulate);
    assert(!task->outer_column == !task->outer_row);
    (void)task;
}

/* Position bias of one tile of 16 keys against `rows` consecutive queries: the terms that disentangled attention adds
 * to q.k.
 *
 *   t(i, l) = row_of[i - l]      table row of the distance of query i to key lane l, relative to query 0 and lane 0
 *   bias[i 16 + l] = c2p[i ld_c2p + (last_row - t) - c2p_first]   if c2p
 *                  + p2c[(t - p2c_first) 16 + l]                  if p2c
 *
 * With both that is one addition, c2p + p2c; either alone is copied. row_of points into a table, of which
 * row_of[-15 ... rows - 1] is readable.
 *
 * c2p is the strip q_i . PK over *reversed* rows (position x holds row last_row - x), so that a growing key index reads
 * growing addresses; p2c is the transposed strip PQ_t . k of this tile. position_of[x] = last_row - row_of[-x] is the
 * same table reversed: position_of[-(rows - 1) ... 15] is readable.
 *
 * unit_steps: row_of is non-decreasing in steps of 0 or 1. Then 16 consecutive keys need at most 16 neighbouring strip
 * entries, and an implementation may read c2p entries [first entry of its lanes, + 15], so each strip row must be
 * readable for 15 floats after the last entry used. Otherwise a slower general method runs. Both only move data, then
 * add once. */
typedef struct position_bias_task {
    size_t rows;
    float *bias; /* [rows][16] */
    const float *c2p;
    size_t ld_c2p, c2p_first;
    const float *p2c; /* [..][16] */
    size_t p2c_first;
    const int32_t *row_of, *position_of;
    int32_t last_row;
    bool unit_steps;
} position_bias_task;

static inline void position_bias_task_assert(const position_bias_task *task)
{
    assert(task->c2p || task->p2c);
    (void)task;
}

/* Softmax of one chunk of at most KEY_CHUNK keys, for `rows` rows, without the final division.
 *
 *   for every row i, s = s[i lds ...]:
 *       if key_bias: s[j] = s[j] + key_bias[j]                      (0, or -inf for a key that must not be seen)
 *       old = maximum[i], or -inf if first
 *       m = max(old, max_j s[j]);  maximum[i] = m            (if m is -inf, 0 is used in its place below)
 *       s[j] = exp(s[j] - m)                                 (exp as in vf_exp: below -87.33654 it is 0)
 *       sum = tree of 16 partial sums, element j in partial j mod 16, in increasing j (see layernorm_f32)
 *       if first: total[i] = sum
 *       else:     factor = exp(old - m), 0 if old is -inf;  rescale[i] = factor
 *                 total[i] = fma(total[i], factor, sum)
 *
 * keys >= 1. rescale is not touched on a first chunk. A maximum that is 0 may have either sign. Error of s: 2 ULP of
 * exp of the rounded difference. */
typedef struct softmax_task {
    size_t rows, keys;
    float *s;
    size_t lds;
    const float *key_bias;            /* [keys] or NULL */
    float *maximum, *total, *rescale; /* [rows] */
    bool first;
} softmax_task;

static inline void softmax_task_assert(const softmax_task *task)
{
    assert(task->keys >= 1 && task->keys <= KEY_CHUNK);
    (void)task;
}

/* ------------------------------------------------------------------------------------------------------ for training */

/* `bounds` cuts sums over rows into parts: part s is the rows bounds[s] <= r < bounds[s + 1]. Inside a part, chunks of
 * ROW_CHUNK rows are a chain each, from 0, and the chunks are added in order; then the parts are added by the binary
 * tree over their numbers, ((0 + 1) + (2 + 3)) + ..., in which an empty part is skipped. `parts` is a power of two, at
 * most MAX_ROW_PARTS; all of them empty: 0. Both numbers are part of the arithmetic. */
enum { ROW_CHUNK = 256, MAX_ROW_PARTS = 64, MAX_ROW_TREE = 7 };

/* C = A' B over rows of both: the gradient of a weight.
 *
 *   for every i < columns, panel p < panels, lane l < 16, with  b(r) = b[r ldb + p b_panel_stride + l]
 *       bounds:  c = the sum of parts (above) of the chains  x = fma(a[r lda + i], b(r), x)
 *       else:    x = c if accumulate, else 0;  for r = 0 ... rows - 1:  x = fma(a[r lda + i], b(r), x);  c = x
 *
 * with c[i ldc + p c_panel_stride + l]. C overlaps nothing. Error: rows eps sum|a b| at most.
 *
 * sums, with bounds and at least one panel only: sums[i] = the result of sum_rows_f32 for column i of A. */
typedef struct gemm_tn_task {
    size_t columns, panels;
    const float *a;
    size_t lda;
    const float *b;
    size_t ldb, b_panel_stride;
    float *c;
    size_t ldc, c_panel_stride;
    const size_t *bounds; /* [parts + 1], or NULL: one chain over `rows` */
    size_t parts, rows;
    bool accumulate;
    float *sums; /* [columns] or NULL */
} gemm_tn_task;

static inline void gemm_tn_task_assert(const gemm_tn_task *task)
{
    assert(!task->bounds || !task->accumulate);
    assert(!task->sums || (task->bounds && task->panels > 0));
    assert(!task->bounds || (task->parts <= MAX_ROW_PARTS && (task->parts & (task->parts - 1)) == 0));
    (void)task;
}

/* y[j] = the sum of parts (above) of the chains  x = fma(a[r lda + j], b[r ldb + j], x),  or  x = x + a[r lda + j]
 * without b; j < n. */
typedef struct sum_rows_task {
    size_t n;
    const float *a, *b; /* b: may be NULL */
    size_t lda, ldb;
    const size_t *bounds;
    size_t parts;
    float *y;
} sum_rows_task;

/* Backward of layernorm_f32: with mu, r and d as there, from the same x,
 *     normal = d r,  u = gamma dy (dy without gamma),  a = sum(u) / n,  b = sum(u normal) / n  by fma
 *     dx     = r fma(-normal, b, u - a)
 * Sums have the 16 partials and the tree of layernorm_f32. normal may be x, dx may be dy or normal's input x; normal
 * and dx are different. Error of dx: (2 ceil(n / 16) + 32) eps r (|u| + mean|u| + |normal| mean|u normal|) plus the
 * contribution of the error of normal (see layernorm_f32). */
typedef struct layernorm_backward_task {
    size_t rows, n;
    float *dx, *normal;
    const float *x, *dy, *gamma; /* gamma: may be NULL */
    size_t lddx, ld_normal, ldx, lddy;
    float eps;
} layernorm_backward_task;

/* Backward of the softmax over one chunk of keys, from recomputed logits:
 *
 *     p[j]  = exp(s[j] + key_bias[j] - maximum[i]) inverse_total[i]      (a maximum of -inf counts as 0)
 *     dp[j] = p[j] (dp[j] - delta[i])
 *
 * s becomes p. With exponentials these are exp(s[j] + key_bias[j] - maximum[i]), row by row, and s, key_bias and
 * maximum are not read. Any number of keys. Without delta it is the row's own sum of p[j] dp[j], in 16 partials by fma
 * and the tree of layernorm_f32: the exact sum of the results is 0, and this leaves the least of it. */
typedef struct softmax_backward_task {
    size_t rows, keys;
    float *s, *dp;
    size_t lds, lddp;
    const float *key_bias;                        /* [keys] or NULL */
    const float *maximum, *inverse_total, *delta; /* [rows]; delta: may be NULL */
    const float *exponentials;                    /* or NULL */
    size_t ld_exponentials;
} softmax_backward_task;

/* Sums neighbours that belong to one place, for every row i, j = 0 ... columns - 1 in order:
 *
 *     x = strip[i ld_strip + (place_of[j - i] - first)];  x = x + s(i, j)
 *     s(i, j) = s[i row_step + j column_step]
 *
 * One of the steps is 1. place_of[-(rows - 1) ... columns - 1] is readable. unit_steps: it never decreases, and never
 * grows by more than 1. */
typedef struct fold_runs_task {
    size_t rows, columns;
    const float *s;
    size_t row_step, column_step;
    const int32_t *place_of;
    int32_t first;
    bool unit_steps;
    float *strip;
    size_t ld_strip;
} fold_runs_task;

/* Runs one step of Adam on n weights, from the given numbers of the step:
 *     g = scale g;  m = fma(b1, m, c1 g);  v = fma(b2, v, (c2 g) g)
 *     coupled:  w = fma(rate, m / (sqrt(v) + eps) + decay w, w)                               (Microsoft's XAdam)
 *     else:     w = fma(rate, m / fma(sqrt(v), inverse_root, eps), keep w)                    (torch.optim.AdamW)
 * rate is negative. */
typedef struct adam_task {
    size_t n;
    float *w, *m, *v;
    const float *g;
    float scale, b1, c1, b2, c2, eps, rate, inverse_root, keep, decay;
    bool coupled;
} adam_task;

/* Dropout by counters (docs/training.md): for every row i and column c < n
 *
 *     x = w < threshold ? 0 : x scale,   w = word c mod 4 of Philox4x32-10 with key (seed, step) and
 *                                            counter (first + c / 4, of[i].place, of[i].sequence, of[i].site)
 *
 * The result is exact except for the product's rounding. */
typedef struct dropout_row {
    uint32_t place, sequence, site;
} dropout_row;

typedef struct dropout_task {
    size_t rows, n;
    float *x;
    size_t ldx;
    const dropout_row *of; /* [rows] */
    uint32_t first, seed, step, threshold;
    float scale;
} dropout_task;

#define INFERENCE_KERNEL_LIST(X)                                                                                       \
    /* see gemm_task */                                                                                                \
    X(gemm_f32, (const gemm_task *task))                                                                               \
    /* panels[p panel_stride + k 16 + l] = x[(16 p + l) ldx + k]: rows of x become columns of panels, lanes beyond     \
     * `rows` become 0. Exact. x [rows][depth]; panels [ceil(rows / 16)][depth][16] */                                 \
    X(pack_panels_f32, (float *panels, size_t panel_stride, const float *x, size_t ldx, size_t rows, size_t depth))    \
    /* see position_bias_task */                                                                                       \
    X(position_bias_f32, (const position_bias_task *task))                                                             \
    /* see softmax_task */                                                                                             \
    X(softmax_f32, (const softmax_task *task))                                                                         \
    /* y = gamma (x - mu) / sqrt(var + eps) + beta for `rows` rows of n >= 1:                                          \
     *     mu  = sum(x) / n,  d = x - mu,  var = sum(d d) / n  by fma(d, d, partial),  r = 1 / sqrt(var + eps)         \
     *     y   = fma(d * r, gamma, beta)                                                                               \
     * A sum has 16 partials, element e in partial e mod 16 in increasing e, combined by halves: s[l] + s[l + 8], then \
     * + 4, + 2, + 1. Two passes, because E[x^2] - mu^2 loses all digits when |mu| >> sigma. y may be x.               \
     * Error <= (1.5 ceil(n / 16) + 16) 2^-24 ((|x| + mean|x|) r |gamma| + |beta|), to first order: the error of       \
     * the mean is relative to mean|x|. */                                                                             \
    X(layernorm_f32, (float *y, size_t ldy, const float *x, size_t ldx, const float *gamma, const float *beta,         \
                      size_t rows, size_t n, float eps))                                                               \
    /* x[e] = f(x[e]), e < n. Formulas and bounds: simd/math_coefficients.h */                                         \
    X(activate_f32, (float *x, size_t n, activation function))

/* Only training calls these kernels; a build for inference alone omits them (KERNELS_WITHOUT_TRAINING). */
#define TRAINING_KERNEL_LIST(X)                                                                                        \
    /* see gemm_tn_task */                                                                                             \
    X(gemm_tn_f32, (const gemm_tn_task *task))                                                                         \
    /* see sum_rows_task */                                                                                            \
    X(sum_rows_f32, (const sum_rows_task *task))                                                                       \
    /* y[i] = sum of a[i lda + e] b[i ldb + e] over e < n, in 16 partials by fma and the tree of layernorm_f32 */      \
    X(dot_rows_f32, (float *y, const float *a, size_t lda, const float *b, size_t ldb, size_t rows, size_t n))         \
    /* see layernorm_backward_task */                                                                                  \
    X(layernorm_backward_f32, (const layernorm_backward_task *task))                                                   \
    /* dy[e] = dy[e] f'(x[e]), e < n, x before the activation; y[e] = f(x[e]) unless y is NULL; it may be x. Formulas: \
     * simd/math_coefficients.h */                                                                                     \
    X(activate_backward_f32, (float *dy, float *y, const float *x, size_t n, activation function))                     \
    /* see softmax_backward_task */                                                                                    \
    X(softmax_backward_f32, (const softmax_backward_task *task))                                                       \
    /* see fold_runs_task */                                                                                           \
    X(fold_runs_f32, (const fold_runs_task *task))                                                                     \
    /* see adam_task */                                                                                                \
    X(adam_f32, (const adam_task *task))                                                                               \
    /* see dropout_task */                                                                                             \
    X(dropout_f32, (const dropout_task *task))

#ifdef KERNELS_WITHOUT_TRAINING
#define BUILT_TRAINING_KERNEL_LIST(X)
#else
#define BUILT_TRAINING_KERNEL_LIST(X) TRAINING_KERNEL_LIST(X)
#endif

#define FLOAT_KERNEL_LIST(X)                                                                                           \
    INFERENCE_KERNEL_LIST(X)                                                                                           \
    TRAINING_KERNEL_LIST(X)

#define KERNEL_LIST(X)                                                                                                 \
    FLOAT_KERNEL_LIST(X)                                                                                               \
    QUANTIZE_KERNEL_LIST(X)                                                                                            \
    INTEGER_GEMM_KERNEL_LIST(X)

typedef struct kernels {
    /* Rows and panels of the usual register tile: code that cuts work into blocks prefers multiples. */
    size_t tile_rows, tile_panels;
#define X(name, parameters)                                                                                            \
    void(*name) parameters;                                                                                            \
    const char *name##_isa;
    KERNEL_LIST(X)
#undef X
} kernels;

/* Each function overrides the slots that it implements: software fmaf and any processor (scalar), the same source for
 * processors with FMA (scalar_fma), and so on. kernels_select calls those
 * of the tiers up to the chosen one, lowest first, and the parts that the chosen tier has. */
#define X(NAME, name, ...) void kernels_init_##name(kernels *table);
TIER_LIST(X)
PART_LIST(X)
#undef X
