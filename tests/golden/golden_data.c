/* Files of golden cases are read by a reader that shares nothing with the library. SPDX-License-Identifier: MIT */
#include "tests/golden/golden_data.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------ safetensors */

static deberta_status read_file(unsigned char **bytes, size_t *length_bytes, const char *path, deberta_error *err)
{
    FILE *stream = fopen(path, "rb");
    if (!stream) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", path, strerror(errno));
    fseek(stream, 0, SEEK_END);
    long end = ftell(stream);
    rewind(stream);
    *length_bytes = end > 0 ? (size_t)end : 0;
    *bytes = malloc(*length_bytes + 1);
    bool complete = *bytes && fread(*bytes, 1, *length_bytes, stream) == *length_bytes;
    fclose(stream);
    if (complete) return DEBERTA_OK;
    free(*bytes);
    *bytes = NULL;
    DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be read", path);
}

/* Any alignment: the files' headers need not be padded. */
static double element(const unsigned char *data, const char *dtype, size_t index)
{
    double f64;
    float f32;
    int64_t i64;
    if (strcmp(dtype, "F64") == 0) {
        memcpy(&f64, data + index * sizeof f64, sizeof f64);
        return f64;
    }
    if (strcmp(dtype, "F32") == 0) {
        memcpy(&f32, data + index * sizeof f32, sizeof f32);
        return (double)f32;
    }
    memcpy(&i64, data + index * sizeof i64, sizeof i64);
    return (double)i64;
}

static bool take_tensor(file_tensor *t, const char *name, const json_t *entry, const unsigned char *data)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *shape = json_object_get(entry, "shape");
    size_t begin = (size_t)json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
    t->name = strdup(name);
    t->rank = json_array_size(shape);
    t->elements = 1;
    if (!dtype || t->rank > FILE_TENSOR_MAX_RANK) return false;
    for (size_t axis = 0; axis < t->rank; axis++) {
        t->shape[axis] = (size_t)json_integer_value(json_array_get(shape, axis));
        t->elements *= t->shape[axis];
    }
    t->values = malloc((t->elements + 1) * sizeof *t->values);
    if (!t->name || !t->values) return false;
    for (size_t i = 0; i < t->elements; i++) t->values[i] = element(data + begin, dtype, i);
    return true;
}

deberta_status tensor_file_read(tensor_file *file, const char *path, deberta_error *err)
{
    unsigned char *bytes = NULL;
    size_t length_bytes;
    uint64_t header_bytes;
    bool complete = true;
    *file = (tensor_file){0};
    DEBERTA_TRY(read_file(&bytes, &length_bytes, path, err));
    memcpy(&header_bytes, bytes, sizeof header_bytes);
    json_t *header = json_loadb((const char *)bytes + 8, header_bytes, 0, NULL);
    file->tensors = calloc(json_object_size(header) + 1, sizeof *file->tensors);
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        complete = complete && take_tensor(&file->tensors[file->count], name, entry, bytes + 8 + header_bytes);
        file->count++;
    }
    json_decref(header);
    free(bytes);
    if (complete && file->count > 0) return DEBERTA_OK;
    tensor_file_free(file);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: not a safetensors file that the tests can read", path);
}

void tensor_file_free(tensor_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        free(file->tensors[i].name);
        free(file->tensors[i].values);
    }
    free(file->tensors);
    *file = (tensor_file){0};
}

const file_tensor *tensor_file_find(const tensor_file *file, const char *name, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->tensors[i].name, text) == 0) return &file->tensors[i];
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------------- bars */

/* Columns of bars.tsv behind the name: f32_last, then the members of golden_bars in order. Empty fields are NAN. */
static void parse_bars(char *line, golden_bars *bars)
{
    double unused, *fields[] = {&unused,    &bars->hidden, &bars->probabilities, &bars->logits,
                                &bars->emd, &bars->rtd,    &bars->components};
    char *rest = strchr(line, '\t');
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char *end = rest ? rest + 1 : NULL;
        *fields[i] = end && *end != '\t' && *end != '\n' && *end ? strtod(end, NULL) : NAN;
        rest = end ? strchr(end, '\t') : NULL;
    }
}

