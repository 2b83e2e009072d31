/* Compares runs of a sweep side by side: which points became faster or slower, by how much, and whether that can be
 * chance.
 *
 * The run is the unit: samples of one process share its luck (where its memory lies, how the clock was set), so that
 * even two runs of one program differ by more than their samples scatter. What counts of a run is its median; the
 * medians of one side are compared with those of the other by rank.
 *
 * Runs that were made in turns, A B B A or A B A B, are pairs of neighbours, and a machine that grows slower meanwhile
 * hardly shows in their ratios. There the signed ranks of the pairs decide as well as the ranks of all runs do, and
 * better where the machine drifts. Which test decides follows from the number of pairs and points alone, never from the
 * times: the pairs, once they are so many that a single point of the table could be called by them.
 *
 * Of a table of many points some would always look
 * different; so what is called different is chosen by Benjamini and Hochberg's rule: on average at most one call in
 * twenty is wrong, and where nothing differs, in nineteen tables of twenty nothing is called.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/results.h"

typedef enum compare_verdict {
    COMPARE_UNDECIDED, /* too few runs: no outcome of the test could be significant */
    COMPARE_SAME,
    COMPARE_FASTER,
    COMPARE_SLOWER
} compare_verdict;

/* The runs of one side, and the files they came from. */
typedef struct compare_side {
    const bench_results *runs;
    const char *const *names;
    size_t count;
} compare_side;

typedef struct compare_pair {
    const bench_result *a, *b;   /* from the first run of each side that has the point */
    size_t place;                /* index of a among the points of its side */
    double seconds_a, seconds_b; /* medians of the runs' medians */
    size_t runs_a, runs_b;       /* number of runs that have the point */
    statistics_comparison time;  /* ratio: time of B over time of A; other members only where the runs can decide */
    statistics_pairs pairs;      /* test of neighbours; count 0: the runs were not interleaved, or have no times */
    bool by_pairs;               /* true: the test of neighbours decides */
    compare_verdict verdict;     /* verdict on B */
    bool checksums_differ;       /* true: both checksums are known and differ */
} compare_pair;

typedef struct compare_list {
    scope memory; /* owner of the pairs; free it */
    compare_pair *pairs;
    size_t count;
    size_t only_a, only_b; /* number of points without a partner */
    double mean_ratio;     /* geometric mean */
} compare_list;

/* Fails with DEBERTA_E_ARGUMENT, naming the difference, if times of the two cannot be compared: another processor,
 * compiler, governor ... */
deberta_status compare_environments(const bench_results *a, const bench_results *b, deberta_error *err);

/* Pairs points that are the same work, from all runs of each side; then pairs remaining points that differ in engine,
 * precision or tier only. */
void compare_sides(compare_list *list, const compare_side *a, const compare_side *b);
/* Pairs points within the runs of one side: every point with those that differ from it in one facet only
 * (BENCH_THREADS, BENCH_ISA, BENCH_MODEL, BENCH_LAYERS), whose first value is A. */
void compare_within(compare_list *list, const compare_side *runs, unsigned facet);

/* Explains why the first runs of both sides have no point in common: describes the differences of the two most
 * similar points, as bench_result_difference does. Returns false if one side has no point. */
bool compare_difference(char text[BENCH_DIFFERENCE_BYTES], const compare_side *a, const compare_side *b);

/* Fills the result. by: the facet of compare_within, or 0. The list must outlive the result. */
void compare_describe(result *r, const compare_list *list, const compare_side *a, const compare_side *b, unsigned by);
