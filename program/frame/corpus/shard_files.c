/* Writes and reads manifests and lists of items, and checks every digest. SPDX-License-Identifier: MIT */
#include "program/frame/corpus/shard_files.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/cpu.h"
#include "core/base/sha256.h"
#include "core/base/text.h"
#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "output/scope.h"

static const json_limits manifest_limits = {.bytes = 1 << 30, .depth = 16, .values = 1 << 27};

static void digest_of(const char *bytes, size_t count, char digest[65])
{
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    sha256_add(&hash, bytes, count);
    sha256_finish(&hash, digest);
}

char *shard_path(const char *folder, size_t shard, size_t shards, const char *suffix)
{
    char name[96];
    snprintf(name, sizeof name, "%zu-of-%zu%s", shard, shards, suffix);
    return path_join(folder, name);
}

/* --------------------------------------------------------------------------------------------------------- manifest */

/* Computes the digest of all members but "digest", in the order of their names, without blanks. */
static bool digest_manifest(const json_t *root, char digest[65])
{
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    if (text) digest_of(text, strlen(text), digest);
    free(text);
    return text != NULL;
}

deberta_status shard_manifest_write(const char *path, json_t *root, deberta_error *err)
{
    char digest[65];
    char *text = NULL;
    if (root && digest_manifest(root, digest) && json_object_set_new(root, "digest", json_string(digest)) == 0)
        text = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    if (!text) memory_short();
    const deberta_status status = atomic_file_replace(path, text, strlen(text), err);
    free(text);
    return status;
}

/* Returns true if a name lies in the manifest's own folder. */
static bool is_plain_name(const char *name) { return *name && *name != '.' && !strchr(name, '/'); }

/* Returns true if the JSON is a list of texts, or of pairs of texts. */
static bool are_texts(const json_t *list)
{
    size_t k;
    json_t *text;
    json_array_foreach((json_t *)(uintptr_t)list, k, text) if (!json_is_string(text)) return false;
    return json_is_array(list);
}

static bool are_pairs(const json_t *list)
{
    size_t k;
    json_t *pair;
    json_array_foreach((json_t *)(uintptr_t)list, k,
                       pair) if (!are_texts(pair) || json_array_size(pair) != 2) return false;
    return json_is_array(list);
}

/* Returns true if no count is negative. */
static bool are_counts(const json_int_t *counts, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (counts[k] < 0) return false;
    return true;
}

static bool unpack(shard_manifest *m)
{
    json_int_t shard, shards, bytes, items, bad, rows, vectors, tokens;
    const char *schema;
    if (json_unpack(m->root, "{s:s, s:I, s:I, s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "schema", &schema,
                    "shard", &shard, "shards", &shards, "file", &m->file, "sha256", &m->digest, "bytes", &bytes,
                    "items_file", &m->items_file, "items_sha256", &m->items_digest, "items", &items, "bad", &bad,
                    "rows", &rows, "vectors", &vectors, "tokens", &tokens) != 0)
        return false;
    if (json_unpack(m->root, "{s:o, s:o, s:o, s:o, s:o, s:o}", "problems", &m->problems, "corpus", &m->corpus, "layout",
                    &m->layout, "settings", &m->settings, "command", &m->command, "made", &m->made) != 0)
        return false;
    json_int_t total;
    const char *hash;
    const json_int_t counts[] = {bytes, items, bad, rows, vectors, tokens};
    if (!are_counts(counts, sizeof counts / sizeof *counts) || !json_is_object(m->corpus) ||
        json_unpack((json_t *)(uintptr_t)m->corpus, "{s:I, s:s}", "items", &total, "hash", &hash) != 0 || total < 0)
        return false;
    m->shard = (size_t)shard, m->shards = (size_t)shards, m->file_bytes = (size_t)bytes, m->items = (size_t)items;
    m->bad = (size_t)bad, m->rows = (size_t)rows, m->vectors = (size_t)vectors, m->tokens = (size_t)tokens;
    return strcmp(schema, SHARD_SCHEMA) == 0 && shard >= 0 && shard < shards && sha256_is_digest(m->digest) &&
           sha256_is_digest(m->items_digest) && is_plain_name(m->file) && is_plain_name(m->items_file) &&
           json_is_object(m->layout) && json_is_object(m->settings) && json_is_object(m->made) &&
           are_texts(m->command) && are_pairs(m->problems);
}

