/* Backward attention of a block of queries and a chunk of keys: recomputes P, then dS, and from it the gradients of
 * queries, keys, values and position tables.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/attention.h"
#include "train/backward/attention_job.h"

/* The current head of one sequence, with its table gradients. */
typedef struct head_work {
    const attention_backward *job;
    attention_scratch *scratch;
    attention_head head;
    size_t part;
    float *tables[POSITION_TABLES]; /* [2K][dp]: dPK by place, dPQ by row; the part's or the scratch's memory */
} head_work;

/* At most QUERY_BLOCK rows of one sequence, contiguous in memory. In the sequence they form pieces: one for an ordinary
 * layer, one per run of labelled tokens for the decoder. */
typedef struct query_block {
    size_t row, count;             /* first row among the record's rows, and number of rows */
    query_run pieces[QUERY_BLOCK]; /* pieces, with rows counted in the block */
    size_t piece_count;
    bool begins; /* whether it is the first for dk and dv of the sequence */
} query_block;

/* A block of queries and a chunk of keys. */
typedef struct chunk_work {
    const step_state *step;
    const head_work *work;
    const query_block *block;
    const float *queries, *d_context; /* at the block's first row and the head's columns */
    float *d_queries;
    size_t key, keys, lds;
} chunk_work;

void chunk_backward(const chunk_work *chunk);
