/* Writes the rows of a corpus as they come: .npy, .safetensors or .jsonl, by the suffix of the name.
 *
 * The number of rows is known only at the end, so every format is a stream after a header of fixed size that is
 * written last. Until then the file has a temporary name and is removed when the work fails (core/io/atomic_file.h).
 *
 * Resumable output is written to OUT.part, next to OUT or next to the file that a symbolic link OUT points to. Its
 * journal OUT.part.journal holds a line of settings, then one line for each flush with the length of valid data. Both
 * stay when the work is interrupted, and are removed when it is finished. The journal of a shard is removed when its
 * manifest is complete (corpus_shard.h).
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
    size_t text;             /* index of the text in the corpus, from 0 */
    size_t tokens;           /* encoded tokens; 0: the text could not be encoded */
    deberta_span characters; /* characters of the window in its text */
    bool skipped;            /* true: the text could not be used and has no row */
} corpus_row;

typedef struct corpus_output {
    corpus_format format;
    size_t width;   /* values of a vector: h */
    bool per_token; /* true: a vector for each token; false: one for each row */
    bool windows;   /* true: several rows may come from one text */
    bool resumable;
    bool of_shard;                    /* true: the journal stays after the end */
    json_t *notes;                    /* __metadata__ of a safetensors file: texts by name; owned by the caller */
    char *path, *part, *journal_path; /* part and journal_path: only of resumable output */
    atomic_file *whole;               /* NULL if resumable */
    FILE *file, *journal;
    size_t header_bytes;
    corpus_row *rows; /* [row_count] */
    size_t row_count, row_capacity, skipped_rows, vectors, flushed_texts;
    json_t *problems; /* unusable texts of a shard, as pairs [place, reason] */
    size_t flushed_problems;
} corpus_output;

/* Progress of an interrupted run. */
typedef struct corpus_progress {
    size_t texts, bad;
    uint64_t hash; /* hash of these texts */
} corpus_progress;

/* Finds the format of a name; returns false if its suffix is none of the three. */
bool corpus_format_of(const char *path, corpus_format *format);

/* Opens the output. The caller has set format, width, per_token, windows, resumable and notes. settings: what a
 * resumed run must have in common with the first (borrowed; used for resumable output only). *progress becomes zero
 * if no run is to be resumed. */
deberta_status corpus_output_open(corpus_output *output, const char *path, const json_t *settings,
                                  corpus_progress *progress, deberta_error *err);
/* Writes `vectors` rows of `width` floats, for npy and safetensors. */
deberta_status corpus_output_values(corpus_output *output, const float *values, size_t vectors, deberta_error *err);
/* Notes a row whose values are written. For .jsonl only the count matters, because the caller writes lines to
 * output->file. */
void corpus_output_row(corpus_output *output, corpus_row row);
/* Notes in a shard why a text cannot be used. */
void corpus_output_problem(corpus_output *output, const char *place, const char *problem);
/* Makes everything written so far durable, and notes that it is complete up to this text. */
deberta_status corpus_output_flush(corpus_output *output, const corpus_progress *progress, deberta_error *err);
deberta_status corpus_output_finish(corpus_output *output, deberta_error *err);
/* Checks that a file has the size and, byte by byte, the header that corpus_output_finish would have given it for so
 * many rows and vectors. The values lie from *begin to *end. layout: an output that is not open. Nothing is checked
 * for .jsonl. */
bool corpus_output_fits(const corpus_output *layout, size_t rows, size_t vectors, const void *bytes,
                        uint64_t size_bytes, uint64_t *begin, uint64_t *end);
/* Frees the memory; without a finish it also closes the files, which stay if they are resumable. */
void corpus_output_close(corpus_output *output);