static deberta_status check_manifest(shard_manifest *m, const char *path, deberta_error *err)
{
    char digest[65];
    json_t *written = json_incref(json_object_get(m->root, "digest"));
    json_object_del(m->root, "digest");
    const bool fits = digest_manifest(m->root, digest);
    const bool same = fits && json_is_string(written) && strcmp(json_string_value(written), digest) == 0;
    json_decref(written);
    if (!fits) memory_short();
    if (!same)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s was changed after it was written: its digest does not fit",
                     QUOTE(path));
    if (!unpack(m)) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s is no manifest of this version", QUOTE(path));
    return DEBERTA_OK;
}

deberta_status shard_manifest_read(shard_manifest *manifest, const char *path, deberta_error *err)
{
    *manifest = (shard_manifest){0};
    DEBERTA_TRY(json_file_read(&manifest->root, path, &manifest_limits, err));
    const deberta_status status = check_manifest(manifest, path, err);
    if (status != DEBERTA_OK) shard_manifest_close(manifest);
    return status;
}

void shard_manifest_close(shard_manifest *manifest)
{
    json_decref(manifest->root);
    *manifest = (shard_manifest){0};
}

/* ----------------------------------------------------------------------------------------------------------- layout */

static const char *const format_names[] = {"npy", "safetensors", "jsonl"};

json_t *shard_layout(const corpus_output *output)
{
    return json_pack("{s:s, s:I, s:b, s:b, s:O*}", "format", format_names[output->format], "width",
                     (json_int_t)output->width, "per_token", output->per_token, "windows", output->windows, "notes",
                     output->format == CORPUS_SAFETENSORS ? output->notes : NULL);
}

static bool are_notes(const json_t *notes)
{
    const char *key;
    json_t *value;
    if (!notes) return true;
    json_object_foreach((json_t *)(uintptr_t)notes, key, value) if (!json_is_string(value)) return false;
    return json_is_object(notes) && json_object_size(notes) <= CORPUS_MOST_NOTES;
}

bool shard_layout_read(const json_t *layout, corpus_output *output)
{
    const char *format;
    json_int_t width;
    int per_token, windows;
    json_t *notes = NULL;
    if (json_unpack((json_t *)(uintptr_t)layout, "{s:s, s:I, s:b, s:b, s?o}", "format", &format, "width", &width,
                    "per_token", &per_token, "windows", &windows, "notes", &notes) != 0 ||
        width < 0 || width > 1 << 24)
        return false;
    size_t k = 0;
    while (k < sizeof format_names / sizeof *format_names && strcmp(format, format_names[k]) != 0) k++;
    output->format = (corpus_format)k;
    output->width = (size_t)width;
    output->per_token = per_token, output->windows = windows;
    output->notes = notes;
    if (k == sizeof format_names / sizeof *format_names || !are_notes(notes)) return false;
    return output->format == CORPUS_JSONL || width > 0;
}

/* ------------------------------------------------------------------------------------------------------------ items */

deberta_status shard_items_write(const char *path, const corpus_output *output, deberta_error *err)
{
    atomic_file *file;
    FILE *stream;
    DEBERTA_TRY(atomic_file_open(&file, path, err));
    deberta_status status = atomic_file_stream(&stream, file, err);
    for (size_t k = 0; status == DEBERTA_OK && k < output->row_count; k++) {
        const corpus_row *row = &output->rows[k];
        fprintf(stream, row->skipped ? "%zu\n" : "%zu %zu %zu %zu\n", row->text, row->tokens, row->characters.begin,
                row->characters.end);
    }
    if (status == DEBERTA_OK) return atomic_file_commit(&file, err);
    atomic_file_discard(&file);
    return status;
}

static bool next_number(const char **at, const char *end, size_t *number)
{
    const char *begin = *at;
    for (*number = 0; *at < end && isdigit((unsigned char)**at); ++*at)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (size_t)(**at - '0'), number))
            return false;
    return *at > begin;
}

bool shard_items_next(const char **at, const char *end, corpus_row *row, bool *damaged)
{
    size_t numbers[4] = {0}, count = 0;
    if (*at == end) return false;
    for (; count < 4 && next_number(at, end, &numbers[count]); count++)
        if (*at < end && **at == ' ') ++*at;
    *damaged = (count != 1 && count != 4) || *at == end || *(*at)++ != '\n';
    *row = (corpus_row){numbers[0], numbers[1], {numbers[2], numbers[3]}, count == 1};
    return !*damaged;
}

deberta_status shard_digest(const char *path, char digest[65], size_t *size_bytes, deberta_error *err)
{
    struct stat about;
    if (stat(path, &about) != 0) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", QUOTE(path), strerror(errno));
    *size_bytes = (size_t)about.st_size;
    if (*size_bytes) return file_digest(path, digest, err);
    digest_of("", 0, digest);
    return DEBERTA_OK;
}
