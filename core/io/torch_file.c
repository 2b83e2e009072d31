/* Reads state dicts in torch's two file formats.
 *
 * Both contain a pickle that says which tensors are views of which storages. In a zip every storage is a member; in the
 * legacy stream the storages follow the pickles, each after its number of elements.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/torch_file.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/mapped_file.h"
#include "core/io/torch_container.h"

enum { MAX_KEY_BYTES = 64 };

/* A storage, which several persistent ids may name. */
typedef struct storage {
    pickle_storage what;
    size_t size_bytes;
    const uint8_t *mapped;    /* address in a legacy file */
    const zip_member *member; /* member of a zip */
    uint8_t *heap;            /* content of the member, once read */
    size_t readers;           /* number of readers that use heap */
    bool forget;              /* whether the last reader frees heap */
} storage;

struct torch_file {
    const uint8_t *bytes;
    size_t size_bytes;
    zip_reader *zip; /* reader of a zip; NULL for a legacy file */
    bool big_endian;
    pthread_mutex_t mutex; /* lock of heap, readers and forget of all storages */
    storage *storages;     /* in ascending order of their keys */
    size_t storage_count;
    tensor_list list;
    char where[QUOTE_BYTES];
};

/* Quotes a storage's key for a message. */
#define QUOTE_KEY(storage) QUOTE_N((storage)->what.key.as.text, (storage)->what.key.length_bytes)

/* -------------------------------------------------------------------------------------------------------- storages */

/* Compares keys, which may hold any bytes. Where one is the beginning of the other, the shorter comes first. */
static int compare_keys(pickle_value a, pickle_value b)
{
    size_t shorter = a.length_bytes < b.length_bytes ? a.length_bytes : b.length_bytes;
    int order = memcmp(a.as.text, b.as.text, shorter);
    if (order != 0) return order;
    return a.length_bytes < b.length_bytes ? -1 : a.length_bytes > b.length_bytes;
}

static int by_key(const void *a, const void *b)
{
    return compare_keys(((const storage *)a)->what.key, ((const storage *)b)->what.key);
}

/* Finds the storage of a key; NULL when no tensor lies in one. */
static storage *find_storage(const torch_file *file, pickle_value key)
{
    storage wanted = {.what.key = key};
    return bsearch(&wanted, file->storages, file->storage_count, sizeof wanted, by_key);
}

/* Sorts the storages by key and merges those with the same key. */
static deberta_status unite_storages(torch_file *file, const pickle *p, deberta_error *err)
{
    size_t count = pickle_storage_count(p), kept = 0;
    storage *all = file->storages = calloc(count + 1, sizeof *all);
    if (!all) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for %zu storages", file->where, count);
    for (size_t i = 0; i < count; i++) all[i].what = *pickle_storage_at(p, i);
    qsort(all, count, sizeof *all, by_key);
    for (size_t i = 0; i < count; i++) {
        const storage *one = &all[i];
        if (kept == 0 || by_key(&all[kept - 1], one) != 0) {
            all[kept++] = *one;
            continue;
        }
        const storage *other = &all[kept - 1];
        if (one->what.dtype != other->what.dtype || one->what.elements != other->what.elements)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: storage '%s' is once %zu x %s and once %zu x %s", file->where,
                         QUOTE_KEY(one), one->what.elements, dtype_name(one->what.dtype), other->what.elements,
                         dtype_name(other->what.dtype));
    }
    file->storage_count = kept;
    for (size_t i = 0; i < kept; i++)
        if (!size_multiply(all[i].what.elements, dtype_bytes(all[i].what.dtype), &all[i].size_bytes))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: storage '%s' of %zu x %s overflows 64 bits", file->where,
                         QUOTE_KEY(&all[i]), all[i].what.elements, dtype_name(all[i].what.dtype));
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------- tensors */

/* Finds the dict that holds the tensors: the root, or the only dict in it that holds any. Where several do, the usual
 * names of training dumps decide. */
static deberta_status find_state(const torch_file *file, const pickle *p, pickle_value *state, deberta_error *err)
{
    static const char *const usual[] = {"state_dict", "model_state_dict", "model"};
    pickle_value root = pickle_root(p), key, value, best_key = {0};
    *state = root;
    if (pickle_tensor_count(p, root) > 0) return DEBERTA_OK;
    if (root.kind != PICKLE_DICT)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: its pickle holds %s, expected a dict of tensors", file->where,
                     pickle_kind_name(root));
    size_t candidates = 0, cursor = 0, best = 0;
    while (pickle_next(p, root, &cursor, &key) && pickle_next(p, root, &cursor, &value)) {
        if (pickle_tensor_count(p, value) == 0) continue;
        size_t rank = 1;
        for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
            if (pickle_text_is(key, usual[i])) rank = 2 + i;
        if (rank < best) continue;
        candidates = rank > best ? 1 : candidates + 1;
        best = rank;
        best_key = key;
        *state = value;
    }
    if (candidates == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: no tensors in its dict, nor one level below", file->where);
    if (candidates > 1)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %zu dicts of tensors in it (the last is '%s'), expected one",
                     file->where, candidates,
                     best_key.kind == PICKLE_TEXT ? QUOTE_N(best_key.as.text, best_key.length_bytes) : "?");
    return DEBERTA_OK;
}

