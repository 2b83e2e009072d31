/* Packed matrices: every weight at its place, and products that come out as defined whatever way they are cut.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

#include "core/dispatch.h"
#include "core/model/linear.h"

TEST(strides)
{
    assert_int_equal(row_stride(1), 16);
    assert_int_equal(row_stride(768), 768);
    assert_int_equal(row_stride(1024), 1040);
    assert_int_equal(row_stride(3072), 3088);
    assert_int_equal(row_stride(505), 528);
}

TEST(blocks_are_balanced)
{
    assert_int_equal(packed_block_depth(1), 1);
    assert_int_equal(packed_block_depth(768), 768);
    assert_int_equal(packed_block_depth(769), 392);
    assert_int_equal(packed_block_depth(1024), 512);
    assert_int_equal(packed_block_depth(3072), 768);
    for (size_t depth = 1; depth < 5000; depth += 7) {
        size_t block = packed_block_depth(depth);
        assert_true(block <= 768);
        assert_int_equal(ceiling_divide(depth, block), ceiling_divide(depth, 768));
    }
}

typedef struct fixture {
    kernels kernels;
    packed_matrix matrix;
    arena memory;
    float *weights; /* [16 panels][depth], zero beyond the outputs */
} fixture;

static float value(size_t i) { return (float)((i * 2654435761u >> 7) % 2001) / 1000 - 1; }

static void set_up(fixture *f, size_t outputs, size_t depth)
{
    *f = (fixture){0};
    assert_ok(kernels_select(&f->kernels, DEBERTA_ISA_SCALAR, NULL));
    packed_matrix_carve(&f->matrix, &f->memory, outputs, depth);
    assert_ok(arena_allocate(&f->memory, "matrix", 0, NULL));
    packed_matrix_carve(&f->matrix, &f->memory, outputs, depth);
    size_t panels = f->matrix.panel_count;
    f->weights = calloc(panels * PANEL * depth, sizeof *f->weights);
    assert_non_null(f->weights);
    for (size_t i = 0; i < outputs * depth; i++) f->weights[i] = value(i);
    for (size_t i = 0; i < outputs; i++) f->matrix.bias[i] = value(i + 99);
    for (size_t p = 0; p < panels; p++) {
        packed_matrix_store(&f->matrix, &f->kernels, p, f->weights + p * PANEL * depth, depth);
    }
}

static void tear_down(fixture *f)
{
    free(f->weights);
    arena_release(&f->memory);
}

TEST(weights_in_walking_order)
{
    enum { OUTPUTS = 37, DEPTH = 1600 };
    fixture f;
    set_up(&f, OUTPUTS, DEPTH);
    assert_int_equal(f.matrix.panel_count, 3);
    const float *next = f.matrix.panels;
    for (size_t start = 0; start < DEPTH; start += f.matrix.block_depth) {
        size_t end = minimum(start + f.matrix.block_depth, DEPTH);
        for (size_t panel = 0; panel < 3; panel++) {
            assert_ptr_equal(next, packed_matrix_panel(&f.matrix, start, panel));
            for (size_t k = start; k < end; k++) {
                for (size_t lane = 0; lane < PANEL; lane++) {
                    size_t output = panel * PANEL + lane;
                    float expected = output < OUTPUTS ? f.weights[output * DEPTH + k] : 0;
                    assert_memory_equal(next++, &expected, sizeof expected);
                }
            }
        }
    }
    tear_down(&f);
}

/* The same bits from one call, from columns and from rows on several threads, and from scattered groups. */
TEST(cutting_changes_no_bit)
{
    enum { OUTPUTS = 96, DEPTH = 900, ROWS = 400, STRIDE = 96 };
    fixture f;
    set_up(&f, OUTPUTS, DEPTH);
    float *a = malloc(ROWS * DEPTH * sizeof *a), *whole = malloc(ROWS * STRIDE * sizeof *whole);
    float *other = malloc(ROWS * STRIDE * sizeof *other);
    assert_true(a && whole && other);
    for (size_t i = 0; i < ROWS * DEPTH; i++) a[i] = value(i + 7);
    linear_product product = linear_plain(&f.matrix, ROWS, a, DEPTH, whole, STRIDE);
    product.gelu = true;
    linear_run(&f.kernels, &product);
    product.c = other;
    for (size_t threads = 1; threads <= 5; threads++) {
        FREED_BY(executor_free) executor *by = NULL;
        assert_ok(executor_create(&by, threads, false, NULL, NULL));
        for (size_t rows = 1; rows <= ROWS; rows += 133) {
            memset(other, 0xff, ROWS * STRIDE * sizeof *other);
            product.rows = rows;
            linear_run_parallel(&f.kernels, by, &product, 1);
            assert_memory_equal(whole, other, rows * STRIDE * sizeof *other);
        }
    }

    /* Groups of 2 panels, each to its own [ROWS][32]. */
    product.rows = ROWS;
    product.ldc = 2 * PANEL;
    product.group_panels = 2;
    product.group_stride = ROWS * 2 * PANEL;
    linear_run(&f.kernels, &product);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t group = 0; group < 3; group++) {
            assert_memory_equal(other + group * ROWS * 32 + i * 32, whole + i * STRIDE + group * 32,
                                32 * sizeof *other);
        }
    }
    free(a);
    free(whole);
    free(other);
    tear_down(&f);
}

