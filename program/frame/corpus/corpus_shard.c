/* Opens a shard, resumes it or finds it finished, and writes its manifest when its rows are complete.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/corpus/corpus_shard.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/build_name.h"
#include "core/base/text.h"
#include "core/io/rank_values.h"
#include "output/json_text.h"
#include "program/frame/option_scan.h"

/* --------------------------------------------------------------------------------------------------- what decides rows */

/* Returns how a manifest records an option. Some options of results decide no row: those that may differ between two
 * machines, names of files, whose content is compared instead, and options that affect only printing. */
shard_record corpus_shard_records(const option *row)
{
    static const char *const words[] = {"json", "file"}, *const none[] = {"isa",          "threads", "memory-limit",
                                                                          "batch-tokens", "batch",   "resume",
                                                                          "help",         "version"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcmp(words[k], row->name) == 0) return SHARD_RECORDS_WORD;
    for (size_t k = 0; k < sizeof none / sizeof *none; k++)
        if (strcmp(none[k], row->name) == 0) return SHARD_RECORDS_NOTHING;
    return row->role == OPTION_MAKES ? SHARD_RECORDS_SETTING : SHARD_RECORDS_NOTHING;
}

json_t *corpus_shard_settings(const common_options *options, const deberta_model *model, deberta_error *err)
{
    char digest[65];
    const option_scan *scan = options->scan;
    json_t *words = json_array();
    if (deberta_model_digest(model, digest, err) != DEBERTA_OK) {
        json_decref(words);
        return NULL;
    }
    for (size_t k = 0; k < scan->given_count; k++) {
        const given_option *given = &scan->given[k];
        if (corpus_shard_records(given->option) != SHARD_RECORDS_SETTING) continue;
        json_array_append_new(words, json_sprintf("--%s", given->option->name));
        if (given->value) json_array_append_new(words, json_clean_text(given->value));
    }
    json_t *settings =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "version", build_name(), "command", options->command->name, "model",
                  digest, "reference", reference_name((int)deberta_model_describe(model)->reference), "precision",
                  deberta_precision_name((deberta_precision)options->precision), "options", words);
    if (!settings) memory_short();
    return settings;
}

/* Returns the words that would compute the same rows, without options of the machine and of destinations. */
static json_t *command_words(const common_options *options)
{
    const option_scan *scan = options->scan;
    json_t *words = json_array();
    json_array_append_new(words, json_string(options->command->name));
    for (size_t k = 0; k < options->argument_count; k++)
        json_array_append_new(words, json_clean_text(options->arguments[k]));
    for (size_t k = 0; k < scan->given_count; k++) {
        const given_option *given = &scan->given[k];
        if (corpus_shard_records(given->option) == SHARD_RECORDS_NOTHING) continue;
        json_array_append_new(words, json_sprintf("--%s", given->option->name));
        if (given->value) json_array_append_new(words, json_clean_text(given->value));
    }
    return words;
}

/* Lists the input files by names without folders, and sizes where they are known, so that a grown input is
 * noticed. */
static json_t *input_files(const text_stream *stream)
{
    json_t *files = json_array();
    for (size_t k = 0; k < stream->files.count; k++) {
        const char *path = stream->files.items[k], *slash = strrchr(path, '/');
        struct stat about;
        const bool regular = stat(path, &about) == 0 && S_ISREG(about.st_mode);
        json_array_append_new(files, json_pack("{s:o, s:I}", "name", json_clean_text(slash ? slash + 1 : path), "bytes",
                                               (json_int_t)(regular ? about.st_size : -1)));
    }
    return files;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static size_t count_of(const item_choice *choice) { return choice->shards ? choice->shards : 1; }

/* Checks that the folder holds shards of no other division. */
static deberta_status check_division(const corpus_shard *shard, deberta_error *err)
{
    DIR *entries = opendir(shard->folder);
    size_t one, all = count_of(&shard->choice), other = 0;
    const struct dirent *entry;
    while (entries && !other && (entry = readdir(entries)))
        if (sscanf(entry->d_name, "%zu-of-%zu.", &one, &all) == 2 && all != count_of(&shard->choice)) other = all;
    if (entries) closedir(entries);
    if (!other) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                 "%s holds shards of %zu, and this one is of %zu: give --shards %zu, or another --out", shard->folder,
                 other, count_of(&shard->choice), other);
}

/* Returns the name of the first setting that differs from the manifest's; NULL: none does. */
static const char *differing_setting(const json_t *ours, const json_t *theirs)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)ours, name,
                        value) if (!json_equal(value, json_object_get(theirs, name))) return name;
    return json_equal(ours, theirs) ? NULL : "settings";
}

/* Removes the journal of a run that ended between the manifest and its last step. */
static void remove_leftover(const char *rows)
{
    char *journal;
    if (asprintf(&journal, "%s.part.journal", rows) < 0) memory_short();
    unlink(journal);
    free(journal);
}

static json_t *hash_text(const text_stream *stream)
{
    return json_sprintf("%016llx", (unsigned long long)stream->hash);
}

