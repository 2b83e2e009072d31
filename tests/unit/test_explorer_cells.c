/* The attention of a page: which grade a text gets, and what its bytes say about the values they stand for.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "program/report/explorer_cells.h"

enum { BUDGET_BYTES = 29000000, HEADS = 144 };

TEST(grades_follow_length)
{
    const cell_layout one = cell_layout_choose(1, true, true, HEADS, BUDGET_BYTES);
    assert_true(one.exact && one.pool == 1 && one.cells == 1);
    assert_true(cell_layout_choose(40, true, true, HEADS, BUDGET_BYTES).exact);
    const cell_layout plain = cell_layout_choose(220, true, true, HEADS, BUDGET_BYTES);
    assert_true(!plain.exact && plain.pool == 1 && plain.cells == 220);
    assert_int_equal(cell_layout_choose(221, true, true, HEADS, BUDGET_BYTES).pool, 2);
    const cell_layout scarce = cell_layout_choose(220, true, true, HEADS, BUDGET_BYTES / 4);
    assert_true(scarce.pool > 1);
}

/* Whatever the text, a page of all its heads keeps its promise. */
TEST(budgets_hold)
{
    for (size_t n = 1; n <= 5000; n = n * 5 / 4 + 1)
        for (size_t heads = 1; heads <= 400; heads = heads * 3 + 1) {
            const cell_layout layout = cell_layout_choose(n, n % 2, n % 3, heads, BUDGET_BYTES);
            assert_true(heads * cell_layout_bytes(&layout) <= BUDGET_BYTES);
            assert_true(layout.cells * layout.pool >= n && (layout.cells - 1) * layout.pool < n);
        }
}

/* More heads than a size can count bytes of: no product wraps to one that seems to fit. */
TEST(sizes_do_not_wrap)
{
    const cell_layout one = cell_layout_choose(200, true, true, 1, BUDGET_BYTES);
    const size_t head_bytes = cell_layout_bytes(&one), heads = SIZE_MAX / head_bytes + 1;
    size_t bytes;
    assert_true(one.exact && heads * head_bytes < BUDGET_BYTES); /* wrapped */
    assert_int_equal(cell_layout_choose(200, true, true, heads, BUDGET_BYTES).cells, 1);
    assert_false(cell_layout_all_bytes(&one, 1, heads, &bytes));
    assert_false(cell_layout_all_bytes(&one, SIZE_MAX / 2, 3, &bytes));
    assert_true(cell_layout_all_bytes(&one, 3, 4, &bytes) && bytes == 12 * head_bytes);
}

typedef struct head {
    float *matrices[DEBERTA_COMPONENT_COUNT], *originals[DEBERTA_COMPONENT_COUNT];
    uint8_t *bytes;
    cell_scales scales;
} head;

static head pack(const cell_layout *layout, float (*value)(int component, size_t i, size_t j))
{
    head head = {.bytes = malloc(cell_layout_bytes(layout))};
    const size_t n = layout->n;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        if (!layout->has[c]) continue;
        head.matrices[c] = malloc(n * n * sizeof(float));
        head.originals[c] = malloc(n * n * sizeof(float));
        for (size_t k = 0; k < n * n; k++) head.originals[c][k] = head.matrices[c][k] = value(c, k / n, k % n);
    }
    cells_pack(layout, head.matrices, head.bytes, &head.scales);
    return head;
}

static void free_head(head *head)
{
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        free(head->matrices[c]);
        free(head->originals[c]);
    }
    free(head->bytes);
}

/* Rows lie far from zero, as logits do; no two cells are alike under transposition. */
static float varied(int component, size_t i, size_t j)
{
    const float term = sinf((float)(7 * i + 3 * j * j + 11 * (size_t)component)), row = 20.0f + (float)i;
    return component == DEBERTA_PROBABILITIES ? expf(-(float)((2 * i + j) % 9))
           : component == DEBERTA_LOGITS      ? 3 * term + row
                                              : term + row;
}

static double row_mean(const float *matrix, size_t n, size_t i)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++) sum += (double)matrix[i * n + j];
    return sum / (double)n;
}