TEST(parts_cover_everything)
{
    for (size_t total = 0; total < 40; total++) {
        for (size_t parts = 1; parts < 12; parts++) {
            assert_int_equal(part_start(total, parts, 0), 0);
            assert_int_equal(part_start(total, parts, parts), total);
            for (size_t i = 0; i < parts; i++) {
                size_t size = part_start(total, parts, i + 1) - part_start(total, parts, i);
                assert_in_range(size, total / parts, total / parts + 1);
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- integers */

enum { QUANTIZED_OUTPUTS = 29, QUANTIZED_DEPTH = 1541 };

/* Output 3 is zeros, 4 too small, 7 both ends of the digits. */
static void draw_quantized(float *w, float *factors)
{
    for (size_t i = 0; i < 2 * PANEL * (size_t)QUANTIZED_DEPTH; i++)
        w[i] = i / QUANTIZED_DEPTH < QUANTIZED_OUTPUTS && i / QUANTIZED_DEPTH != 3 ? value(i) : 0;
    for (size_t k = 0; k < QUANTIZED_DEPTH; k++) {
        factors[k] = 0.25f + fabsf(value(k + 7));
        w[4 * QUANTIZED_DEPTH + k] *= 0x1p-110f;
    }
    w[7 * QUANTIZED_DEPTH + 20] = 3 * factors[20];
    w[7 * QUANTIZED_DEPTH + 21] = -3 * factors[21];
}

static float output_scale(const float *w, const float *factors, size_t depth, float *inverse, float top)
{
    float largest = 0;
    for (size_t k = 0; k < depth; k++) largest = fmaxf(largest, fabsf(w[k] / factors[k]));
    const bool usable = largest >= 0x1p-100f;
    *inverse = usable ? top / largest : 0;
    return usable ? largest / 127 : 0;
}

/* The definition, a number at a time, of one output of one block. */
static void check_quantized_output(const packed_matrix *m, size_t start, size_t output, const float *w,
                                   const float *factors)
{
    const size_t depth = minimum(m->block_depth, m->depth - start), plane = quantized_block_depth(m, start) * PANEL;
    const size_t lane = (start / m->block_depth * m->panel_count + output / PANEL) * PANEL;
    const int8_t *digits = quantized_matrix_panel(m, start, output / PANEL) + output % PANEL * 4;
    int32_t sums[2] = {0};
    float inverse;
    const float scale = output_scale(w, factors, depth, &inverse, m->digits == 1 ? 127 : 16256);
    const float found = m->scales[lane + output % PANEL];
    assert_true(scale == found);
    for (size_t k = 0; k < plane / PANEL; k++) {
        const float v = k < depth ? w[k] / factors[k] * inverse : 0;
        const long q = isfinite(v) ? lrintf(v) : 0, high = m->digits == 1 ? q : (q + 64 + 128 * 128) / 128 - 128;
        assert_int_equal(digits[k / 4 * (4 * PANEL) + k % 4], high);
        sums[0] += (int32_t)high;
        if (m->digits == 1) continue;
        assert_int_equal(digits[plane + k / 4 * (4 * PANEL) + k % 4], q - 128 * high);
        sums[1] += (int32_t)(q - 127 * high);
    }
    for (size_t d = 0; d < m->digits; d++)
        assert_int_equal(m->sums[lane * m->digits + d * PANEL + output % PANEL], sums[d]);
}

TEST(weights_become_the_nearest_integers)
{
    static float w[2 * PANEL * QUANTIZED_DEPTH], factors[QUANTIZED_DEPTH];
    draw_quantized(w, factors);
    for (size_t digits = 1; digits <= 2; digits++) {
        packed_matrix m;
        arena memory = {0};
        quantized_matrix_carve(&m, &memory, QUANTIZED_OUTPUTS, QUANTIZED_DEPTH, digits);
        assert_ok(arena_allocate(&memory, "matrix", 0, NULL));
        quantized_matrix_carve(&m, &memory, QUANTIZED_OUTPUTS, QUANTIZED_DEPTH, digits);
        memcpy(m.factors, factors, sizeof factors);
        for (size_t panel = 0; panel < 2; panel++)
            quantized_matrix_store(&m, panel, w + panel * PANEL * QUANTIZED_DEPTH, QUANTIZED_DEPTH);
        for (size_t start = 0; start < QUANTIZED_DEPTH; start += m.block_depth)
            for (size_t i = 0; i < 2 * PANEL; i++)
                check_quantized_output(&m, start, i, w + i * QUANTIZED_DEPTH + start, factors + start);
        arena_release(&memory);
    }
}
