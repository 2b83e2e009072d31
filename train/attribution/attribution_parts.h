/* The state of one attribution: the path from the baseline to the text, the points of it that are in memory, and the
 * sums so far. A point is a sequence of a batch.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/step/step.h"

/* A point of the path, where 0 is the baseline and 1 the text, and the weight of its gradients. */
typedef struct path_point {
    double at, weight;
} path_point;

/* The path from the baseline to the text. */
typedef struct attribution_path {
    size_t tokens, width;             /* n, h */
    float *words, *positions, *types; /* [n][h]: difference of the text's rows and the baseline's, before the norm */
    float *start;                     /* [n][h]: the baseline's rows */
    float *way;                       /* [n][h]: sum of those differences that the path changes */
    bool *reads;                      /* [2K]: rows of the relative table that the text reads */
    size_t first_row, end_row;        /* bounds of these rows */
    float *mean[POSITION_TABLES];     /* [L][A dp]: mean of PK, of PQ, over these rows */
    position_change change;           /* tables of the current points */
} attribution_path;

typedef struct attribution_run {
    const deberta_attribution_options *options;
    learner *learner;
    attribution_path path;
    size_t capacity; /* number of points of a batch */

    /* The current points. */
    path_point *points; /* [capacity] */
    float *absolute;    /* [capacity] */
    double *values;     /* [capacity]: answers of the points */
    step_batch batch;

    /* Sums over points. */
    double *words, *positions, *types; /* [n] */
    double *rows[POSITION_TABLES];     /* [2K]: sums for c2p and p2c */
} attribution_run;

static inline bool attribution_changes(const attribution_run *run, unsigned part)
{
    return (run->options->parts & part) != 0;
}

/* Computes the path; run->learner must be open. */
deberta_status attribution_path_begin(attribution_run *run, deberta_error *err);
void attribution_path_free(attribution_path *path);
/* Adds the share of each distance, from the tables' gradients of the last batch. */
void attribution_path_add_distances(attribution_run *run);

/* Set embeddings and positions of the current points, and read their gradients (embedding_edit). The context is the
 * run. */
void attribution_path_forward(void *context, const step_state *step, float *rows, size_t first, size_t count);
void attribution_path_backward(void *context, const step_state *step, float *d_rows, size_t ld);
void attribution_path_decoded(void *context, const step_state *step, const head_rows *rows, const float *d_rows,
                              size_t ld);

/* Turns the logits of a token into gradients of the answer (row_value). The context is the run. */
double attribution_value(void *context, const step_state *step, size_t token, float *logits, size_t n);
