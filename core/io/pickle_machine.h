/* Declares the stack machine that runs a pickle: its memory, stack, memo and containers. Only pickle_tensors.c, which
 * builds tensors on it, and pickle_read.c, which interprets the opcodes, include this header.
 *
 * Values live in a few growing pools; containers are chains of cells in one of them. There is no recursion and no
 * reference counting: everything is released at once.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <string.h>

#include "core/io/pickle.h"
#include "core/io/quote.h"

typedef struct pickle_pool {
    void *items;
    size_t count, capacity, item_bytes;
} pickle_pool;

/* Cell and container numbers count from 1; 0 is none. */
typedef struct pickle_cell {
    pickle_value value;
    size_t next;
} pickle_cell;

typedef struct pickle_container {
    size_t first, last, count; /* number of cells; a dict has two for each pair */
    size_t tensors;            /* number of values of a dict that are tensors under a text */
} pickle_container;

struct pickle {
    const uint8_t *bytes;
    size_t size_bytes, at;
    pickle_pool stack, marks, memo, cells, containers, storages, tensors;
    size_t memo_stores;
    bool stopped;
    const char *where;
    deberta_error *err;
};

/* Holds ", at '...'", or nothing. */
typedef struct place_text {
    char text[QUOTE_BYTES + 8];
} place_text;

/* Returns the last text on the stack, for messages: while a tensor is built, this is its name. */
place_text pickle_nearest_text(const pickle *p);

/* The format is a literal; at least one value follows it. The code is returned here rather than from status_fail, so
 * that the compiler sees that the following code never runs with operands unread. */
#define PICKLE_REFUSE(p, format, ...)                                                                                  \
    do {                                                                                                               \
        status_fail((p)->err, DEBERTA_E_FORMAT, "%s: pickle, byte %zu%s: " format, (p)->where, (p)->at,                \
                    pickle_nearest_text(p).text, __VA_ARGS__);                                                         \
        return DEBERTA_E_FORMAT;                                                                                       \
    } while (0)

static inline pickle_value *pickle_stack_items(const pickle *p) { return p->stack.items; }
/* Returns the container of a tuple, list or dict. */
static inline pickle_container *pickle_container_of(const pickle *p, pickle_value value)
{
    return (pickle_container *)p->containers.items + (value.as.index - 1);
}

/* Returns the last mark's position, below which the stack is inaccessible. */
static inline size_t pickle_stack_floor(const pickle *p)
{
    return p->marks.count ? ((size_t *)p->marks.items)[p->marks.count - 1] : 0;
}

static inline bool pickle_bytes_are(const char *bytes, size_t count, const char *text)
{
    return strlen(text) == count && memcmp(bytes, text, count) == 0;
}

/* Appends a new zeroed item. NULL without memory or when the pool has reached the limit. */
void *pickle_pool_add(pickle_pool *pool);
/* Returns the error for such a NULL. */
deberta_status pickle_out_of_room(const pickle *p, const pickle_pool *pool);

deberta_status pickle_push(pickle *p, pickle_value value);
deberta_status pickle_push_integer(pickle *p, pickle_kind kind, int64_t integer);
deberta_status pickle_pop(pickle *p, pickle_value *value);
deberta_status pickle_top(const pickle *p, pickle_value *value);
deberta_status pickle_push_mark(pickle *p);
/* Removes the last mark; the operands above it begin at *first. */
deberta_status pickle_pop_mark(pickle *p, size_t *first);

deberta_status pickle_memo_store(pickle *p, size_t index); /* Stores the top of the stack. */
deberta_status pickle_memo_fetch(pickle *p, size_t index);

/* Replace the operands from `first` to the top of the stack, or the last `count`, by a new tuple of them. */
deberta_status pickle_make_tuple(pickle *p, size_t first);
deberta_status pickle_make_small_tuple(pickle *p, size_t count);
/* Pushes an empty container. */
deberta_status pickle_push_container(pickle *p, pickle_kind kind);
/* Move operands, those above the last mark or the last ones, into the container below them. */
deberta_status pickle_fill_from_mark(pickle *p, pickle_kind kind);
deberta_status pickle_fill_with(pickle *p, pickle_kind kind, size_t operands);

/* Implementations of the opcodes that make storages and tensors, and the only accepted names. Only pickle_read.c uses
 * them. */

/* Maps a name from the file to its index in known_globals, or fails. No other function interprets names, so none
 * can become code. */
deberta_status pickle_push_global(pickle *p, const char *module, size_t module_bytes, const char *name,
                                  size_t name_bytes);
/* Pushes a global whose two names protocol 4 takes from the stack. */
deberta_status pickle_push_stack_global(pickle *p);
/* Pushes a storage from ("storage", type, key, location, elements [, None or (view key, offset, elements)]). */
deberta_status pickle_push_storage(pickle *p);
/* Implements REDUCE. The three existing functions run nothing: this function builds their results. */
deberta_status pickle_call(pickle *p);
/* Discards an OrderedDict's attributes (torch puts `_metadata` there), which are not needed. */
deberta_status pickle_discard_attributes(pickle *p);
