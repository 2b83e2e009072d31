/* An interpreter of the pickle opcodes that state dicts of tensors are made of.
 *
 * One opcode makes at most a few small items in a few growing pools; containers are chains of cells in a pool. There is
 * no recursion and no reference counting: everything is released at once.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/pickle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/mapped_file.h"
#include "core/io/quote.h"

/* A tensor in a state dict takes about 40 cells and 150 bytes. With these limits the worst pickle costs about 100 MB.
 */
enum { MAX_PICKLE_BYTES = 64 << 20, MAX_POOL_ITEMS = 1 << 20, MAX_PROTOCOL = 5, FREE_MEMO_ENTRIES = 4096 };

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

/* ------------------------------------------------------------------------------------------------------- globals */

enum { CALL_NOTHING, CALL_ORDERED_DICT, CALL_REBUILD_TENSOR, CALL_REBUILD_PARAMETER };

static const struct known_global {
    const char *module, *name;
    int call;
    tensor_dtype dtype; /* of a storage type */
} known_globals[] = {
    {"collections", "OrderedDict", CALL_ORDERED_DICT, DTYPE_OTHER},
    {"torch._utils", "_rebuild_tensor_v2", CALL_REBUILD_TENSOR, DTYPE_OTHER},
    {"torch._utils", "_rebuild_parameter", CALL_REBUILD_PARAMETER, DTYPE_OTHER},
    {"torch", "DoubleStorage", CALL_NOTHING, DTYPE_F64},
    {"torch", "FloatStorage", CALL_NOTHING, DTYPE_F32},
    {"torch", "HalfStorage", CALL_NOTHING, DTYPE_F16},
    {"torch", "BFloat16Storage", CALL_NOTHING, DTYPE_BF16},
    {"torch", "LongStorage", CALL_NOTHING, DTYPE_I64},
    {"torch", "IntStorage", CALL_NOTHING, DTYPE_I32},
    {"torch", "ShortStorage", CALL_NOTHING, DTYPE_I16},
    {"torch", "CharStorage", CALL_NOTHING, DTYPE_I8},
    {"torch", "ByteStorage", CALL_NOTHING, DTYPE_U8},
    {"torch", "BoolStorage", CALL_NOTHING, DTYPE_BOOL},
};

/* ----------------------------------------------------------------------------------------- pools, stack and memo */

/* ", at '...'", or nothing. */
typedef struct place_text {
    char text[QUOTE_BYTES + 8];
} place_text;

static place_text nearest_text(const pickle *p);

/* The format is a literal; at least one value follows it. The code is returned here rather than from status_fail, so
 * that the compiler sees that what follows is never reached with operands unread. */
#define REFUSE(p, format, ...)                                                                                         \
    do {                                                                                                               \
        status_fail((p)->err, DEBERTA_E_FORMAT, "%s: pickle, byte %zu%s: " format, (p)->where, (p)->at,                \
                    nearest_text(p).text, __VA_ARGS__);                                                                \
        return DEBERTA_E_FORMAT;                                                                                       \
    } while (0)

/* A new item at the end, zeroed. NULL without memory or when the pool has reached the limit. */
static void *pool_add(pickle_pool *pool)
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

static deberta_status out_of_room(const pickle *p, const pickle_pool *pool)
{
    if (pool->capacity == MAX_POOL_ITEMS)
        REFUSE(p, "more than %d objects, far more than a state dict has", MAX_POOL_ITEMS);
    DEBERTA_FAIL(p->err, DEBERTA_E_MEMORY, "%s: no memory for %zu objects of its pickle", p->where, pool->count);
}

static pickle_value *stack_items(const pickle *p) { return p->stack.items; }
/* Of a tuple, list or dict. */
static pickle_container *container_of(const pickle *p, pickle_value value)
{
    return (pickle_container *)p->containers.items + (value.as.index - 1);
}

