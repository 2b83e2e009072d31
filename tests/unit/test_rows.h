/* What every unit test may use: rows of a table whose number a failing test tells, owners of memory, calls that must
 * succeed.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "include/deberta.h"

#define COUNT_OF(rows) (sizeof(rows) / sizeof *(rows))

/* A loop over the rows of an array, which must run to its end: a test that ends within it has failed in this row, and
 * tell_rows says so. */
#define FOR_ROWS(i, rows) for (size_t i = 0; row_begins(#rows, i, COUNT_OF(rows)); i++)

/* The object declared is released at the end of its block by a function that takes its address. After a failed check it
 * is not: cmocka jumps out of the test. */
#define FREED_BY(release) __attribute__((cleanup(release)))

#define OWN_MODEL     FREED_BY(deberta_model_free) deberta_model
#define OWN_SESSION   FREED_BY(deberta_session_free) deberta_session
#define OWN_TOKENIZER FREED_BY(deberta_tokenizer_free) deberta_tokenizer

#define assert_ok(call) assert_int_equal(call, DEBERTA_OK)

/* A NaN is close to nothing. */
static inline void assert_close(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance)) fail_msg("found %.12g, expected %.12g", found, expected);
}

/* Loops over rows that have begun and not ended, the innermost last. */
typedef struct rows_at_work {
    const char *names[4];
    size_t rows[4], depth;
} rows_at_work;

static inline rows_at_work *loops_over_rows(void)
{
    static rows_at_work loops;
    return &loops;
}

static inline bool row_begins(const char *name, size_t row, size_t count)
{
    rows_at_work *loops = loops_over_rows();
    if (row > 0) loops->depth--;
    if (row == count) return false;
    assert_true(loops->depth < COUNT_OF(loops->names));
    loops->names[loops->depth] = name;
    loops->rows[loops->depth++] = row;
    return true;
}

/* Called after every test. */
static inline void tell_rows(void)
{
    rows_at_work *loops = loops_over_rows();
    for (size_t k = 0; k < loops->depth; k++) print_error("in row %zu of %s\n", loops->rows[k], loops->names[k]);
    loops->depth = 0;
}

/* For memory of malloc and its like. */
static inline void free_memory(void *place) { free(*(void **)place); }

/* The status is this and the message contains the text. */
#define check_refused(status, error, expected, text) check_refused_at(__FILE__, __LINE__, status, error, expected, text)

static inline void check_refused_at(const char *file, int line, deberta_status status, const deberta_error *error,
                                    deberta_status expected, const char *text)
{
    if (status == expected && strstr(error->message, text)) return;
    print_error("status %d '%s', expected %d and a message with '%s'\n", status, status ? error->message : "", expected,
                text);
    _fail(file, line);
}
