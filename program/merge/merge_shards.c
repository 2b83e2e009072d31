/* Reads and compares the manifests of all shards, checks their files, and walks rows in the order of the input.
 *
 * SPDX-License-Identifier: MIT */
#include "program/merge/merge_shards.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/status.h"
#include "core/base/text.h"
#include "output/scope.h"
#include "program/frame/input/item_choice.h"

/* ---------------------------------------------------------------------------------------------------------- reading */

/* Finds the number of shards that the names in the folder state. */
static void find_division(merge_shards *shards)
{
    DIR *entries = opendir(shards->folder);
    size_t one, all;
    const struct dirent *entry;
    if (!entries) end_with(shards->options, EXIT_INPUT, "%s: %s", shards->folder, strerror(errno));
    while ((entry = readdir(entries))) {
        if (!path_has_suffix(entry->d_name, ".json") || sscanf(entry->d_name, "%zu-of-%zu.", &one, &all) != 2) continue;
        if (shards->shards && all != shards->shards)
            end_with(shards->options, EXIT_INPUT, "%s holds shards of %zu and of %zu", shards->folder, shards->shards,
                     all);
        shards->shards = all;
    }
    closedir(entries);
    if (shards->shards == 0 || shards->shards > MOST_SHARDS)
        end_with(shards->options, EXIT_INPUT, "%s holds no finished shard", shards->folder);
}

static void read_manifest(merge_shards *shards, size_t number)
{
    deberta_error error = {0};
    char *path = shard_path(shards->folder, number, shards->shards, ".json");
    if (!path) memory_short();
    if (access(path, F_OK) != 0) {
        shards->missing[shards->missing_count++] = number;
        free(path);
        return;
    }
    shard_manifest *manifest = &shards->list[shards->count].manifest;
    const deberta_status status = shard_manifest_read(manifest, path, &error);
    free(path);
    must(shards->options, status, &error);
    shards->count++;
    if (manifest->shard != number || manifest->shards != shards->shards)
        end_with(shards->options, EXIT_INPUT,
                 "%zu-of-%zu.json is the manifest of shard %zu of %zu: it was copied or renamed", number,
                 shards->shards, manifest->shard, manifest->shards);
}

void merge_shards_open(merge_shards *shards, const common_options *options, const char *folder)
{
    *shards = (merge_shards){.options = options, .folder = folder};
    find_division(shards);
    shards->list = memory_take(shards->shards, sizeof *shards->list);
    shards->missing = memory_take(shards->shards, sizeof *shards->missing);
    for (size_t k = 0; k < shards->shards; k++) read_manifest(shards, k);
}

void merge_shards_close(merge_shards *shards)
{
    for (size_t k = 0; k < shards->count; k++) {
        merge_shard *shard = &shards->list[k];
        mapped_file_close(&shard->rows);
        mapped_file_close(&shard->items);
        shard_manifest_close(&shard->manifest);
    }
    free(shards->list);
    free(shards->missing);
    free(shards->owner);
    *shards = (merge_shards){0};
}

/* --------------------------------------------------------------------------------------------------------- comparing */

/* Returns a value as text for a message. */
static char *merge_shards_show(const json_t *value)
{
    if (json_is_string(value)) return strdup(json_string_value(value));
    return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("nothing");
}

static bool differ_in(const json_t *a, const json_t *b, const char *name, char why[512])
{
    const json_t *ours = json_object_get(a, name), *theirs = json_object_get(b, name);
    if (ours == theirs || json_equal(ours, theirs)) return false; /* both NULL: neither has the setting */
    char *left = merge_shards_show(theirs), *right = merge_shards_show(ours);
    snprintf(why, 512, "its %s is %.200s, not %.200s", name, left ? left : "?", right ? right : "?");
    free(left);
    free(right);
    return true;
}

bool merge_differ(const shard_manifest *a, const shard_manifest *b, char why[512])
{
    static const char *const first[] = {"version", "command", "model", "precision", "reference", "options", "recipe"},
                             *const of_corpus[] = {"items", "hash", "files"};
    for (size_t k = 0; k < sizeof first / sizeof *first; k++)
        if (differ_in(a->settings, b->settings, first[k], why)) return true;
    for (size_t k = 0; k < sizeof of_corpus / sizeof *of_corpus; k++)
        if (differ_in(a->corpus, b->corpus, of_corpus[k], why)) {
            char other[512];
            snprintf(other, sizeof other, "it was made of other input: %.450s", why);
            strcpy(why, other);
            return true;
        }
    if (json_equal(a->layout, b->layout)) return false;
    snprintf(why, 512, "its rows are stored in another way (format, width or the names in its notes)");
    return true;
}

