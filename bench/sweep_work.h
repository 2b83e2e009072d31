/* Declares the state of a running sweep for the files that do its parts: sweep_progress.c, sweep_measure.c and
 * sweep_results.c, and sweep_run.c, which calls them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/sweep.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/load/model.h"

/* Times of one encode with clocks in its stages; zeros: none was measured. */
typedef struct profiled_encode {
    double seconds, stage[PROFILE_STAGES], part[PROFILE_PARTS];
} profiled_encode;

/* Rates of slices of the machine's limits, in the results' memory. */
typedef struct slice_rates {
    double *rates;
    size_t count, capacity;
} slice_rates;

typedef struct point_slices {
    slice_rates gflops, gops, read_gbs;
    double seconds, encoded; /* that they took, and encodes meanwhile */
} point_slices;

/* The points of a sweep: every combination that the options ask for. Only for the sweep's own files. */
typedef struct sweep_point {
    bench_result result; /* settings and measurements; sweep_collect adds derived values */
    size_t *lengths;     /* [result.batch] lengths, also for batches that are not ragged */
    deberta_isa isa;
    term_selection terms;
    cost cost;

    /* Progress of the point */
    double estimate;        /* seconds of one encode, as far as known; 0: unknown */
    size_t wanted;          /* number of samples: room of result.samples */
    size_t taken;           /* number of samples taken */
    double others, counted; /* seconds that other processes used, and those over which they were counted */
    bool varies;            /* true: an encode gave other bits than the first */
    profiled_encode profiled;
    point_slices slices, profiled_slices; /* slices between samples, and between encodes with clocks */
} sweep_point;

typedef struct sweep_points {
    scope *memory; /* owner of the points: the results' scope */
    sweep_point *points;
    size_t count;
} sweep_points;

/* Makes the points. Refuses what sweep_check refuses, and tiers that this machine lacks. */
deberta_status sweep_points_make(sweep_points *list, const sweep_options *options, const deberta_model_info *model,
                                 size_t default_threads, deberta_error *err);

/* Writes a description for messages: "n = 128, batch 2, 12 layers, avx2, 2 threads, c2c". */
void sweep_point_describe(const sweep_point *point, char *text, size_t capacity_bytes);

typedef struct sweep {
    const sweep_options *options;
    size_t repetitions;
    double min_seconds;
    deberta_model *model;
    deberta_model_info info;
    char digest[65]; /* digest of the model's files; empty for a synthetic model */
    sweep_points list;
    int32_t *ids;   /* [most tokens] */
    size_t *starts; /* [most sequences + 1] of the current batch */
    uint64_t random;
    executor *evictor; /* with --cold: threads that overwrite `waste` */
    arena waste_memory;
    unsigned char *waste; /* [waste_blocks][WASTE_BLOCK_BYTES] */
    size_t waste_blocks;
    machine_stream *stream;              /* with --breakdown: memory read between encodes */
    double began, reported;              /* time of the beginning; largest fraction reported so far */
    double worked_flops, worked_seconds; /* sums over all encodes, for the rate in estimates */
    size_t huge_page_bytes;              /* largest of all probes */
    bool stopped;
} sweep;

/* Returns a random number (xorshift64*), good enough for token ids and the order of visits. */
static inline uint64_t sweep_random(sweep *s)
{
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return s->random * 0x2545F4914F6CDD1D;
}

/* Uncounted encodes of a visit. */
typedef struct sweep_warmth {
    size_t count, in_a_row; /* number of encodes; number of last ones that were not faster */
    double fastest, seconds;
} sweep_warmth;

enum { SWEEP_STEADY_ENCODES = 2, SWEEP_MOST_WARM = 12 };
#define SWEEP_FASTER       0.03
#define SWEEP_WARM_SECONDS 0.5

/* Notes an encode and returns true when samples may begin: after two in a row not more than 3 % faster than the
 * fastest before them, after twelve, or after half a second. */
static inline bool sweep_is_warm(sweep_warmth *warm, double seconds)
{
    const bool steady = warm->count > 0 && seconds >= (1 - SWEEP_FASTER) * warm->fastest;
    warm->in_a_row = steady ? warm->in_a_row + 1 : 0;
    warm->fastest = warm->count && warm->fastest < seconds ? warm->fastest : seconds;
    warm->seconds += seconds;
    warm->count++;
    return warm->in_a_row == SWEEP_STEADY_ENCODES || warm->count == SWEEP_MOST_WARM ||
           warm->seconds >= SWEEP_WARM_SECONDS;
}

/* sweep_slices.c */

/* State of the slices of products and, with a stream, of reading, on the threads of a session. */
typedef struct sweep_slicer {
    const sweep *sweep;
    deberta_precision precision;
    machine_slices loops;
    point_slices *to;
    bool measures;
} sweep_slicer;

sweep_slicer sweep_slicer_of(const sweep *s, const sweep_point *p, const deberta_session *session, point_slices *to);
/* Measures reading, before a visit's encodes have filled the caches. */
void sweep_slice_reading(const sweep_slicer *slicer);
/* Notes an encode of so many seconds, and runs products if their share allows it; 0 seconds: at the beginning of a
 * visit. */
void sweep_slice_products(const sweep_slicer *slicer, double seconds);
bench_then sweep_slices_median(const point_slices *slices);

/* Reports to the caller, who may stop the sweep. point: the current one, NULL before there are any. */
void sweep_tell(sweep *s, const char *what, const sweep_point *point);

/* Runs each point once in a separate process, for its memory, its checksum and a first estimate of its time. */
deberta_status sweep_probe_all(sweep *s, deberta_error *err);
/* Prepares the memory that --cold overwrites before each sample. */
deberta_status sweep_prepare_cold(sweep *s, const topology_info *machine, deberta_error *err);
deberta_status sweep_sample_all(sweep *s, deberta_error *err);
deberta_status sweep_profile_all(sweep *s, deberta_error *err);
/* Returns the peak memory of this process. */
size_t sweep_peak_resident_bytes(void);

/* Writes the points' results into `results`, and reasons to doubt them into its sheet. */
void sweep_collect(const sweep *s, bench_results *results);
