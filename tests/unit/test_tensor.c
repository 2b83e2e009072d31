/* Values of stored tensors: integers of every width, and float32 rounded to halves. SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "core/io/tensor.h"

enum { HALVES = 1 << 16 };

/* Two rows of two, whose columns lie apart. */
static void assert_integers(tensor_dtype dtype, const void *bytes, const int64_t expected[4])
{
    stored_tensor stored = {.tensor = {.dtype = dtype, .rank = 2, .shape = {2, 2}, .elements = 4}, .strides = {2, 1}};
    int64_t found[4];
    tensor_convert_i64(found, &stored, bytes, 0, 4);
    assert_memory_equal(found, expected, sizeof found);
    stored.strides[0] = 1; /* transposed */
    stored.strides[1] = 2;
    tensor_convert_i64(found, &stored, bytes, 1, 3);
    const int64_t transposed[] = {expected[2], expected[1], expected[3]};
    assert_memory_equal(found, transposed, sizeof transposed);
}

TEST(test_integers_of_every_width)
{
    const int64_t wide[] = {-1, INT64_C(1) << 40, 3, INT64_MIN};
    assert_integers(DTYPE_I64, wide, wide);
    assert_integers(DTYPE_I32, (const int32_t[]){-1, 1 << 20, 3, INT32_MIN},
                    (const int64_t[]){-1, 1 << 20, 3, INT32_MIN});
    assert_integers(DTYPE_I16, (const int16_t[]){-1, 300, 3, INT16_MIN}, (const int64_t[]){-1, 300, 3, INT16_MIN});
    assert_integers(DTYPE_I8, (const int8_t[]){-1, 100, 3, INT8_MIN}, (const int64_t[]){-1, 100, 3, INT8_MIN});
    assert_integers(DTYPE_U8, (const uint8_t[]){255, 100, 3, 128}, (const int64_t[]){255, 100, 3, 128});
    assert_integers(DTYPE_BOOL, (const uint8_t[]){1, 0, 7, 0}, (const int64_t[]){1, 0, 1, 0});
}

static void floats_of_halves(float *values, const uint16_t *halves, size_t count)
{
    const stored_tensor stored = {.tensor = {.dtype = DTYPE_F16, .rank = 1, .shape = {count}, .elements = count},
                                  .strides = {1}};
    tensor_convert_f32(values, &stored, (const uint8_t *)halves, 0, count);
}

static uint16_t half_of(float value)
{
    uint16_t half = 0xFFFF;
    assert_true(tensor_round_f16(&half, &value, 1));
    return half;
}

TEST(test_every_half_comes_back)
{
    static uint16_t halves[HALVES];
    static float values[HALVES];
    for (size_t i = 0; i < HALVES; i++) halves[i] = (uint16_t)i;
    floats_of_halves(values, halves, HALVES);
    for (size_t i = 0; i < HALVES; i++)
        if (isfinite(values[i])) assert_int_equal(half_of(values[i]), i);
}

TEST(test_halves_are_rounded_to_even)
{
    static uint16_t halves[HALVES];
    static float values[HALVES];
    for (size_t i = 0; i < HALVES; i++) halves[i] = (uint16_t)i;
    floats_of_halves(values, halves, HALVES);
    for (size_t i = 0; i < 0x7BFF; i++) { /* positive and finite, with a neighbour above */
        const float middle = (values[i] + values[i + 1]) / 2;
        assert_int_equal(half_of(middle), i % 2 == 0 ? i : i + 1);
        assert_int_equal(half_of(nextafterf(middle, 0)), i);
        assert_int_equal(half_of(nextafterf(middle, 1e9F)), i + 1);
        assert_int_equal(half_of(-middle), (i % 2 == 0 ? i : i + 1) | 0x8000);
    }
}

TEST(test_what_no_half_can_hold)
{
    uint16_t half;
    const float beyond[] = {65520, -65520, INFINITY, -INFINITY, NAN};
    FOR_ROWS(i, beyond) assert_false(tensor_round_f16(&half, &beyond[i], 1));
    assert_int_equal(half_of(nextafterf(65520, 0)), 0x7BFF);
}
