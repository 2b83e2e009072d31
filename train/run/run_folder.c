/* Runs the loop of steps, and writes the log, evaluations, checkpoints and, at the end, the model.
 *
 * SPDX-License-Identifier: MIT */
#include "train/run/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/json_file.h"
#include "core/io/quote.h"
#include "core/io/tensor.h"
#include "core/load/weight_loader.h"
#include "train/run/run_chain.h"
#include "train/run/run_parts.h"

deberta_status run_folder_check(const char *folder, deberta_error *err)
{
    DIR *entries = opendir(folder);
    if (!entries && errno == ENOENT) return DEBERTA_OK;
    if (!entries) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(folder), strerror(errno));
    const struct dirent *entry;
    bool empty = true;
    while (empty && (entry = readdir(entries)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(entries);
    if (empty) return DEBERTA_OK;
    run_claim claim = {0};
    /* The message about an active run is more useful than that of a folder in use. */
    DEBERTA_TRY(run_claim_join(&claim, folder, err));
    run_claim_release(&claim);
    char log[RUN_PATH_BYTES];
    snprintf(log, sizeof log, "%s/log.jsonl", folder);
    if (access(log, F_OK) == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%s is not empty: it holds a run, which --resume goes on with; expected that, or a new folder",
                     QUOTE(folder));
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s is not empty; expected a new folder, or the one of a run to resume",
                 QUOTE(folder));
}

deberta_status run_folder_prepare(const char *folder, deberta_error *err)
{
    if (mkdir(folder, 0777) == 0) return DEBERTA_OK;
    if (errno != EEXIST)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot make this folder: %s", QUOTE(folder), strerror(errno));
    return run_folder_check(folder, err);
}

/* ---------------------------------------------------------------------------------------------------------------- log */

/* The file log.jsonl, and the number of its skipped steps. */
typedef struct run_log {
    FILE *file;
    size_t skipped;
} run_log;

/* Returns the offset of the first line of a step that is not done; -1: the log does not reach that far. A line without
 * its end belongs to an interrupted step. */
static long end_of_steps(FILE *log, size_t done, size_t *skipped)
{
    char *line = NULL;
    size_t capacity = 0, step = 0, last = 0;
    ssize_t length;
    long end = 0;
    while ((length = getline(&line, &capacity, log)) > 0 && sscanf(line, "{\"step\": %zu,", &step) == 1 &&
           step <= done) {
        if (line[length - 1] != '\n') {
            last = 0;
            break;
        }
        last = step;
        *skipped += strstr(line, ", \"skipped\": ") != NULL;
        end = ftell(log);
    }
    free(line);
    return last == done ? end : -1;
}

static deberta_status cut_log(FILE *log, const char *path, size_t done, size_t *skipped, deberta_error *err)
{
    const long end = end_of_steps(log, done, skipped);
    if (end < 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s does not reach step %zu, or its line is cut off", QUOTE(path), done);
    if (fseek(log, end, SEEK_SET) != 0 || ftruncate(fileno(log), end) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(path), strerror(errno));
    return DEBERTA_OK;
}

/* Marks the model in best/ if it is of a step that is repeated: the log is cut before that step. */
static deberta_status mark_later_best(const training_run *run, FILE *log, size_t done, deberta_error *err)
{
    run_evaluation evaluation = {.scorer = run->scorer, .folder = run->folder};
    if (done > 0) run_evaluation_recall(&evaluation, log);
    rewind(log);
    return done > 0 && evaluation.best_step <= done ? DEBERTA_OK : run_evaluation_mark_later(run->folder, err);
}

/* Opens the log. Rank 0 writes the file, the others write to /dev/null; all of them know the number of skipped steps.
 */
static deberta_status open_log(run_log *log, const training_run *run, size_t done, deberta_error *err)
{
    char path[RUN_PATH_BYTES] = "/dev/null";
    const bool leads = ranks_lead(run->ranks);
    if (leads) snprintf(path, sizeof path, "%s/log.jsonl", run->folder);
    *log = (run_log){.file = fopen(path, leads && done > 0 ? "r+" : "w")};
    if (!log->file) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(path), strerror(errno));
    deberta_status status = leads ? mark_later_best(run, log->file, done, err) : DEBERTA_OK;
    if (status == DEBERTA_OK && leads && done > 0) status = cut_log(log->file, path, done, &log->skipped, err);
    if (status != DEBERTA_OK) stream_discard(log->file);
    if (status == DEBERTA_OK) ranks_join(run->ranks, &log->skipped, sizeof log->skipped);
    return status;
}

