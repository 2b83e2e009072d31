/* Measures the time of an encode: seconds per stage, kept separately by every thread.
 *
 * A stage's share of the wall time is its thread-seconds divided by the threads; the rest of the wall time is waiting,
 * at the ends of loops and while one thread works alone. Stages that are fused into one loop are still distinguished,
 * because each thread reads the clock where it changes from one to the next. Off (a NULL profile) it costs a test of a
 * pointer.
 *
 *     double time = profile_start(profile);
 *     ...                                                                    // one block of the output projection
 *     time = profile_lap(profile, worker, PROFILE_ATTENTION_OUTPUT, time);
 *     ...                                                                    // the same block through the feed-forward
 *     time = profile_lap(profile, worker, PROFILE_FEED_FORWARD, time);
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "core/base/clock.h"

typedef enum profile_stage {
    PROFILE_EMBED,            /* look-up, projection to h, layer norm */
    PROFILE_POSITIONS,        /* PK and PQ, only when they are not folded at load (--position-cache off) */
    PROFILE_QKV,              /* query, key and value projections */
    PROFILE_PACK,             /* packing keys (values leave their projection in panels), and p2c of far rows */
    PROFILE_ATTENTION,        /* strips, scores, softmax, P V */
    PROFILE_ATTENTION_OUTPUT, /* output projection, residual, layer norm */
    PROFILE_FEED_FORWARD,     /* both matrices, activation, residual, layer norm */
    PROFILE_CONVOLUTION,
    PROFILE_TASKS,
    PROFILE_STAGES
} profile_stage;

/* The parts of PROFILE_ATTENTION. Far tiles, whose bias is a column plus a row, count entirely as q·k. */
typedef enum profile_part {
    PROFILE_QK,   /* q·k, and adding the bias to it */
    PROFILE_C2P,  /* strips: queries with the rows of the table that they reach */
    PROFILE_P2C,  /* rows of the table with keys */
    PROFILE_BIAS, /* reading both at the distance of each pair, and adding them */
    PROFILE_SOFTMAX,
    PROFILE_PV,
    PROFILE_PARTS
} profile_part;

typedef struct profile_lane {
    _Alignas(64) double seconds[PROFILE_STAGES]; /* seconds of one thread, on a separate cache line */
    double parts[PROFILE_PARTS];
} profile_lane;

/* The encoder fills it; the caller reads and zeroes it between two calls of deberta_encode. */
typedef struct profile {
    profile_lane *lanes; /* [threads] */
    size_t threads;
} profile;

static inline double profile_start(const profile *p) { return p ? clock_seconds() : 0; }

/* Adds the time since `start` to a stage of this thread; returns now, the start of the next stage. */
static inline double profile_lap(const profile *p, size_t worker, profile_stage stage, double start)
{
    if (!p) return 0;
    double now = clock_seconds();
    p->lanes[worker].seconds[stage] += now - start;
    return now;
}

/* Ends a lap of a part of attention, whose time also counts in its stage. */
static inline double profile_lap_part(const profile *p, size_t worker, profile_part part, double start)
{
    if (!p) return 0;
    double now = clock_seconds();
    p->lanes[worker].parts[part] += now - start;
    return now;
}

/* Ends a lap of a stage that all threads share, between two loops: the stage includes the time that threads wait for
 * each other. */
static inline double profile_lap_all(const profile *p, profile_stage stage, double start)
{
    if (!p) return 0;
    double now = clock_seconds();
    for (size_t i = 0; i < p->threads; i++) p->lanes[i].seconds[stage] += now - start;
    return now;
}
