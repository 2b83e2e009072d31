/* Two reports side by side: which points became faster or slower, by how much, and whether that can be chance.
 *
 * SPDX-License-Identifier: MIT */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include "bench/results.h"

typedef enum compare_verdict { COMPARE_SAME, COMPARE_FASTER, COMPARE_SLOWER } compare_verdict;

typedef struct compare_pair {
    size_t a, b;                /* indices of results */
    statistics_comparison time; /* ratio: time of B over time of A */
    compare_verdict verdict;    /* of B; other than SAME if p < 0.05 and the interval of the ratio leaves 1 out */
    bool checksums_differ;      /* both known and not equal */
} compare_pair;

typedef struct compare_list {
    compare_pair *pairs; /* owned */
    size_t count;
    size_t only_a, only_b; /* results without a partner */
    double mean_ratio;     /* geometric mean */
} compare_list;

/* DEBERTA_E_ARGUMENT, naming what differs, if times of the two cannot be compared: another processor, compiler,
 * governor ... */
deberta_status compare_environments(const bench_results *a, const bench_results *b, deberta_error *err);

/* Pairs results that measured the same; then those left over that differ in engine or tier only. */
deberta_status compare_results(compare_list *list, const bench_results *a, const bench_results *b, deberta_error *err);
void compare_free(compare_list *list);

deberta_status compare_print(const compare_list *list, const bench_results *a, const bench_results *b, FILE *out,
                             text_table_style style, deberta_error *err);

#endif
