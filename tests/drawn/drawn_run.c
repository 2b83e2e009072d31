/* Runs each drawn case through the list of features, those on a saved model in a folder that is removed again, and
 * collects what they find: a row a feature.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/drawn/drawn_run.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"

/* ------------------------------------------------------------------------------------------------------------ findings */

static drawn_row *row_of(drawn_report *report, const char *feature, const char *against)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->rows[i].feature, feature) == 0 && strcmp(report->rows[i].against, against) == 0)
            return &report->rows[i];
    report->rows = scope_grown(&report->memory, report->rows, &report->capacity, report->count, sizeof *report->rows);
    drawn_row *row = &report->rows[report->count++];
    *row = (drawn_row){.against = against, .worst = -1};
    snprintf(row->feature, sizeof row->feature, "%s", feature);
    return row;
}

void drawn_note(drawn_run *run, const char *feature, const char *against, double worst, const char *where)
{
    drawn_row *row = row_of(run->report, feature, against);
    const bool failed = !(worst <= 1);
    row->cases++;
    row->failures += failed;
    run->failures += failed;
    run->report->failures += failed;
    if (worst <= row->worst) return;
    row->worst = isnan(worst) ? INFINITY : worst;
    row->worst_case = run->drawn->number;
    snprintf(row->where, sizeof row->where, "%s", where ? where : "");
}

void drawn_note_refusal(drawn_run *run, const char *feature, const char *against, const deberta_error *refusal)
{
    drawn_note(run, feature, against, INFINITY, refusal->message);
}

void drawn_path(const drawn_run *run, const char *name, char text[128])
{
    snprintf(text, 128, "%s/%s", run->folder, name);
}

/* -------------------------------------------------------------------------------------------------------------- folder */

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
    snprintf(run->folder, sizeof run->folder, "/tmp/deberta-drawn-XXXXXX");
    if (mkdtemp(run->folder)) return DEBERTA_OK;
    *run->folder = 0;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "no folder can be made in /tmp for a drawn model: %s", strerror(errno));
}

/* --------------------------------------------------------------------------------------------------------------- cases */

static deberta_status run_features(drawn_run *run, const drawn_feature *features, deberta_error *err)
{
    for (const drawn_feature *feature = features; feature->run; feature++)
        if (feature->applies(run)) DEBERTA_TRY(feature->run(run, feature, err));
    return DEBERTA_OK;
}

static deberta_status run_saved(drawn_run *run, deberta_error *err)
{
    DEBERTA_TRY(drawn_case_save(run->drawn, run->folder, err));
    DEBERTA_TRY(run_features(run, drawn_training_features, err));
    if (!run->options->fault) DEBERTA_TRY(run_features(run, drawn_attribution_features, err));
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

deberta_status drawn_run_cases(drawn_report *report, const drawing_options *options, deberta_error *err)
{
    for (size_t k = 0; k < options->count && !(options->fault && report->failures); k++)
        DEBERTA_TRY(run_case(report, options, options->first + k, err));
    return DEBERTA_OK;
}
