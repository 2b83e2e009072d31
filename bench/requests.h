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

/* Distribution of text lengths. The first is a service's; the others are those that GLiNER's packing is measured on
 * (bench/bench_infer_packing.py of urchade/GLiNER), of which zipf draws from a power law, 1 / length^1.2. */
typedef enum request_mix {
    REQUESTS_UNIFORM,       /* 8 to 512 tokens */
    REQUESTS_SHORT_UNIFORM, /* 8 to 64 */
    REQUESTS_SHORT_ZIPF,    /* 8 to 128; a third has 8, and a little more than a third 128 */
    REQUESTS_MIXED_TAIL,    /* one of 64 has 256, the others 8 to 48 */
    REQUESTS_FLAT_LONG,     /* 256 */
    REQUEST_MIXES
} request_mix;

/* The ways, in the order of the results. */
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
    double load; /* of the arriving requests: share of the rate of REQUESTS_ALONE, above 0 */
    request_mix mix;
    uint64_t seed;
    void (*progress)(void *context, size_t done, size_t of); /* or NULL; after each request of each way */
    void *progress_context;
} requests_options;

typedef struct requests_served {
    double *latencies;      /* [count] seconds, in the order of the stream */
    double seconds;         /* from the first request's beginning to the last one's end */
    double rate;            /* requests due a second; 0: back to back */
    size_t batches, differ; /* differ: requests with other bits than alone */
} requests_served;

typedef struct requests_measurement {
    scope memory; /* of the arrays; to be freed */
    size_t count, tokens, threads;
    char isa[16];
    size_t *lengths; /* [count] */
    requests_served ways[REQUEST_WAYS];
} requests_measurement;

/* "back to back, alone" ... */
const char *request_way_name(request_way way);

/* Errors: those of opening the model and a session; DEBERTA_E_ARGUMENT for a model with fewer absolute positions than
 * the longest text. */
deberta_status requests_run(requests_measurement *found, const requests_options *options, deberta_error *err);
