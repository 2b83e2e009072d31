/* Writes, checks, finds and removes the checkpoints of a training run, from which it resumes; no reader ever sees a
 * half-written one.
 *
 * SPDX-License-Identifier: MIT */
#include "train/run/run_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/numbers.h"
#include "core/base/sha256.h"
#include "core/io/atomic_file.h"
#include "core/io/checkpoint.h"
#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "core/io/quote.h"
#include "train/run/save.h"
#include "train/run/trainer_options.h"

enum { MOST_OPEN_FOLDERS = 8, DIFFERENCES_BYTES = 400 };

#define STATE_FILE   "training.json"
#define HELD_OUT_KEY "held-out"

/* A path that is too long becomes an empty one, which cannot be opened. */
static void run_checkpoint_join(char path[RUN_PATH_BYTES], const char *folder, const char *name)
{
    const int length = snprintf(path, RUN_PATH_BYTES, "%s%s%s", folder, *name ? "/" : "", name);
    if (length >= RUN_PATH_BYTES) *path = 0;
}

static deberta_status system_error(const char *path, const char *what, deberta_error *err)
{
    return status_fail(err, DEBERTA_E_SYSTEM, "%s: %s: %s", QUOTE(path), what, strerror(errno));
}

/* ---------------------------------------------------------------------------------------------------------- folders */

static deberta_status run_checkpoint_make_folder(const char *path, deberta_error *err)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return DEBERTA_OK;
    return system_error(path, "cannot make this folder", err);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static deberta_status remove_folder(const char *path, deberta_error *err)
{
    if (nftw(path, remove_entry, MOST_OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT) return DEBERTA_OK;
    return system_error(path, "cannot be removed", err);
}

static int sync_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    const bool synced = file_sync(file);
    const int reason = errno;
    close(file);
    errno = reason;
    return synced ? 0 : -1;
}

static deberta_status sync_folder(const char *path, deberta_error *err)
{
    if (nftw(path, sync_entry, MOST_OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) == 0) return DEBERTA_OK;
    return system_error(path, "cannot be brought to the disk", err);
}

static const char prefix[] = "checkpoint-";

/* Returns whether a name is that of a checkpoint, which may be incomplete. */
static bool is_checkpoint(const char *name) { return strncmp(name, prefix, sizeof prefix - 1) == 0; }

/* Returns the step in the name of a complete checkpoint, or 0. */
static size_t step_of(const char *folder, const char *name)
{
    char path[RUN_PATH_BYTES], state[RUN_PATH_BYTES], expected[64];
    if (!is_checkpoint(name)) return 0;
    const size_t step = (size_t)strtoull(name + sizeof prefix - 1, NULL, 10);
    snprintf(expected, sizeof expected, "%s%06zu", prefix, step);
    run_checkpoint_join(path, folder, name);
    run_checkpoint_join(state, path, STATE_FILE);
    return strcmp(name, expected) == 0 && access(state, R_OK) == 0 ? step : 0;
}

/* Returns the step of the latest checkpoint before step `below`, or 0 if there is none. */
static deberta_status latest(size_t *step, const char *folder, size_t below, deberta_error *err)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    *step = 0;
    if (!entries) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(folder), strerror(errno));
    while ((entry = readdir(entries))) {
        const size_t found = step_of(folder, entry->d_name);
        if (found < below) *step = maximum(*step, found);
    }
    closedir(entries);
    return DEBERTA_OK;
}

static void checkpoint_name(char path[RUN_PATH_BYTES], const char *folder, size_t step)
{
    char name[32];
    snprintf(name, sizeof name, "checkpoint-%06zu", step);
    run_checkpoint_join(path, folder, name);
}

