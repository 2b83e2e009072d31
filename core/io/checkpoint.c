/* Finds the weight files of a model folder and lists their tensors by canonical name.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/io/checkpoint_parts.h"
#include "core/io/folder_kind.h"
#include "core/io/json_file.h"
#include "core/io/tensor_names.h"

enum { MAX_SHARDS = 1024 };

/* Limits of an index, which has one line per tensor. */
static const json_limits index_limits = {.bytes = 32 << 20, .depth = 8, .values = 8 * TENSOR_MAX_COUNT};

/* Returns the tensors of the file, in any format. */
static const tensor_list *contents_of(const weight_file *file)
{
    return file->torch ? torch_file_tensors(file->torch) : &file->contents;
}

/* ----------------------------------------------------------------------------------------------------- weight files */

/* Maps the file and reads its table of contents. What was opened stays in *file, also on failure: checkpoint_close
 * cleans up. */
static deberta_status open_weight_file(weight_file *file, const char *folder, bool torch, deberta_error *err)
{
    char *path = path_join(folder, file->name);
    if (!path) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(file->name));
    deberta_status status = mapped_file_open(&file->map, path, err);
    free(path);
    if (status != DEBERTA_OK) return status;
    const char *where = file->map.name.text;
    if (torch) return torch_file_open(&file->torch, file->map.bytes, file->map.size_bytes, where, err);
    return safetensors_list(&file->contents, file->map.bytes, file->map.size_bytes, where, err);
}

static deberta_status open_single(checkpoint *c, const char *name, bool torch, deberta_error *err)
{
    c->files = calloc(1, sizeof *c->files);
    if (c->files) c->files[0].name = strdup(name);
    if (!c->files || !c->files[0].name)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for reading it", QUOTE(name));
    c->file_count = 1;
    return open_weight_file(&c->files[0], c->folder, torch, err);
}

/* A shard is a file of this folder: an index must not lead anywhere else. */
static bool is_plain_name(const char *name)
{
    return name[0] != 0 && !strpbrk(name, "/\\") && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int by_file_name(const void *a, const void *b)
{
    return strcmp(((const weight_file *)a)->name, ((const weight_file *)b)->name);
}

/* Fills c->files with the distinct file names of the map, sorted. */
static deberta_status list_shards(checkpoint *c, json_t *map, const char *where, deberta_error *err)
{
    const char *key;
    json_t *value;
    /* Names that repeat are sorted out at the end; there cannot be more than tensors. */
    c->files = calloc(json_object_size(map) + 1, sizeof *c->files);
    if (!c->files) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its files", where);
    json_object_foreach(map, key, value)
    {
        if (!json_is_string(value) || !is_plain_name(json_string_value(value)))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "%s: weight_map puts tensor '%s' into %s, expected the name of a file in the same folder",
                         where, QUOTE(key), json_describe(value).text);
        c->files[c->file_count].name = strdup(json_string_value(value));
        if (!c->files[c->file_count].name) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its files", where);
        c->file_count++;
    }
    qsort(c->files, c->file_count, sizeof *c->files, by_file_name);
    size_t kept = 0;
    for (size_t i = 0; i < c->file_count; i++) {
        if (kept > 0 && by_file_name(&c->files[kept - 1], &c->files[i]) == 0)
            free(c->files[i].name);
        else
            c->files[kept++].name = c->files[i].name;
    }
    for (size_t i = kept; i < c->file_count; i++) c->files[i].name = NULL;
    c->file_count = kept;
    if (kept > MAX_SHARDS)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: weight_map names %zu files, expected at most %d", where, kept,
                     MAX_SHARDS);
    return DEBERTA_OK;
}

