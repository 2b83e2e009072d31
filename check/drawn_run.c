/* Collects the findings of features; joins rows of one feature. SPDX-License-Identifier: MIT */
#include "check/drawn_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
