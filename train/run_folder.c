/* SPDX-License-Identifier: MIT */
#include "train/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/integers.h"
#include "core/io/quote.h"

deberta_status run_folder_prepare(const char *folder, deberta_error *err)
{
    if (mkdir(folder, 0777) == 0) return DEBERTA_OK;
    if (errno != EEXIST)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot make this folder: %s", QUOTE(folder), strerror(errno));
    DIR *entries = opendir(folder);
    if (!entries) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(folder), strerror(errno));
    const struct dirent *entry;
    bool empty = true;
    while (empty && (entry = readdir(entries)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(entries);
    if (!empty) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s is not empty", QUOTE(folder));
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------------- log */

/* Where the first line of a step that is not behind begins; -1: the log does not reach that far. */
static long end_of_steps(FILE *log, size_t done)
{
    char *line = NULL;
    size_t capacity = 0, step = 0, last = 0;
    long end = 0;
    while (getline(&line, &capacity, log) > 0 && sscanf(line, "{\"step\": %zu,", &step) == 1 && step <= done) {
        last = step;
        end = ftell(log);
    }
    free(line);
    return last == done ? end : -1;
}

static deberta_status cut_log(FILE *log, const char *path, size_t done, deberta_error *err)
{
    const long end = end_of_steps(log, done);
    if (end < 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s does not reach step %zu", QUOTE(path), done);
    if (fseek(log, end, SEEK_SET) != 0 || ftruncate(fileno(log), end) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(path), strerror(errno));
    return DEBERTA_OK;
}

static deberta_status open_log(FILE **log, const char *folder, size_t done, deberta_error *err)
{
    char path[RUN_PATH_BYTES];
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    *log = fopen(path, done > 0 ? "r+" : "w");
    if (!*log) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(path), strerror(errno));
    const deberta_status status = done > 0 ? cut_log(*log, path, done, err) : DEBERTA_OK;
    if (status != DEBERTA_OK) fclose(*log);
    return status;
}

static deberta_status flush_log(FILE *log, const char *folder, deberta_error *err)
{
    if (fflush(log) != 0) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s/log.jsonl: %s", QUOTE(folder), strerror(errno));
    return DEBERTA_OK;
}

static deberta_status write_line(FILE *log, const training_run *run, const deberta_training_step *step, double seconds,
                                 deberta_error *err)
{
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
    return flush_log(log, run->folder, err);
}

/* ------------------------------------------------------------------------------------------------------------ steps */

static deberta_status take_step(const training_run *run, FILE *log, bool *goes_on, deberta_error *err)
{
    deberta_training_step step;
    const double began = clock_seconds();
    DEBERTA_TRY(run_parts_step(&run->parts, &step, err));
    DEBERTA_TRY(write_line(log, run, &step, clock_seconds() - began, err));
    if (run->on_step && run->on_step(run->context, &step) != 0) *goes_on = false;
    return DEBERTA_OK;
}

static deberta_status evaluate(const training_run *run, FILE *log, deberta_error *err)
{
    run_held_out report;
    const training *model = run->parts.items[0].training;
    const size_t done = model->optimizer.done;
    if (!run->held_out || (done < model->optimizer.options.steps && (!run->eval_every || done % run->eval_every)))
        return DEBERTA_OK;
    DEBERTA_TRY(run_parts_evaluate(&run->parts, run->held_out, &report, err));
    fprintf(log, "{\"step\": %zu, \"eval_loss\": %.17g, ", done, report.loss);
    if (run->parts.pair)
        fprintf(log, "\"eval_loss_generator\": %.17g, \"eval_loss_discriminator\": %.17g, ", report.all.loss,
                report.discriminator.loss);
    fprintf(log, "\"eval_sequences\": %zu, \"eval_tokens\": %zu, \"eval_labelled\": %zu}\n", report.all.sequences,
            report.all.tokens, report.all.labelled);
    return flush_log(log, run->folder, err);
}

/* The log first: going on needs its lines up to the checkpoint. */
static deberta_status write_checkpoint(const training_run *run, FILE *log, deberta_error *err)
{
    if (fsync(fileno(log)) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s/log.jsonl: %s", QUOTE(run->folder), strerror(errno));
    return run_checkpoint_write(&run->parts, run->folder, run->recipe, run->keep, err);
}

static deberta_status take_steps(const training_run *run, FILE *log, deberta_error *err)
{
    const optimizer *optimizer = &run->parts.items[0].training->optimizer;
    const size_t steps = optimizer->options.steps, end = run->stop_at ? minimum(run->stop_at, steps) : steps;
    bool goes_on = true;
    while (goes_on && optimizer->done < end) {
        DEBERTA_TRY(take_step(run, log, &goes_on, err));
        DEBERTA_TRY(evaluate(run, log, err));
        const bool stops = !goes_on || optimizer->done == end,
                   due = run->checkpoint_every && optimizer->done % run->checkpoint_every == 0;
        if (optimizer->done < steps && (stops || due)) DEBERTA_TRY(write_checkpoint(run, log, err));
    }
    return DEBERTA_OK;
}

deberta_status run_folder_train(const training_run *run, bool *finished, deberta_error *err)
{
    FILE *log;
    const optimizer *optimizer = &run->parts.items[0].training->optimizer;
    *finished = false;
    DEBERTA_TRY(open_log(&log, run->folder, optimizer->done, err));
    const deberta_status status = take_steps(run, log, err);
    fclose(log);
    DEBERTA_TRY(status);
    *finished = optimizer->done == optimizer->options.steps;
    return *finished ? run_parts_save(&run->parts, run->folder, err) : DEBERTA_OK;
}
