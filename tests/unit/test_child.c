/* Work in another process: its answer, its failure, and loops in it. SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "bench/child.h"
#include "core/base/parallel.h"

enum { TASKS = 64 };

static void add_task(void *context, size_t task, size_t worker)
{
    (void)worker;
    ((size_t *)context)[task] = task;
}

static deberta_status sum_in_a_loop(const void *context, void *answer, deberta_error *err)
{
    (void)context;
    size_t done[TASKS] = {0}, *sum = answer;
    executor *by = NULL;
    DEBERTA_TRY(executor_create(&by, 2, false, NULL, err));
    parallel_for(by, TASKS, add_task, done);
    executor_free(&by);
    *sum = 0;
    for (size_t i = 0; i < TASKS; i++) *sum += done[i];
    return DEBERTA_OK;
}

/* Also behind a loop of the parent, whose threads the child does not have. */
TEST(test_loops_behind_loops)
{
    size_t sum = 0;
    assert_ok(sum_in_a_loop(NULL, &sum, NULL));
    for (int k = 0; k < 3; k++) {
        sum = 0;
        assert_ok(child_run(sum_in_a_loop, NULL, &sum, sizeof sum, "the loop", NULL));
        assert_int_equal(sum, TASKS * (TASKS - 1) / 2);
    }
}

static deberta_status fail_with(const void *context, void *answer, deberta_error *err)
{
    (void)answer;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "no good: %s", (const char *)context);
}

static deberta_status die(const void *context, void *answer, deberta_error *err)
{
    (void)context, (void)answer, (void)err;
    _Exit(3);
}

TEST(test_failures_come_back)
{
    deberta_error err = {0};
    assert_int_equal(child_run(fail_with, "a reason", NULL, 0, "it", &err), DEBERTA_E_FORMAT);
    assert_string_equal(err.message, "no good: a reason");
    check_refused(child_run(die, NULL, NULL, 0, "it", &err), &err, DEBERTA_E_SYSTEM, "ended with code 3");
}
