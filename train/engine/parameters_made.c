/* Parameters of a made-up model: which tensors it has is what opening it asks for. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/grow.h"
#include "core/model/model.h"
#include "core/model/synthetic_name.h"
#include "train/engine/parameters_made.h"

typedef struct made_tensor {
    char *name;
    weight_tensor at;
} made_tensor;

/* Every tensor that was asked for and is there. */
typedef struct made_list {
    weight_source source;
    made_tensor *items;
    size_t count, capacity;
    bool out_of_memory;
} made_list;

static bool is_listed(const made_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) return true;
    return false;
}

static bool list_found(const void *context, const char *name, weight_tensor *found)
{
    made_list *list = (made_list *)context;
    if (!list->source.find(list->source.context, name, found)) return false;
    if (is_listed(list, name)) return true;
    made_tensor *items = grown(list->items, &list->capacity, list->count + 1, sizeof *items);
    char *copy = strdup(name);
    if (items) list->items = items;
    list->out_of_memory = list->out_of_memory || !items || !copy;
    if (items && copy)
        list->items[list->count++] = (made_tensor){.name = copy, .at = *found};
    else
        free(copy);
    return true;
}

static deberta_status read_values(const void *context, const weight_tensor *from, size_t first, size_t count,
                                  float *values, deberta_error *err)
{
    const weight_source *source = &((const made_list *)context)->source;
    return source->read(source->context, from, first, count, values, err);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const made_tensor *)left)->name, ((const made_tensor *)right)->name);
}

static deberta_status make_parameter(parameter *p, const made_list *list, const made_tensor *made, deberta_error *err)
{
    const weight_tensor *at = &made->at;
    *p = (parameter){.name = strdup(made->name), .stored_name = strdup(made->name), .rank = at->rank, .trained = true};
    memcpy(p->shape, at->shape, sizeof p->shape);
    p->count = 1;
    for (size_t axis = 0; axis < at->rank; axis++) p->count *= at->shape[axis];
    DEBERTA_TRY(parameter_allocate(p, err));
    return read_values(list, at, 0, p->count, p->values, err);
}

static deberta_status make_all(parameter_set *set, made_list *list, deberta_error *err)
{
    set->items = calloc(list->count + 1, sizeof *set->items);
    if (!set->items || list->out_of_memory)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a list of %s's tensors", set->name);
    qsort(list->items, list->count, sizeof *list->items, compare_names);
    for (size_t i = 0; i < list->count; i++)
        DEBERTA_TRY(make_parameter(&set->items[set->count++], list, &list->items[i], err));
    return DEBERTA_OK;
}

deberta_status parameter_set_make(parameter_set *set, const char *path, deberta_error *err)
{
    model_config config = {0};
    synthetic_weights made;
    *set = (parameter_set){.name = strdup(path)};
    if (!set->name) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a model's name");
    deberta_status status = synthetic_parse(&config, &made, path, err);
    made_list list = {.source = weight_source_of_synthetic(&made, path)};
    const weight_source lister = {.context = &list, .name = path, .find = list_found, .read = read_values};
    const deberta_model_options options = {.struct_size = sizeof options, .describe_only = true};
    const model_internal_options internal = {.weights = &lister};
    deberta_model *model = NULL;
    if (status == DEBERTA_OK) status = model_open_internal(&model, path, &options, &internal, err);
    if (status == DEBERTA_OK) status = make_all(set, &list, err);
    deberta_model_free(&model);
    for (size_t i = 0; i < list.count; i++) free(list.items[i].name);
    free(list.items);
    config_free(&config);
    if (status != DEBERTA_OK) parameter_set_free(set);
    return status;
}
