/* Files of bench results that are drawn together. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_BENCH_BENCH_FILES_H
#define PROGRAM_BENCH_BENCH_FILES_H

#include "bench/results.h"
#include "program/frame/options.h"

/* What is drawn together: results and the names of their files. */
typedef struct bench_files {
    const bench_results *results; /* [count] */
    const char *const *names;
    size_t count;
} bench_files;

/* The results of all files, in their order, under the sheet of the first. Memory of the options; what results own stays
 * the files'. */
const bench_results *bench_files_join(const common_options *options, const bench_files *files);

/* Whether several files can share a chart of latency over length: each has a curve, and a length that another has.
 * needs: what a file without a curve lacks. DEBERTA_E_ARGUMENT. */
deberta_status bench_files_check(const bench_files *files, const char *needs, deberta_error *err);

#endif
