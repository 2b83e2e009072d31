/* Receptive field: facts computed independently, and brute force over small rules. SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "analysis/receptive_field.h"

static void field_free(receptive_field *of) { scope_free(&of->memory); }

static position_rule v1(void) { return (position_rule){.span = 512, .max_distance = 512, .clamp_distance = true}; }
static position_rule v3(void)
{
    return (position_rule){.span = 256, .buckets = 256, .max_distance = 512, .clamp_distance = true};
}

static void check(position_rule rule, size_t length, size_t count, ptrdiff_t min, ptrdiff_t max, size_t left,
                  size_t right)
{
    FREED_BY(field_free) receptive_field field;
    assert_ok(receptive_field_make(&field, &rule, length, false, NULL));
    assert_int_equal(field.unique_count, count);
    assert_int_equal(field.unique_min, min);
    assert_int_equal(field.unique_max, max);
    assert_int_equal(field.run_left, left);
    assert_int_equal(field.run_right, right);
}

TEST(test_single_layer)
{
    check(v1(), 0, 1022, -511, 510, 510, 511); /* r > 0 is to the left: 510 keys there, 511 to the right */
    check(v1(), 513, 1023, -512, 510, 510, 512);
    check(v1(), 512, 1023, -511, 511, 511, 511); /* every distance that occurs */
    check(v3(), 0, 279, -169, 169, 130, 130);
    check(v3(), 512, 279, -169, 169, 130, 130);
    check(v3(), 132, 263, -131, 131, 131, 131); /* every distance that occurs */
}

TEST(test_v3_at_256)
{
    FREED_BY(field_free) receptive_field field;
    const position_rule rule = v3();
    assert_ok(receptive_field_make(&field, &rule, 256, false, NULL));
    assert_int_equal(field.unique_count, 281);
}

static void compose(position_rule rule, size_t layers, composed_field *last)
{
    FREED_BY(field_free) receptive_field field;
    composed_field composed[48];
    assert_ok(receptive_field_make(&field, &rule, 0, false, NULL));
    assert_ok(receptive_field_compose(&field, layers, composed, NULL));
    *last = composed[layers - 1];
}

TEST(test_composition)
{
    composed_field c;
    compose(v1(), 12, &c);
    assert_int_equal(c.run, 12253);
    assert_int_equal(c.unique_set, 12253);
    assert_int_equal(c.hull, 12253);
    compose(v3(), 12, &c);
    assert_int_equal(c.run, 3121);
    assert_int_equal(c.unique_set, 4009);
    assert_int_equal(c.contiguous, 3985);
    assert_int_equal(c.hull, 4057);
}

TEST(test_formulas)
{
    assert_int_equal(field_formula_value(FIELD_2K2N, 512, 24), 24528);
    assert_int_equal(field_formula_value(FIELD_1_2K2N, 512, 12), 12265);
    assert_int_equal(field_formula_value(FIELD_1_2K1N, 512, 12), 12277);
    assert_int_equal(field_formula_value(FIELD_1_2K3N, 512, 12), 12253);
    const size_t v3_base[FIELD_FORMULAS] = {6132, 6120, 6121, 6133, 6109};
    for (int f = 0; f < FIELD_FORMULAS; f++)
        assert_int_equal(field_formula_value((field_formula)f, 256, 12), v3_base[f]);
}

TEST(test_token)
{
    FREED_BY(field_free) receptive_field field;
    const position_rule rule = v1();
    size_t unambiguous, own;
    assert_ok(receptive_field_make(&field, &rule, 1024, false, NULL));
    receptive_field_of_token(&field, 511, &unambiguous, &own);
    assert_int_equal(own, 1024); /* sees every key of its text at a row of its own */
}

TEST(test_longest)
{
    const position_rule one = v1(), three = v3();
    assert_int_equal(receptive_field_longest_unambiguous(&one, NULL), 512);
    assert_int_equal(receptive_field_longest_unambiguous(&three, NULL), 132);
    const position_rule none = {0};
    deberta_error error = {0};
    assert_int_equal(receptive_field_longest_unambiguous(&none, &error), 0);
    assert_string_equal(error.message, "the model has no relative positions");
}

