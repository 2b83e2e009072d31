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
    double seconds, gflop, bytes; /* gflop: useful; of the work that --position-cache off adds: what it adds */
} bench_stage;

/* Limits of the machine between the encodes of a point, with its threads and its tier: medians over slices. 0: not
 * measured. */
typedef struct bench_then {
    double gflops, gops, read_gbs;
    size_t slices;
} bench_then;

typedef struct bench_result {
    /* Settings of the measurement. */
    char model[256], engine[32], isa[16], precision[16], attention[16];
    char model_sha256[65]; /* deberta_model_digest; empty of a made-up model and of results that do not tell it */
    bool position_cache, cold;
    size_t threads, layers;
    size_t n;        /* tokens of a sequence; of a ragged batch: of the longest */
    size_t batch;    /* sequences */
    size_t *lengths; /* [batch] of a ragged batch, else NULL */
    size_t tokens;   /* of all sequences */

    /* Results of the measurement. */
    double *samples; /* [time.count] seconds of one encode */
    size_t *visit;   /* [time.count] in which visit a sample was taken, ascending; NULL: not told, as the next two */
    double *at;      /* [time.count] when it began, in seconds since the sweep did */
    size_t *warm;    /* [visits] encodes that do not count, before the samples of a visit */
    size_t visits;
    statistics_summary time;
    double other_cores; /* used by other processes meanwhile */
    double gflop, gflop_reachable, table_rows, reachable_rows;
    double gflops,
        peak_fraction;         /* useful work over the median; its share of the tier's measured peak, 0: not measured */
    bench_then peak_then;      /* between the samples */
    double peak_then_fraction; /* share of the peak of that moment, 0: not measured */
    double tokens_per_s;
    size_t peak_rss_bytes;  /* of a process that holds the model and this session only */
    size_t workspace_bytes; /* of the session */
    uint64_t checksum;      /* of the bits of the last hidden state */
    double relative_error;  /* of the last hidden states against float64, of results that tell it; else 0 */
    bool has_breakdown;
    bench_stage breakdown[PROFILE_STAGES];
    bench_stage parts[PROFILE_PARTS]; /* of attention; bytes: not counted */
    double waiting_s;                 /* threads without work: wall time minus the stages */
    double breakdown_s;               /* wall time of the encode that the breakdown is of */
    bench_then breakdown_peak_then;   /* between the encodes with clocks */
} bench_result;

typedef struct bench_results {
    scope memory; /* of all results; to be freed */
    machine_sheet sheet;
    bench_result *result;
    size_t count;
    char command[512];          /* that made it, or empty */
    double load_s;              /* that opening the model took; 0: none was opened */
    size_t load_peak_rss_bytes; /* while it was opened */
    size_t disagreements;       /* points whose output was not what it had to be; each is among the notes */
} bench_results;

/* Precision of a result by its name; float32 for a name that only other engines have (bf16), and for a result without
 * one. */
deberta_precision bench_precision(const bench_result *result);

/* Facets that tell results apart; `except` of bench_result_alike is a sum of these. */
enum {
    BENCH_MODEL = 1,
    BENCH_ENGINE = 2,
    BENCH_ISA = 4,
    BENCH_THREADS = 8,
    BENCH_LAYERS = 16,
    BENCH_LENGTH = 32,
    BENCH_PRECISION = 64
};
/* Whether two are of the same work, measured in the same way, but for the facets. */
bool bench_result_alike(const bench_result *a, const bench_result *b, unsigned except);
/* Whether the models are the same: by the digests of their files, where both are known; else by name, of which "demo/"
 * and "./demo" are one, and so are made-up models whose keys are in another order. */
bool bench_same_model(const bench_result *a, const bench_result *b);
enum { BENCH_DIFFERENCE_BYTES = 640 };
/* Writes the facets in which two results differ: "model 'a' and 'b'; n 8 and 16". Returns their number. */
size_t bench_result_difference(char text[BENCH_DIFFERENCE_BYTES], const bench_result *a, const bench_result *b);

#define BENCH_RESULTS_SCHEMA "deberta-bench/1" /* of the JSON */

/* Describes results in every format, into a result of that schema: the machine; a row for each point or, without
 * points, the roofs; breakdowns; trends. Text and Markdown leave out values that are the same in all rows, and say them
 * once above; CSV has everything, in units of the JSON: {"environment": {...}, "results": [...], "trends": [...]}. */
void bench_results_describe(result *r, const bench_results *results);
/* Unknown members are ignored, absent ones stay 0 or empty; samples and what identifies a result must be there. `where`
 * is what messages call the file. */
deberta_status bench_results_read_json(bench_results *results, FILE *in, const char *where, deberta_error *err);

/* The file at path; "-" is standard input. kept (may be NULL): its JSON, which the caller releases. */
deberta_status bench_results_read_file(bench_results *results, json_t **kept, const char *path, deberta_error *err);

/* "full", "c2c", "c2c+c2p", "c2c+p2c". */
const char *term_selection_name(term_selection terms);
/* DEBERTA_E_ARGUMENT for another name. */
deberta_status term_selection_from_name(term_selection *terms, const char *name, deberta_error *err);
