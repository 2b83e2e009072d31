/* Sums up the errors of one comparison as a row: worst and its place, percentile, median, norms.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/verify.h"
#include "core/base/memory.h"
#include "core/base/status.h"

static void reserve(verify_errors *errors)
{
    size_t capacity = errors->capacity;
    errors->values = memory_grown(errors->values, &capacity, errors->count + 1, sizeof *errors->values);
    errors->ulps = memory_grown(errors->ulps, &errors->capacity, errors->count + 1, sizeof *errors->ulps);
}

/* Returns the distance of neighbouring floats around x. */
static double unit_in_the_last_place(double x)
{
    int exponent;
    if (!isfinite(x)) return 1;
    frexp(x, &exponent);
    return fmax(ldexp(1, exponent - FLT_MANT_DIG), (double)FLT_TRUE_MIN);
}

static double error_in(double unit, double found, double expected)
{
    const double error = fabs(found - expected) / unit;
    if (!isnan(error)) return error;
    return (isnan(found) && isnan(expected)) || found == expected ? 0 : INFINITY;
}

static void add_norms(verify_norms *sum, const verify_norms *more)
{
    sum->difference += more->difference;
    sum->expected += more->expected;
    sum->found += more->found;
    sum->product += more->product;
}

double verify_relative_error(const verify_norms *norms)
{
    return norms->expected > 0 ? sqrt(norms->difference / norms->expected) : 0;
}

double verify_cosine(const verify_norms *norms)
{
    const double sizes = sqrt(norms->expected) * sqrt(norms->found);
    return sizes > 0 ? norms->product / sizes : 1;
}

void verify_errors_add(verify_errors *errors, double found, double expected, double scale, const char *where_format,
                       size_t a, size_t b)
{
    reserve(errors);
    const double error = error_in(scale, found, expected);
    const double ulps = error_in(unit_in_the_last_place(expected), found, expected);
    add_norms(&errors->norms, &(verify_norms){(found - expected) * (found - expected), expected * expected,
                                              found * found, found * expected});
    errors->ulps[errors->count] = ulps;
    errors->values[errors->count++] = error;
    if (ulps > errors->worst_ulp) errors->worst_ulp = ulps;
    if (error > errors->worst || errors->count == 1) {
        char place[40];
        errors->worst = error;
        snprintf(place, sizeof place, where_format, a, b);
        snprintf(errors->where, sizeof errors->where, "%s%s: %.9g, expected %.9g", errors->prefix ? errors->prefix : "",
                 place, found, expected);
    }
}

void verify_errors_free(verify_errors *errors)
{
    free(errors->values);
    free(errors->ulps);
    *errors = (verify_errors){0};
}

/* Returns the value at `rank` of the sorted x, by Hoare's selection, because there are millions. No NaN. */
static double value_at_rank(double *x, size_t count, size_t rank)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        const double pivot = x[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (x[i] < pivot) i++;
            while (x[j] > pivot) j--;
            if (i >= j) break;
            const double other = x[i];
            x[i++] = x[j];
            x[j--] = other;
        }
        if (rank <= j)
            high = j;
        else
            low = j + 1;
    }
    return x[rank];
}

static void summarize(verify_row *row, verify_errors *errors)
{
    const size_t rank = (size_t)((double)(errors->count - 1) * 0.999);
    row->has_error = true;
    row->worst = errors->worst;
    row->percentile_999 = value_at_rank(errors->values, errors->count, rank);
    row->median = value_at_rank(errors->values, errors->count, errors->count / 2);
    row->worst_ulp = errors->worst_ulp;
    row->norms = errors->norms;
    row->ulp_999 = value_at_rank(errors->ulps, errors->count, rank);
    memcpy(row->where, errors->where, sizeof row->where);
    row->passed = row->passed && errors->worst <= row->limit;
}

static void merge(verify_row *into, const verify_row *row)
{
    into->values += row->values;
    into->differing += row->differing;
    into->passed = into->passed && row->passed;
    if (row->has_error && (!into->has_error || row->worst > into->worst))
        memcpy(into->where, row->where, sizeof into->where);
    into->has_error = into->has_error || row->has_error;
    into->worst = fmax(into->worst, row->worst);
    into->percentile_999 = fmax(into->percentile_999, row->percentile_999);
    into->median = fmax(into->median, row->median);
    into->worst_ulp = fmax(into->worst_ulp, row->worst_ulp);
    add_norms(&into->norms, &row->norms);
    into->ulp_999 = fmax(into->ulp_999, row->ulp_999);
}

static verify_row *find_row(verify_report *report, const verify_row *like)
{
    for (size_t k = report->count; k-- > 0;)
        if (report->rows[k].tier == like->tier && strcmp(report->rows[k].subject, like->subject) == 0)
            return &report->rows[k];
    return NULL;
}

static void verify_report_append(verify_report *report, const verify_row *row)
{
    report->rows = scope_grown(&report->memory, report->rows, &report->capacity, report->count, sizeof *report->rows);
    report->rows[report->count++] = *row;
}

void verify_report_add(verify_report *report, const verify_row *given, verify_errors *errors)
{
    verify_row row = *given;
    row.passed = row.differing == 0;
    if (errors && errors->count) summarize(&row, errors);
    if (errors) verify_errors_free(errors);
    verify_row *same = find_row(report, &row);
    report->failures += !row.passed && (!same || same->passed);
    if (same)
        merge(same, &row);
    else
        verify_report_append(report, &row);
}
