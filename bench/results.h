/* Keeps the results of a sweep in memory, describes them as tables and JSON, and reads them from JSON.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "bench/cost_model.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "output/result.h"
#include "output/scope.h"

typedef struct bench_stage {
    double seconds, gflop, bytes; /* gflop: useful work; for the work that --position-cache off adds: that work */
} bench_stage;

/* Limits of the machine between the encodes of a point, with its threads and its tier: medians over slices. 0: not
 * measured. */
typedef struct bench_then {
    double gflops, gops, read_gbs;
    size_t slices;
} bench_then;

typedef struct bench_result {
    /* Settings of the measurement */
    char model[256], engine[32], isa[16], precision[16], attention[16];
    char model_sha256[65]; /* deberta_model_digest; empty for a synthetic model and for results without it */
    bool position_cache, cold;
    size_t threads, layers;
    size_t n;        /* tokens of a sequence; in a ragged batch: of the longest */
    size_t batch;    /* number of sequences */
    size_t *lengths; /* [batch] lengths in a ragged batch, else NULL */
    size_t tokens;   /* tokens of all sequences */

    /* Results of the measurement */
    double *samples; /* [time.count] seconds of one encode */
    size_t *visit;   /* [time.count] visit in which a sample was taken, ascending; NULL: unknown, as for the next
                      * two */
    double *at;      /* [time.count] start of a sample, in seconds since that of the sweep */
    size_t *warm;    /* [visits] uncounted encodes before the samples of a visit */
    size_t visits;
    statistics_summary time;
    double other_cores; /* cores used by other processes meanwhile */
    double gflop, gflop_reachable, table_rows, reachable_rows;
    double gflops,
        peak_fraction;         /* useful work over the median; its share of the tier's measured peak, 0: not measured */
    bench_then peak_then;      /* limits between the samples */
    double peak_then_fraction; /* fraction of the peak at that moment, 0: not measured */
    double tokens_per_s;
    size_t peak_rss_bytes;  /* peak memory of a process that holds only the model and this session */
    size_t workspace_bytes; /* bytes of the session */
    uint64_t checksum;      /* checksum of the bits of the last hidden states */
    double relative_error;  /* error of the last hidden states against float64, in results that have it; else 0 */
    bool has_breakdown;
    bench_stage breakdown[PROFILE_STAGES];
    bench_stage parts[PROFILE_PARTS]; /* parts of attention; their bytes are not counted */
    double waiting_s;                 /* time of threads without work: wall time minus the stages */
    double breakdown_s;               /* wall time of the encode with the breakdown */
    bench_then breakdown_peak_then;   /* limits between the encodes with clocks */
} bench_result;

typedef struct bench_results {
    scope memory; /* owner of all results; free it */
    machine_sheet sheet;
    bench_result *result;
    size_t count;
    char command[512];          /* command line of the run, or empty */
    double load_s;              /* seconds to open the model; 0: none was opened */
    size_t load_peak_rss_bytes; /* peak memory while it was opened */
    size_t disagreements;       /* number of points with wrong output; each has a note */
} bench_results;

/* Returns the precision of a result by its name; float32 for names that only other engines have (bf16), and for a
 * result without one. */
deberta_precision bench_precision(const bench_result *result);

/* Facets that distinguish results; `except` of bench_result_alike is a sum of these. */
enum {
    BENCH_MODEL = 1,
    BENCH_ENGINE = 2,
    BENCH_ISA = 4,
    BENCH_THREADS = 8,
    BENCH_LAYERS = 16,
    BENCH_LENGTH = 32,
    BENCH_PRECISION = 64
};
/* Returns true if two results are of the same work, measured in the same way, apart from these facets. */
bool bench_result_alike(const bench_result *a, const bench_result *b, unsigned except);
/* Returns true if the models are the same: by the digests of their files, if both are known; else by name, where
 * "demo/" equals "./demo", and synthetic models may have their keys in any order. */
bool bench_same_model(const bench_result *a, const bench_result *b);
enum { BENCH_DIFFERENCE_BYTES = 640 };
/* Writes the facets in which two results differ: "model 'a' and 'b'; n 8 and 16". Returns their number. */
size_t bench_result_difference(char text[BENCH_DIFFERENCE_BYTES], const bench_result *a, const bench_result *b);

#define BENCH_RESULTS_SCHEMA "deberta-bench/1" /* schema of the JSON */

/* Describes results in every format, into a result of that schema: the machine; a row for each point or, without
 * points, the roofs; breakdowns; trends. Text and Markdown state values that are the same in all rows once, above the
 * table; CSV has everything, in units of the JSON: {"environment": {...}, "results": [...], "trends": [...]}. */
void bench_results_describe(result *r, const bench_results *results);
/* Reads results. Unknown members are ignored, missing ones stay 0 or empty; samples and members that identify a
 * result are required. where: the file's name in messages. */
deberta_status bench_results_read_json(bench_results *results, FILE *in, const char *where, deberta_error *err);

/* Reads the file at path; "-" is standard input. kept (may be NULL): its JSON, which the caller releases. */
deberta_status bench_results_read_file(bench_results *results, json_t **kept, const char *path, deberta_error *err);

/* Returns "full", "c2c", "c2c+c2p" or "c2c+p2c". */
const char *term_selection_name(term_selection terms);
/* Parses such a name; fails with DEBERTA_E_ARGUMENT for others. */
deberta_status term_selection_from_name(term_selection *terms, const char *name, deberta_error *err);