static deberta_status read_bars(golden_bars *bars, const char *path, const char *name, deberta_error *err)
{
    char line[256];
    FILE *stream = fopen(path, "r");
    if (!stream) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", path, strerror(errno));
    bool found = false;
    while (!found && fgets(line, sizeof line, stream)) {
        size_t length = strcspn(line, "\t");
        found = length == strlen(name) && strncmp(line, name, length) == 0;
    }
    fclose(stream);
    if (!found) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: no line '%s'", path, name);
    parse_bars(line, bars);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------------ cases */

deberta_status golden_case_read(golden_case *item, const char *folder, const char *name, const char *bars_path,
                                const char *bars_of, deberta_error *err)
{
    char path[600];
    *item = (golden_case){.bars = {NAN, NAN, NAN, NAN, NAN, NAN}};
    snprintf(item->name, sizeof item->name, "%s", name);
    snprintf(item->folder, sizeof item->folder, "%s/%s", folder, name);
    snprintf(path, sizeof path, "%s/expected.safetensors", item->folder);
    if (bars_path) DEBERTA_TRY(read_bars(&item->bars, bars_path, bars_of, err));
    DEBERTA_TRY(tensor_file_read(&item->expected, path, err));
    const file_tensor *ids = tensor_file_find(&item->expected, "input_ids");
    const file_tensor *mask = tensor_file_find(&item->expected, "attention_mask");
    const file_tensor *types = tensor_file_find(&item->expected, "token_type_ids");
    if (!ids || !mask || !types || ids->rank != 2) {
        tensor_file_free(&item->expected);
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: no input_ids, attention_mask or token_type_ids", path);
    }
    item->rows = ids->shape[0];
    item->columns = ids->shape[1];
    item->ids = ids->values;
    item->mask = mask->values;
    item->types = types->values;
    return DEBERTA_OK;
}

void golden_case_free(golden_case *item) { tensor_file_free(&item->expected); }

bool golden_case_has(const golden_case *item, const char *prefix)
{
    for (size_t i = 0; i < item->expected.count; i++) {
        if (strncmp(item->expected.tensors[i].name, prefix, strlen(prefix)) == 0) return true;
    }
    return false;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Room for all names there may be, and the NULL behind them. */
enum { LIST_CAPACITY = 256 };

/* False if the list is full, or without memory. */
static bool list_add(char **names, const char *name, size_t length)
{
    size_t count = 0;
    if (length == strlen(GOLDEN_LARGE_CASE) && strncmp(name, GOLDEN_LARGE_CASE, length) == 0) return true;
    for (; names[count]; count++) {
        if (strlen(names[count]) == length && strncmp(names[count], name, length) == 0) return true;
    }
    return count + 1 < LIST_CAPACITY && (names[count] = strndup(name, length));
}

/* Adds the subfolders whose first letter is from `first` to `last`, and sorts. */
static deberta_status list_folders(char **names, const char *folder, char first, char last, deberta_error *err)
{
    size_t count = 0;
    bool fits = true;
    DIR *directory = opendir(folder);
    if (!directory) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", folder, strerror(errno));
    for (struct dirent *entry; fits && (entry = readdir(directory));) {
        if (*entry->d_name >= first && *entry->d_name <= last)
            fits = list_add(names, entry->d_name, strlen(entry->d_name));
    }
    closedir(directory);
    if (!fits) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no room for more than %d cases", folder, LIST_CAPACITY - 1);
    while (names[count]) count++;
    qsort(names, count, sizeof *names, compare_names);
    return DEBERTA_OK;
}

deberta_status golden_list(char ***names, const char *folder, deberta_error *err)
{
    char path[600], line[256];
    snprintf(path, sizeof path, "%s/bars.tsv", folder);
    *names = calloc(LIST_CAPACITY, sizeof **names);
    FILE *stream = fopen(path, "r");
    if (!stream || !*names) {
        if (stream) fclose(stream);
        golden_list_free(names);
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", path, strerror(errno));
    }
    bool fits = true;
    while (fits && fgets(line, sizeof line, stream)) {
        if (*line >= '0' && *line <= '9') fits = list_add(*names, line, strcspn(line, "\t\n")); /* not the heading */
    }
    fclose(stream);
    deberta_status status =
        fits ? list_folders(*names, folder, '0', '9', err)
             : status_fail(err, DEBERTA_E_MEMORY, "%s: no room for more than %d cases", path, LIST_CAPACITY - 1);
    if (status != DEBERTA_OK) golden_list_free(names);
    return status;
}

void golden_list_free(char ***names)
{
    for (size_t i = 0; *names && (*names)[i]; i++) free((*names)[i]);
    free(*names);
    *names = NULL;
}

static const char *const format_sources[][2] = {
    {"f01-zip-f32-v3", "33-v3-mlm-emd"},
    {"f02-zip-f32-v1", "02-v1-c2p-n7"},
    {"f03-legacy-f32-v2", "20-v2-conv-gelu-b3"},
    {"f04-zip-f16-v3", "36-v3-rtd"},
    {"f05-safetensors-bf16-v2", "22-v2-embedproj-types"},
    {"f06-sharded-safetensors", "33-v3-mlm-emd"},
    {"f07-ms-v3-f16-bin", "33-v3-mlm-emd"},
    {"f08-ms-v1-bert-prefix-legacy", "10-v1-mlm-emd"},
    {"f09-zip-strided", "32-v3-mlm-legacy"},
    {"f10-zip-nested", "01-v1-both-n33"},
    {"f11-safetensors-odd-header", "21-v2-conv-tanh-g2"},
};

deberta_status golden_list_formats(char ***names, const char *folder, deberta_error *err)
{
    char path[600];
    snprintf(path, sizeof path, "%s/formats", folder);
    *names = calloc(LIST_CAPACITY, sizeof **names);
    if (!*names) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory", path);
    _Static_assert(sizeof format_sources / sizeof *format_sources < LIST_CAPACITY, "all formats fit");
    for (size_t i = 0; i < sizeof format_sources / sizeof *format_sources; i++)
        list_add(*names, format_sources[i][0], strlen(format_sources[i][0]));
    deberta_status status = list_folders(*names, path, 'f', 'f', err);
    if (status != DEBERTA_OK) golden_list_free(names);
    return status;
}

const char *golden_format_source(const char *format_name)
{
    for (size_t i = 0; i < sizeof format_sources / sizeof *format_sources; i++) {
        if (strcmp(format_name, format_sources[i][0]) == 0) return format_sources[i][1];
    }
    return NULL;
}
