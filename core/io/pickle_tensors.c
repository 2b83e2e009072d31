/* Implements the opcodes of storages and tensors, and checks their arguments: names, geometry and extent.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/pickle_machine.h"

#include "core/io/mapped_file.h"

/* ------------------------------------------------------------------------------------------------------- globals */

enum { NO_STORAGE = -1 };
enum { CALL_NOTHING, CALL_ORDERED_DICT, CALL_REBUILD_TENSOR, CALL_REBUILD_PARAMETER };

static const struct known_global {
    const char *module, *name;
    int call;
    int dtype; /* number of a storage type, or NO_STORAGE */
} known_globals[] = {
    {"collections", "OrderedDict", CALL_ORDERED_DICT, NO_STORAGE},
    {"torch._utils", "_rebuild_tensor_v2", CALL_REBUILD_TENSOR, NO_STORAGE},
    {"torch._utils", "_rebuild_parameter", CALL_REBUILD_PARAMETER, NO_STORAGE},
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

/* ----------------------------------------------------------------------------------------- storages and tensors */

/* Copies the items of a tuple that must have from `least` to `most` of them. */
static deberta_status unpack(const pickle *p, pickle_value tuple, size_t least, size_t most, pickle_value *items,
                             const char *what)
{
    if (tuple.kind != PICKLE_TUPLE) PICKLE_REFUSE(p, "%s is %s, expected a tuple", what, pickle_kind_name(tuple));
    size_t count = pickle_container_of(p, tuple)->count, cursor = 0;
    if (count < least || count > most)
        PICKLE_REFUSE(p, "%s has %zu items, expected %zu to %zu", what, count, least, most);
    while (pickle_next(p, tuple, &cursor, items)) items++;
    return DEBERTA_OK;
}

/* Reads a size, offset or stride, which must not be negative or too large, as Python integers may be. */
static deberta_status to_size(const pickle *p, size_t *size, pickle_value value, const char *what)
{
    if (value.kind != PICKLE_INTEGER) PICKLE_REFUSE(p, "%s is %s, expected an integer", what, pickle_kind_name(value));
    if (value.as.integer < 0) PICKLE_REFUSE(p, "%s is %lld, expected at least 0", what, (long long)value.as.integer);
    *size = size_or_most((uint64_t)value.as.integer);
    return DEBERTA_OK;
}

deberta_status pickle_push_storage(pickle *p)
{
    pickle_value id, items[6] = {{0}}, view[3];
    DEBERTA_TRY(pickle_pop(p, &id));
    DEBERTA_TRY(unpack(p, id, 5, 6, items, "a persistent id"));
    bool is_storage = pickle_text_is(items[0], "storage") && items[1].kind == PICKLE_GLOBAL &&
                      known_globals[items[1].as.index].dtype != NO_STORAGE && items[2].kind == PICKLE_TEXT;
    if (!is_storage) PICKLE_REFUSE(p, "%s", "a persistent id does not describe a storage with its type and key");
    if (p->storages.count == TENSOR_MAX_COUNT) PICKLE_REFUSE(p, "more than %d storages", TENSOR_MAX_COUNT);
    pickle_storage *storage = pickle_pool_add(&p->storages);
    if (!storage) return pickle_out_of_room(p, &p->storages);
    *storage = (pickle_storage){.key = items[2], .dtype = known_globals[items[1].as.index].dtype};
    DEBERTA_TRY(to_size(p, &storage->elements, items[4], "the number of elements of a storage"));
    storage->view_elements = storage->elements;
    if (items[5].kind != PICKLE_NOTHING && items[5].kind != PICKLE_NONE) {
        DEBERTA_TRY(unpack(p, items[5], 3, 3, view, "the view of a storage"));
        DEBERTA_TRY(to_size(p, &storage->view_offset, view[1], "the offset of a view"));
        DEBERTA_TRY(to_size(p, &storage->view_elements, view[2], "the number of elements of a view"));
        if (!range_is_inside(storage->view_offset, storage->view_elements, storage->elements))
            PICKLE_REFUSE(p, "a view of %zu elements at %zu of a storage of %zu", storage->view_elements,
                          storage->view_offset, storage->elements);
    }
    return pickle_push(p, (pickle_value){.kind = PICKLE_STORAGE, .as.index = p->storages.count - 1});
}

/* Computes the number of elements from the first to the last that the tensor touches; 0 for an empty one. False on
 * overflow. */
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

/* Reads shape and strides: as many of each, none negative, and a product of sizes that does not overflow. */
static deberta_status read_geometry(const pickle *p, pickle_tensor *view, pickle_value shape, pickle_value strides)
{
    pickle_value lengths[TENSOR_MAX_RANK], steps[TENSOR_MAX_RANK];
    DEBERTA_TRY(unpack(p, shape, 0, TENSOR_MAX_RANK, lengths, "the shape of a tensor"));
    view->rank = pickle_container_of(p, shape)->count;
    DEBERTA_TRY(unpack(p, strides, view->rank, view->rank, steps, "the tuple of strides of a tensor"));
    for (size_t d = 0; d < view->rank; d++) {
        DEBERTA_TRY(to_size(p, &view->shape[d], lengths[d], "a dimension of a tensor"));
        DEBERTA_TRY(to_size(p, &view->strides[d], steps[d], "a stride of a tensor"));
    }
    if (!tensor_count_elements(&view->elements, view->shape, view->rank))
        PICKLE_REFUSE(p, "the tensor shape %s overflows 64 bits", shape_describe(view->shape, view->rank).text);
    return DEBERTA_OK;
}

/* Implements _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks [, metadata]). */
static deberta_status push_tensor(pickle *p, pickle_value arguments)
{
    pickle_value items[7] = {0};
    DEBERTA_TRY(unpack(p, arguments, 6, 7, items, "the arguments of _rebuild_tensor_v2"));
    if (items[0].kind != PICKLE_STORAGE)
        PICKLE_REFUSE(p, "a tensor made of %s, expected a storage", pickle_kind_name(items[0]));
    /* The metadata mark views whose values are read with another sign. */
    if (items[6].kind == PICKLE_DICT ? pickle_container_of(p, items[6])->count > 0 : items[6].kind > PICKLE_NONE)
        PICKLE_REFUSE(p, "a tensor with %s: save it with .resolve_neg()", pickle_kind_name(items[6]));
    if (p->tensors.count == TENSOR_MAX_COUNT) PICKLE_REFUSE(p, "more than %d tensors", TENSOR_MAX_COUNT);
    pickle_tensor *view = pickle_pool_add(&p->tensors);
    if (!view) return pickle_out_of_room(p, &p->tensors);
    view->storage = items[0].as.index;
    const pickle_storage *storage = pickle_storage_at(p, view->storage);
    DEBERTA_TRY(to_size(p, &view->offset, items[1], "the offset of a tensor"));
    DEBERTA_TRY(read_geometry(p, view, items[2], items[3]));

    size_t extent;
    if (!tensor_extent(view, &extent) || !range_is_inside(view->offset, extent, storage->view_elements))
        PICKLE_REFUSE(p,
                      "a tensor of shape %s with strides %s at offset %zu reaches beyond its storage of %zu elements",
                      shape_describe(view->shape, view->rank).text, shape_describe(view->strides, view->rank).text,
                      view->offset, storage->view_elements);
    /* A stride of 0 repeats elements. It is refused, because with it a few bytes could claim to be terabytes of
     * weights. */
    if (view->elements > storage->view_elements)
        PICKLE_REFUSE(p,
                      "a tensor of shape %s and strides %s has more elements than its storage, which has %zu: repeated "
                      "(expanded) tensors are not read, save it with .contiguous()",
                      shape_describe(view->shape, view->rank).text, shape_describe(view->strides, view->rank).text,
                      storage->view_elements);
    view->offset += storage->view_offset;
    return pickle_push(p, (pickle_value){.kind = PICKLE_TENSOR, .as.index = p->tensors.count - 1});
}

deberta_status pickle_call(pickle *p)
{
    pickle_value arguments, function, items[3];
    DEBERTA_TRY(pickle_pop(p, &arguments));
    DEBERTA_TRY(pickle_pop(p, &function));
    if (function.kind != PICKLE_GLOBAL)
        PICKLE_REFUSE(p, "a call of %s, expected a function", pickle_kind_name(function));
    switch (known_globals[function.as.index].call) {
    case CALL_ORDERED_DICT:
        DEBERTA_TRY(unpack(p, arguments, 0, 0, items, "the argument tuple of OrderedDict"));
        return pickle_push_container(p, PICKLE_DICT);
    case CALL_REBUILD_TENSOR: return push_tensor(p, arguments);
    case CALL_REBUILD_PARAMETER:
        DEBERTA_TRY(unpack(p, arguments, 3, 3, items, "the argument tuple of _rebuild_parameter"));
        if (items[0].kind != PICKLE_TENSOR) PICKLE_REFUSE(p, "a parameter made of %s", pickle_kind_name(items[0]));
        return pickle_push(p, items[0]);
    default: PICKLE_REFUSE(p, "a call of torch.%s, which is a type", known_globals[function.as.index].name);
    }
}

deberta_status pickle_discard_attributes(pickle *p)
{
    pickle_value attributes, object;
    DEBERTA_TRY(pickle_pop(p, &attributes));
    DEBERTA_TRY(pickle_top(p, &object));
    if (object.kind != PICKLE_DICT) PICKLE_REFUSE(p, "attributes for %s, expected a dict", pickle_kind_name(object));
    return DEBERTA_OK;
}

deberta_status pickle_push_global(pickle *p, const char *module, size_t module_bytes, const char *name,
                                  size_t name_bytes)
{
    for (size_t i = 0; i < sizeof known_globals / sizeof *known_globals; i++)
        if (pickle_bytes_are(module, module_bytes, known_globals[i].module) &&
            pickle_bytes_are(name, name_bytes, known_globals[i].name))
            return pickle_push(p, (pickle_value){.kind = PICKLE_GLOBAL, .as.index = i});
    PICKLE_REFUSE(p, "it names '%s.%s', which no tensor needs; refused, nothing was executed",
                  QUOTE_N(module, module_bytes), QUOTE_N(name, name_bytes));
}

deberta_status pickle_push_stack_global(pickle *p)
{
    pickle_value module, name;
    DEBERTA_TRY(pickle_pop(p, &name));
    DEBERTA_TRY(pickle_pop(p, &module));
    if (module.kind != PICKLE_TEXT || name.kind != PICKLE_TEXT)
        PICKLE_REFUSE(p, "%s", "a global whose name is not a text");
    return pickle_push_global(p, module.as.text, module.length_bytes, name.as.text, name.length_bytes);
}
