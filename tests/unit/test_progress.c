/* Lines of long work where stderr is no terminal: one a minute, none where they are not wanted.
 *
 * SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "tests/unit/test.h"

#include "program/frame/progress.h"

enum { SECONDS_A_LINE = 60 };

/* Three steps, the second of which comes a minute after the beginning. What stderr had of it. */
static void run_steps(const common_options *options, char *text, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    const int before = dup(STDERR_FILENO);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    progress_bar bar = progress_begin_long(options, "steps", 3);
    progress_step(&bar, 1, "step 1");
    bar.last -= SECONDS_A_LINE;
    progress_step(&bar, 2, "step 2");
    progress_step(&bar, 3, "step 3");
    progress_end(&bar);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

TEST(one_line_a_minute)
{
    char text[256];
    run_steps(&(common_options){.quiet = false}, text, sizeof text);
    assert_string_equal(text, "step 2\n");
}

TEST(none_where_not_wanted)
{
    char text[256];
    run_steps(&(common_options){.quiet = true}, text, sizeof text);
    assert_string_equal(text, "");
    run_steps(&(common_options){.progress = PROGRESS_NEVER}, text, sizeof text);
    assert_string_equal(text, "");
}
