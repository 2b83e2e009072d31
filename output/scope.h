/* Provides memory for the parts that only the program links (output, analysis, check, bench, viz, program). If the
 * system has no memory left, these functions do not return: the program ends through one hook, with one sentence and
 * exit code 4, so callers need no error paths. The library (core, simd, train) never ends a program; it returns
 * statuses.
 *
 *     scope memory = {0};
 *     float *rows = scope_take(&memory, count, sizeof *rows);   // zeros
 *     scope_free(&memory);                                      // frees all memory taken in it
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* Memory taken in a scope lives as long as the scope; {0} holds nothing. */
typedef struct scope {
    struct scope_piece *newest;
} scope;

/* Returns zeroed memory for an array; for no elements the address is valid too. */
void *scope_take(scope *memory, size_t count, size_t bytes_each);
/* Returns `items`, or a larger copy of its `count` elements, with room for one more; *capacity doubles when it is
 * reached. */
void *scope_grown(scope *memory, void *items, size_t *capacity, size_t count, size_t bytes_each);
/* Formats into memory of the scope. */
char *scope_text(scope *memory, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *scope_print(scope *memory, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
/* scope_release frees memory taken since scope_mark, for work on one text of many. */
struct scope_piece *scope_mark(const scope *memory);
void scope_release(scope *memory, struct scope_piece *mark);
void scope_free(scope *memory);

/* Returns zeroed memory that the caller frees, where it is to be released before a scope ends. */
void *memory_take(size_t count, size_t bytes_each);
/* Resizes as realloc and grows as `grown` (core/base/memory.h); new memory is not zeroed. */
void *memory_resize(void *items, size_t count, size_t bytes_each);
void *memory_grown(void *items, size_t *capacity, size_t count, size_t bytes_each);
char *memory_copy_text(const char *text);

/* Ends the program as these functions do, for failed allocations of other libraries. */
_Noreturn void memory_short(void);
/* Sets the hook: `end` reports the shortage, removes unfinished files, and does not return. Without it the program
 * prints "out of memory". */
void memory_on_shortage(void (*end)(void));