/* With the pair (row(r), row(-r)) the two ends of v1's table help each other out: +-511 instead of -511 ... 510. */
TEST(test_pairs)
{
    receptive_field field;
    const position_rule rules[] = {v1(), v3(), {.span = 5, .buckets = 4, .max_distance = 9}};
    assert_ok(receptive_field_make(&field, &rules[0], 0, true, NULL));
    assert_int_equal(field.unique_count, 1023);
    assert_int_equal(field.run_left, 511);
    assert_int_equal(field.run_right, 511);
    scope_free(&field.memory);
    for (size_t k = 0; k < 3; k++) {
        const ptrdiff_t reach = 700;
        assert_ok(receptive_field_make(&field, &rules[k], (size_t)reach + 1, true, NULL));
        size_t count = 0;
        for (ptrdiff_t r = -reach; r <= reach; r++) {
            size_t sharing = 0;
            for (ptrdiff_t q = -reach; q <= reach; q++)
                sharing += position_row(&rules[k], q) == position_row(&rules[k], r) &&
                           position_row(&rules[k], -q) == position_row(&rules[k], -r);
            count += sharing == 1;
        }
        assert_int_equal(field.unique_count, count);
        scope_free(&field.memory);
    }
}

/* Everything again from the definition, for spans up to 8, lengths up to 64, up to 4 layers. */
TEST(test_brute_force)
{
    for (size_t span = 2; span <= 8; span++)
        for (size_t buckets = 0; buckets <= span; buckets += span)
            for (size_t length = 1; length <= 64; length += 3)
                for (int clamp = 0; clamp < 2; clamp++) {
                    const position_rule rule = {
                        .span = span, .buckets = buckets, .max_distance = 2 * span + 3, .clamp_distance = clamp};
                    if (buckets == 1) continue;
                    FREED_BY(field_free) receptive_field field;
                    if (receptive_field_make(&field, &rule, length, false, NULL) != DEBERTA_OK) continue;
                    const ptrdiff_t reach = (ptrdiff_t)length - 1;
                    bool unique[127] = {false};
                    size_t count = 0;
                    for (ptrdiff_t r = -reach; r <= reach; r++) {
                        size_t sharing = 0;
                        for (ptrdiff_t q = -reach; q <= reach; q++)
                            sharing += position_row(&rule, q) == position_row(&rule, r);
                        unique[r + 63] = sharing == 1;
                        count += sharing == 1;
                    }
                    assert_int_equal(field.unique_count, count);
                    for (size_t k = 0; k < field.unique_count; k++) assert_true(unique[field.unique[k] + 63]);
                    composed_field composed[4];
                    assert_ok(receptive_field_compose(&field, 4, composed, NULL));
                    bool sums[600] = {false};
                    sums[300] = true;
                    for (size_t n = 1; n <= 4; n++) {
                        bool next[600] = {false};
                        size_t size = 0, contiguous = 0, hull = 0;
                        for (int a = 0; a < 600; a++)
                            for (ptrdiff_t r = -reach; sums[a] && r <= reach; r++)
                                if (unique[r + 63]) next[a + r] = true;
                        memcpy(sums, next, sizeof sums);
                        const int least = 300 - (int)reach, most = 300 + (int)reach; /* those that the text has */
                        for (int a = least, first = -1; a <= most; a++) {
                            size += sums[a];
                            if (sums[a] && first < 0) first = a;
                            if (sums[a]) hull = (size_t)(a - first + 1);
                        }
                        if (sums[300]) {
                            int low = 300, high = 300;
                            while (low > least && sums[low - 1]) low--;
                            while (high < most && sums[high + 1]) high++;
                            contiguous = (size_t)(high - low + 1);
                        }
                        assert_int_equal(composed[n - 1].unique_set, count ? size : 0);
                        assert_int_equal(composed[n - 1].contiguous, count ? contiguous : 0);
                        assert_int_equal(composed[n - 1].hull, count ? hull : 0);
                        assert_true(composed[n - 1].run <= 2 * length - 1);
                    }
                }
}