/* Adds one tensor to the list; its name is copied to *names, which moves past it. The caller has counted the tensors
 * and allocated the list. */
static deberta_status list_tensor(torch_file *file, const pickle *p, pickle_value name, pickle_value value,
                                  char **names, deberta_error *err)
{
    const char *problem = tensor_name_problem(name.as.text, name.length_bytes);
    if (problem)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the tensor name '%s' %s", file->where,
                     QUOTE_N(name.as.text, name.length_bytes), problem);
    const pickle_tensor *view = pickle_tensor_of(p, value);
    const storage *owner = find_storage(file, pickle_storage_at(p, view->storage)->key);
    stored_tensor *stored = &file->list.items[file->list.count++];
    *stored = (stored_tensor){
        .tensor = {.name = *names, .dtype = owner->what.dtype, .rank = view->rank, .elements = view->elements},
        .storage = (size_t)(owner - file->storages),
        .offset_bytes =
            view->offset * dtype_bytes(owner->what.dtype), /* inside the storage, whose size did not overflow */
    };
    memcpy(stored->tensor.shape, view->shape, sizeof view->shape);
    memcpy(stored->strides, view->strides, sizeof view->strides);
    memcpy(*names, name.as.text, name.length_bytes);
    *names += name.length_bytes + 1; /* calloc has written the terminator. */
    return DEBERTA_OK;
}

/* Lists the pairs of text and tensor of the state dict, and skips everything else in it. */
static deberta_status list_tensors(torch_file *file, const pickle *p, deberta_error *err)
{
    pickle_value state, key, value;
    DEBERTA_TRY(find_state(file, p, &state, err));
    size_t count = pickle_tensor_count(p, state), names_bytes = 0, cursor = 0;
    if (count > TENSOR_MAX_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %zu tensors, expected at most %d", file->where, count,
                     TENSOR_MAX_COUNT);
    while (pickle_next(p, state, &cursor, &key) && pickle_next(p, state, &cursor, &value))
        if (key.kind == PICKLE_TEXT && value.kind == PICKLE_TENSOR && key.length_bytes <= TENSOR_MAX_NAME_BYTES)
            names_bytes += key.length_bytes + 1;
    file->list.items = calloc(count, sizeof *file->list.items);
    file->list.names = calloc(names_bytes + 1, 1);
    if (!file->list.items || !file->list.names)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for the list of its %zu tensors", file->where, count);
    char *names = file->list.names;
    cursor = 0;
    while (pickle_next(p, state, &cursor, &key) && pickle_next(p, state, &cursor, &value))
        if (key.kind == PICKLE_TEXT && value.kind == PICKLE_TENSOR)
            DEBERTA_TRY(list_tensor(file, p, key, value, &names, err));
    return DEBERTA_OK;
}

/* Returns the name of a tensor that lies in the storage, for messages about it. */
static const char *user_of(const torch_file *file, const storage *one)
{
    for (size_t i = 0; i < file->list.count; i++)
        if (file->list.items[i].storage == (size_t)(one - file->storages)) return file->list.items[i].tensor.name;
    return "(none)";
}

/* ------------------------------------------------------------------------------------------------------------- zip */

/* Reads <top>/byteorder, which, where present, is "little" or "big". */
static deberta_status read_byte_order(torch_file *file, const char *top, deberta_error *err)
{
    char order[8] = "", name[TORCH_MAX_TOP_BYTES + sizeof "/byteorder"];
    snprintf(name, sizeof name, "%s/byteorder", top);
    const zip_member *member = zip_reader_find(file->zip, name);
    if (!member) return DEBERTA_OK;
    if (member->size_bytes < sizeof order) DEBERTA_TRY(zip_reader_read(file->zip, member, (uint8_t *)order, err));
    file->big_endian = strcmp(order, "big") == 0;
    if (!file->big_endian && strcmp(order, "little") != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: zip member '%s' is neither 'little' nor 'big'", file->where,
                     QUOTE(name));
    return DEBERTA_OK;
}

