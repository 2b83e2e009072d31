/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "study/verify.h"

void verify_errors_add(verify_errors *errors, double found, double expected, double scale, const char *where_format,
                       size_t a, size_t b)
{
    if (errors->count == errors->capacity) {
        const size_t capacity = errors->capacity ? 2 * errors->capacity : 1024;
        double *grown = realloc(errors->values, capacity * sizeof *grown);
        if (!grown) {
            errors->failed_allocation = true;
            return;
        }
        errors->values = grown;
        errors->capacity = capacity;
    }
    double error = fabs(found - expected) / scale;
    if (isnan(error)) error = (isnan(found) && isnan(expected)) || found == expected ? 0 : INFINITY;
    errors->values[errors->count++] = error;
    if (error > errors->worst || (errors->count == 1)) {
        errors->worst = error;
        char place[40];
        snprintf(place, sizeof place, where_format, a, b);
        snprintf(errors->where, sizeof errors->where, "%s: %.9g, expected %.9g", place, found, expected);
    }
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

deberta_status verify_report_add(verify_report *report, const char *subject, deberta_isa tier, size_t values,
                                 size_t differing, verify_errors *errors, double limit, deberta_error *err)
{
    if (report->count == report->capacity) {
        const size_t capacity = report->capacity ? 2 * report->capacity : 64;
        verify_row *grown = realloc(report->rows, capacity * sizeof *grown);
        if (!grown) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
        report->rows = grown;
        report->capacity = capacity;
    }
    verify_row *row = &report->rows[report->count++];
    *row =
        (verify_row){.tier = tier, .values = values, .differing = differing, .limit = limit, .passed = differing == 0};
    snprintf(row->subject, sizeof row->subject, "%s", subject);
    deberta_status status = DEBERTA_OK;
    if (errors && errors->failed_allocation) status = status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (errors && errors->count) {
        qsort(errors->values, errors->count, sizeof *errors->values, by_size);
        row->has_error = true;
        row->worst = errors->worst;
        row->percentile_999 = errors->values[(size_t)((double)(errors->count - 1) * 0.999)];
        memcpy(row->where, errors->where, sizeof row->where);
        row->passed = row->passed && errors->worst <= limit;
    }
    if (errors) {
        free(errors->values);
        *errors = (verify_errors){0};
    }
    report->failures += !row->passed;
    return status;
}

void verify_report_free(verify_report *report)
{
    free(report->rows);
    *report = (verify_report){0};
}