/* The last text on the stack, for messages: while a tensor is built, this is its name. */
static place_text nearest_text(const pickle *p)
{
    place_text text = {""};
    for (size_t i = p->stack.count; i-- > 0 && p->stack.count - i <= 8;) {
        pickle_value value = stack_items(p)[i];
        if (value.kind != PICKLE_TEXT) continue;
        snprintf(text.text, sizeof text.text, ", at '%s'", QUOTE_N(value.as.text, value.length_bytes));
        break;
    }
    return text;
}

/* Below the last mark the stack is out of reach. */
static size_t stack_floor(const pickle *p)
{
    return p->marks.count ? ((size_t *)p->marks.items)[p->marks.count - 1] : 0;
}

static deberta_status push(pickle *p, pickle_value value)
{
    pickle_value *top = pool_add(&p->stack);
    if (!top) return out_of_room(p, &p->stack);
    *top = value;
    return DEBERTA_OK;
}

static deberta_status push_integer(pickle *p, pickle_kind kind, int64_t integer)
{
    return push(p, (pickle_value){.kind = kind, .as.integer = integer});
}

static deberta_status pop(pickle *p, pickle_value *value)
{
    *value = (pickle_value){0};
    if (p->stack.count <= stack_floor(p)) REFUSE(p, "%s", "an operand is missing on the stack");
    *value = stack_items(p)[--p->stack.count];
    return DEBERTA_OK;
}

static deberta_status top(const pickle *p, pickle_value *value)
{
    *value = (pickle_value){0};
    if (p->stack.count <= stack_floor(p)) REFUSE(p, "%s", "an operand is missing on the stack");
    *value = stack_items(p)[p->stack.count - 1];
    return DEBERTA_OK;
}

static deberta_status push_mark(pickle *p)
{
    size_t *mark = pool_add(&p->marks);
    if (!mark) return out_of_room(p, &p->marks);
    *mark = p->stack.count;
    return DEBERTA_OK;
}

/* Takes the last mark away; the operands above it begin at *first. */
static deberta_status pop_mark(pickle *p, size_t *first)
{
    if (p->marks.count == 0) REFUSE(p, "%s", "a mark is missing on the stack");
    *first = stack_floor(p);
    p->marks.count--;
    return DEBERTA_OK;
}

/* Picklers number memo entries 0, 1, 2 ... in the order of the stores. Small numbers are free; a large one must be
 * preceded by as many stores, or a few bytes would make a table of gigabytes. */
static deberta_status memo_store(pickle *p, size_t index)
{
    if (index >= FREE_MEMO_ENTRIES && index > p->memo_stores)
        REFUSE(p, "memo entry %zu after %zu stores, expected consecutive numbers", index, p->memo_stores);
    p->memo_stores++;
    while (p->memo.count <= index)
        if (!pool_add(&p->memo)) return out_of_room(p, &p->memo);
    return top(p, (pickle_value *)p->memo.items + index);
}

static deberta_status memo_fetch(pickle *p, size_t index)
{
    pickle_value value = {0};
    if (index < p->memo.count) value = ((pickle_value *)p->memo.items)[index];
    if (value.kind == PICKLE_NOTHING) REFUSE(p, "memo entry %zu was never stored", index);
    return push(p, value);
}

/* ---------------------------------------------------------------------------------------------------- containers */

/* A container without items. Nothing is ever taken out of one, so it needs no more than a chain. */
static deberta_status new_container(pickle *p, pickle_kind kind, pickle_value *value)
{
    if (!pool_add(&p->containers)) return out_of_room(p, &p->containers);
    *value = (pickle_value){.kind = kind, .as.index = p->containers.count};
    return DEBERTA_OK;
}

/* Constant time, whatever the length: a batch of items must not cost its square. */
static deberta_status append(pickle *p, pickle_value to, pickle_value value)
{
    pickle_cell *fresh = pool_add(&p->cells);
    if (!fresh) return out_of_room(p, &p->cells);
    fresh->value = value;
    pickle_container *list = container_of(p, to);
    if (list->last)
        ((pickle_cell *)p->cells.items)[list->last - 1].next = p->cells.count;
    else
        list->first = p->cells.count;
    list->last = p->cells.count;
    list->count++;
    return DEBERTA_OK;
}

