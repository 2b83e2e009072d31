/* SPDX-License-Identifier: MIT */
#include "check/verify_drawn.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/drawn_run.h"
#include "core/base/grow.h"
#include "core/base/status.h"

/* -------------------------------------------------------------------------------------------------------------- report */

static drawn_row *row_of(drawn_report *report, const char *feature, const char *against)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->rows[i].feature, feature) == 0 && strcmp(report->rows[i].against, against) == 0)
            return &report->rows[i];
    drawn_row *rows = grown(report->rows, &report->capacity, report->count + 1, sizeof *rows);
    if (!rows) return NULL;
    report->rows = rows;
    rows[report->count] = (drawn_row){.against = against, .worst = -1};
    snprintf(rows[report->count].feature, sizeof rows->feature, "%s", feature);
    return &rows[report->count++];
}

deberta_status drawn_note(drawn_run *run, const char *feature, const char *against, double worst, const char *where,
                          deberta_error *err)
{
    drawn_row *row = row_of(run->report, feature, against);
    if (!row) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a report");
    const bool failed = !(worst <= 1);
    row->cases++;
    row->failures += failed;
    run->failures += failed;
    run->report->failures += failed;
    if (worst <= row->worst) return DEBERTA_OK;
    row->worst = isnan(worst) ? INFINITY : worst;
    row->worst_case = run->drawn->number;
    snprintf(row->where, sizeof row->where, "%s", where ? where : "");
    return DEBERTA_OK;
}

deberta_status drawn_note_refusal(drawn_run *run, const char *feature, const char *against,
                                  const deberta_error *refusal, deberta_error *err)
{
    return drawn_note(run, feature, against, INFINITY, refusal->message, err);
}

void drawn_report_free(drawn_report *report)
{
    free(report->rows);
    *report = (drawn_report){0};
}

/* -------------------------------------------------------------------------------------------------------------- folder */

void drawn_path(const drawn_run *run, const char *name, char text[128])
{
    snprintf(text, 128, "%s/%s", run->folder, name);
}

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *place)
{
    (void)status, (void)flag, (void)place;
    return remove(path);
}

static void remove_folder(const char *folder)
{
    enum { OPEN_FOLDERS = 8 };
    nftw(folder, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

static deberta_status make_folder(drawn_run *run, deberta_error *err)
{
    snprintf(run->folder, sizeof run->folder, "/tmp/deberta-verify-XXXXXX");
    if (mkdtemp(run->folder)) return DEBERTA_OK;
    *run->folder = 0;
    DEBERTA_FAIL(err, DEBERTA_E_FILE, "no folder can be made in /tmp for a drawn model");
}

/* --------------------------------------------------------------------------------------------------------------- cases */

static deberta_status run_features(drawn_run *run, const drawn_feature *features, deberta_error *err)
{
    for (const drawn_feature *feature = features; feature->run; feature++)
        if (feature->applies(run)) DEBERTA_TRY(feature->run(run, feature->name, err));
    return DEBERTA_OK;
}

static deberta_status run_saved(drawn_run *run, deberta_error *err)
{
    DEBERTA_TRY(drawn_case_save(run->drawn, run->folder, err));
    DEBERTA_TRY(run_features(run, drawn_training_features, err));
    return run->options->training_only ? DEBERTA_OK : run_features(run, drawn_inference_features, err);
}

static deberta_status run_case(drawn_report *report, const drawing_options *options, size_t number, deberta_error *err)
{
    drawn_case drawn;
    drawn_run run = {.options = options, .drawn = &drawn, .report = report};
    DEBERTA_TRY(drawn_case_make(&drawn, options->verify.seed, number, true, err));
    deberta_status status = make_folder(&run, err);
    if (status == DEBERTA_OK) status = run_saved(&run, err);
    if (*run.folder) remove_folder(run.folder);
    if (run.failures && report->failed_cases++ == 0) report->first_failed = number;
    drawn_case_free(&drawn);
    return status;
}

deberta_status verify_drawn(drawn_report *report, const drawing_options *options, deberta_error *err)
{
    for (size_t k = 0; k < options->count && !(options->fault && report->failures); k++)
        DEBERTA_TRY(run_case(report, options, options->first + k, err));
    return DEBERTA_OK;
}