/* Finds the map in an index and opens all files that it names. */
static deberta_status read_map(checkpoint *c, json_t *index, const char *where, bool torch, json_t **map,
                               deberta_error *err)
{
    *map = json_object_get(index, "weight_map");
    if (!json_is_object(*map) || json_object_size(*map) == 0 || json_object_size(*map) > TENSOR_MAX_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: weight_map is not an object with 1 to %d entries", where,
                     TENSOR_MAX_COUNT);
    DEBERTA_TRY(list_shards(c, *map, where, err));
    for (size_t i = 0; i < c->file_count; i++) DEBERTA_TRY(open_weight_file(&c->files[i], c->folder, torch, err));
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------- tensor names */

/* Finds the prefix of the most likely word table. Two equally likely ones are two models, which would be ambiguous. */
static deberta_status find_prefix(const checkpoint *c, name_prefix *prefix, deberta_error *err)
{
    const entry *table = NULL, *delta = NULL;
    bool ambiguous = false;
    /* Without a word table, the loader that needs it reports the error, with the names unchanged. */
    *prefix = (name_prefix){.text = ""};
    for (size_t i = 0; i < c->count; i++) {
        const entry *one = &c->entries[i];
        name_prefix candidate;
        if (tensor_name_is_word_delta(one->public.name)) delta = one;
        if (!tensor_name_is_word_table(one->public.name, &candidate)) continue;
        if (table && name_prefix_rank(candidate) < name_prefix_rank(*prefix)) continue;
        ambiguous = table && name_prefix_rank(candidate) == name_prefix_rank(*prefix);
        *prefix = candidate;
        table = one;
    }
    if (ambiguous)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: '%s' is not the only word table, expected the tensors of one model",
                     table->file->map.name.text, QUOTE(table->public.name));
    if (delta && (!table || (tensor_name_is_of_half(table->public.name, "generator") &&
                             tensor_name_is_of_half(delta->public.name, "discriminator"))))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: tensor '%s' is only the difference to a generator's table, and '%s' itself is missing",
                     delta->file->map.name.text, QUOTE(delta->public.name), tensor_name_of_word_table);
    return DEBERTA_OK;
}

/* Removes the generator's tensors from a file that also has a discriminator, which is the model. */
static void leave_generator_out(checkpoint *c, name_prefix prefix)
{
    size_t kept = 0;
    if (!tensor_name_is_of_half(prefix.text, "discriminator")) return;
    for (size_t i = 0; i < c->count; i++)
        if (!tensor_name_is_of_half(c->entries[i].public.name, "generator")) c->entries[kept++] = c->entries[i];
    c->is_half = kept < c->count;
    c->count = kept;
}

bool checkpoint_is_half(const checkpoint *c) { return c->is_half; }

/* Compares names; equal ones stay in the order of the files, so that messages are the same in every run. */
static int by_name(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = strcmp(x->public.name, y->public.name);
    if (order != 0) return order;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Renames all entries, sorts them, and refuses what would then be ambiguous. */
deberta_status checkpoint_name_entries(checkpoint *c, deberta_error *err)
{
    name_prefix prefix = {0};
    DEBERTA_TRY(find_prefix(c, &prefix, err));
    leave_generator_out(c, prefix);
    c->prefix = prefix;
    size_t room_bytes = 1;
    for (size_t i = 0; i < c->count; i++) room_bytes += tensor_name_room_bytes(c->entries[i].public.name);
    c->renamed = malloc(room_bytes);
    if (!c->renamed) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for names of tensors", QUOTE(c->folder));
    char *room = c->renamed;
    for (size_t i = 0; i < c->count; i++)
        c->entries[i].public.name = tensor_name_canonical(c->entries[i].stored->tensor.name, &prefix, &room);
    qsort(c->entries, c->count, sizeof *c->entries, by_name);
    size_t kept = c->count > 0;
    for (size_t i = 1; i < c->count; i++) {
        const entry *one = &c->entries[kept - 1], *two = &c->entries[i];
        const bool twice = strcmp(one->public.name, two->public.name) == 0;
        if (twice && !tensor_name_is_counter(one->public.name))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' is there twice (as '%s' and '%s')",
                         two->file->map.name.text, QUOTE(two->public.name), QUOTE(one->stored->tensor.name),
                         QUOTE(two->stored->tensor.name));
        if (!twice) c->entries[kept++] = *two;
    }
    c->count = kept;
    return DEBERTA_OK;
}

