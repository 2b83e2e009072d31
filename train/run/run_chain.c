/* Opens, continues and appends to the chain of a run. SPDX-License-Identifier: MIT */
#include "train/run/run_chain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/io/atomic_file.h"
#include "core/io/checkpoint.h"
#include "core/io/mapped_file.h"
#include "core/io/quote.h"
#include "train/run/state_digest.h"

/* ---------------------------------------------------------------------------------------------------------- writing */

static deberta_status chain_failed(const run_chain *chain, deberta_error *err)
{
    return status_fail(err, DEBERTA_E_SYSTEM, "%s/" CHAIN_FILE ": %s", QUOTE(chain->folder), strerror(errno));
}

/* Writes a whole line by one call. A part of a line, which a full disk leaves, is cut when the run continues. */
static deberta_status append_line(const run_chain *chain, const char *line, deberta_error *err)
{
    const size_t length = strlen(line);
    const ssize_t written = write(chain->file, line, length);
    if (written >= 0 && (size_t)written < length) errno = ENOSPC;
    return written == (ssize_t)length ? DEBERTA_OK : chain_failed(chain, err);
}

/* ---------------------------------------------------------------------------------------------------------- records */

/* Compares an existing record with the digest that this process has computed for the same step. */
static deberta_status compare_record(const run_chain *chain, const deberta_chain_record *record, const char *digest,
                                     deberta_error *err)
{
    if (strcmp(record->digest, digest) == 0) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                 "%s/" CHAIN_FILE ": the state after step %zu is %.16s..., and the record of the run's first pass over "
                 "this step has %.16s...: another program version, or a damaged file",
                 QUOTE(chain->folder), record->step, digest, record->digest);
}

/* Returns the existing record of this step, for the state or for a saved model; NULL if there is none. */
static const deberta_chain_record *find_begun(run_chain *chain, size_t step, const char *of)
{
    const deberta_chain_record *record = NULL;
    if (!chain->begun) return NULL;
    while ((record = deberta_chain_record_at(chain->begun, chain->next)) && record->step < step) chain->next++;
    for (size_t k = chain->next; (record = deberta_chain_record_at(chain->begun, k)) && record->step == step; k++)
        if (!of == !record->of && (!of || strcmp(of, record->of) == 0)) return record;
    return NULL;
}

/* Appends a record. A record before the end of the file cannot be added any more. */
static deberta_status add_record(run_chain *chain, size_t step, const char *of, const char *digest, deberta_error *err)
{
    char line[CHAIN_LINE_BYTES];
    const deberta_chain_record *begun = find_begun(chain, step, of);
    if (begun) return compare_record(chain, begun, digest, err);
    if (step < chain->last_step) return DEBERTA_OK;
    chain_print_record(line, step, of, digest, chain->link);
    DEBERTA_TRY(append_line(chain, line, err));
    chain->is_recorded = !of || (chain->is_recorded && step == chain->last_step);
    chain->last_step = step;
    return DEBERTA_OK;
}

bool run_chain_is_due(const run_chain *chain, size_t step)
{
    if (chain->file < 0) return false;
    const deberta_chain_record *record = NULL;
    for (size_t k = chain->next;
         chain->begun && (record = deberta_chain_record_at(chain->begun, k)) && record->step <= step; k++)
        if (record->step == step) return true;
    return step % chain->every == 0;
}

deberta_status run_chain_add_state(run_chain *chain, const run_parts *parts, deberta_error *err)
{
    char digest[CHAIN_DIGEST_BYTES];
    const size_t step = run_parts_done(parts);
    if (chain->file < 0) return DEBERTA_OK;
    const bool is_behind = step < chain->last_step || (step == chain->last_step && chain->is_recorded);
    if (is_behind && !find_begun(chain, step, NULL)) return DEBERTA_OK;
    DEBERTA_TRY(state_digest(parts, digest, err));
    return add_record(chain, step, NULL, digest, err);
}

/* Computes the digest of a saved model, which covers its config.json and its weights. */
static deberta_status digest_saved(const char *run, const char *of, char digest[CHAIN_DIGEST_BYTES], deberta_error *err)
{
    char folder[RUN_PATH_BYTES];
    if (snprintf(folder, sizeof folder, "%s%s%s", run, *of ? "/" : "", of) >= RUN_PATH_BYTES) *folder = 0;
    return checkpoint_digest_folder(folder, digest, err);
}

