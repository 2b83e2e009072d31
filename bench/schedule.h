/* What the schedule of the encoder would make of more cores than this machine has.
 *
 * An encode is a row of loops with little between them. It is rehearsed: cut up as for T threads and run by one, which
 * times every task (bench/rehearsal.c). With
 *
 *     serial    seconds outside of loops
 *     busy      seconds of all tasks together
 *     span      sum over the loops of the time when the last of T threads would be done with its tasks
 *     start     seconds that it takes to begin and end a loop of T threads
 *
 * the schedule takes
 *
 *     time(T) = serial + span(T) + loops * start(T)            efficiency(T) = time(1) / (T time(T))
 *
 * start is measured with the threads that there are and taken to grow linearly with T, which is worse than it is. Not
 * in it: threads that compete for caches and memory. For that there is the rate at which all threads together would
 * read weights: each of them all weights where threads share rows, its own columns where they share columns.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/range.h"
#include "include/deberta.h"
#include "output/result.h"

typedef struct schedule_options {
    const char *model;
    deberta_reference reference;
    deberta_precision precision;
    size_t memory_limit_bytes;
    deberta_isa isa;
    size_list lengths, threads; /* empty: 128 and 512; 1, 2, 4, 8, 16 */
    size_t repetitions;         /* of rehearsals and of encodes, of which the fastest count; 0: 5 */
} schedule_options;

typedef struct schedule_point {
    size_t n, threads;
    size_t loops, tasks;
    double serial, busy, span, start; /* seconds; start: of one loop */
    double seconds;                   /* of the schedule */
    double efficiency;
    double measured;    /* seconds with as many real threads; 0: more than this machine has cores */
    double weights_gbs; /* 1e9 bytes a second */
} schedule_point;

typedef struct schedule_result {
    scope memory;           /* of the points; to be freed */
    schedule_point *points; /* length by length */
    size_t count;
} schedule_result;

deberta_status schedule_run(schedule_result *result, const schedule_options *options, deberta_error *err);
/* A row a point. */
void schedule_describe(result *r, const schedule_result *found);
