/* Tests of one program, run by cmocka in the order in which they stand: TEST(name) { ... }. A test registers itself, so
 * that none is forgotten. A program that has something to do before its tests defines TESTS_HAVE_A_MAIN, and calls
 * run_registered_tests. DEBERTA_TEST_ONLY in the environment names the only test to run. SPDX-License-Identifier: MIT
 */
#pragma once

#include "tests/unit/test_rows.h"

#define TEST(name) TEST_BETWEEN(name, NULL, NULL)

/* With functions that cmocka calls before and after it. A parameter of the test's function, `test_state`, is theirs. */
#define TEST_BETWEEN(name, before, after)                                                                              \
    static void name(void **test_state);                                                                               \
    static int after_##name(void **test_state)                                                                         \
    {                                                                                                                  \
        const CMFixtureFunction whole_after = after;                                                                   \
        tell_rows();                                                                                                   \
        return whole_after ? whole_after(test_state) : 0;                                                              \
    }                                                                                                                  \
    __attribute__((constructor)) static void register_##name(void)                                                     \
    {                                                                                                                  \
        register_test((struct CMUnitTest){#name, name, before, after_##name, NULL});                                   \
    }                                                                                                                  \
    static void name(__attribute__((unused)) void **test_state)

enum { MOST_TESTS = 128 };

static struct CMUnitTest registered_tests[MOST_TESTS];
static size_t registered_count;

static inline int only_tell_rows(void **state)
{
    (void)state;
    tell_rows();
    return 0;
}

/* The compiler keeps the order of such calls within a file. */
static inline void register_test(struct CMUnitTest test)
{
    if (!test.teardown_func) test.teardown_func = only_tell_rows;
    if (registered_count == MOST_TESTS) {
        fprintf(stderr, "%s: more than %d tests in one program\n", test.name, MOST_TESTS);
        exit(1);
    }
    registered_tests[registered_count++] = test;
}

__attribute__((constructor)) static void choose_test(void)
{
    const char *only = getenv("DEBERTA_TEST_ONLY");
    if (only) cmocka_set_test_filter(only);
}

/* With functions that cmocka calls before the first and after the last. */
static inline int run_registered_tests(CMFixtureFunction before, CMFixtureFunction after)
{
    return _cmocka_run_group_tests("tests", registered_tests, registered_count, before, after);
}

#ifndef TESTS_HAVE_A_MAIN
int main(void) { return run_registered_tests(NULL, NULL); }
#endif
