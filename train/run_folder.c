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

static bool write_line(FILE *log, const training *run, const step_report *report, double seconds)
{
    const step_result *result = &report->result;
    fprintf(log, "{\"step\": %zu, \"loss\": %.17g, ", report->step, result->loss);
    if (run->options.sift_weight > 0) fprintf(log, "\"loss_clean\": %.17g, ", result->head_loss);
    fprintf(
        log,
        "\"learning_rate\": %.17g, \"gradient_norm\": %.17g, \"tokens\": %zu, \"labelled\": %zu, \"seconds\": %.3f}\n",
        report->learning_rate, report->gradient_norm, result->tokens, result->labelled, seconds);
    return fflush(log) == 0;
}

static deberta_status run_steps(training *run, FILE *log, const char *folder,
                                int (*on_step)(void *context, const step_report *report), void *context,
                                deberta_error *err)
{
    bool goes_on = true;
    while (goes_on && run->optimizer.done < run->optimizer.options.steps) {
        step_report report;
        const double began = clock_seconds();
        DEBERTA_TRY(training_step(run, &report, err));
        if (!write_line(log, run, &report, clock_seconds() - began))
            DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s/log.jsonl: %s", QUOTE(folder), strerror(errno));
        goes_on = !on_step || on_step(context, &report) == 0;
    }
    return DEBERTA_OK;
}

deberta_status run_folder_train(training *run, const char *folder, const char *source_folder,
                                int (*on_step)(void *context, const step_report *report), void *context,
                                deberta_error *err)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    FILE *log = fopen(path, "w");
    if (!log) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: %s", QUOTE(path), strerror(errno));
    const deberta_status status = run_steps(run, log, folder, on_step, context, err);
    fclose(log);
    DEBERTA_TRY(status);
    return save_model(folder, source_folder, &run->learner->set, err);
}
