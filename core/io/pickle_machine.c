/* Implements pools, stack, memo and containers of the machine. Every access is checked, since a pickle may be
 * malformed. pickle_read.c runs the opcodes.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/pickle_machine.h"

#include <stdio.h>
#include <stdlib.h>

/* A tensor in a state dict takes about 40 cells. With this limit the worst pickle costs about 100 MB. */
enum { MAX_POOL_ITEMS = 1 << 20, FREE_MEMO_ENTRIES = 4096 };

/* ----------------------------------------------------------------------------------------- pools, stack and memo */

void *pickle_pool_add(pickle_pool *pool)
{
    if (pool->count == pool->capacity) {
        size_t capacity = pool->capacity ? 2 * pool->capacity : 64;
        if (capacity > MAX_POOL_ITEMS) return NULL;
        void *items = realloc(pool->items, capacity * pool->item_bytes);
        if (!items) return NULL;
        pool->items = items;
        pool->capacity = capacity;
    }
    return memset((char *)pool->items + pool->count++ * pool->item_bytes, 0, pool->item_bytes);
}

deberta_status pickle_out_of_room(const pickle *p, const pickle_pool *pool)
{
    if (pool->capacity == MAX_POOL_ITEMS)
        PICKLE_REFUSE(p, "more than %d objects, far more than a state dict has", MAX_POOL_ITEMS);
    DEBERTA_FAIL(p->err, DEBERTA_E_MEMORY, "%s: no memory for %zu objects of its pickle", p->where, pool->count);
}

place_text pickle_nearest_text(const pickle *p)
{
    place_text text = {""};
    for (size_t i = p->stack.count; i-- > 0 && p->stack.count - i <= 8;) {
        pickle_value value = pickle_stack_items(p)[i];
        if (value.kind != PICKLE_TEXT) continue;
        snprintf(text.text, sizeof text.text, ", at '%s'", QUOTE_N(value.as.text, value.length_bytes));
        break;
    }
    return text;
}

deberta_status pickle_push(pickle *p, pickle_value value)
{
    pickle_value *top = pickle_pool_add(&p->stack);
    if (!top) return pickle_out_of_room(p, &p->stack);
    *top = value;
    return DEBERTA_OK;
}

deberta_status pickle_push_integer(pickle *p, pickle_kind kind, int64_t integer)
{
    return pickle_push(p, (pickle_value){.kind = kind, .as.integer = integer});
}

deberta_status pickle_pop(pickle *p, pickle_value *value)
{
    *value = (pickle_value){0};
    if (p->stack.count <= pickle_stack_floor(p)) PICKLE_REFUSE(p, "%s", "an operand is missing on the stack");
    *value = pickle_stack_items(p)[--p->stack.count];
    return DEBERTA_OK;
}

deberta_status pickle_top(const pickle *p, pickle_value *value)
{
    *value = (pickle_value){0};
    if (p->stack.count <= pickle_stack_floor(p)) PICKLE_REFUSE(p, "%s", "an operand is missing on the stack");
    *value = pickle_stack_items(p)[p->stack.count - 1];
    return DEBERTA_OK;
}

deberta_status pickle_push_mark(pickle *p)
{
    size_t *mark = pickle_pool_add(&p->marks);
    if (!mark) return pickle_out_of_room(p, &p->marks);
    *mark = p->stack.count;
    return DEBERTA_OK;
}

deberta_status pickle_pop_mark(pickle *p, size_t *first)
{
    if (p->marks.count == 0) PICKLE_REFUSE(p, "%s", "a mark is missing on the stack");
    *first = pickle_stack_floor(p);
    p->marks.count--;
    return DEBERTA_OK;
}

/* Picklers number memo entries 0, 1, 2 ... in the order of the stores. Small numbers are free; a large one must be
 * preceded by as many stores, or a few bytes would make a table of gigabytes. */
deberta_status pickle_memo_store(pickle *p, size_t index)
{
    if (index >= FREE_MEMO_ENTRIES && index > p->memo_stores)
        PICKLE_REFUSE(p, "memo entry %zu after %zu stores, expected consecutive numbers", index, p->memo_stores);
    p->memo_stores++;
    while (p->memo.count <= index)
        if (!pickle_pool_add(&p->memo)) return pickle_out_of_room(p, &p->memo);
    return pickle_top(p, (pickle_value *)p->memo.items + index);
}

deberta_status pickle_memo_fetch(pickle *p, size_t index)
{
    pickle_value value = {0};
    if (index < p->memo.count) value = ((pickle_value *)p->memo.items)[index];
    if (value.kind == PICKLE_NOTHING) PICKLE_REFUSE(p, "memo entry %zu was never stored", index);
    return pickle_push(p, value);
}

/* ---------------------------------------------------------------------------------------------------- containers */

/* Pushes a container without items. Nothing is ever removed from one, so a chain is enough. */
static deberta_status new_container(pickle *p, pickle_kind kind, pickle_value *value)
{
    if (!pickle_pool_add(&p->containers)) return pickle_out_of_room(p, &p->containers);
    *value = (pickle_value){.kind = kind, .as.index = p->containers.count};
    return DEBERTA_OK;
}

/* Appends in constant time, because a batch of items must not cost the square of its length. */
static deberta_status pickle_machine_append(pickle *p, pickle_value to, pickle_value value)
{
    pickle_cell *fresh = pickle_pool_add(&p->cells);
    if (!fresh) return pickle_out_of_room(p, &p->cells);
    fresh->value = value;
    pickle_container *list = pickle_container_of(p, to);
    if (list->last)
        ((pickle_cell *)p->cells.items)[list->last - 1].next = p->cells.count;
    else
        list->first = p->cells.count;
    list->last = p->cells.count;
    list->count++;
    return DEBERTA_OK;
}