/* Removes the remains of a checkpoint whose removal was interrupted. */
static deberta_status remove_remains(const char *folder, deberta_error *err)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    deberta_status status = DEBERTA_OK;
    if (!entries) return system_error(folder, "cannot be read", err);
    while (status == DEBERTA_OK && (entry = readdir(entries))) {
        char path[RUN_PATH_BYTES];
        run_checkpoint_join(path, folder, entry->d_name);
        if (is_checkpoint(entry->d_name) && !step_of(folder, entry->d_name)) status = remove_folder(path, err);
    }
    closedir(entries);
    return status;
}

/* Removes a checkpoint, the state first, so that an interrupted removal leaves no valid checkpoint. */
static deberta_status remove_checkpoint(const char *path, deberta_error *err)
{
    char state[RUN_PATH_BYTES];
    run_checkpoint_join(state, path, STATE_FILE);
    if (unlink(state) != 0 && errno != ENOENT) return system_error(state, "cannot be removed", err);
    return remove_folder(path, err);
}

deberta_status run_checkpoint_remove_older(const char *folder, size_t step, run_keeping keeping, deberta_error *err)
{
    char path[RUN_PATH_BYTES];
    size_t kept = 1;
    DEBERTA_TRY(remove_remains(folder, err));
    while (step > 0) {
        DEBERTA_TRY(latest(&step, folder, step, err));
        if (step == 0 || (keeping.every && step % keeping.every == 0)) continue;
        checkpoint_name(path, folder, step);
        if (kept++ >= keeping.latest) DEBERTA_TRY(remove_checkpoint(path, err));
    }
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- digests */

/* The files from which a run resumes: any changed bit of them is detected by the SHA-256 in training.json. */
static const char *const digested[] = {"config.json", "model.safetensors", "training.safetensors"};

static deberta_status digest_of(const char *folder, const char *name, char digest[65], deberta_error *err)
{
    char path[RUN_PATH_BYTES];
    run_checkpoint_join(path, folder, name);
    return file_digest(path, digest, err);
}

/* Computes {"generator/model.safetensors": "9f86...", ...} for the configurations, weights and moments of all parts. */
static deberta_status take_digests(json_t **digests, const run_parts *parts, const char *folder, deberta_error *err)
{
    *digests = json_object();
    for (size_t i = 0; i < parts->count; i++)
        for (size_t k = 0; k < sizeof digested / sizeof *digested; k++) {
            char name[64], digest[65];
            const char *part = parts->items[i].name;
            snprintf(name, sizeof name, "%s%s%s", part, *part ? "/" : "", digested[k]);
            DEBERTA_TRY(digest_of(folder, name, digest, err));
            if (json_object_set_new(*digests, name, json_string(digest)) != 0)
                DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the digests of a checkpoint");
        }
    return DEBERTA_OK;
}

/* Checks the digests; accepts NULL, from a checkpoint of an older program. The message names the first file that
 * differs. */
static deberta_status check_digests(const json_t *digests, const char *folder, deberta_error *err)
{
    const char *name;
    const json_t *expected;
    json_object_foreach((json_t *)digests, name, expected)
    {
        char found[65];
        DEBERTA_TRY(digest_of(folder, name, found, err));
        if (!json_is_string(expected) || strcmp(json_string_value(expected), found) != 0)
            DEBERTA_FAIL(
                err, DEBERTA_E_FORMAT,
                "%s/%s has changed since the run wrote it: its SHA-256 is %s, expected %.64s, as training.json "
                "has it",
                QUOTE(folder), QUOTE(name), found,
                json_is_string(expected) ? QUOTE(json_string_value(expected)) : "a text");
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

deberta_status run_parts_save(const run_parts *parts, const char *folder, deberta_dtype dtype, deberta_error *err)
{
    if (parts->pair) pair_share_tables(parts->pair);
    for (size_t i = 0; i < parts->count; i++) {
        char path[RUN_PATH_BYTES];
        const run_part *part = &parts->items[i];
        run_checkpoint_join(path, folder, part->name);
        DEBERTA_TRY(run_checkpoint_make_folder(path, err));
        const learner *l = part->training->learner;
        DEBERTA_TRY(save_model(path, part->source_folder, &l->set, l->config, dtype, err));
    }
    return DEBERTA_OK;
}

static deberta_status write_state(const char *folder, size_t step, const run_record *record, json_t *digests,
                                  deberta_error *err)
{
    char path[RUN_PATH_BYTES];
    atomic_file *file = NULL;
    json_t *state = json_pack("{s:I, s:O, s:O}", "step", (json_int_t)step, "recipe", record->recipe, "sha256", digests);
    bool lost = !state;
    if (*record->held_out) json_add_member(state, HELD_OUT_KEY, json_string(record->held_out), &lost);
    char *text = lost ? NULL : json_print(state, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(state);
    if (!text) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the recipe of a checkpoint");
    run_checkpoint_join(path, folder, STATE_FILE);
    deberta_status status = atomic_file_open(&file, path, err);
    if (status == DEBERTA_OK) status = atomic_file_write(file, 0, text, strlen(text), err);
    if (status == DEBERTA_OK)
        status = atomic_file_commit(&file, err);
    else
        atomic_file_discard(&file);
    free(text);
    return status;
}

static deberta_status fill_folder(const run_parts *parts, const char *folder, deberta_dtype dtype,
                                  const run_record *record, deberta_error *err)
{
    DEBERTA_TRY(run_checkpoint_make_folder(folder, err));
    DEBERTA_TRY(run_parts_save(parts, folder, dtype, err));
    for (size_t i = 0; i < parts->count; i++) {
        char path[RUN_PATH_BYTES];
        const training *t = parts->items[i].training;
        run_checkpoint_join(path, folder, parts->items[i].name);
        DEBERTA_TRY(save_moments(path, &t->learner->set, &t->optimizer, err));
    }
    json_t *digests = NULL;
    deberta_status status = take_digests(&digests, parts, folder, err);
    if (status == DEBERTA_OK) status = write_state(folder, run_parts_done(parts), record, digests, err);
    json_decref(digests);
    return status == DEBERTA_OK ? sync_folder(folder, err) : status;
}

deberta_status run_checkpoint_write(const run_parts *parts, const char *folder, const run_record *record,
                                    run_keeping keeping, deberta_error *err)
{
    char unfinished[RUN_PATH_BYTES], path[RUN_PATH_BYTES];
    const size_t step = run_parts_done(parts);
    run_checkpoint_join(unfinished, folder, ".checkpoint");
    checkpoint_name(path, folder, step);
    DEBERTA_TRY(remove_folder(unfinished, err));
    DEBERTA_TRY(fill_folder(parts, unfinished, DEBERTA_FLOAT32, record, err));
    DEBERTA_TRY(remove_folder(path, err));
    if (rename(unfinished, path) != 0) return system_error(path, "cannot be given its name", err);
    DEBERTA_TRY(folder_sync_of(path, err)); /* before older ones are removed */
    return run_checkpoint_remove_older(folder, step, keeping, err);
}

deberta_status run_checkpoint_write_last(const run_parts *parts, const char *folder, const run_record *record,
                                         deberta_error *err)
{
    return fill_folder(parts, folder, parts->save_dtype, record, err);
}

/* One part is enough, because all have one dtype. */
deberta_status run_checkpoint_check_dtype(const run_parts *parts, const char *folder, deberta_error *err)
{
    char path[RUN_PATH_BYTES];
    checkpoint *saved = NULL;
    run_checkpoint_join(path, folder, parts->items[0].name);
    DEBERTA_TRY(checkpoint_open(&saved, path, err));
    const tensor *words = checkpoint_find(saved, "embeddings.word_embeddings.weight");
    const bool is_half = words && words->dtype == DTYPE_F16, wanted = parts->save_dtype == DEBERTA_FLOAT16;
    checkpoint_close(&saved);
    if (!words || is_half == wanted) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: this run is finished, with weights in %s, which stay as they are: %s",
                 QUOTE(folder), is_half ? "float16" : "float32",
                 is_half ? "--save-dtype f16 belongs to it" : "leave --save-dtype f16 out");
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static char *run_checkpoint_show(const json_t *value)
{
    return value ? json_print(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
}

/* Returns whether a value is a text of 64 hexadecimal digits: the SHA-256 of data or models, whose digits tell a reader
 * only that they differ. */
static bool is_digest(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && sha256_is_digest(text);
}

/* Lists the differences of two recipes: "seed 1, now 2; the data has other contents now; ...". Both have the same
 * members, unless another program has written a file. */
static deberta_status compare_recipes(const char *path, const json_t *was, const json_t *now, bool is_audit,
                                      deberta_error *err)
{
    char differences[DIFFERENCES_BYTES] = "";
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)now, key, value)
    {
        const json_t *before = json_object_get(was, key);
        const size_t length = strlen(differences);
        if (json_equal(before, value)) continue;
        if (is_digest(before) && is_digest(value)) {
            snprintf(differences + length, sizeof differences - length, "%sthe %s has other contents now",
                     length ? "; " : "", key);
            continue;
        }
        char *one = run_checkpoint_show(before), *other = run_checkpoint_show(value);
        snprintf(differences + length, sizeof differences - length, "%s%s %s, now %s", length ? "; " : "",
                 trainer_option_of_key(key), one ? QUOTE(one) : "missing", other ? QUOTE(other) : "missing");
        free(one);
        free(other);
    }
    if (!*differences) return DEBERTA_OK;
    if (is_audit)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: what is here is not what the run had: %s", QUOTE(path), differences);
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                 "%s is of another run: %s; to train its model further, give that folder as MODEL and another --out",
                 QUOTE(path), differences);
}

/* Returns whether an entry cannot come from a run that was killed before it had written its recipe; such a run leaves
 * an empty recipe and temporaries. */
static bool is_no_trace(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, RECIPE_FILE) != 0 &&
           !atomic_file_is_temporary(name);
}

/* Refuses a folder without a checkpoint that has an entry for which is_refused is true; without such entries the run
 * begins anew. */
static deberta_status refuse_entries(const char *folder, bool (*is_refused)(const char *name), deberta_error *err)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    deberta_status status = DEBERTA_OK;
    if (!entries) return system_error(folder, "cannot be read", err);
    while (status == DEBERTA_OK && (entry = readdir(entries)))
        if (is_refused(entry->d_name))
            status = status_fail(err, DEBERTA_E_ARGUMENT,
                                 "%s has no checkpoint to go on from, but %s, which no run leaves that was stopped "
                                 "before its first one",
                                 QUOTE(folder), QUOTE(entry->d_name));
    closedir(entries);
    return status;
}