/* The operands from `first` to the top of the stack become the items of a new tuple. */
static deberta_status make_tuple(pickle *p, size_t first)
{
    pickle_value tuple;
    DEBERTA_TRY(new_container(p, PICKLE_TUPLE, &tuple));
    for (size_t i = first; i < p->stack.count; i++) DEBERTA_TRY(append(p, tuple, stack_items(p)[i]));
    p->stack.count = first;
    return push(p, tuple);
}

/* Tuples of up to three items have opcodes of their own, without a mark. */
static deberta_status make_small_tuple(pickle *p, size_t count)
{
    if (p->stack.count - stack_floor(p) < count) REFUSE(p, "%s", "an operand is missing on the stack");
    return make_tuple(p, p->stack.count - count);
}

static deberta_status push_container(pickle *p, pickle_kind kind)
{
    pickle_value value;
    DEBERTA_TRY(new_container(p, kind, &value));
    return push(p, value);
}

/* Moves the operands from `first` into the container below them: a list takes any number, a dict pairs. */
static deberta_status fill(pickle *p, pickle_kind kind, size_t first)
{
    if (first <= stack_floor(p)) REFUSE(p, "%s", "an operand is missing on the stack");
    pickle_value target = stack_items(p)[first - 1];
    if (target.kind != (uint32_t)kind)
        REFUSE(p, "items for %s, expected %s", pickle_kind_name(target),
               pickle_kind_name((pickle_value){.kind = kind}));
    if (kind == PICKLE_DICT && (p->stack.count - first) % 2 != 0) REFUSE(p, "%s", "a key of a dict has no value");
    for (size_t i = first; i < p->stack.count; i++) DEBERTA_TRY(append(p, target, stack_items(p)[i]));
    if (kind == PICKLE_DICT)
        for (size_t i = first; i < p->stack.count; i += 2)
            container_of(p, target)->tensors +=
                stack_items(p)[i].kind == PICKLE_TEXT && stack_items(p)[i + 1].kind == PICKLE_TENSOR;
    p->stack.count = first;
    return DEBERTA_OK;
}

/* APPENDS and SETITEMS: everything above the mark. */
static deberta_status fill_from_mark(pickle *p, pickle_kind kind)
{
    size_t first;
    DEBERTA_TRY(pop_mark(p, &first));
    return fill(p, kind, first);
}

/* APPEND and SETITEM: one item, one pair. */
static deberta_status fill_with(pickle *p, pickle_kind kind, size_t operands)
{
    if (p->stack.count - stack_floor(p) < operands) REFUSE(p, "%s", "an operand is missing on the stack");
    return fill(p, kind, p->stack.count - operands);
}

/* ----------------------------------------------------------------------------------------- storages and tensors */

/* Copies the items of a tuple that must have from `least` to `most` of them. */
static deberta_status unpack(const pickle *p, pickle_value tuple, size_t least, size_t most, pickle_value *items,
                             const char *what)
{
    if (tuple.kind != PICKLE_TUPLE) REFUSE(p, "%s is %s, expected a tuple", what, pickle_kind_name(tuple));
    size_t count = container_of(p, tuple)->count, cursor = 0;
    if (count < least || count > most) REFUSE(p, "%s has %zu items, expected %zu to %zu", what, count, least, most);
    while (pickle_next(p, tuple, &cursor, items)) items++;
    return DEBERTA_OK;
}

/* Python integers are signed and may be anything; sizes, offsets and strides are not. */
static deberta_status to_size(const pickle *p, size_t *size, pickle_value value, const char *what)
{
    if (value.kind != PICKLE_INTEGER) REFUSE(p, "%s is %s, expected an integer", what, pickle_kind_name(value));
    if (value.as.integer < 0) REFUSE(p, "%s is %lld, expected at least 0", what, (long long)value.as.integer);
    *size = (size_t)value.as.integer;
    return DEBERTA_OK;
}

