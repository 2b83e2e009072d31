/* Plain habits of a head on matrices whose answers can be seen. SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "analysis/attention_habits.h"

/* [CLS] a b [SEP]: a looks at b, b at a and itself, the frame at the frame. */
static const float four[16] = {.5f, .1f, .1f, .3f, .1f, .2f, .6f, .1f, .1f, .4f, .4f, .1f, .2f, .1f, .2f, .5f};

TEST(test_places)
{
    const attention_habits h = attention_habits_measure(four, 4, NULL);
    assert_float_equal(h.left, (.1 + .4 + .2) / 3, 1e-6);
    assert_float_equal(h.right, (.1 + .6 + .1) / 3, 1e-6);
    assert_float_equal(h.itself, (.5 + .2 + .4 + .5) / 4, 1e-6);
    assert_float_equal(h.first, (.5 + .1 + .1 + .2) / 4, 1e-6);
    assert_float_equal(h.last, (.3 + .1 + .1 + .5) / 4, 1e-6);
    assert_float_equal(h.word, (.3 + .6 + .4 + .2) / 4, 1e-6);
}

TEST(test_frames_are_no_words)
{
    const unsigned char special[4] = {1, 0, 0, 1};
    assert_float_equal(attention_habits_measure(four, 4, special).word, (.6 + .4) / 2, 1e-6);
}

/* One word in a frame has no other word to look at; one token has no neighbour. */
TEST(test_nothing_to_look_at)
{
    const unsigned char special[3] = {1, 0, 1};
    const float three[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, one[1] = {1};
    assert_true(isnan(attention_habits_measure(three, 3, special).word));
    const attention_habits alone = attention_habits_measure(one, 1, NULL);
    assert_true(isnan(alone.left) && isnan(alone.right) && isnan(alone.word));
    assert_float_equal(alone.itself, 1, 0);
}
