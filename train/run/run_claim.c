/* Claims the folder of a run with its recipe; a lock excludes other processes. SPDX-License-Identifier: MIT */
#include "train/run/run_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/io/atomic_file.h"
#include "core/io/json_file.h"
#include "core/io/quote.h"

enum { PATH_BYTES = 4096 };

const json_limits run_json_limits = {.bytes = 64 << 20, .depth = 8, .values = 1 << 20};

static void recipe_path(char path[PATH_BYTES], const char *folder)
{
    if (snprintf(path, PATH_BYTES, "%s/" RECIPE_FILE, folder) >= PATH_BYTES) *path = 0;
}

/* Locks the recipe. A file system without locks is accepted. A file that lost its name before the lock belongs to a run
 * that has just failed. */
static deberta_status lock(int file, const char *folder, deberta_error *err)
{
    struct stat about;
    const bool busy = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!busy && fstat(file, &about) == 0 && about.st_nlink > 0) return DEBERTA_OK;
    close(file);
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: another run is at work in this folder", QUOTE(folder));
}

static deberta_status open_locked(run_claim *claim, const char *folder, int flags, deberta_error *err)
{
    char path[PATH_BYTES];
    recipe_path(path, folder);
    const int file = open(path, O_RDWR | O_CLOEXEC | flags, 0666);
    if (file < 0 && errno == ENOENT && !(flags & O_CREAT)) return DEBERTA_OK;
    if (file < 0) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(path), strerror(errno));
    DEBERTA_TRY(lock(file, folder, err));
    claim->file = file;
    claim->held = true;
    return DEBERTA_OK;
}

deberta_status run_claim_join(run_claim *claim, const char *folder, deberta_error *err)
{
    return open_locked(claim, folder, 0, err);
}

static bool write_all(int file, const char *text, size_t count)
{
    for (size_t at = 0; at < count;) {
        const ssize_t written = pwrite(file, text + at, count - at, (off_t)at);
        if (written < 0) return false;
        at += (size_t)written;
    }
    return file_sync(file);
}

static deberta_status write_recipe(int file, const char *folder, const json_t *recipe, deberta_error *err)
{
    char *text = json_print(recipe, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    if (!text) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the recipe of a run");
    const bool written = ftruncate(file, 0) == 0 && write_all(file, text, strlen(text));
    free(text);
    if (written) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s/" RECIPE_FILE ": %s", QUOTE(folder), strerror(errno));
}

void run_claim_remove(const run_claim *claim, const char *folder)
{
    char path[PATH_BYTES];
    recipe_path(path, folder);
    if (claim->is_new) unlink(path);
}

deberta_status run_claim_take(run_claim *claim, const char *folder, const json_t *recipe, deberta_error *err)
{
    if (!claim->held) DEBERTA_TRY(open_locked(claim, folder, O_CREAT, err));
    json_t *before = NULL;
    DEBERTA_TRY(run_claim_recipe(&before, folder, err));
    const bool is_there = before != NULL;
    json_decref(before);
    if (is_there) return DEBERTA_OK;
    claim->is_new = true;
    const deberta_status status = write_recipe(claim->file, folder, recipe, err);
    if (status != DEBERTA_OK) run_claim_remove(claim, folder);
    return status;
}

void run_claim_release(run_claim *claim)
{
    if (claim->held) close(claim->file);
    *claim = (run_claim){0};
}

deberta_status run_claim_recipe(json_t **recipe, const char *folder, deberta_error *err)
{
    char path[PATH_BYTES];
    deberta_error malformed;
    *recipe = NULL;
    recipe_path(path, folder);
    if (access(path, F_OK) != 0 && errno == ENOENT) return DEBERTA_OK;
    const deberta_status status = json_file_read(recipe, path, &run_json_limits, &malformed);
    if (status == DEBERTA_OK || status == DEBERTA_E_FORMAT) return DEBERTA_OK;
    if (err) *err = malformed;
    return status;
}