/* --------------------------------------------------------------------------------------------------- files of a shard */

/* Maps a file of the shard if its digest is that in the manifest. */
static deberta_status map_file(mapped_file *file, const char *folder, const char *name, const char *digest,
                               deberta_error *err)
{
    char found[65];
    size_t size_bytes;
    char *path = path_join(folder, name);
    if (!path) memory_short();
    deberta_status status = shard_digest(path, found, &size_bytes, err);
    if (status == DEBERTA_OK && strcmp(found, digest) != 0)
        status = status_fail(err, DEBERTA_E_FORMAT,
                             "%s is not as it was written: SHA-256 %.16s..., the manifest has %.16s...", path, found,
                             digest);
    if (status == DEBERTA_OK && size_bytes) status = mapped_file_open(file, path, err);
    free(path);
    return status;
}

/* Finds the bounds of the rows in the file of a shard; returns false if the file does not hold these rows. */
static bool find_rows(merge_shard *shard, const corpus_output *layout)
{
    const mapped_file *file = &shard->rows;
    const shard_manifest *m = &shard->manifest;
    uint64_t begin, end;
    if (file->size_bytes != m->file_bytes ||
        !corpus_output_fits(layout, m->rows, m->vectors, file->bytes, file->size_bytes, &begin, &end))
        return false;
    if (!file->bytes) return true; /* an empty file has no rows */
    shard->row_at = file->bytes + begin;
    shard->row_end = file->bytes + end;
    return true;
}

/* Returns the first item; an empty file has no mapping, and NULL allows no arithmetic. */
static const char *first_item(const merge_shard *shard)
{
    return shard->items.size_bytes ? (const char *)shard->items.bytes : "";
}

static void rewind_items(merge_shard *shard)
{
    bool damaged;
    shard->item_at = first_item(shard);
    shard->item_end = shard->item_at + shard->items.size_bytes;
    shard->has_row = shard_items_next(&shard->item_at, shard->item_end, &shard->row, &damaged);
}

static void open_files(merge_shards *shards, merge_shard *shard)
{
    deberta_error error = {0};
    const shard_manifest *m = &shard->manifest;
    if (map_file(&shard->rows, shards->folder, m->file, m->digest, &error) != DEBERTA_OK ||
        map_file(&shard->items, shards->folder, m->items_file, m->items_digest, &error) != DEBERTA_OK) {
        deberta_error whole = {.code = error.code};
        snprintf(whole.message, sizeof whole.message, "shard %zu: %.480s", m->shard, error.message);
        work_failed(shards->options, &whole);
    }
    if (!find_rows(shard, &shards->layout))
        end_with(shards->options, EXIT_INPUT,
                 "shard %zu: %s is not of the size and the header that its manifest speaks of", m->shard, m->file);
    rewind_items(shard);
}

void merge_shards_check(merge_shards *shards)
{
    char why[512];
    const merge_shard *first = &shards->list[0];
    if (!shard_layout_read(first->manifest.layout, &shards->layout))
        end_with(shards->options, EXIT_INPUT, "shard %zu: the manifest does not say how its rows are stored",
                 first->manifest.shard);
    for (size_t k = 0; k < shards->count; k++) {
        const shard_manifest *m = &shards->list[k].manifest;
        if (k && merge_differ(&first->manifest, m, why))
            end_with(shards->options, EXIT_INPUT, "shard %zu does not belong to shard %zu: %s", m->shard,
                     first->manifest.shard, why);
        open_files(shards, &shards->list[k]);
        shards->bad += m->bad, shards->rows += m->rows, shards->tokens += m->tokens;
    }
    shards->total = (size_t)json_integer_value(json_object_get(first->manifest.corpus, "items"));
}

/* ----------------------------------------------------------------------------------------------------------- covering */

typedef struct row_counts {
    size_t rows, tokens, skipped;
} row_counts;

static bool count_row(row_counts *counts, const corpus_row *row)
{
    counts->rows += !row->skipped;
    counts->skipped += row->skipped;
    return !__builtin_add_overflow(counts->tokens, row->tokens, &counts->tokens);
}

