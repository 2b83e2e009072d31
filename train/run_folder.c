/* SPDX-License-Identifier: MIT */
#include "train/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "core/io/quote.h"

enum { PATH_BYTES = 4096 };

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

static deberta_status open_log(FILE **log, const char *folder, deberta_error *err)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    *log = fopen(path, "w");
    if (!*log) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(path), strerror(errno));
    return DEBERTA_OK;
}

static void begin_line(FILE *log, size_t step, double loss)
{
    fprintf(log, "{\"step\": %zu, \"loss\": %.17g, ", step, loss);
}

/* What is in every line, and its end. */
static deberta_status end_line(FILE *log, const char *folder, const step_report *report, double began,
                               deberta_error *err)
{
    fprintf(log, "\"learning_rate\": %.17g, \"sequences\": %zu, \"tokens\": %zu, \"labelled\": %zu, ",
            report->learning_rate, report->sequences, report->result.tokens, report->result.labelled);
    fprintf(log, "\"epoch\": %.17g, \"seconds\": %.3f}\n", report->epoch, clock_seconds() - began);
    if (fflush(log) != 0) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s/log.jsonl: %s", QUOTE(folder), strerror(errno));
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- one model */

static deberta_status run_step(training *run, FILE *log, const char *folder, step_report *report, deberta_error *err)
{
    const double began = clock_seconds();
    DEBERTA_TRY(training_step(run, report, err));
    begin_line(log, report->step, report->result.loss);
    if (run->options.sift_weight > 0) fprintf(log, "\"loss_clean\": %.17g, ", report->result.head_loss);
    fprintf(log, "\"gradient_norm\": %.17g, ", report->gradient_norm);
    return end_line(log, folder, report, began, err);
}

deberta_status run_folder_train(training *run, const char *folder, const char *source_folder, step_listener on_step,
                                void *context, deberta_error *err)
{
    FILE *log;
    step_report report;
    bool goes_on = true;
    deberta_status status = open_log(&log, folder, err);
    if (status != DEBERTA_OK) return status;
    while (status == DEBERTA_OK && goes_on && run->optimizer.done < run->optimizer.options.steps) {
        status = run_step(run, log, folder, &report, err);
        if (status == DEBERTA_OK && on_step) goes_on = on_step(context, &report) == 0;
    }
    fclose(log);
    return status == DEBERTA_OK ? save_model(folder, source_folder, &run->learner->set, err) : status;
}

/* ------------------------------------------------------------------------------------------------------------- a pair */

static deberta_status run_pair_step(training_pair *pair, FILE *log, const char *folder, pair_report *report,
                                    deberta_error *err)
{
    const double began = clock_seconds();
    DEBERTA_TRY(pair_step(pair, report, err));
    begin_line(log, report->generator.step, report->loss);
    fprintf(log, "\"loss_generator\": %.17g, \"loss_discriminator\": %.17g, ", report->generator.result.head_loss,
            report->discriminator.result.head_loss);
    fprintf(log, "\"gradient_norm_generator\": %.17g, \"gradient_norm_discriminator\": %.17g, ",
            report->generator.gradient_norm, report->discriminator.gradient_norm);
    return end_line(log, folder, &report->generator, began, err);
}

static deberta_status save_part(const char *folder, const char *name, const char *source_folder,
                                const parameter_set *set, deberta_error *err)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    DEBERTA_TRY(run_folder_prepare(path, err));
    return save_model(path, source_folder, set, err);
}

deberta_status run_folder_train_pair(training_pair *pair, const char *folder, const char *generator_folder,
                                     const char *discriminator_folder, step_listener on_step, void *context,
                                     deberta_error *err)
{
    FILE *log;
    pair_report report;
    bool goes_on = true;
    const optimizer *optimizer = &pair->generator.optimizer;
    deberta_status status = open_log(&log, folder, err);
    if (status != DEBERTA_OK) return status;
    while (status == DEBERTA_OK && goes_on && optimizer->done < optimizer->options.steps) {
        status = run_pair_step(pair, log, folder, &report, err);
        if (status == DEBERTA_OK && on_step) goes_on = on_step(context, &report.discriminator) == 0;
    }
    fclose(log);
    DEBERTA_TRY(status);
    pair_share_tables(pair);
    DEBERTA_TRY(save_part(folder, "generator", generator_folder, &pair->generator.learner->set, err));
    return save_part(folder, "discriminator", discriminator_folder, &pair->discriminator.learner->set, err);
}
