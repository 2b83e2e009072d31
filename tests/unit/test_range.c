/* Lists and ranges as typed on the command line. SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "bench/range.h"

static scope memory; /* of lists */

enum { MOST = 8 };

TEST(test_what_is_understood)
{
    const struct {
        const char *text;
        size_t count, values[MOST];
    } cases[] = {
        {"7", 1, {7}},
        {"16,40,128", 3, {16, 40, 128}},
        {"1-4", 4, {1, 2, 3, 4}},
        {"5-5", 1, {5}},
        {"16-64+16", 4, {16, 32, 48, 64}},
        {"16-70+16", 4, {16, 32, 48, 64}},
        {"16-512*2", 6, {16, 32, 64, 128, 256, 512}},
        {"16-500x2", 5, {16, 32, 64, 128, 256}},
        {"1-3,8,2-4", 5, {1, 2, 3, 8, 4}},
        {"128,16", 2, {128, 16}},
        {"1000-4000*3", 2, {1000, 3000}},
    };
    FOR_ROWS(i, cases) {
        size_list list;
        deberta_error err = {0};
        if (range_parse(&memory, &list, cases[i].text, "-n", 1, 4096, false, &err) != DEBERTA_OK)
            fail_msg("%s", err.message);
        assert_int_equal(list.count, cases[i].count);
        assert_memory_equal(list.values, cases[i].values, list.count * sizeof *list.values);
    }
}

/* A batch of two sequences of 28 tokens once became a batch of one. */
TEST(test_repetitions_count_where_they_mean_something)
{
    const size_t expected[] = {28, 41, 28, 1, 2, 1, 2};
    size_list list;
    assert_ok(range_parse(&memory, &list, "28,41,28,1-2,1-2", "--mix", 1, 4096, true, NULL));
    assert_int_equal(list.count, sizeof expected / sizeof *expected);
    assert_memory_equal(list.values, expected, sizeof expected);
}

TEST(test_what_is_refused_and_how)
{
    static const char *const cases[][2] = {
        {"", "a number is missing"},
        {"16,", "a number is missing"},
        {",16", "a number is missing"},
        {"16-", "a number is missing"},
        {"16-32+", "a number is missing"},
        {"abc", "'abc' is not a number"},
        {"16-a,3", "'a' is not a number"},
        {"-4", "'-4' is not a number"},
        {"16 32", "' ' is not expected there"},
        {"16*2", "'*' is not expected there"},
        {"1.5", "'.' is not expected there"},
        {"8-4", "the range ends at 4, before it begins at 8"},
        {"1-8+0", "a step of +0 leads nowhere"},
        {"1-8*1", "a step of *1 leads nowhere"},
        {"1-8x0", "a step of *0 leads nowhere"},
        {"0", "0 is too small, the smallest is 1"},
        {"0-8*2", "0 multiplied stays 0"},
        {"4097", "4097 is too large, the largest is 4096"},
        {"99999999999999999999999999", "is too large"},
    };
    FOR_ROWS(i, cases) {
        size_list list = {0};
        deberta_error err = {0};
        check_refused(range_parse(&memory, &list, cases[i][0], "-n", 1, 4096, false, &err), &err, DEBERTA_E_ARGUMENT,
                      cases[i][1]);
        assert_non_null(strstr(err.message, "-n"));
        assert_null(list.values);
        assert_int_equal(list.count, 0);
    }
}

TEST(test_steps_that_overflow_end)
{
    size_list list;
    assert_ok(
        range_parse(&memory, &list, "9000000000000000000-18446744073709551615*2", "-n", 1, SIZE_MAX, false, NULL));
    assert_int_equal(list.count, 2);
    assert_ok(range_parse(&memory, &list, "18446744073709551614-18446744073709551615", "-n", 1, SIZE_MAX, false, NULL));
    assert_int_equal(list.count, 2);
}

TEST(test_lists_have_a_limit)
{
    size_list list;
    deberta_error err = {0};
    check_refused(range_parse(&memory, &list, "1-1000000", "--depth", 0, SIZE_MAX, false, &err), &err,
                  DEBERTA_E_ARGUMENT, "more than 10000 values");
    assert_null(list.values);
}
