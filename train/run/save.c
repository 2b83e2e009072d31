/* Writes trained models, their gradients and the optimiser's moments as safetensors, with the other files that a
 * model's folder needs.
 *
 * SPDX-License-Identifier: MIT */
#include "train/run/save.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "core/base/numbers.h"
#include "core/io/atomic_file.h"
#include "core/io/export.h"
#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "core/io/safetensors.h"

enum { NAME_BYTES = TENSOR_MAX_NAME_BYTES + 32, PATH_BYTES = 4096 };

typedef struct tensor_names {
    char (*names)[NAME_BYTES];
    export_tensor *tensors;
    size_t count;
} tensor_names;

static deberta_status begin_names(tensor_names *list, size_t most, deberta_error *err)
{
    *list = (tensor_names){.names = calloc(most, sizeof *list->names), .tensors = calloc(most, sizeof *list->tensors)};
    if (list->names && list->tensors) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the names of %zu tensors", most);
}

static void free_names(tensor_names *list)
{
    free(list->names);
    free(list->tensors);
}

static export_tensor *add_name(tensor_names *list, tensor_dtype dtype, const char *prefix, const char *name)
{
    snprintf(list->names[list->count], sizeof list->names[list->count], "%s%s", prefix, name);
    list->tensors[list->count] =
        (export_tensor){.name = list->names[list->count], .dtype = dtype, .rank = 1, .shape = {1}};
    return &list->tensors[list->count++];
}

static void add_parameter(tensor_names *list, tensor_dtype dtype, const char *prefix, const parameter *p)
{
    export_tensor *entry = add_name(list, dtype, prefix, p->stored_name);
    entry->rank = p->rank;
    memcpy(entry->shape, p->shape, sizeof entry->shape);
}

/* Ends the file: gives it its name or, after a failure, removes it. */
static deberta_status save_finish(export_file **file, deberta_status status, deberta_error *err)
{
    if (status == DEBERTA_OK) return export_finish(file, err);
    export_discard(file);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- gradients */

static deberta_status write_gradients(export_file *file, const named_loss *losses, size_t loss_count,
                                      const named_set *sets, size_t set_count, deberta_error *err)
{
    size_t index = 0;
    for (size_t i = 0; i < loss_count; i++) DEBERTA_TRY(export_write(file, index++, 0, &losses[i].value, 1, err));
    for (size_t k = 0; k < set_count; k++)
        for (size_t i = 0; i < sets[k].set->count; i++) {
            const parameter *p = &sets[k].set->items[i];
            if (p->trained) DEBERTA_TRY(export_write(file, index++, 0, p->gradient, p->count, err));
        }
    return DEBERTA_OK;
}

deberta_status save_gradients(const char *path, const named_loss *losses, size_t loss_count, const named_set *sets,
                              size_t set_count, deberta_error *err)
{
    tensor_names list;
    export_file *file = NULL;
    size_t most = loss_count;
    for (size_t k = 0; k < set_count; k++) most += sets[k].set->count;
    deberta_status status = begin_names(&list, most, err);
    if (status == DEBERTA_OK) {
        for (size_t i = 0; i < loss_count; i++) add_name(&list, DTYPE_F64, "", losses[i].name);
        for (size_t k = 0; k < set_count; k++)
            for (size_t i = 0; i < sets[k].set->count; i++)
                if (sets[k].set->items[i].trained)
                    add_parameter(&list, DTYPE_F32, sets[k].prefix, &sets[k].set->items[i]);
        status = export_safetensors(&file, path, list.tensors, list.count, NULL, 0, err);
    }
    if (status == DEBERTA_OK)
        status = save_finish(&file, write_gradients(file, losses, loss_count, sets, set_count, err), err);
    free_names(&list);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- moments */

static void moments_path(char path[PATH_BYTES], const char *folder)
{
    snprintf(path, PATH_BYTES, "%s/training.safetensors", folder);
}

static deberta_status write_moments(export_file *file, const parameter_set *set, const optimizer *o, deberta_error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        const size_t count = set->items[i].count;
        DEBERTA_TRY(export_write(file, 2 * i, 0, o->moments[i].m, count, err));
        DEBERTA_TRY(export_write(file, 2 * i + 1, 0, o->moments[i].v, count, err));
    }
    return DEBERTA_OK;
}

deberta_status save_moments(const char *folder, const parameter_set *set, const optimizer *o, deberta_error *err)
{
    char path[PATH_BYTES];
    tensor_names list;
    export_file *file = NULL;
    moments_path(path, folder);
    deberta_status status = begin_names(&list, 2 * set->count + 1, err);
    if (status == DEBERTA_OK) {
        for (size_t i = 0; i < set->count; i++) {
            add_parameter(&list, DTYPE_F32, "m.", &set->items[i]);
            add_parameter(&list, DTYPE_F32, "v.", &set->items[i]);
        }
        status = export_safetensors(&file, path, list.tensors, list.count, NULL, 0, err);
    }
    if (status == DEBERTA_OK) status = save_finish(&file, write_moments(file, set, o, err), err);
    free_names(&list);
    return status;
}

static deberta_status read_moment(float *values, const tensor_list *list, const mapped_file *map, const char *prefix,
                                  const parameter *p, deberta_error *err)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s%s", prefix, p->stored_name);
    for (size_t i = 0; i < list->count; i++) {
        const stored_tensor *stored = &list->items[i];
        if (strcmp(stored->tensor.name, name) != 0) continue;
        if (stored->tensor.dtype != DTYPE_F32 || stored->tensor.elements != p->count) break;
        tensor_convert_f32(values, stored, map->bytes, 0, p->count);
        return DEBERTA_OK;
    }
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s', float32 %s, is missing", map->name.text, name,
                 shape_describe(p->shape, p->rank).text);
}

