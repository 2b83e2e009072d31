/* Plain habits of a head on matrices whose answers can be seen. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "analysis/attention_habits.h"

/* [CLS] a b [SEP]: a looks at b, b at a and itself, the frame at the frame. */
static const float four[16] = {.5f, .1f, .1f, .3f, .1f, .2f, .6f, .1f, .1f, .4f, .4f, .1f, .2f, .1f, .2f, .5f};

static void test_places(void **state)
{
    (void)state;
    const attention_habits h = attention_habits_measure(four, 4, NULL);
    assert_float_equal(h.left, (.1 + .4 + .2) / 3, 1e-6);
    assert_float_equal(h.right, (.1 + .6 + .1) / 3, 1e-6);
    assert_float_equal(h.itself, (.5 + .2 + .4 + .5) / 4, 1e-6);
    assert_float_equal(h.first, (.5 + .1 + .1 + .2) / 4, 1e-6);
    assert_float_equal(h.last, (.3 + .1 + .1 + .5) / 4, 1e-6);
    assert_float_equal(h.word, (.3 + .6 + .4 + .2) / 4, 1e-6);
}

static void test_frames_are_no_words(void **state)
{
    (void)state;
    const unsigned char special[4] = {1, 0, 0, 1};
    assert_float_equal(attention_habits_measure(four, 4, special).word, (.6 + .4) / 2, 1e-6);
}

/* One word in a frame has no other word to look at; one token has no neighbour. */
static void test_nothing_to_look_at(void **state)
{
    (void)state;
    const unsigned char special[3] = {1, 0, 1};
    const float three[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, one[1] = {1};
    assert_true(isnan(attention_habits_measure(three, 3, special).word));
    const attention_habits alone = attention_habits_measure(one, 1, NULL);
    assert_true(isnan(alone.left) && isnan(alone.right) && isnan(alone.word));
    assert_float_equal(alone.itself, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_frames_are_no_words),
        cmocka_unit_test(test_nothing_to_look_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