/* Finds the member <top>/data/<key> of a storage. */
static deberta_status place_zip_storage(torch_file *file, storage *one, const char *top, deberta_error *err)
{
    char name[TORCH_MAX_TOP_BYTES + sizeof "/data/" + MAX_KEY_BYTES];
    const pickle_value key = one->what.key;
    if (key.length_bytes == 0 || key.length_bytes > MAX_KEY_BYTES || memchr(key.as.text, 0, key.length_bytes))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: '%s' cannot be the key of a storage", file->where, QUOTE_KEY(one));
    snprintf(name, sizeof name, "%s/data/%.*s", top, (int)key.length_bytes, key.as.text);
    one->member = zip_reader_find(file->zip, name);
    if (!one->member)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: zip member '%s' is missing, expected %zu x %s for tensor '%s'",
                     file->where, QUOTE(name), one->what.elements, dtype_name(one->what.dtype),
                     QUOTE(user_of(file, one)));
    DEBERTA_TRY(zip_reader_check(file->zip, one->member, err));
    if (one->member->size_bytes != one->size_bytes)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: zip member '%s' has %llu bytes, but %zu x %s for tensor '%s' take %zu",
                     file->where, QUOTE(name), (unsigned long long)one->member->size_bytes, one->what.elements,
                     dtype_name(one->what.dtype), QUOTE(user_of(file, one)), one->size_bytes);
    return DEBERTA_OK;
}

/* Locates all storages, which must exist even for unused tensors: a file with a missing part is damaged. */
static deberta_status place_zip_storages(torch_file *file, const char *top, deberta_error *err)
{
    size_t total_bytes = 0;
    for (size_t i = 0; i < file->storage_count; i++) {
        storage *one = &file->storages[i];
        DEBERTA_TRY(place_zip_storage(file, one, top, err));
        /* Members that share bytes would make a small file large in memory. */
        if (!size_add(total_bytes, one->size_bytes, &total_bytes) || total_bytes > file->size_bytes)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the members up to '%s' are larger than the file: they overlap",
                         file->where, QUOTE(one->member->name));
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- legacy */

/* Locates a storage at *at: an i64 number of elements, and the elements. */
static deberta_status place_legacy_storage(torch_file *file, storage *one, size_t *at, deberta_error *err)
{
    if (!range_is_inside(*at, 8, file->size_bytes))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the file ends before storage '%s' of tensor '%s'", file->where,
                     QUOTE_KEY(one), QUOTE(user_of(file, one)));
    uint64_t elements = load_u64(file->bytes + *at);
    *at += 8;
    if (elements != one->what.elements)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: storage '%s' has %lld elements, but tensor '%s' expects %zu",
                     file->where, QUOTE_KEY(one), (long long)elements, QUOTE(user_of(file, one)), one->what.elements);
    if (!range_is_inside(*at, one->size_bytes, file->size_bytes))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: storage '%s' of tensor '%s' takes %zu bytes, but the file ends after %zu of them",
                     file->where, QUOTE_KEY(one), QUOTE(user_of(file, one)), one->size_bytes, file->size_bytes - *at);
    one->mapped = file->bytes + *at;
    *at += one->size_bytes;
    return DEBERTA_OK;
}

/* Locates the storages, which follow from `at` to the end of the file in the order of the list of keys. */
static deberta_status place_keyed_storages(torch_file *file, const pickle *keys, size_t at, deberta_error *err)
{
    pickle_value root = pickle_root(keys), key;
    size_t cursor = 0;
    if (root.kind != PICKLE_LIST)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the keys of the storages are %s, expected a list", file->where,
                     pickle_kind_name(root));
    for (size_t i = 0; pickle_next(keys, root, &cursor, &key); i++) {
        storage *one = key.kind == PICKLE_TEXT ? find_storage(file, key) : NULL;
        if (!one || one->mapped)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: storage %zu of the file %s", file->where, i,
                         one ? "is there twice" : "belongs to no tensor, so its size is unknown");
        DEBERTA_TRY(place_legacy_storage(file, one, &at, err));
    }
    for (const storage *one = file->storages; one < file->storages + file->storage_count; one++)
        if (!one->mapped)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: storage '%s' of tensor '%s' is not in the file", file->where,
                         QUOTE_KEY(one), QUOTE(user_of(file, one)));
    if (at != file->size_bytes)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %zu bytes after the last storage belong to none", file->where,
                     file->size_bytes - at);
    return DEBERTA_OK;
}