deberta_status read_moments(const char *folder, const parameter_set *set, optimizer *o, deberta_error *err)
{
    char path[PATH_BYTES];
    mapped_file map;
    tensor_list list = {0};
    moments_path(path, folder);
    DEBERTA_TRY(mapped_file_open(&map, path, err));
    deberta_status status = safetensors_list(&list, map.bytes, map.size_bytes, map.name.text, err);
    for (size_t i = 0; status == DEBERTA_OK && i < set->count; i++) {
        status = read_moment(o->moments[i].m, &list, &map, "m.", &set->items[i], err);
        if (status == DEBERTA_OK) status = read_moment(o->moments[i].v, &list, &map, "v.", &set->items[i], err);
    }
    tensor_list_free(&list);
    return mapped_file_end(&map, status, err);
}

/* ------------------------------------------------------------------------------------------------------------ models */

static deberta_status write_halves(export_file *file, size_t index, const parameter *p, deberta_error *err)
{
    uint16_t halves[4096];
    const size_t most = sizeof halves / sizeof *halves;
    for (size_t first = 0; first < p->count; first += most) {
        const size_t count = minimum(most, p->count - first);
        if (!tensor_round_f16(halves, p->values + first, count))
            DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "tensor '%s' has values that float16 cannot hold", p->stored_name);
        DEBERTA_TRY(export_write(file, index, first, halves, count, err));
    }
    return DEBERTA_OK;
}

static deberta_status write_parameters(export_file *file, const parameter_set *set, deberta_dtype dtype,
                                       deberta_error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        const parameter *p = &set->items[i];
        DEBERTA_TRY(dtype == DEBERTA_FLOAT16 ? write_halves(file, i, p, err)
                                             : export_write(file, i, 0, p->values, p->count, err));
    }
    return DEBERTA_OK;
}

static deberta_status save_weights(const char *folder, const parameter_set *set, deberta_dtype dtype,
                                   deberta_error *err)
{
    static const export_note format = {"format", "pt"}; /* Without it transformers refuses the file. */
    char path[PATH_BYTES];
    tensor_names list;
    export_file *file = NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    deberta_status status = begin_names(&list, set->count + 1, err);
    if (status == DEBERTA_OK) {
        for (size_t i = 0; i < set->count; i++)
            add_parameter(&list, dtype == DEBERTA_FLOAT16 ? DTYPE_F16 : DTYPE_F32, "", &set->items[i]);
        status = export_safetensors(&file, path, list.tensors, list.count, &format, 1, err);
    }
    if (status == DEBERTA_OK) status = save_finish(&file, write_parameters(file, set, dtype, err), err);
    free_names(&list);
    return status;
}

/* Copies a file. A missing or empty file is skipped; one that cannot be read is an error. */
static deberta_status copy_file(const char *folder, const char *source_folder, const char *name, deberta_error *err)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    mapped_file source;
    deberta_error problem;
    snprintf(from, sizeof from, "%s/%s", source_folder, name);
    snprintf(to, sizeof to, "%s/%s", folder, name);
    if (access(from, F_OK) != 0 && errno == ENOENT) return DEBERTA_OK;
    const deberta_status opened = mapped_file_open(&source, from, &problem);
    if (opened == DEBERTA_E_FORMAT) return DEBERTA_OK;
    if (opened != DEBERTA_OK) DEBERTA_FAIL(err, opened, "%s", problem.message);
    const deberta_status status = atomic_file_replace(to, source.bytes, source.size_bytes, err);
    return mapped_file_end(&source, status, err);
}

/* transformers opens a model in the dtype that its configuration names. */
static deberta_status save_config(const char *folder, const char *text, deberta_dtype dtype, deberta_error *err)
{
    static const char *const keys[] = {"dtype", "torch_dtype"};
    char path[PATH_BYTES];
    const char *name = dtype == DEBERTA_FLOAT16 ? "float16" : "float32";
    json_t *config = json_loads(text, 0, NULL);
    bool differs = dtype != DEBERTA_FLOAT32, lost = !config;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *named = json_string_value(json_object_get(config, keys[i]));
        differs = differs || (named && strcmp(named, name) != 0);
        if (named) json_add_member(config, keys[i], json_string(name), &lost);
    }
    if (dtype != DEBERTA_FLOAT32) json_add_member(config, keys[0], json_string(name), &lost);
    char *edited = differs ? json_print(config, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(config);
    if (lost || (differs && !edited)) {
        free(edited);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the configuration of %s", QUOTE(folder));
    }
    snprintf(path, sizeof path, "%s/config.json", folder);
    const char *content = edited ? edited : text;
    const deberta_status status = atomic_file_replace(path, content, strlen(content), err);
    free(edited);
    return status;
}

deberta_status save_model(const char *folder, const char *source_folder, const parameter_set *set, const char *config,
                          deberta_dtype dtype, deberta_error *err)
{
    static const char *const tokenizer_files[] = {"tokenizer.json",    "tokenizer_config.json",
                                                  "spm.model",         "special_tokens_map.json",
                                                  "added_tokens.json", "vocab.json",
                                                  "merges.txt",        "bpe_encoder.bin"};
    DEBERTA_TRY(save_config(folder, config, dtype, err));
    for (size_t i = 0; i < sizeof tokenizer_files / sizeof *tokenizer_files; i++)
        DEBERTA_TRY(copy_file(folder, source_folder, tokenizer_files[i], err));
    return save_weights(folder, set, dtype, err);
}