static deberta_status flush_log(FILE *log, const char *folder, deberta_error *err)
{
    if (!stream_flush(log)) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s/log.jsonl: %s", QUOTE(folder), strerror(errno));
    return DEBERTA_OK;
}

static deberta_status write_line(FILE *log, const training_run *run, const deberta_training_step *step, double seconds,
                                 deberta_error *err)
{
    const plain_numbers numbers = plain_numbers_begin();
    fprintf(log, "{\"step\": %zu, \"loss\": %.17g, ", step->step, step->loss);
    if (run->parts.items[0].training->options.sift_weight > 0)
        fprintf(log, "\"loss_clean\": %.17g, ", step->loss_clean);
    if (run->parts.pair) {
        fprintf(log, "\"loss_generator\": %.17g, \"loss_discriminator\": %.17g, ", step->loss_generator,
                step->loss_discriminator);
        fprintf(log, "\"gradient_norm_generator\": %.17g, \"gradient_norm_discriminator\": %.17g, ",
                step->gradient_norm_generator, step->gradient_norm_discriminator);
    } else {
        fprintf(log, "\"gradient_norm\": %.17g, ", step->gradient_norm);
    }
    fprintf(log, "\"learning_rate\": %.17g, \"sequences\": %zu, \"tokens\": %zu, \"labelled\": %zu, ",
            step->learning_rate, step->sequences, step->tokens, step->labelled);
    fprintf(log, "\"epoch\": %.17g, \"seconds\": %.3f}\n", step->epoch, seconds);
    plain_numbers_end(numbers);
    return flush_log(log, run->folder, err);
}

/* ------------------------------------------------------------------------------------------------------------ steps */

/* Logs the reason why a step is not finite; the run then tries the next one. */
static deberta_status pass_over(const training_run *run, FILE *log, size_t step, const deberta_error *why,
                                deberta_error *err)
{
    json_t *line = json_pack("{s:I, s:s}", "step", (json_int_t)step, "skipped", why->message);
    char *text = line ? json_print(line, JSON_PRESERVE_ORDER) : NULL;
    json_decref(line);
    if (!text) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a line of the log");
    fprintf(log, "%s\n", text);
    free(text);
    run_parts_skip(&run->parts, step);
    return flush_log(log, run->folder, err);
}

static deberta_status take_step(const training_run *run, run_log *log, bool *goes_on, deberta_error *err)
{
    deberta_training_step step;
    deberta_error why = {0};
    bool is_bad = false;
    const size_t number = run_parts_done(&run->parts) + 1;
    const double began = clock_seconds();
    const deberta_status status = run_parts_step(&run->parts, &step, &is_bad, &why);
    if (is_bad && log->skipped < run->skip_bad) {
        log->skipped++;
        return pass_over(run, log->file, number, &why, err);
    }
    if (status != DEBERTA_OK) {
        if (err) *err = why;
        return status;
    }
    DEBERTA_TRY(write_line(log->file, run, &step, clock_seconds() - began, err));
    if (run->on_step && run->on_step(run->context, &step) != 0) *goes_on = false;
    return DEBERTA_OK;
}

/* Evaluates after the last step, and every eval_every steps. *goes_on becomes false if no model has been better for too
 * long. */
static deberta_status evaluate(const training_run *run, run_evaluation *evaluation, FILE *log, bool *goes_on,
                               deberta_error *err)
{
    const optimizer *o = &run->parts.items[0].training->optimizer;
    const bool due = o->done == o->options.steps || (run->eval_every && o->done % run->eval_every == 0);
    if (!run->held_out || !due) return DEBERTA_OK;
    DEBERTA_TRY(run_evaluation_run(evaluation, &run->parts, log, err));
    *goes_on = !run->patience || evaluation->worse_runs < run->patience;
    return DEBERTA_OK;
}

static run_keeping keeping_of(const training_run *run)
{
    return (run_keeping){.latest = run->keep, .every = run->keep_every};
}

