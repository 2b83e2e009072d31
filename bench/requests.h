/* Measures latencies as a service sees them: a drawn stream of single texts, back to back or as they arrive, alone or
 * in batches of those that wait.
 *
 * A way of serving is measured on the same drawn texts and, where they arrive, at the same moments:
 *
 *     back to back    the next request is there when the last one is done: what the engine can do at most
 *     arriving        requests come at random (a Poisson process) at a share of what the first way served; a latency is
 *                     from the moment a request was due to the moment its answer was there, waiting included
 *
 * each alone, or in batches of the requests that have arrived, at most `group` of them. Every way must give the same
 * bits for every request.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "include/deberta.h"
#include "output/scope.h"

/* Distribution of text lengths. The first is that of a service; the others are those of GLiNER's packing benchmark
 * (bench/bench_infer_packing.py of urchade/GLiNER), whose zipf draws from a power law, 1 / length^1.2. */
typedef enum request_mix {
    REQUESTS_UNIFORM,       /* 8 to 512 tokens */
    REQUESTS_SHORT_UNIFORM, /* 8 to 64 */
    REQUESTS_SHORT_ZIPF,    /* 8 to 128; a third has 8, and a little more than a third 128 */
    REQUESTS_MIXED_TAIL,    /* one of 64 has 256, the others 8 to 48 */
    REQUESTS_FLAT_LONG,     /* 256 */
    REQUEST_MIXES
} request_mix;

/* Ways of serving, in the order of the results. */
typedef enum request_way {
    REQUESTS_ALONE,
    REQUESTS_GROUPED,
    REQUESTS_ARRIVE_ALONE,
    REQUESTS_ARRIVE_GROUPED,
    REQUEST_WAYS
} request_way;

typedef struct requests_options {
    const char *model;
    deberta_model_options model_options;
    deberta_isa isa;
    size_t threads, count, group, memory_limit_bytes;
    double load; /* rate of the arriving requests as a fraction of that of REQUESTS_ALONE, above 0 */
    request_mix mix;
    uint64_t seed;
    void (*progress)(void *context, size_t done, size_t of); /* NULL, or called after each request of each way */
    void *progress_context;
} requests_options;

typedef struct requests_served {
    double *latencies;      /* [count] seconds, in the order of the stream */
    double seconds;         /* from the beginning of the first request to the end of the last */
    double rate;            /* requests due per second; 0: back to back */
    size_t batches, differ; /* differ: requests whose bits differ from those encoded alone */
} requests_served;

typedef struct requests_measurement {
    scope memory; /* owner of the arrays; free it */
    size_t count, tokens, threads;
    char isa[16];
    size_t *lengths; /* [count] */
    requests_served ways[REQUEST_WAYS];
} requests_measurement;

/* Returns a name such as "back to back, alone". */
const char *request_way_name(request_way way);

/* Measures all ways. Fails as opening the model and a session does, and with DEBERTA_E_ARGUMENT if the model has
 * fewer absolute positions than the longest text. */
deberta_status requests_run(requests_measurement *found, const requests_options *options, deberta_error *err);