/* ("storage", type, key, location, elements [, None or (view key, offset, elements)]) */
static deberta_status push_storage(pickle *p)
{
    pickle_value id, items[6] = {{0}}, view[3];
    DEBERTA_TRY(pop(p, &id));
    DEBERTA_TRY(unpack(p, id, 5, 6, items, "a persistent id"));
    bool is_storage = pickle_text_is(items[0], "storage") && items[1].kind == PICKLE_GLOBAL &&
                      known_globals[items[1].as.index].dtype != DTYPE_OTHER && items[2].kind == PICKLE_TEXT;
    if (!is_storage) REFUSE(p, "%s", "a persistent id does not describe a storage with its type and key");
    if (p->storages.count == TENSOR_MAX_COUNT) REFUSE(p, "more than %d storages", TENSOR_MAX_COUNT);
    pickle_storage *storage = pool_add(&p->storages);
    if (!storage) return out_of_room(p, &p->storages);
    *storage = (pickle_storage){.key = items[2], .dtype = known_globals[items[1].as.index].dtype};
    DEBERTA_TRY(to_size(p, &storage->elements, items[4], "the number of elements of a storage"));
    storage->view_elements = storage->elements;
    if (items[5].kind != PICKLE_NOTHING && items[5].kind != PICKLE_NONE) {
        DEBERTA_TRY(unpack(p, items[5], 3, 3, view, "the view of a storage"));
        DEBERTA_TRY(to_size(p, &storage->view_offset, view[1], "the offset of a view"));
        DEBERTA_TRY(to_size(p, &storage->view_elements, view[2], "the number of elements of a view"));
        if (!range_is_inside(storage->view_offset, storage->view_elements, storage->elements))
            REFUSE(p, "a view of %zu elements at %zu of a storage of %zu", storage->view_elements, storage->view_offset,
                   storage->elements);
    }
    return push(p, (pickle_value){.kind = PICKLE_STORAGE, .as.index = p->storages.count - 1});
}

/* The number of elements from the first to the last that the tensor touches; 0 for an empty one. False on overflow. */
static bool tensor_extent(const pickle_tensor *view, size_t *extent)
{
    *extent = view->elements > 0;
    if (view->elements == 0) return true;
    for (size_t d = 0; d < view->rank; d++) {
        size_t step;
        if (!size_multiply(view->shape[d] - 1, view->strides[d], &step) || !size_add(*extent, step, extent))
            return false;
    }
    return true;
}

/* Shape and strides: as many of each, none negative, and a product that does not overflow. */
static deberta_status read_geometry(const pickle *p, pickle_tensor *view, pickle_value shape, pickle_value strides)
{
    pickle_value lengths[TENSOR_MAX_RANK], steps[TENSOR_MAX_RANK];
    DEBERTA_TRY(unpack(p, shape, 0, TENSOR_MAX_RANK, lengths, "the shape of a tensor"));
    view->rank = container_of(p, shape)->count;
    DEBERTA_TRY(unpack(p, strides, view->rank, view->rank, steps, "the tuple of strides of a tensor"));
    for (size_t d = 0; d < view->rank; d++) {
        DEBERTA_TRY(to_size(p, &view->shape[d], lengths[d], "a dimension of a tensor"));
        DEBERTA_TRY(to_size(p, &view->strides[d], steps[d], "a stride of a tensor"));
    }
    if (!tensor_count_elements(&view->elements, view->shape, view->rank))
        REFUSE(p, "the tensor shape %s overflows 64 bits", shape_describe(view->shape, view->rank).text);
    return DEBERTA_OK;
}