/* Writes log and chain to the disk before the checkpoint, because resuming needs their lines up to it. */
static deberta_status write_checkpoint(const training_run *run, run_chain *chain, FILE *log, deberta_error *err)
{
    if (!ranks_lead(run->ranks)) return DEBERTA_OK;
    if (!file_sync(fileno(log)))
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s/log.jsonl: %s", QUOTE(run->folder), strerror(errno));
    DEBERTA_TRY(run_chain_add_state(chain, &run->parts, err));
    DEBERTA_TRY(run_chain_sync(chain, err));
    return run_checkpoint_write(&run->parts, run->folder, run->record, keeping_of(run), err);
}

/* Records the state where a record is due, and the best model where this step has saved it. */
static deberta_status record(const training_run *run, run_chain *chain, bool is_last, bool saved_best,
                             deberta_error *err)
{
    if (is_last || saved_best || run_chain_is_due(chain, run_parts_done(&run->parts)))
        DEBERTA_TRY(run_chain_add_state(chain, &run->parts, err));
    return saved_best ? run_chain_add_model(chain, &run->parts, true, err) : DEBERTA_OK;
}

/* Keeps the steps before one that is not finite. That step may have changed the generator of a pair. */
static deberta_status keep_good(const training_run *run, run_chain *chain, FILE *log, deberta_error *err)
{
    const size_t done = run_parts_done(&run->parts);
    for (size_t i = 1; i < run->parts.count; i++)
        if (run->parts.items[i].training->optimizer.done != done) return DEBERTA_OK;
    return done > 0 ? write_checkpoint(run, chain, log, err) : DEBERTA_OK;
}

/* Restores the evaluation state; the log is at its end before and after. */
static void recall(run_evaluation *evaluation, FILE *log)
{
    rewind(log);
    run_evaluation_recall(evaluation, log);
    fseek(log, 0, SEEK_END);
}

static bool is_due(const training_run *run, size_t done, double kept_at)
{
    return (run->checkpoint_every && done % run->checkpoint_every == 0) ||
           (run->keep_every && done % run->keep_every == 0) ||
           (run->checkpoint_minutes > 0 && clock_seconds() - kept_at >= 60 * run->checkpoint_minutes);
}

/* Stops all ranks if one must stop: a signal may reach them in different steps, and rank 0 alone evaluates. */
static void agree(const deberta_ranks *ranks, bool *goes_on, bool *improves)
{
    uint8_t ends[] = {!*goes_on, !*improves};
    ranks_join(ranks, ends, sizeof ends);
    *goes_on = !ends[0];
    *improves = !ends[1];
}

/* Notes that a run which goes on behind an end does so from weights that half precision has rounded. */
static void note_rounded(const training_run *run)
{
    if (run->note && run->parts.save_dtype != DEBERTA_FLOAT32)
        run->note(run->note_context,
                  "the run goes on behind an end that wrote its weights in half precision: from these rounded ones, so "
                  "that it is no longer the run that did not end there");
}

/* Runs the steps. *ended: whether the run is over, because the last step is done or because no model has been better
 * for too long. */
static deberta_status take_steps(const training_run *run, run_log *log, run_chain *chain, bool *ended,
                                 deberta_error *err)
{
    const optimizer *o = &run->parts.items[0].training->optimizer;
    const size_t steps = o->options.steps, end = run->stop_at ? minimum(run->stop_at, steps) : steps;
    run_evaluation evaluation = {.held_out = run->held_out, .scorer = run->scorer, .folder = run->folder};
    bool goes_on = true, improves = true;
    if (o->done > 0 && run->held_out) {
        recall(&evaluation, log->file);
        improves = !run->patience || evaluation.worse_runs < run->patience;
    }
    agree(run->ranks, &goes_on, &improves);
    *ended = *ended || !improves;
    /* A run that goes on behind an end has not recorded its state yet, which half precision would have rounded. */
    if (run->is_written && improves && o->done < end) {
        DEBERTA_TRY(run_chain_add_state(chain, &run->parts, err));
        note_rounded(run);
    }
    size_t kept = o->done;
    double kept_at = clock_seconds();
    while (goes_on && improves && o->done < end) {
        deberta_error second;
        const deberta_status status = take_step(run, log, &goes_on, err);
        if (status == DEBERTA_E_NOT_FINITE) {
            if (o->done > kept) keep_good(run, chain, log->file, &second);
            /* Without this, ranks that end alone would stop the one that writes. */
            agree(run->ranks, &goes_on, &improves);
        }
        DEBERTA_TRY(status);
        DEBERTA_TRY(evaluate(run, &evaluation, log->file, &improves, err));
        goes_on = goes_on && o->done < end;
        agree(run->ranks, &goes_on, &improves);
        *ended = o->done == steps || !improves;
        DEBERTA_TRY(record(run, chain, *ended, run->held_out && evaluation.best_step == o->done, err));
        if (*ended || (goes_on && !is_due(run, o->done, kept_at))) continue;
        DEBERTA_TRY(write_checkpoint(run, chain, log->file, err));
        kept = o->done;
        kept_at = clock_seconds();
    }
    return DEBERTA_OK;
}