/* Replaces the operands from `first` to the top of the stack by a new tuple of them. */
deberta_status pickle_make_tuple(pickle *p, size_t first)
{
    pickle_value tuple;
    DEBERTA_TRY(new_container(p, PICKLE_TUPLE, &tuple));
    for (size_t i = first; i < p->stack.count; i++)
        DEBERTA_TRY(pickle_machine_append(p, tuple, pickle_stack_items(p)[i]));
    p->stack.count = first;
    return pickle_push(p, tuple);
}

/* Makes tuples of up to three items, which have separate opcodes without a mark. */
deberta_status pickle_make_small_tuple(pickle *p, size_t count)
{
    if (p->stack.count - pickle_stack_floor(p) < count) PICKLE_REFUSE(p, "%s", "an operand is missing on the stack");
    return pickle_make_tuple(p, p->stack.count - count);
}

deberta_status pickle_push_container(pickle *p, pickle_kind kind)
{
    pickle_value value;
    DEBERTA_TRY(new_container(p, kind, &value));
    return pickle_push(p, value);
}

/* Moves the operands from `first` into the container below them: a list takes any number, a dict pairs. */
static deberta_status pickle_machine_fill(pickle *p, pickle_kind kind, size_t first)
{
    if (first <= pickle_stack_floor(p)) PICKLE_REFUSE(p, "%s", "an operand is missing on the stack");
    pickle_value target = pickle_stack_items(p)[first - 1];
    if (target.kind != (uint32_t)kind)
        PICKLE_REFUSE(p, "items for %s, expected %s", pickle_kind_name(target),
                      pickle_kind_name((pickle_value){.kind = kind}));
    if (kind == PICKLE_DICT && (p->stack.count - first) % 2 != 0)
        PICKLE_REFUSE(p, "%s", "a key of a dict has no value");
    for (size_t i = first; i < p->stack.count; i++)
        DEBERTA_TRY(pickle_machine_append(p, target, pickle_stack_items(p)[i]));
    if (kind == PICKLE_DICT)
        for (size_t i = first; i < p->stack.count; i += 2)
            pickle_container_of(p, target)->tensors +=
                pickle_stack_items(p)[i].kind == PICKLE_TEXT && pickle_stack_items(p)[i + 1].kind == PICKLE_TENSOR;
    p->stack.count = first;
    return DEBERTA_OK;
}

/* Implements APPENDS and SETITEMS, which take everything above the mark. */
deberta_status pickle_fill_from_mark(pickle *p, pickle_kind kind)
{
    size_t first;
    DEBERTA_TRY(pickle_pop_mark(p, &first));
    return pickle_machine_fill(p, kind, first);
}

/* Implements APPEND, which takes one item, and SETITEM, which takes one pair. */
deberta_status pickle_fill_with(pickle *p, pickle_kind kind, size_t operands)
{
    if (p->stack.count - pickle_stack_floor(p) < operands) PICKLE_REFUSE(p, "%s", "an operand is missing on the stack");
    return pickle_machine_fill(p, kind, p->stack.count - operands);
}

/* -------------------------------------------------------------------------------------------------------- results */

void pickle_free(pickle **p)
{
    if (!*p) return;
    pickle_pool *pools[] = {&(*p)->stack,      &(*p)->marks,    &(*p)->memo,   &(*p)->cells,
                            &(*p)->containers, &(*p)->storages, &(*p)->tensors};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) free(pools[i]->items);
    free(*p);
    *p = NULL;
}

size_t pickle_length_bytes(const pickle *p) { return p->at; }
pickle_value pickle_root(const pickle *p) { return pickle_stack_items(p)[p->stack.count - 1]; }
size_t pickle_storage_count(const pickle *p) { return p->storages.count; }

const char *pickle_kind_name(pickle_value value)
{
    static const char *const names[PICKLE_KIND_COUNT] = {
        "nothing",        "None",    "a bool", "an integer", "a float",       "a text",    "bytes",
        "a long integer", "a tuple", "a list", "a dict",     "a global name", "a storage", "a tensor",
    };
    return names[value.kind];
}

bool pickle_text_is(pickle_value value, const char *text)
{
    return value.kind == PICKLE_TEXT && pickle_bytes_are(value.as.text, value.length_bytes, text);
}

bool pickle_next(const pickle *p, pickle_value from, size_t *cursor, pickle_value *item)
{
    if (from.kind != PICKLE_TUPLE && from.kind != PICKLE_LIST && from.kind != PICKLE_DICT) return false;
    const pickle_cell *cells = p->cells.items;
    size_t number = *cursor ? cells[*cursor - 1].next : pickle_container_of(p, from)->first;
    if (number == 0) return false;
    *cursor = number;
    *item = cells[number - 1].value;
    return true;
}

size_t pickle_tensor_count(const pickle *p, pickle_value dict)
{
    return dict.kind == PICKLE_DICT ? pickle_container_of(p, dict)->tensors : 0;
}

const pickle_storage *pickle_storage_at(const pickle *p, size_t index)
{
    return (const pickle_storage *)p->storages.items + index;
}

const pickle_tensor *pickle_tensor_of(const pickle *p, pickle_value value)
{
    return (const pickle_tensor *)p->tensors.items + value.as.index;
}