/* _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks [, metadata]) */
static deberta_status push_tensor(pickle *p, pickle_value arguments)
{
    pickle_value items[7];
    DEBERTA_TRY(unpack(p, arguments, 6, 7, items, "the arguments of _rebuild_tensor_v2"));
    if (items[0].kind != PICKLE_STORAGE)
        REFUSE(p, "a tensor made of %s, expected a storage", pickle_kind_name(items[0]));
    if (p->tensors.count == TENSOR_MAX_COUNT) REFUSE(p, "more than %d tensors", TENSOR_MAX_COUNT);
    pickle_tensor *view = pool_add(&p->tensors);
    if (!view) return out_of_room(p, &p->tensors);
    view->storage = items[0].as.index;
    const pickle_storage *storage = pickle_storage_at(p, view->storage);
    DEBERTA_TRY(to_size(p, &view->offset, items[1], "the offset of a tensor"));
    DEBERTA_TRY(read_geometry(p, view, items[2], items[3]));

    size_t extent;
    if (!tensor_extent(view, &extent) || !range_is_inside(view->offset, extent, storage->view_elements))
        REFUSE(p, "a tensor of shape %s with strides %s at offset %zu reaches beyond its storage of %zu elements",
               shape_describe(view->shape, view->rank).text, shape_describe(view->strides, view->rank).text,
               view->offset, storage->view_elements);
    /* A stride of 0 repeats elements. Refused, because with it a few bytes claim to be terabytes of weights. */
    if (view->elements > storage->view_elements)
        REFUSE(p, "a tensor of shape %s has more elements than its storage, which has %zu",
               shape_describe(view->shape, view->rank).text, storage->view_elements);
    view->offset += storage->view_offset;
    return push(p, (pickle_value){.kind = PICKLE_TENSOR, .as.index = p->tensors.count - 1});
}

/* REDUCE. The three functions that exist do not run anything: their results are built here. */
static deberta_status call(pickle *p)
{
    pickle_value arguments, function, items[3];
    DEBERTA_TRY(pop(p, &arguments));
    DEBERTA_TRY(pop(p, &function));
    if (function.kind != PICKLE_GLOBAL) REFUSE(p, "a call of %s, expected a function", pickle_kind_name(function));
    switch (known_globals[function.as.index].call) {
    case CALL_ORDERED_DICT:
        DEBERTA_TRY(unpack(p, arguments, 0, 0, items, "the argument tuple of OrderedDict"));
        return push_container(p, PICKLE_DICT);
    case CALL_REBUILD_TENSOR: return push_tensor(p, arguments);
    case CALL_REBUILD_PARAMETER:
        DEBERTA_TRY(unpack(p, arguments, 3, 3, items, "the argument tuple of _rebuild_parameter"));
        if (items[0].kind != PICKLE_TENSOR) REFUSE(p, "a parameter made of %s", pickle_kind_name(items[0]));
        return push(p, items[0]);
    default: REFUSE(p, "a call of torch.%s, which is a type", known_globals[function.as.index].name);
    }
}

/* An OrderedDict's attributes (torch puts `_metadata` there): not needed. */
static deberta_status discard_attributes(pickle *p)
{
    pickle_value attributes, object;
    DEBERTA_TRY(pop(p, &attributes));
    DEBERTA_TRY(top(p, &object));
    if (object.kind != PICKLE_DICT) REFUSE(p, "attributes for %s, expected a dict", pickle_kind_name(object));
    return DEBERTA_OK;
}

static bool bytes_are(const char *bytes, size_t count, const char *text)
{
    return strlen(text) == count && memcmp(bytes, text, count) == 0;
}

/* The one place where a name from the file could become code. It becomes a number in a table of thirteen, or an error.
 */
static deberta_status push_global(pickle *p, const char *module, size_t module_bytes, const char *name,
                                  size_t name_bytes)
{
    for (size_t i = 0; i < sizeof known_globals / sizeof *known_globals; i++)
        if (bytes_are(module, module_bytes, known_globals[i].module) &&
            bytes_are(name, name_bytes, known_globals[i].name))
            return push(p, (pickle_value){.kind = PICKLE_GLOBAL, .as.index = i});
    REFUSE(p, "it names '%s.%s', which no tensor needs; refused, nothing was executed", QUOTE_N(module, module_bytes),
           QUOTE_N(name, name_bytes));
}

