/* Packed matrices: every weight at its place, and products that come out as defined whatever way they are cut.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

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
