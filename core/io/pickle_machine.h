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
    size_t first, last, count; /* cells; a dict has two for each pair */
    size_t tensors;            /* of a dict: values that are tensors under a text */
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

/* ", at '...'", or nothing. */
typedef struct place_text {
    char text[QUOTE_BYTES + 8];
} place_text;

/* The last text on the stack, for messages: while a tensor is built, this is its name. */
place_text pickle_nearest_text(const pickle *p);

/* The format is a literal; at least one value follows it. The code is returned here rather than from status_fail, so
 * that the compiler sees that what follows is never reached with operands unread. */
#define PICKLE_REFUSE(p, format, ...)                                                                                  \
    do {                                                                                                               \
        status_fail((p)->err, DEBERTA_E_FORMAT, "%s: pickle, byte %zu%s: " format, (p)->where, (p)->at,                \
                    pickle_nearest_text(p).text, __VA_ARGS__);                                                         \
        return DEBERTA_E_FORMAT;                                                                                       \
    } while (0)

static inline pickle_value *pickle_stack_items(const pickle *p) { return p->stack.items; }
/* The container of a tuple, list or dict. */
static inline pickle_container *pickle_container_of(const pickle *p, pickle_value value)
{
    return (pickle_container *)p->containers.items + (value.as.index - 1);
}

/* Below the last mark the stack is out of reach. */
static inline size_t pickle_stack_floor(const pickle *p)
{
    return p->marks.count ? ((size_t *)p->marks.items)[p->marks.count - 1] : 0;
}

static inline bool pickle_bytes_are(const char *bytes, size_t count, const char *text)
{
    return strlen(text) == count && memcmp(bytes, text, count) == 0;
}

/* A new item at the end, zeroed. NULL without memory or when the pool has reached the limit. */
void *pickle_pool_add(pickle_pool *pool);
/* The error for that NULL. */
deberta_status pickle_out_of_room(const pickle *p, const pickle_pool *pool);

deberta_status pickle_push(pickle *p, pickle_value value);
deberta_status pickle_push_integer(pickle *p, pickle_kind kind, int64_t integer);
deberta_status pickle_pop(pickle *p, pickle_value *value);
deberta_status pickle_top(const pickle *p, pickle_value *value);
deberta_status pickle_push_mark(pickle *p);
/* Takes the last mark away; the operands above it begin at *first. */
deberta_status pickle_pop_mark(pickle *p, size_t *first);

deberta_status pickle_memo_store(pickle *p, size_t index); /* the top of the stack */
deberta_status pickle_memo_fetch(pickle *p, size_t index);

/* The operands from `first` to the top of the stack, or the last `count`, become the items of a new tuple. */
deberta_status pickle_make_tuple(pickle *p, size_t first);
deberta_status pickle_make_small_tuple(pickle *p, size_t count);
/* An empty one. */
deberta_status pickle_push_container(pickle *p, pickle_kind kind);
/* Moves operands, those above the last mark or the last ones, into the container below them. */
deberta_status pickle_fill_from_mark(pickle *p, pickle_kind kind);
deberta_status pickle_fill_with(pickle *p, pickle_kind kind, size_t operands);

/* The opcodes of a pickle that make storages and tensors, and the only names that mean anything here. Only for
 * pickle_read.c. */

/* The one place where a name from the file could become code. It becomes a number in a table of thirteen, or an error.
 */
deberta_status pickle_push_global(pickle *p, const char *module, size_t module_bytes, const char *name,
                                  size_t name_bytes);
/* Protocol 4 takes the two names from the stack. */
deberta_status pickle_push_stack_global(pickle *p);
/* ("storage", type, key, location, elements [, None or (view key, offset, elements)]) */
deberta_status pickle_push_storage(pickle *p);
/* REDUCE. The three functions that exist do not run anything: their results are built here. */
deberta_status pickle_call(pickle *p);
/* An OrderedDict's attributes (torch puts `_metadata` there): not needed. */
deberta_status pickle_discard_attributes(pickle *p);