/* Protocol 4 takes the two names from the stack. */
static deberta_status push_stack_global(pickle *p)
{
    pickle_value module, name;
    DEBERTA_TRY(pop(p, &name));
    DEBERTA_TRY(pop(p, &module));
    if (module.kind != PICKLE_TEXT || name.kind != PICKLE_TEXT) REFUSE(p, "%s", "a global whose name is not a text");
    return push_global(p, module.as.text, module.length_bytes, name.as.text, name.length_bytes);
}

/* ------------------------------------------------------------------------------------------- operands in the stream */

/* The next `count` bytes, which the stream moves past. */
static deberta_status take(pickle *p, size_t count, const uint8_t **bytes)
{
    if (!range_is_inside(p->at, count, p->size_bytes))
        REFUSE(p, "%zu bytes are needed, %zu are left", count, p->size_bytes - p->at);
    *bytes = p->bytes + p->at;
    p->at += count;
    return DEBERTA_OK;
}

/* An unsigned little-endian number of 1, 2, 4 or 8 bytes. */
static deberta_status take_number(pickle *p, size_t width, uint64_t *number)
{
    const uint8_t *bytes;
    DEBERTA_TRY(take(p, width, &bytes));
    *number = 0;
    for (size_t i = width; i-- > 0;) *number = *number << 8 | bytes[i];
    return DEBERTA_OK;
}

/* A number of `width` bytes and as many bytes of text (or bytes, or a long). */
static deberta_status push_text(pickle *p, pickle_kind kind, size_t width)
{
    uint64_t length;
    const uint8_t *bytes;
    DEBERTA_TRY(take_number(p, width, &length));
    DEBERTA_TRY(take(p, length, &bytes));
    return push(p, (pickle_value){.kind = kind, .length_bytes = (uint32_t)length, .as.text = (const char *)bytes});
}

/* Two's complement of any length. Up to 8 bytes it becomes an integer. */
static deberta_status push_long(pickle *p, size_t width)
{
    DEBERTA_TRY(push_text(p, PICKLE_LONG, width));
    pickle_value *value = &stack_items(p)[p->stack.count - 1];
    if (value->length_bytes > 8) return DEBERTA_OK;
    const char *bytes = value->as.text;
    uint64_t number = value->length_bytes && bytes[value->length_bytes - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = value->length_bytes; i-- > 0;) number = number << 8 | (uint8_t)bytes[i];
    *value = (pickle_value){.kind = PICKLE_INTEGER, .as.integer = (int64_t)number};
    return DEBERTA_OK;
}

/* BININT1 and BININT2 are unsigned, BININT is signed. */
static deberta_status push_number(pickle *p, size_t width)
{
    uint64_t number;
    DEBERTA_TRY(take_number(p, width, &number));
    return push_integer(p, PICKLE_INTEGER, width == 4 ? (int32_t)number : (int64_t)number);
}

/* A line of text without its newline. */
static deberta_status take_line(pickle *p, const char **line, size_t *length_bytes)
{
    const uint8_t *begin = p->bytes + p->at, *end = memchr(begin, '\n', p->size_bytes - p->at);
    if (!end) REFUSE(p, "%s", "the name of a global has no end");
    *line = (const char *)begin;
    *length_bytes = (size_t)(end - begin);
    p->at += *length_bytes + 1;
    return DEBERTA_OK;
}

/* Protocol 2 writes the two names as lines. */
static deberta_status push_named_global(pickle *p)
{
    const char *module, *name;
    size_t module_bytes, name_bytes;
    DEBERTA_TRY(take_line(p, &module, &module_bytes));
    DEBERTA_TRY(take_line(p, &name, &name_bytes));
    return push_global(p, module, module_bytes, name, name_bytes);
}

/* --------------------------------------------------------------------------------------------------- the opcodes */

static deberta_status pop_one(pickle *p)
{
    pickle_value ignored;
    size_t first;
    /* POP right after MARK takes the mark. */
    if (p->marks.count && p->stack.count == stack_floor(p)) return pop_mark(p, &first);
    return pop(p, &ignored);
}

static deberta_status duplicate(pickle *p)
{
    pickle_value value;
    DEBERTA_TRY(top(p, &value));
    return push(p, value);
}