/* Reads a legacy file, in which a pickle of the keys and the storages follow the state dict. */
static deberta_status place_legacy_storages(torch_file *file, size_t at, deberta_error *err)
{
    pickle *keys;
    DEBERTA_TRY(pickle_read(&keys, file->bytes + at, file->size_bytes - at, file->where, err));
    deberta_status status = place_keyed_storages(file, keys, at + pickle_length_bytes(keys), err);
    pickle_free(&keys);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- interface */

static deberta_status read_container(torch_file *file, torch_container *from, deberta_error *err)
{
    DEBERTA_TRY(torch_container_open(from, file->bytes, file->size_bytes, file->where, err));
    file->zip = from->zip;
    from->zip = NULL;
    if (file->zip) DEBERTA_TRY(read_byte_order(file, from->top, err));
    DEBERTA_TRY(unite_storages(file, from->object, err));
    DEBERTA_TRY(list_tensors(file, from->object, err));
    return file->zip ? place_zip_storages(file, from->top, err) : place_legacy_storages(file, from->end, err);
}

deberta_status torch_file_open(torch_file **result, const uint8_t *bytes, size_t size_bytes, const char *where,
                               deberta_error *err)
{
    *result = NULL;
    torch_file *file = calloc(1, sizeof *file);
    if (!file) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for reading it", where);
    file->bytes = bytes;
    file->size_bytes = size_bytes;
    strncpy(file->where, where, sizeof file->where - 1);
    pthread_mutex_init(&file->mutex, NULL);
    torch_container container;
    deberta_status status = read_container(file, &container, err);
    torch_container_close(&container); /* Its texts are copied, except the keys of storages. */
    if (status != DEBERTA_OK) {
        torch_file_close(&file);
        return status;
    }
    for (size_t i = 0; i < file->storage_count; i++) file->storages[i].what.key = (pickle_value){0};
    *result = file;
    return DEBERTA_OK;
}

void torch_file_close(torch_file **file)
{
    if (!*file) return;
    for (size_t i = 0; i < (*file)->storage_count; i++) free((*file)->storages[i].heap);
    free((*file)->storages);
    tensor_list_free(&(*file)->list);
    zip_reader_close(&(*file)->zip);
    pthread_mutex_destroy(&(*file)->mutex);
    free(*file);
    *file = NULL;
}

const tensor_list *torch_file_tensors(const torch_file *file) { return &file->list; }

/* Converts from a big-endian writer's byte order. It is rare, so it runs once at loading rather than in every
 * conversion. */
static void swap_bytes(uint8_t *bytes, size_t size_bytes, size_t element_bytes)
{
    for (uint8_t *element = bytes; element < bytes + size_bytes; element += element_bytes)
        for (size_t i = 0; i < element_bytes / 2; i++) {
            uint8_t kept = element[i];
            element[i] = element[element_bytes - 1 - i];
            element[element_bytes - 1 - i] = kept;
        }
}

/* Loads a storage; the caller holds the mutex, so that two readers do not load it twice. */
static deberta_status load_member(torch_file *file, storage *one, deberta_error *err)
{
    uint8_t *heap = malloc(one->size_bytes + 1);
    if (!heap)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for the %zu bytes of '%s'", file->where, one->size_bytes,
                     QUOTE(one->member->name));
    deberta_status status = zip_reader_read(file->zip, one->member, heap, err);
    if (status != DEBERTA_OK) {
        free(heap);
        return status;
    }
    if (file->big_endian) swap_bytes(heap, one->size_bytes, dtype_bytes(one->what.dtype));
    one->heap = heap;
    return DEBERTA_OK;
}

deberta_status torch_file_acquire(torch_file *file, size_t index, const uint8_t **bytes, deberta_error *err)
{
    storage *one = &file->storages[index];
    if (one->mapped) {
        *bytes = one->mapped;
        return DEBERTA_OK;
    }
    pthread_mutex_lock(&file->mutex);
    deberta_status status = one->heap ? DEBERTA_OK : load_member(file, one, err);
    if (status == DEBERTA_OK) {
        one->readers++;
        one->forget = false;
        *bytes = one->heap;
    }
    pthread_mutex_unlock(&file->mutex);
    return status;
}

/* Frees a storage that is marked to be forgotten, unless a reader still uses it; then the last release does. */
static void drop_if_unused(storage *one)
{
    if (!one->forget || one->readers > 0) return;
    free(one->heap);
    one->heap = NULL;
}

void torch_file_release(torch_file *file, size_t index)
{
    storage *one = &file->storages[index];
    if (one->mapped) return;
    pthread_mutex_lock(&file->mutex);
    one->readers--;
    drop_if_unused(one);
    pthread_mutex_unlock(&file->mutex);
}

void torch_file_forget(torch_file *file, size_t index)
{
    storage *one = &file->storages[index];
    if (one->mapped) return;
    pthread_mutex_lock(&file->mutex);
    one->forget = true;
    drop_if_unused(one);
    pthread_mutex_unlock(&file->mutex);
}