static void claim_items(merge_shards *shards, size_t place)
{
    const merge_shard *shard = &shards->list[place];
    const char *at = first_item(shard), *end = at + shard->items.size_bytes;
    corpus_row row;
    bool damaged = false;
    size_t items = 0, last = SIZE_MAX;
    row_counts counts = {0};
    while (shard_items_next(&at, end, &row, &damaged)) {
        if (!count_row(&counts, &row)) damaged = true;
        if (row.text == last && !damaged) continue;
        if (row.text >= shards->total || (last != SIZE_MAX && row.text < last)) damaged = true;
        if (damaged) break;
        if (shards->owner[row.text])
            end_with(shards->options, EXIT_INPUT, "item %zu is in shard %zu and in shard %zu", row.text,
                     shards->list[shards->owner[row.text] - 1].manifest.shard, shard->manifest.shard);
        shards->owner[row.text] = (uint32_t)place + 1;
        last = row.text;
        items++;
    }
    if (damaged || items != shard->manifest.items)
        end_with(shards->options, EXIT_INPUT, "shard %zu: %s is no list of its %zu items", shard->manifest.shard,
                 shard->manifest.items_file, shard->manifest.items);
    const shard_manifest *m = &shard->manifest;
    if (counts.rows != m->rows || counts.tokens != m->tokens || counts.skipped > m->bad || m->bad > m->items ||
        m->vectors != (shards->layout.per_token ? m->tokens : m->rows))
        end_with(shards->options, EXIT_INPUT,
                 "shard %zu: %s holds %zu rows of %zu tokens, its manifest speaks of %zu of %zu, in %zu vectors",
                 m->shard, m->items_file, counts.rows, counts.tokens, m->rows, m->tokens, m->vectors);
}

void merge_shards_cover(merge_shards *shards)
{
    size_t listed = 0;
    /* an item has at least a digit and a line end */
    for (size_t k = 0; k < shards->count; k++) listed += shards->list[k].items.size_bytes / 2;
    if (shards->total > listed)
        end_with(shards->options, EXIT_INPUT, "the manifests speak of %zu items, and the lists hold fewer",
                 shards->total);
    shards->owner = memory_take(shards->total ? shards->total : 1, sizeof *shards->owner);
    for (size_t k = 0; k < shards->count; k++) claim_items(shards, k);
    for (size_t k = 0; k < shards->total; k++)
        if (!shards->owner[k])
            end_with(shards->options, EXIT_INPUT, "item %zu is in no shard, though all %zu are there", k,
                     shards->shards);
}

/* ------------------------------------------------------------------------------------------------------------ walking */

deberta_status merge_next_row(merge_shard *shard, const corpus_output *layout, const uint8_t **bytes, size_t *count,
                              deberta_error *err)
{
    const size_t left = (size_t)(shard->row_end - shard->row_at), vectors = layout->per_token ? shard->row.tokens : 1;
    *bytes = shard->row_at;
    *count = 0;
    if (!shard->row.skipped && layout->format == CORPUS_JSONL) {
        const uint8_t *newline = left ? memchr(shard->row_at, '\n', left) : NULL;
        *count = newline ? (size_t)(newline - shard->row_at) + 1 : left + 1;
    } else if (!shard->row.skipped && (__builtin_mul_overflow(vectors, layout->width, count) ||
                                       __builtin_mul_overflow(*count, sizeof(float), count))) {
        *count = SIZE_MAX;
    }
    if (*count > left)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "shard %zu: %s ends before item %zu", shard->manifest.shard,
                     shard->manifest.file, shard->row.text);
    bool damaged;
    shard->row_at += *count;
    shard->has_row = shard_items_next(&shard->item_at, shard->item_end, &shard->row, &damaged);
    return DEBERTA_OK;
}

deberta_status merge_shards_walk(merge_shards *shards, merge_visitor visit, void *context, deberta_error *err)
{
    for (size_t k = 0; k < shards->count; k++) {
        find_rows(&shards->list[k], &shards->layout);
        rewind_items(&shards->list[k]);
    }
    for (size_t index = 0; index < shards->total; index++) {
        merge_shard *shard = &shards->list[shards->owner[index] - 1];
        while (shard->has_row && shard->row.text == index) {
            const corpus_row row = shard->row;
            const uint8_t *bytes;
            size_t count;
            DEBERTA_TRY(merge_next_row(shard, &shards->layout, &bytes, &count, err));
            DEBERTA_TRY(visit(context, shard, &row, bytes, count, err));
        }
    }
    for (size_t k = 0; k < shards->count; k++) {
        DEBERTA_TRY(mapped_file_intact(&shards->list[k].rows, err));
        DEBERTA_TRY(mapped_file_intact(&shards->list[k].items, err));
    }
    for (size_t k = 0; k < shards->count; k++)
        if (shards->list[k].row_at != shards->list[k].row_end)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "shard %zu: %s holds more than its items",
                         shards->list[k].manifest.shard, shards->list[k].manifest.file);
    return DEBERTA_OK;
}