static deberta_status pop_to_mark(pickle *p)
{
    size_t first;
    DEBERTA_TRY(pop_mark(p, &first));
    p->stack.count = first;
    return DEBERTA_OK;
}

static deberta_status tuple_from_mark(pickle *p)
{
    size_t first;
    DEBERTA_TRY(pop_mark(p, &first));
    return make_tuple(p, first);
}

/* Memo opcodes come with one byte or four for the entry. */
static deberta_status memo_operand(pickle *p, size_t width, deberta_status (*action)(pickle *, size_t))
{
    uint64_t index;
    DEBERTA_TRY(take_number(p, width, &index));
    return action(p, index);
}

static deberta_status skip(pickle *p, size_t count)
{
    const uint8_t *ignored;
    return take(p, count, &ignored);
}

/* What is on top of the stack now is the result. */
static deberta_status stop(pickle *p)
{
    pickle_value root;
    DEBERTA_TRY(top(p, &root));
    p->stopped = true;
    return DEBERTA_OK;
}

/* Names as in Python's pickletools. */
static deberta_status step(pickle *p)
{
    uint64_t opcode;
    DEBERTA_TRY(take_number(p, 1, &opcode));
    switch (opcode) {
    case 0x95: return skip(p, 8);                                              /* FRAME: its length is of no use here */
    case '.': return stop(p);                                                  /* STOP */
    case '(': return push_mark(p);                                             /* MARK */
    case '0': return pop_one(p);                                               /* POP */
    case '1': return pop_to_mark(p);                                           /* POP_MARK */
    case '2': return duplicate(p);                                             /* DUP */
    case 'q': return memo_operand(p, 1, memo_store);                           /* BINPUT */
    case 'r': return memo_operand(p, 4, memo_store);                           /* LONG_BINPUT */
    case 0x94: return memo_store(p, p->memo_stores);                           /* MEMOIZE */
    case 'h': return memo_operand(p, 1, memo_fetch);                           /* BINGET */
    case 'j': return memo_operand(p, 4, memo_fetch);                           /* LONG_BINGET */
    case 'N': return push_integer(p, PICKLE_NONE, 0);                          /* NONE */
    case 0x88: return push_integer(p, PICKLE_BOOL, 1);                         /* NEWTRUE */
    case 0x89: return push_integer(p, PICKLE_BOOL, 0);                         /* NEWFALSE */
    case 'K': return push_number(p, 1);                                        /* BININT1 */
    case 'M': return push_number(p, 2);                                        /* BININT2 */
    case 'J': return push_number(p, 4);                                        /* BININT, the only signed one */
    case 0x8a: return push_long(p, 1);                                         /* LONG1 */
    case 0x8b: return push_long(p, 4);                                         /* LONG4 */
    case 'G': DEBERTA_TRY(skip(p, 8)); return push_integer(p, PICKLE_REAL, 0); /* BINFLOAT: nothing uses its value */
    case 0x8c: return push_text(p, PICKLE_TEXT, 1);                            /* SHORT_BINUNICODE */
    case 'X': return push_text(p, PICKLE_TEXT, 4);                             /* BINUNICODE */
    case 0x8d: return push_text(p, PICKLE_TEXT, 8);                            /* BINUNICODE8 */
    case 'U': return push_text(p, PICKLE_TEXT, 1);   /* SHORT_BINSTRING: the text of Python 2 */
    case 'T': return push_text(p, PICKLE_TEXT, 4);   /* BINSTRING */
    case 'C': return push_text(p, PICKLE_BYTES, 1);  /* SHORT_BINBYTES */
    case 'B': return push_text(p, PICKLE_BYTES, 4);  /* BINBYTES */
    case 0x8e: return push_text(p, PICKLE_BYTES, 8); /* BINBYTES8 */
    case ')': return make_small_tuple(p, 0);         /* EMPTY_TUPLE */
    case 0x85: return make_small_tuple(p, 1);        /* TUPLE1 */
    case 0x86: return make_small_tuple(p, 2);        /* TUPLE2 */
    case 0x87: return make_small_tuple(p, 3);        /* TUPLE3 */
    case 't': return tuple_from_mark(p);             /* TUPLE */
    case ']': return push_container(p, PICKLE_LIST); /* EMPTY_LIST */
    case '}': return push_container(p, PICKLE_DICT); /* EMPTY_DICT */
    case 'a': return fill_with(p, PICKLE_LIST, 1);   /* APPEND */
    case 'e': return fill_from_mark(p, PICKLE_LIST); /* APPENDS */
    case 's': return fill_with(p, PICKLE_DICT, 2);   /* SETITEM */
    case 'u': return fill_from_mark(p, PICKLE_DICT); /* SETITEMS */
    case 'c': return push_named_global(p);           /* GLOBAL */
    case 0x93: return push_stack_global(p);          /* STACK_GLOBAL */
    case 'Q': return push_storage(p);                /* BINPERSID */
    case 'R': return call(p);                        /* REDUCE */
    case 'b': return discard_attributes(p);          /* BUILD */
    default: p->at--; REFUSE(p, "opcode 0x%02x, which no tensor needs", (unsigned)opcode);
    }
}