/* Sets *wanted to false if the map of an index puts this tensor into another file. One that it does not list counts, as
 * in transformers, which reads whole files. A listed one gets the number of its file in the map: names left at the end
 * were not found, and a number found again means that one file has the tensor twice. */
static deberta_status strike_off(const checkpoint *c, json_t *map, const char *name, size_t number, bool *wanted,
                                 deberta_error *err)
{
    const json_t *place = json_object_get(map, name);
    const weight_file *file = &c->files[number];
    *wanted = !place || (json_is_string(place) && strcmp(json_string_value(place), file->name) == 0);
    if (json_is_integer(place) && json_integer_value(place) == (json_int_t)number)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' is there twice", file->map.name.text, QUOTE(name));
    if (place && *wanted && json_object_set_new(map, name, json_integer((json_int_t)number)) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for comparing it with its index", file->map.name.text);
    return DEBERTA_OK;
}

/* Lists all tensors of all files; with a map, without those that it puts into another file. */
deberta_status checkpoint_list_entries(checkpoint *c, json_t *map, deberta_error *err)
{
    size_t total = 0;
    for (size_t f = 0; f < c->file_count; f++) total += contents_of(&c->files[f])->count;
    c->entries = calloc(total + 1, sizeof *c->entries);
    if (!c->entries)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a list of %zu tensors", QUOTE(c->folder), total);
    for (size_t f = 0; f < c->file_count; f++) {
        const tensor_list *contents = contents_of(&c->files[f]);
        for (size_t i = 0; i < contents->count; i++) {
            const stored_tensor *stored = &contents->items[i];
            bool wanted = true;
            if (map) DEBERTA_TRY(strike_off(c, map, stored->tensor.name, f, &wanted, err));
            if (!wanted) continue;
            c->entries[c->count] = (entry){stored->tensor, stored, &c->files[f], c->count};
            c->entries[c->count++].public.file = c->files[f].name;
        }
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

/* Checks that everything that the map lists has been found. */
static deberta_status check_struck_off(json_t *map, const char *where, deberta_error *err)
{
    const char *name;
    json_t *place;
    json_object_foreach(map, name, place) if (json_is_string(place))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: weight_map puts tensor '%s' into '%s', which does not hold it", where,
                     QUOTE(name), QUOTE(json_string_value(place)));
    return DEBERTA_OK;
}

deberta_status checkpoint_path(const checkpoint *c, const char *name, char **path, deberta_error *err)
{
    *path = path_join(c->folder, name);
    if (!*path) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(c->folder));
    return DEBERTA_OK;
}

static file_facts facts_of(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) return (file_facts){0};
    return (file_facts){true, (size_t)status.st_size, status.st_mtim};
}

static deberta_status read_config_facts(checkpoint *c, deberta_error *err)
{
    char *path = NULL;
    DEBERTA_TRY(checkpoint_path(c, "config.json", &path, err));
    c->config = facts_of(path);
    free(path);
    return DEBERTA_OK;
}

static deberta_status open_sharded(checkpoint *c, const char *name, bool torch, deberta_error *err)
{
    char *path = NULL;
    DEBERTA_TRY(checkpoint_path(c, name, &path, err));
    c->index = facts_of(path);
    json_t *index = NULL, *map = NULL;
    deberta_status status = json_file_read(&index, path, &index_limits, err);
    if (status == DEBERTA_OK) status = read_map(c, index, QUOTE(path), torch, &map, err);
    if (status == DEBERTA_OK) status = checkpoint_list_entries(c, map, err);
    if (status == DEBERTA_OK) status = check_struck_off(map, QUOTE(path), err);
    json_decref(index);
    free(path);
    return status;
}