/* Checks a folder without a checkpoint: a run with the same recipe begins anew there. */
static deberta_status check_begun(const char *folder, const json_t *recipe, deberta_error *err)
{
    json_t *before = NULL;
    DEBERTA_TRY(run_claim_recipe(&before, folder, err));
    if (!before) return refuse_entries(folder, is_no_trace, err);
    deberta_status status = refuse_entries(folder, is_checkpoint, err);
    if (status == DEBERTA_OK) status = compare_recipes(folder, before, recipe, false, err);
    json_decref(before);
    return status;
}

/* Chooses the checkpoint from which a run resumes. The folder of a finished run is itself a checkpoint. Step 0: there
 * is none. */
static deberta_status run_checkpoint_choose(run_checkpoint *found, const char *folder, deberta_error *err)
{
    char path[RUN_PATH_BYTES];
    run_checkpoint_join(path, folder, STATE_FILE);
    *found = (run_checkpoint){0};
    if (access(path, R_OK) == 0) {
        run_checkpoint_join(found->path, folder, "");
        found->is_finished = true;
        return DEBERTA_OK;
    }
    if (access(folder, F_OK) != 0 && errno == ENOENT)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: there is no such folder, and so no run to resume", QUOTE(folder));
    DEBERTA_TRY(latest(&found->step, folder, SIZE_MAX, err));
    if (found->step) checkpoint_name(found->path, folder, found->step);
    return DEBERTA_OK;
}

