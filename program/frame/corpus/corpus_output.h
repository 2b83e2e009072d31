/* Writes the rows of a corpus as they come: .npy, .safetensors or .jsonl, by the suffix of the name.
 *
 * The number of rows is known only at the end, so every format is a stream after a header of fixed size that is written
 * last. Until then the file has a temporary name and is removed when the work fails (core/io/atomic_file.h). Resumable
 * output is OUT.part instead, beside the file that a symbolic link OUT points to, and has a journal beside it,
 * OUT.part.journal: a line of settings, then one for each flush saying how far the data is whole. Both stay when the
 * work is interrupted and go when it is finished. The journal of a shard goes when its manifest is complete
 * (corpus_shard.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "core/io/atomic_file.h"
#include "program/frame/options.h"

enum { CORPUS_MOST_NOTES = 16 };

typedef enum corpus_format { CORPUS_NPY, CORPUS_SAFETENSORS, CORPUS_JSONL } corpus_format;

/* Description of a row, besides its values. */
typedef struct corpus_row {
    size_t text;             /* which text of the corpus, from 0 */
    size_t tokens;           /* encoded; 0: the text could not be encoded */
    deberta_span characters; /* of a window, in its text */
    bool skipped;            /* the text could not be used and has no row */
} corpus_row;

typedef struct corpus_output {
    corpus_format format;
    size_t width;   /* h */
    bool per_token; /* a row has as many vectors as tokens, else one */
    bool windows;   /* several rows may come from one text */
    bool resumable;
    bool of_shard;                    /* the journal stays after the end */
    json_t *notes;                    /* __metadata__ of a safetensors file: texts by name, the caller's */
    char *path, *part, *journal_path; /* the last two if resumable */
    atomic_file *whole;               /* NULL if resumable */
    FILE *file, *journal;
    size_t header_bytes;
    corpus_row *rows; /* [row_count] */
    size_t row_count, row_capacity, skipped_rows, vectors, flushed_texts;
    json_t *problems; /* of a shard: [place, why] of each text that could not be used */
    size_t flushed_problems;
} corpus_output;

/* Progress of an interrupted run. */
typedef struct corpus_progress {
    size_t texts, bad;
    uint64_t hash; /* of these texts */
} corpus_progress;

/* False for a name whose suffix is none of the three. */
bool corpus_format_of(const char *path, corpus_format *format);

/* The caller has set format, width, per_token, windows, resumable and notes. settings: what must be the same for a
 * resumed run to go on (borrowed; not needed otherwise). *progress is zero where there is nothing to go on from. */
deberta_status corpus_output_open(corpus_output *output, const char *path, const json_t *settings,
                                  corpus_progress *progress, deberta_error *err);
/* npy and safetensors: `vectors` rows of width floats. */
deberta_status corpus_output_values(corpus_output *output, const float *values, size_t vectors, deberta_error *err);
/* Notes a row whose values are written; for .jsonl only its count matters, the caller writes lines to output->file. */
void corpus_output_row(corpus_output *output, corpus_row row);
/* Notes in a shard why a text cannot be used. */
void corpus_output_problem(corpus_output *output, const char *place, const char *problem);
/* Everything so far is whole, up to this text. */
deberta_status corpus_output_flush(corpus_output *output, const corpus_progress *progress, deberta_error *err);
deberta_status corpus_output_finish(corpus_output *output, deberta_error *err);
/* Is a file the one that corpus_output_finish would have left of so many rows and vectors: its header, byte by byte,
 * and its size? The values lie from *begin to *end. layout: an output that is not open. Of .jsonl nothing is known. */
bool corpus_output_fits(const corpus_output *layout, size_t rows, size_t vectors, const void *bytes,
                        uint64_t size_bytes, uint64_t *begin, uint64_t *end);
/* After a finish nothing but memory; else ends the files, which stay if they are resumable. */
void corpus_output_close(corpus_output *output);