/* Removes the files of a run whose first step failed, so that the next run finds an empty folder. */
static void remove_log(const training_run *run, const run_chain *chain)
{
    char path[RUN_PATH_BYTES];
    snprintf(path, sizeof path, "%s/log.jsonl", run->folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/" CHAIN_FILE, run->folder);
    if (chain->file >= 0) unlink(path);
    run_claim_remove(run->claim, run->folder);
}

/* Refuses weights that no model may have: they are saved, but nothing opens them again. */
static deberta_status check_weights(const run_part *part, const char *folder, deberta_error *err)
{
    const parameter_set *set = &part->training->learner->set;
    for (size_t i = 0; i < set->count; i++) {
        const parameter *p = &set->items[i];
        const bool is_encoder = strncmp(p->name, "embeddings.", 11) == 0 || strncmp(p->name, "encoder.", 8) == 0;
        const float most = is_encoder ? LARGEST_WEIGHT : LARGEST_WEIGHT_OF_HEADS;
        if (!p->trained || magnitudes_within(p->values, p->count, most)) continue;
        size_t at = 0;
        while (at < p->count && !(fabsf(p->values[at]) > most)) at++;
        if (at == p->count) continue; /* what is no number was in the model before: no update makes one */
        DEBERTA_FAIL(
            err, DEBERTA_E_NOT_FINITE,
            "%s%s%s: value %zu of the trained tensor '%s' is %g, expected -%g to %g: the training diverged, and "
            "what it saved cannot be opened again; a smaller --learning-rate, or a --clip such as 1, may help",
            QUOTE(folder), *part->name ? "/" : "", part->name, at, p->stored_name, (double)p->values[at], (double)most,
            (double)most);
    }
    return DEBERTA_OK;
}

/* Writes the model and records it in the chain. Where no step was taken after the end that the folder has, its files
 * stay as they are. */
static deberta_status write_last(const training_run *run, run_chain *chain, bool is_there, deberta_error *err)
{
    DEBERTA_TRY(is_there ? run_checkpoint_check_dtype(&run->parts, run->folder, err)
                         : run_checkpoint_write_last(&run->parts, run->folder, run->record, err));
    DEBERTA_TRY(run_chain_add_model(chain, &run->parts, false, err));
    return run_chain_sync(chain, err);
}

deberta_status run_folder_train(const training_run *run, bool *finished, deberta_error *err)
{
    run_log log;
    run_chain chain = {.file = -1};
    const optimizer *o = &run->parts.items[0].training->optimizer;
    *finished = o->done == o->options.steps;
    const bool leads = ranks_lead(run->ranks);
    const size_t begun = o->done;
    DEBERTA_TRY(open_log(&log, run, o->done, err));
    deberta_status status =
        leads ? run_chain_open(&chain, run->folder, run->chain_every, &run->parts, run->is_written, err) : DEBERTA_OK;
    /* Removes checkpoints that the interrupted run had not removed yet. */
    if (status == DEBERTA_OK && o->done > 0 && !*finished && leads)
        status = run_checkpoint_remove_older(run->folder, o->done, keeping_of(run), err);
    if (status == DEBERTA_OK) status = take_steps(run, &log, &chain, finished, err);
    const bool is_empty = fseek(log.file, 0, SEEK_END) == 0 && ftell(log.file) == 0;
    const bool written = stream_close(log.file);
    if (status != DEBERTA_OK && is_empty && leads) remove_log(run, &chain);
    if (status == DEBERTA_OK && !written)
        status = status_fail(err, DEBERTA_E_SYSTEM, "%s/log.jsonl: %s", QUOTE(run->folder), strerror(errno));
    if (status == DEBERTA_OK && *finished && leads)
        status = write_last(run, &chain, run->is_written && o->done == begun, err);
    run_chain_close(&chain);
    for (size_t i = 0; status == DEBERTA_OK && *finished && i < run->parts.count; i++)
        status = check_weights(&run->parts.items[i], run->folder, err);
    return status;
}