/* Row means and bytes together give the values back, within half a step. */
TEST(bytes_stand_for_values)
{
    const size_t n = 60;
    cell_layout layout = {.n = n, .pool = 1, .cells = n, .has = {true, false, true, true, true}};
    head head = pack(&layout, varied);
    const float *means = (const float *)(const void *)head.bytes;
    const uint8_t *terms = head.bytes + 2 * n * sizeof(float), *probabilities = terms + 2 * n * n;
    const double scale = head.scales.scale[DEBERTA_P2C];
    assert_true(scale > 0.9 && scale < 2.1); /* the rows' height is not in it */
    for (size_t i = 0; i < n; i++) {
        assert_true(fabs((double)means[n + i] - row_mean(head.originals[DEBERTA_P2C], n, i)) < 1e-5);
        for (size_t j = 0; j < n; j++) {
            const size_t k = i * n + j;
            const double value = (double)means[n + i] + (int8_t)terms[n * n + k] * scale / 127;
            assert_true(fabs(value - (double)head.originals[DEBERTA_P2C][k]) < 0.51 * scale / 127 + 1e-5);
            const double root = probabilities[k] / 254.0;
            const double p = root * root * head.scales.scale[DEBERTA_PROBABILITIES];
            assert_true(fabs(p - (double)head.originals[DEBERTA_PROBABILITIES][k]) < 0.005);
        }
    }
    assert_true(head.scales.largest_plain > 60 && head.scales.largest_centred < 7);
    free_head(&head);
}

TEST(exact_values_are_kept)
{
    const cell_layout layout = cell_layout_choose(9, true, true, 1, BUDGET_BYTES);
    head head = pack(&layout, varied);
    const float *values = (const float *)(const void *)head.bytes + 3 * 9;
    assert_memory_equal(values, head.matrices[DEBERTA_C2C], 81 * sizeof(float));
    assert_memory_equal(values + 3 * 81, head.originals[DEBERTA_PROBABILITIES], 81 * sizeof(float));
    free_head(&head);
}

/* Mean, least and greatest of each block, also of the smaller ones at the end. */
TEST(pools_tell_their_range)
{
    const size_t n = 7, pool = 3, cells = 3;
    cell_layout layout = {.n = n, .pool = pool, .cells = cells, .has = {true, false, false, true, true}};
    head head = pack(&layout, varied);
    const uint8_t *means = head.bytes + cells * sizeof(float), *low = means + 2 * cells * cells,
                  *high = low + cells * cells;
    for (size_t I = 0; I < cells; I++)
        for (size_t J = 0; J < cells; J++) {
            double sum = 0, least = 1e9, greatest = -1e9, count = 0;
            for (size_t i = I * pool; i < n && i < (I + 1) * pool; i++)
                for (size_t j = J * pool; j < n && j < (J + 1) * pool; j++, count++) {
                    const double value =
                        (double)head.originals[DEBERTA_C2C][i * n + j] - row_mean(head.originals[DEBERTA_C2C], n, i);
                    sum += value;
                    least = fmin(least, value);
                    greatest = fmax(greatest, value);
                }
            const double scale = head.scales.scale[DEBERTA_C2C] / 127, range = head.scales.range[DEBERTA_C2C] / 127;
            assert_true(fabs((int8_t)means[I * cells + J] * scale - sum / count) < 0.51 * scale + 1e-5);
            assert_true(fabs((int8_t)low[I * cells + J] * range - least) < 0.51 * range + 1e-5);
            assert_true(fabs((int8_t)high[I * cells + J] * range - greatest) < 0.51 * range + 1e-5);
        }
    free_head(&head);
}

static float broken(int component, size_t i, size_t j)
{
    return i == 1 && j == 2 ? (component == DEBERTA_C2C ? INFINITY : NAN) : varied(component, i, j);
}

/* Cells that are no numbers are marked and counted, and spoil nothing else. */
TEST(not_finite_is_marked)
{
    const size_t n = 5;
    cell_layout layout = {.n = n, .pool = 1, .cells = n, .has = {true, false, false, true, true}};
    head head = pack(&layout, broken);
    const uint8_t *term = head.bytes + n * sizeof(float), *probabilities = term + n * n;
    for (size_t k = 0; k < n * n; k++) {
        assert_int_equal((int8_t)term[k] == -128, k == 7);
        assert_int_equal(probabilities[k] == 255, k == 7);
    }
    assert_int_equal(head.scales.not_finite, 3);
    assert_true(isfinite(head.scales.scale[DEBERTA_C2C]) && isfinite(head.scales.largest_plain));
    free_head(&head);
}