/* Reads the state file of a checkpoint. named: the step in its name; 0: the name has none. */
static deberta_status read_state(run_checkpoint *found, size_t named, json_t **state, deberta_error *err)
{
    char path[RUN_PATH_BYTES];
    run_checkpoint_join(path, found->path, STATE_FILE);
    DEBERTA_TRY(json_file_read(state, path, &run_json_limits, err));
    const json_int_t step = json_integer_value(json_object_get(*state, "step"));
    found->step = (size_t)step;
    if (step < 1 || (named && step != (json_int_t)named))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: 'step' is no number of steps, or not that in the folder's name",
                     QUOTE(path));
    return DEBERTA_OK;
}

/* Refuses other held-out data than those whose measures the run has already: they would be compared with each other. */
static deberta_status compare_held_out(const char *path, const json_t *state, const run_record *record,
                                       deberta_error *err)
{
    const char *before = json_string_value(json_object_get(state, HELD_OUT_KEY));
    if (!before || !*record->held_out || strcmp(before, record->held_out) == 0) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                 "%s: the data of --eval has other contents now, whose measures cannot be compared with those of "
                 "before: give the earlier data, or another --out",
                 QUOTE(path));
}

deberta_status run_checkpoint_find(run_checkpoint *found, const char *folder, const run_record *record,
                                   deberta_error *err)
{
    json_t *state = NULL;
    DEBERTA_TRY(run_checkpoint_choose(found, folder, err));
    if (!*found->path) return check_begun(folder, record->recipe, err);
    deberta_status status = read_state(found, found->step, &state, err);
    if (status == DEBERTA_OK)
        status = compare_recipes(found->path, json_object_get(state, "recipe"), record->recipe, false, err);
    if (status == DEBERTA_OK) status = compare_held_out(found->path, state, record, err);
    if (status == DEBERTA_OK) status = check_digests(json_object_get(state, "sha256"), found->path, err);
    json_decref(state);
    return status;
}