/* Reads the whole input, as every shard does, and compares its hash with that in the manifest: a word may have been
 * replaced by another of the same length. */
static deberta_status compare_input(const shard_manifest *manifest, const char *path, text_stream *stream,
                                    deberta_error *err)
{
    DEBERTA_TRY(text_stream_skip(stream, SIZE_MAX, err));
    json_t *hash = hash_text(stream);
    const bool same = json_equal(hash, json_object_get(manifest->corpus, "hash")) &&
                      json_integer_value(json_object_get(manifest->corpus, "items")) == (json_int_t)stream->read;
    json_decref(hash);
    if (same) return DEBERTA_OK;
    DEBERTA_FAIL(
        err, DEBERTA_E_ARGUMENT,
        "%s was made of other input (the texts of its files differ): remove it to compute this shard again, or choose "
        "another --out",
        path);
}

/* Compares what a manifest was made with. way_out: what to do where that differs. */
static deberta_status compare_manifest(const shard_manifest *manifest, const char *path, const corpus_shard *shard,
                                       const text_stream *stream, const char *way_out, deberta_error *err)
{
    const char *differing = differing_setting(shard->settings, manifest->settings);
    json_t *files = input_files(stream);
    const bool same_files = json_equal(files, json_object_get(manifest->corpus, "files"));
    json_decref(files);
    if (differing)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s was made with another value of '%s': %s, or choose another --out",
                     path, differing, way_out);
    if (!same_files)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%s was made of other input (names or sizes of its files differ): %s, or choose another --out",
                     path, way_out);
    return DEBERTA_OK;
}

/* Checks that a finished shard is the one that was asked for. */
static deberta_status check_finished(const corpus_shard *shard, text_stream *stream, deberta_error *err)
{
    shard_manifest manifest;
    struct stat about;
    DEBERTA_TRY(shard_manifest_read(&manifest, shard->manifest, err));
    char *rows = path_join(shard->folder, manifest.file);
    deberta_status status =
        compare_manifest(&manifest, shard->manifest, shard, stream, "remove it to compute this shard again", err);
    if (status == DEBERTA_OK && (!rows || stat(rows, &about) != 0 || (size_t)about.st_size != manifest.file_bytes))
        status = status_fail(err, DEBERTA_E_FORMAT,
                             "%s: its rows, %s, are missing or have another size: remove it to compute them again",
                             shard->manifest, manifest.file);
    if (status == DEBERTA_OK) status = compare_input(&manifest, shard->manifest, stream, err);
    if (status == DEBERTA_OK) remove_leftover(rows);
    free(rows);
    shard_manifest_close(&manifest);
    return status;
}

/* Checks, before a shard is computed, that it fits to those that are finished: only shards of the same settings can be
 * merged. */
static deberta_status compare_neighbours(const corpus_shard *shard, const text_stream *stream, deberta_error *err)
{
    deberta_status status = DEBERTA_OK;
    for (size_t k = 0; k < count_of(&shard->choice) && status == DEBERTA_OK; k++) {
        char *path = shard_path(shard->folder, k, count_of(&shard->choice), ".json");
        shard_manifest manifest;
        if (!path) memory_short();
        if (access(path, F_OK) == 0 && shard_manifest_read(&manifest, path, NULL) == DEBERTA_OK) {
            status = compare_manifest(&manifest, path, shard, stream,
                                      "repeat that here, since only equal shards are merged", err);
            shard_manifest_close(&manifest);
        }
        free(path);
    }
    return status;
}

static const char *suffix_of(const corpus_output *output)
{
    return output->format == CORPUS_NPY ? ".npy" : output->format == CORPUS_JSONL ? ".jsonl" : ".safetensors";
}

/* Compares, before the first shard, what must be equal on all ranks so that the shards can be joined. */
static deberta_status compare_ranks(const corpus_shard *shard, const text_stream *stream, deberta_error *err)
{
    const deberta_ranks *ranks = shard->options->common.ranks;
    if (!ranks || shard->choice.shard != ranks->rank) return DEBERTA_OK;
    json_t *values = json_copy(shard->settings);
    if (!values) memory_short();
    json_put(values, "file", input_files(stream));
    json_put(values, "out", json_clean_text(shard->out));
    json_put(values, "shards", json_integer((json_int_t)count_of(&shard->choice)));
    const deberta_status status = rank_values_check(ranks, values, NULL, err);
    json_decref(values);
    return status;
}

static deberta_status name_files(corpus_shard *shard, deberta_error *err)
{
    if (asprintf(&shard->folder, "%s.shards", shard->out) < 0) shard->folder = NULL;
    if (shard->folder)
        shard->manifest = shard_path(shard->folder, shard->choice.shard, count_of(&shard->choice), ".json");
    if (!shard->manifest) memory_short();
    if (mkdir(shard->folder, 0777) != 0 && errno != EEXIST)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s cannot be made: %s", shard->folder, strerror(errno));
    return check_division(shard, err);
}

