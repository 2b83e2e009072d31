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
#include "core/base/parallel.h"
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

/* What the loops of an encode would take on as many processors as there are threads. */
typedef struct loop_rehearsal {
    size_t loops, tasks; /* loops of two tasks or more, and their tasks */
    double busy_seconds; /* of all tasks of all loops */
    double span_seconds; /* sum over the loops of the time when the last of their threads would be done */
    long long (*clock_nanoseconds)(void); /* NULL: the machine's */
} loop_rehearsal;

/* An executor without threads: parallel_for cuts work into tasks as for so many threads, but the caller does them all,
 * in order, each in the name of the thread that would be free first. Adds to *rehearsal, which is the caller's and must
 * outlive the executor. What it cannot know: threads that compete for memory, and the price of starting a loop. */
deberta_status rehearsal_create(executor **made, size_t threads, loop_rehearsal *rehearsal, deberta_error *err);
