/* Backward attention of a block of queries and a chunk of keys: recomputes P, then dS, and from it the gradients of
 * queries, keys, values and position tables.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/attention.h"
#include "train/backward/attention_job.h"

/* One head of one sequence at work, with its table gradients. */
typedef struct head_work {
    const attention_backward *job;
    attention_scratch *scratch;
    attention_head head;
    size_t part;
    float *tables[POSITION_TABLES]; /* [2K][dp]: dPK by place, dPQ by row. The part's own, or the scratch's */
} head_work;

/* At most QUERY_BLOCK rows of one sequence. They follow each other in memory; in the sequence they are pieces, one for
 * an ordinary layer, as many as there are runs of labelled tokens for the decoder. */
typedef struct query_block {
    size_t row, count;             /* of the record's rows */
    query_run pieces[QUERY_BLOCK]; /* their rows: of the block */
    size_t piece_count;
    bool begins; /* dk and dv of the sequence */
} query_block;

/* A block of queries and a chunk of keys. */
typedef struct chunk_work {
    const step_state *step;
    const head_work *work;
    const query_block *block;
    const float *queries, *d_context; /* of the block's first row, at the head's columns */
    float *d_queries;
    size_t key, keys, lds;
} chunk_work;

void chunk_backward(const chunk_work *chunk);
