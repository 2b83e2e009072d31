/* Comparing a layout, drawn as text, with the file that was looked at when it was made.
 *
 * Tests run in the root of the source tree. With DEBERTA_UPDATE_GOLDEN=1 in the environment the files are written
 * instead: look at what changed (git diff) and at the gallery before committing them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/draw_trace.h"
#include "viz/figure.h"

static inline void golden_trace_compare(const char *name, const byte_buffer *got)
{
    char path[256];
    snprintf(path, sizeof path, "tests/unit/golden_trace/%s.txt", name);
    if (getenv("DEBERTA_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(got->data, 1, got->size_bytes, file), got->size_bytes);
        assert_int_equal(fclose(file), 0);
        return;
    }
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is missing (run in the source root; DEBERTA_UPDATE_GOLDEN=1 makes it)", path);
    size_t line = 1, at = 0;
    for (int c; (c = fgetc(file)) != EOF; at++) {
        if (at >= got->size_bytes || got->data[at] != (unsigned char)c)
            fail_msg("%s:%zu differs from the drawing", path, line);
        line += c == '\n';
    }
    if (at != got->size_bytes) fail_msg("%s ends at line %zu, the drawing does not", path, line);
    fclose(file);
}

/* Runs the layout with the pretended fonts and compares its trace. */
static inline void golden_trace_check(const char *name, figure_layout layout, const void *what)
{
    draw_list *list = NULL;
    byte_buffer trace = {0};
    figure_notes notes = {0};
    deberta_error err = {0};
    draw_list_create(&list, draw_trace_ruler());
    if (layout(list, what, &notes, &err) != DEBERTA_OK) fail_msg("%s: %s", name, err.message);
    draw_trace(list, &trace);
    golden_trace_compare(name, &trace);
    byte_buffer_free(&trace);
    draw_list_free(&list);
}
