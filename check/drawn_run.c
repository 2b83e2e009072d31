/* Features note here what they found; rows of one feature are put together. SPDX-License-Identifier: MIT */
#include "check/drawn_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/grow.h"
#include "core/base/status.h"

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

void drawn_path(const drawn_run *run, const char *name, char text[128])
{
    snprintf(text, 128, "%s/%s", run->folder, name);
}
