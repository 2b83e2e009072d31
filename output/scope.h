/* Memory of the rooms that are linked into the program alone (output, analysis, check, bench, viz, program). Where the
 * system has none left, none of these functions returns: the program ends through one hook, with one sentence and exit
 * code 4, and nothing is handed up in between. The library (core, simd, train) never ends a program; it has statuses.
 *
 *     scope memory = {0};
 *     float *rows = scope_take(&memory, count, sizeof *rows);   // zeros
 *     scope_free(&memory);                                      // all that was taken in it
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* Memory taken in a scope lives as long as the scope; {0} holds nothing. */
typedef struct scope {
    struct scope_piece *newest;
} scope;

/* Zeroed memory for an array; of no elements it is a valid address too. */
void *scope_take(scope *memory, size_t count, size_t bytes_each);
/* `items` or a larger copy of its `count` elements, with room for one more: doubled where *capacity is reached. */
void *scope_grown(scope *memory, void *items, size_t *capacity, size_t count, size_t bytes_each);
/* printf into memory of the scope. */
char *scope_text(scope *memory, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *scope_print(scope *memory, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
/* Frees what was taken since scope_mark: for the memory of one text among many. */
struct scope_piece *scope_mark(const scope *memory);
void scope_release(scope *memory, struct scope_piece *mark);
void scope_free(scope *memory);

/* Zeroed memory that is given back with free, where that is sooner than a scope ends. */
void *memory_take(size_t count, size_t bytes_each);
/* Resizes as realloc and grows as `grown` (core/base/memory.h); new memory is not zeroed. */
void *memory_resize(void *items, size_t count, size_t bytes_each);
void *memory_grown(void *items, size_t *capacity, size_t count, size_t bytes_each);
char *memory_copy_text(const char *text);

/* Ends the program as any of these functions does: for what another library could not allocate. */
_Noreturn void memory_short(void);
/* `end` says so, removes what is unfinished, and does not return. Without it the program says "out of memory". */
void memory_on_shortage(void (*end)(void));
