/* Declares a chunk: texts of a corpus that are sorted by length, encoded and written together. Only for
 * encode_corpus.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/encode/encode_options.h"
#include "program/frame/corpus/corpus_shard.h"
#include "program/frame/input/text_batches.h"
#include "program/frame/progress.h"

enum {
    CHUNK_TEXTS = 4096, /* sorted by length together */
    CHUNK_BATCHES = 16, /* or so many batches of tokens, whichever is less: the results wait in memory */
    SHARD_BATCHES = 4,  /* of a shard: what a job that is killed loses, and one that is told to stop finishes */
};

typedef struct corpus_text {
    text_record record;
    deberta_tokens *tokens;
    size_t first_row, rows;
} corpus_text;

typedef struct corpus_job {
    const encode_options *o;
    const common_options *options; /* their common part */
    text_batches batches;
    text_stream stream;
    corpus_output output;
    corpus_shard shard;       /* if one is asked for */
    bool finished, stopped;   /* the shard was there; the program was told to stop */
    corpus_progress progress; /* done and on disk, or about to be */
    pooling pooling;
    bool normalize;        /* as modules.json asks for */
    const char *recipe;    /* what of modules.json is followed, for settings; NULL: nothing */
    size_t window, stride; /* 0: whole texts */
    progress_bar bar;
    double began;
    uint64_t chunk_begin_bytes, skipped_bytes;
    double *sums; /* [h] */

    /* The chunk: */
    corpus_text *texts; /* [CHUNK_TEXTS] */
    size_t text_count;
    text_piece *pieces;   /* [row_count], sorted while encoding */
    corpus_row *rows;     /* [row_count] in order */
    size_t *row_vectors;  /* [row_count] where a row's vectors begin */
    int32_t *ids, *types; /* framed windows */
    size_t row_count, vector_count, encoded_pieces;
    float *vectors; /* [vector_count][h] */
} corpus_job;

/* Reads and tokenizes until there is enough to sort. */
deberta_status corpus_chunk_read(corpus_job *job, bool *end, deberta_error *err);
/* Rows, pieces and room for their vectors live as long as the options' memory. */
deberta_status corpus_chunk_encode(corpus_job *job, deberta_error *err);
deberta_status corpus_chunk_write(corpus_job *job, deberta_error *err);