/* Each step consumes at least one byte, so this ends. */
static deberta_status run(pickle *p)
{
    const uint8_t *head;
    DEBERTA_TRY(take(p, 2, &head));
    if (head[0] != 0x80 || head[1] < 2 || head[1] > MAX_PROTOCOL)
        REFUSE(p, "it begins with 0x%02x 0x%02x, expected protocol 2 to %d", head[0], head[1], MAX_PROTOCOL);
    while (!p->stopped) DEBERTA_TRY(step(p));
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------ interface */

deberta_status pickle_read(pickle **result, const uint8_t *bytes, size_t size_bytes, const char *where,
                           deberta_error *err)
{
    *result = NULL;
    pickle *p = calloc(1, sizeof *p);
    if (!p) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for reading its pickle", where);
    /* A legacy file goes on with gigabytes of values behind the pickle. */
    size_t limit_bytes = size_bytes < MAX_PICKLE_BYTES ? size_bytes : MAX_PICKLE_BYTES;
    *p = (pickle){.bytes = bytes, .size_bytes = limit_bytes, .where = where, .err = err};
    p->stack.item_bytes = p->memo.item_bytes = sizeof(pickle_value);
    p->marks.item_bytes = sizeof(size_t);
    p->cells.item_bytes = sizeof(pickle_cell);
    p->containers.item_bytes = sizeof(pickle_container);
    p->storages.item_bytes = sizeof(pickle_storage);
    p->tensors.item_bytes = sizeof(pickle_tensor);
    deberta_status status = run(p);
    if (status != DEBERTA_OK) {
        pickle_free(&p);
        return status;
    }
    p->where = NULL; /* the caller's, and not needed any more */
    p->err = NULL;
    *result = p;
    return DEBERTA_OK;
}

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
pickle_value pickle_root(const pickle *p) { return stack_items(p)[p->stack.count - 1]; }
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
    return value.kind == PICKLE_TEXT && bytes_are(value.as.text, value.length_bytes, text);
}

bool pickle_next(const pickle *p, pickle_value from, size_t *cursor, pickle_value *item)
{
    const pickle_cell *cells = p->cells.items;
    size_t number = *cursor ? cells[*cursor - 1].next : container_of(p, from)->first;
    if (number == 0) return false;
    *cursor = number;
    *item = cells[number - 1].value;
    return true;
}

size_t pickle_tensor_count(const pickle *p, pickle_value dict)
{
    return dict.kind == PICKLE_DICT ? container_of(p, dict)->tensors : 0;
}

const pickle_storage *pickle_storage_at(const pickle *p, size_t index)
{
    return (const pickle_storage *)p->storages.items + index;
}

const pickle_tensor *pickle_tensor_of(const pickle *p, pickle_value value)
{
    return (const pickle_tensor *)p->tensors.items + value.as.index;
}