static const struct weight_kind {
    const char *name;
    bool torch, sharded;
} weight_kinds[] = {
    {"model.safetensors", false, false},
    {"model.safetensors.index.json", false, true},
    {"pytorch_model.bin", true, false},
    {"pytorch_model.bin.index.json", true, true},
};

/* Returns the first kind of weights that exists, readable or not: an unreadable file is reported, not ignored. */
static const struct weight_kind *kind_in(int folder)
{
    struct stat ignored;
    for (size_t i = 0; i < sizeof weight_kinds / sizeof *weight_kinds; i++)
        if (fstatat(folder, weight_kinds[i].name, &ignored, AT_SYMLINK_NOFOLLOW) == 0) return &weight_kinds[i];
    return NULL;
}

bool checkpoint_has_weights(const char *folder)
{
    const int place = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const bool found = place >= 0 && kind_in(place);
    if (place >= 0) close(place);
    return found;
}

static deberta_status find_kind(const checkpoint *c, const struct weight_kind **kind, deberta_error *err)
{
    *kind = NULL;
    int folder = open(c->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be opened as a model folder: %s", QUOTE(c->folder),
                     strerror(errno));
    *kind = kind_in(folder);
    close(folder);
    char advice[256];
    if (!*kind)
        DEBERTA_FAIL(err, DEBERTA_E_FILE,
                     "%s: no weights; expected model.safetensors, pytorch_model.bin or the index.json of a sharded "
                     "one%s",
                     QUOTE(c->folder), folder_other_weights(c->folder, advice, sizeof advice));
    return DEBERTA_OK;
}

/* A folder may hold several kinds, as converted models do; only the first is opened. */
static deberta_status open_files(checkpoint *c, deberta_error *err)
{
    const struct weight_kind *kind;
    DEBERTA_TRY(find_kind(c, &kind, err));
    if (kind->sharded) return open_sharded(c, kind->name, kind->torch, err);
    DEBERTA_TRY(open_single(c, kind->name, kind->torch, err));
    return checkpoint_list_entries(c, NULL, err);
}

deberta_status checkpoint_open(checkpoint **result, const char *folder, deberta_error *err)
{
    *result = NULL;
    checkpoint *c = calloc(1, sizeof *c);
    if (c) c->folder = strdup(folder);
    deberta_status status = DEBERTA_OK;
    if (!c || !c->folder) status = status_fail(err, DEBERTA_E_MEMORY, "%s: no memory for reading it", QUOTE(folder));
    if (status == DEBERTA_OK) status = read_config_facts(c, err);
    if (status == DEBERTA_OK) status = open_files(c, err);
    if (status == DEBERTA_OK) status = checkpoint_name_entries(c, err);
    if (c && checkpoint_intact(c, err) != DEBERTA_OK) status = DEBERTA_E_FILE;
    if (status != DEBERTA_OK) {
        checkpoint_close(&c);
        return status;
    }
    *result = c;
    return DEBERTA_OK;
}

deberta_status checkpoint_intact(const checkpoint *c, deberta_error *err)
{
    for (size_t i = 0; i < c->file_count; i++) DEBERTA_TRY(mapped_file_intact(&c->files[i].map, err));
    return DEBERTA_OK;
}

void checkpoint_close(checkpoint **closed)
{
    checkpoint *c = *closed;
    if (!c) return;
    for (size_t i = 0; i < c->file_count; i++) {
        torch_file_close(&c->files[i].torch);
        tensor_list_free(&c->files[i].contents);
        free(c->files[i].memory);
        mapped_file_close(&c->files[i].map);
        free(c->files[i].name);
    }
    free(c->files);
    free(c->entries);
    free(c->renamed);
    free(c->folder);
    free(c);
    *closed = NULL;
}
