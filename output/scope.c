/* Allocates memory that belongs to scopes, and ends the program when memory runs out.
 *
 * SPDX-License-Identifier: MIT */
#include "output/scope.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* Header of an allocation, which its memory follows; the list has the newest first. */
struct scope_piece {
    struct scope_piece *next;
    max_align_t bytes[];
};

enum { EXIT_SHORT = 4 };

/* The hook for memory shortage, one for the program; the library has no such variable. */
static void (*on_shortage)(void);

void memory_on_shortage(void (*end)(void)) { on_shortage = end; }

_Noreturn void memory_short(void)
{
    if (on_shortage) on_shortage();
    fputs("out of memory\n", stderr);
    exit(EXIT_SHORT);
}

static size_t bytes_of(size_t count, size_t bytes_each)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, bytes_each, &bytes) || bytes > SIZE_MAX / 2) memory_short();
    return bytes;
}

void *memory_take(size_t count, size_t bytes_each)
{
    const size_t bytes = bytes_of(count, bytes_each);
    void *taken = calloc(1, bytes ? bytes : 1);
    if (!taken) memory_short();
    return taken;
}

void *memory_resize(void *items, size_t count, size_t bytes_each)
{
    const size_t bytes = bytes_of(count, bytes_each);
    void *resized = realloc(items, bytes ? bytes : 1);
    if (!resized) memory_short();
    return resized;
}

void *memory_grown(void *items, size_t *capacity, size_t count, size_t bytes_each)
{
    void *larger = grown(items, capacity, count, bytes_each);
    if (!larger) memory_short();
    return larger;
}

char *memory_copy_text(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    return memcpy(memory_take(bytes, 1), text, bytes);
}

void *scope_take(scope *memory, size_t count, size_t bytes_each)
{
    struct scope_piece *piece = memory_take(1, sizeof *piece + bytes_of(count, bytes_each));
    piece->next = memory->newest;
    memory->newest = piece;
    return piece->bytes;
}

void *scope_grown(scope *memory, void *items, size_t *capacity, size_t count, size_t bytes_each)
{
    if (count < *capacity) return items;
    *capacity = 2 * *capacity + 16;
    void *larger = scope_take(memory, *capacity, bytes_each);
    return count ? memcpy(larger, items, count * bytes_each) : larger;
}

char *scope_print(scope *memory, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) memory_short();
    char *text = scope_take(memory, (size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

char *scope_text(scope *memory, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = scope_print(memory, format, arguments);
    va_end(arguments);
    return text;
}

struct scope_piece *scope_mark(const scope *memory) { return memory->newest; }

void scope_release(scope *memory, struct scope_piece *mark)
{
    struct scope_piece *next;
    for (struct scope_piece *piece = memory->newest; piece != mark; piece = next) {
        next = piece->next;
        free(piece);
    }
    memory->newest = mark;
}

void scope_free(scope *memory) { scope_release(memory, NULL); }