deberta_status run_checkpoint_find_step(run_checkpoint *found, const char *folder, size_t step, const json_t *recipe,
                                        deberta_error *err)
{
    json_t *state = NULL, *begun = NULL;
    *found = (run_checkpoint){0};
    DEBERTA_TRY(run_claim_recipe(&begun, folder, err));
    deberta_status status = begun ? compare_recipes(folder, begun, recipe, true, err)
                                  : status_fail(err, DEBERTA_E_FORMAT, "%s has no recipe of a run", QUOTE(folder));
    json_decref(begun);
    if (status != DEBERTA_OK || step == 0) return status;
    checkpoint_name(found->path, folder, step);
    status = read_state(found, step, &state, err);
    if (status == DEBERTA_OK)
        status = compare_recipes(found->path, json_object_get(state, "recipe"), recipe, true, err);
    json_decref(state);
    return status;
}

void run_checkpoint_part(const run_checkpoint *c, const char *name, char path[RUN_PATH_BYTES])
{
    run_checkpoint_join(path, c->path, name);
}

deberta_status run_checkpoint_read(const run_checkpoint *c, const run_parts *parts, deberta_error *err)
{
    for (size_t i = 0; i < parts->count; i++) {
        char path[RUN_PATH_BYTES];
        training *t = parts->items[i].training;
        run_checkpoint_part(c, parts->items[i].name, path);
        DEBERTA_TRY(read_moments(path, &t->learner->set, &t->optimizer, err));
        optimizer_set_done(&t->optimizer, c->step);
    }
    return DEBERTA_OK;
}