deberta_status run_chain_add_model(run_chain *chain, const run_parts *parts, bool of_best, deberta_error *err)
{
    if (chain->file < 0) return DEBERTA_OK;
    for (size_t i = 0; i < parts->count; i++) {
        char of[32], digest[CHAIN_DIGEST_BYTES];
        const char *part = parts->items[i].name;
        snprintf(of, sizeof of, "%s%s%s", of_best ? "best" : "", of_best && *part ? "/" : "", part);
        DEBERTA_TRY(digest_saved(chain->folder, of, digest, err));
        DEBERTA_TRY(add_record(chain, run_parts_done(parts), of, digest, err));
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static deberta_status digest_recipe(const run_chain *chain, char digest[CHAIN_DIGEST_BYTES], deberta_error *err)
{
    char path[RUN_PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/" RECIPE_FILE, chain->folder) >= RUN_PATH_BYTES) *path = 0;
    return file_digest(path, digest, err);
}

static deberta_status append_head(run_chain *chain, deberta_error *err)
{
    char line[CHAIN_LINE_BYTES], recipe[CHAIN_DIGEST_BYTES];
    DEBERTA_TRY(digest_recipe(chain, recipe, err));
    chain_print_head(line, recipe, chain->every, chain->link);
    return append_line(chain, line, err);
}

/* Continues an existing chain after its last whole line. */
static deberta_status go_on(run_chain *chain, deberta_error *err)
{
    char recipe[CHAIN_DIGEST_BYTES];
    const deberta_chain_info *info = deberta_chain_describe(chain->begun);
    DEBERTA_TRY(digest_recipe(chain, recipe, err));
    if (!info->follows || strcmp(info->recipe, recipe) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s/" CHAIN_FILE ": its first line is not of the " RECIPE_FILE " beside it",
                     QUOTE(chain->folder));
    memcpy(chain->link, info->head, sizeof chain->link);
    if (chain->every == 0) chain->every = info->every;
    for (size_t k = 0; k < info->count; k++) {
        const deberta_chain_record *record = deberta_chain_record_at(chain->begun, k);
        if (!record->follows)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "%s/" CHAIN_FILE ": line %zu, of step %zu, does not follow the one above",
                         QUOTE(chain->folder), k + 2, record->step);
        chain->is_recorded = !record->of || (chain->is_recorded && record->step == chain->last_step);
        chain->last_step = record->step;
    }
    return ftruncate(chain->file, (off_t)chain->begun->whole_bytes) == 0 ? DEBERTA_OK : chain_failed(chain, err);
}

static deberta_status open_file(run_chain *chain, deberta_error *err)
{
    char path[RUN_PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/" CHAIN_FILE, chain->folder) >= RUN_PATH_BYTES) *path = 0;
    chain->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (chain->file < 0) return chain_failed(chain, err);
    if (chain->begun && *chain->begun->first_link) return go_on(chain, err);
    if (chain->every == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s/" CHAIN_FILE
                     ": its first line was not written whole; it begins again where chain_every says how "
                     "many steps are between its records (--chain, --chain-every)",
                     QUOTE(chain->folder));
    if (ftruncate(chain->file, 0) != 0) return chain_failed(chain, err);
    return append_head(chain, err);
}

deberta_status run_chain_open(run_chain *chain, const char *folder, size_t every, const run_parts *parts,
                              bool is_written, deberta_error *err)
{
    *chain = (run_chain){.file = -1, .folder = folder, .every = every};
    DEBERTA_TRY(chain_read_begun(&chain->begun, folder, err));
    if (!chain->begun && every == 0) return DEBERTA_OK;
    DEBERTA_TRY(open_file(chain, err));
    return is_written && chain->begun ? DEBERTA_OK : run_chain_add_state(chain, parts, err);
}

deberta_status run_chain_sync(const run_chain *chain, deberta_error *err)
{
    return chain->file < 0 || file_sync(chain->file) ? DEBERTA_OK : chain_failed(chain, err);
}

void run_chain_close(run_chain *chain)
{
    if (chain->file >= 0) close(chain->file);
    chain->file = -1;
    deberta_chain_free(&chain->begun);
}
