/* Joins results of several files, and refuses files that cannot share a chart. SPDX-License-Identifier: MIT */
#include "program/bench/bench_drawing.h"

#include <string.h>

const bench_results *bench_files_join(const common_options *options, const bench_files *files)
{
    if (files->count == 1) return files->results;
    bench_results *all = options_take(options, 1, sizeof *all);
    *all = files->results[0];
    all->count = 0;
    for (size_t k = 0; k < files->count; k++) all->count += files->results[k].count;
    all->result = options_take(options, all->count, sizeof *all->result);
    for (size_t k = 0, at = 0; k < files->count; at += files->results[k++].count)
        if (files->results[k].count)
            memcpy(all->result + at, files->results[k].result, files->results[k].count * sizeof *all->result);
    return all;
}

static bool has_length(const bench_results *results, size_t n)
{
    for (size_t k = 0; k < results->count; k++)
        if (!results->result[k].lengths && results->result[k].n == n) return true;
    return false;
}

static bool share_length(const bench_results *a, const bench_results *b)
{
    for (size_t k = 0; k < a->count; k++)
        if (!a->result[k].lengths && has_length(b, a->result[k].n)) return true;
    return false;
}

static bool has_curve(const bench_results *results)
{
    for (size_t k = 0; k < results->count; k++)
        for (size_t j = 0; j < k; j++)
            if (trend_same_series(&results->result[j], &results->result[k], TREND_LENGTH) &&
                results->result[j].n != results->result[k].n)
                return true;
    return false;
}

deberta_status bench_files_check(const bench_files *files, const char *needs, deberta_error *err)
{
    if (files->count == 1) return DEBERTA_OK;
    for (size_t k = 0; k < files->count; k++)
        if (!has_curve(&files->results[k]))
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                         "%s: the file holds no %s (for single points of two files: deberta bench compare %s %s)",
                         files->names[k], needs, files->names[0], files->names[1]);
    for (size_t k = 0; k < files->count; k++) {
        bool shares = false;
        for (size_t other = 0; other < files->count; other++) {
            if (other == k) continue;
            if (strcmp(files->names[k], files->names[other]) == 0)
                DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s is given twice", files->names[k]);
            shares = shares || share_length(&files->results[k], &files->results[other]);
        }
        if (!shares)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                         "%s has no length in common with the other file%s: there is nothing to compare in one chart, "
                         "nor for deberta bench compare",
                         files->names[k], files->count > 2 ? "s" : "");
    }
    return DEBERTA_OK;
}
