/* The points of a sweep: every combination that the options ask for. Only for the sweep's own files.
 *
 * SPDX-License-Identifier: MIT */
#ifndef BENCH_SWEEP_POINTS_H
#define BENCH_SWEEP_POINTS_H

#include "bench/sweep.h"

typedef struct sweep_point {
    /* What. */
    size_t *lengths; /* [sequences]; owned */
    size_t sequences, longest, tokens, layers, threads;
    deberta_isa isa;
    term_selection terms;
    bool ragged, position_cache;
    cost cost;

    /* How far. */
    double estimate; /* seconds of one encode, as far as known; 0: not yet */
    size_t wanted;   /* samples */
    double *samples; /* [wanted]; owned, until a result takes it */
    size_t taken;
    double others, counted; /* seconds that other processes used, of so many */
    size_t peak_rss_bytes, workspace_bytes;
    uint64_t checksum;
    bool varies; /* an encode gave other bits than the first */
    bool profiled;
    double stage_seconds[PROFILE_STAGES], part_seconds[PROFILE_PARTS], profiled_seconds;
} sweep_point;

typedef struct sweep_points {
    sweep_point *points; /* owned */
    size_t count;
} sweep_points;

/* Refuses what sweep_check does, and tiers that are not there. */
deberta_status sweep_points_make(sweep_points *list, const sweep_options *options, const deberta_model_info *model,
                                 size_t default_threads, deberta_error *err);
void sweep_points_free(sweep_points *list);

/* "n = 128, batch 2, 12 layers, avx2, 2 threads, c2c": for messages. */
void sweep_point_describe(const sweep_point *point, char *text, size_t capacity_bytes);

#endif
