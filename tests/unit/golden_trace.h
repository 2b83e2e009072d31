/* Comparing a layout, drawn as text, with the file that was looked at when it was made.
 *
 * Tests run in the root of the source tree. With DEBERTA_UPDATE_GOLDEN=1 in the environment the files are written
 * instead: look at what changed (git diff), and at the figures of docs/figures.md drawn again, before committing them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tests/unit/draw_trace.h"
#include "tests/unit/test_rows.h"
#include "viz/figure.h"

static inline void golden_trace_compare(const char *name, const char *got)
{
    char path[256];
    const size_t size = strlen(got);
    snprintf(path, sizeof path, "tests/unit/golden_trace/%s.txt", name);
    if (getenv("DEBERTA_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(got, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
        return;
    }
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is missing (run in the source root; DEBERTA_UPDATE_GOLDEN=1 makes it)", path);
    size_t line = 1, at = 0;
    for (int c; (c = fgetc(file)) != EOF; at++) {
        if (at >= size || got[at] != (char)c) fail_msg("%s:%zu differs from the drawing", path, line);
        line += c == '\n';
    }
    if (at != size) fail_msg("%s ends at line %zu, the drawing does not", path, line);
    fclose(file);
}

/* Runs the layout with the pretended fonts: its trace as a text, to be freed, or "" where it is refused. */
static inline char *golden_trace_of(figure_layout layout, const void *what, figure_notes *notes,
                                    deberta_status expected)
{
    FREED_BY(draw_list_free) draw_list *list = NULL;
    byte_buffer trace = {0};
    deberta_error err = {0};
    *notes = (figure_notes){0};
    draw_list_create(&list, draw_trace_ruler());
    const deberta_status status = layout(list, what, notes, &err);
    if (status != expected) fail_msg("status %d, expected %d: %s", status, expected, err.message);
    if (status == DEBERTA_OK)
        draw_trace(list, &trace);
    else
        assert_true(strlen(err.message) > 10);
    byte_buffer_append(&trace, "", 1);
    return (char *)trace.data;
}

static inline void golden_trace_check(const char *name, figure_layout layout, const void *what)
{
    figure_notes notes;
    FREED_BY(free_memory) char *trace = golden_trace_of(layout, what, &notes, DEBERTA_OK);
    golden_trace_compare(name, trace);
}