deberta_status corpus_shard_open(corpus_shard *shard, const reading_options *options, text_stream *stream,
                                 json_t *settings, corpus_output *output, corpus_progress *progress, bool *finished,
                                 deberta_error *err)
{
    *shard = (corpus_shard){
        .options = options, .choice = stream->choice, .out = options_out(&options->common), .settings = settings};
    DEBERTA_TRY(compare_ranks(shard, stream, err));
    DEBERTA_TRY(name_files(shard, err));
    *finished = access(shard->manifest, F_OK) == 0;
    if (*finished) return check_finished(shard, stream, err);
    DEBERTA_TRY(compare_neighbours(shard, stream, err));
    output->resumable = output->of_shard = true;
    output->problems = json_array();
    char *path = shard_path(shard->folder, shard->choice.shard, count_of(&shard->choice), suffix_of(output));
    if (!path || !output->problems) {
        free(path);
        memory_short();
    }
    const deberta_status status = corpus_output_open(output, path, settings, progress, err);
    free(path);
    return status;
}

deberta_status corpus_shard_skip(text_stream *stream, const corpus_output *output, const corpus_progress *progress,
                                 deberta_error *err)
{
    DEBERTA_TRY(text_stream_skip(stream, progress->texts, err));
    if (stream->read < progress->texts)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s holds %zu texts, but the input only %zu", output->part,
                     progress->texts, stream->read);
    if (stream->hash == progress->hash) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the first %zu texts of the input are not those that %s was made from",
                 progress->texts, output->part);
}

/* ----------------------------------------------------------------------------------------------------------- ending */

static size_t count_items(const corpus_output *output)
{
    size_t items = 0;
    for (size_t k = 0; k < output->row_count; k++) items += k == 0 || output->rows[k].text != output->rows[k - 1].text;
    return items;
}

static size_t count_tokens(const corpus_output *output)
{
    size_t tokens = 0;
    for (size_t k = 0; k < output->row_count; k++) tokens += output->rows[k].tokens;
    return tokens;
}

typedef struct shard_digests {
    char rows[65], items[65];
    size_t row_bytes, item_bytes;
} shard_digests;

static json_t *corpus_shard_describe(const corpus_shard *shard, const text_stream *stream, const corpus_output *output,
                                     const corpus_progress *progress, const shard_digests *digests, const char *isa)
{
    const size_t one = shard->choice.shard, all = count_of(&shard->choice);
    json_t *corpus = json_pack("{s:I, s:o, s:o}", "items", (json_int_t)stream->read, "hash", hash_text(stream), "files",
                               input_files(stream));
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:o, s:I, s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I}", "schema", SHARD_SCHEMA, "shard",
                  (json_int_t)one, "shards", (json_int_t)all, "file",
                  json_sprintf("%zu-of-%zu%s", one, all, suffix_of(output)), "bytes", (json_int_t)digests->row_bytes,
                  "sha256", digests->rows, "items_file", json_sprintf("%zu-of-%zu.items", one, all), "items_sha256",
                  digests->items, "items", (json_int_t)count_items(output), "bad", (json_int_t)progress->bad, "rows",
                  (json_int_t)(output->row_count - output->skipped_rows), "vectors", (json_int_t)output->vectors,
                  "tokens", (json_int_t)count_tokens(output));
    json_t *rest = json_pack("{s:O, s:o, s:o, s:O, s:o, s:{s:s}}", "problems", output->problems, "corpus", corpus,
                             "layout", shard_layout(output), "settings", shard->settings, "command",
                             command_words(&shard->options->common), "made", "isa", isa);
    if (root && rest && json_object_update(root, rest) == 0) {
        json_decref(rest);
        return root;
    }
    json_decref(root);
    json_decref(rest);
    return NULL;
}

deberta_status corpus_shard_finish(corpus_shard *shard, const text_stream *stream, corpus_output *output,
                                   const corpus_progress *progress, deberta_isa isa, deberta_error *err)
{
    shard_digests digests;
    char *items = shard_path(shard->folder, shard->choice.shard, count_of(&shard->choice), ".items");
    if (!items) memory_short();
    deberta_status status = corpus_output_finish(output, err);
    if (status == DEBERTA_OK) status = shard_digest(output->path, digests.rows, &digests.row_bytes, err);
    if (status == DEBERTA_OK) status = shard_items_write(items, output, err);
    if (status == DEBERTA_OK) status = shard_digest(items, digests.items, &digests.item_bytes, err);
    free(items);
    DEBERTA_TRY(status);
    DEBERTA_TRY(shard_manifest_write(
        shard->manifest, corpus_shard_describe(shard, stream, output, progress, &digests, deberta_isa_name(isa)), err));
    /* Another process may have found the shard finished and removed the journal. */
    if (unlink(output->journal_path) == 0 || errno == ENOENT) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s cannot be removed: %s", output->journal_path, strerror(errno));
}

void corpus_shard_close(corpus_shard *shard)
{
    free(shard->folder);
    free(shard->manifest);
    json_decref(shard->settings);
    *shard = (corpus_shard){0};
}
