/* What the kinds of `deberta bench` share: lists among their options, and the end of their output.
 *
 * Readers return false after saying what is wrong. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_BENCH_LISTS_H
#define CLI_BENCH_BENCH_LISTS_H

#include "bench/range.h"
#include "bench/report.h"
#include "command/run.h"

/* Values from 1 to highest; an option that is not given leaves the list empty. */
bool bench_read_list(const parsed_options *options, const char *name, size_t highest, size_list *list);
/* --threads. A single 0 means what it means everywhere: OMP_NUM_THREADS or the physical cores, here an empty list. */
bool bench_read_threads(const parsed_options *options, size_t highest, size_list *list);
/* --isa, or DEBERTA_ISA: "avx2,avx512", "all" or "auto". */
bool bench_read_isas(const parsed_options *options, deberta_isa isas[DEBERTA_ISA_COUNT], size_t *count);

/* The command line into the report, without --out. */
void bench_note_command(const parsed_options *options, bench_report *report);

/* Closes what was written, or throws it away and says why; the exit code. */
int bench_finish_output(const parsed_options *options, text_output *output, deberta_status status,
                        const deberta_error *error);

#endif
