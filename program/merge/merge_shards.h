/* Reads the shards of one corpus, compares them with each other, and walks them in the order of the whole input.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/mapped_file.h"
#include "output/result.h"
#include "program/frame/corpus/shard_files.h"

/* A finished shard, and the current position in it. */
typedef struct merge_shard {
    shard_manifest manifest;
    mapped_file rows, items; /* empty if the file is empty */
    const char *item_at, *item_end;
    const uint8_t *row_at, *row_end;
    corpus_row row; /* next row, if there is one */
    bool has_row;
} merge_shard;

typedef struct merge_shards {
    const common_options *options;
    const char *folder;
    merge_shard *list; /* [count] shards that were found */
    size_t count, shards;
    size_t *missing; /* [missing_count] numbers of missing shards */
    size_t missing_count;
    corpus_output layout; /* not open; format, width, per_token, windows and notes of all shards */
    size_t total, bad, rows, tokens;
    uint32_t *owner; /* [total] index in the list, plus 1; 0: no shard has the item */
} merge_shards;

/* Reads the manifests and finds the missing shards. */
void merge_shards_open(merge_shards *shards, const common_options *options, const char *folder);
/* Checks the shards that were found: one version, model, input and layout; rows and items unchanged since they were
 * written. */
void merge_shards_check(merge_shards *shards);
/* Checks that every item of the input is in exactly one shard. */
void merge_shards_cover(merge_shards *shards);
void merge_shards_close(merge_shards *shards);

/* Compares how a and b were made. Returns true with the first difference as a sentence in `why`, false if there is
 * none. */
bool merge_differ(const shard_manifest *a, const shard_manifest *b, char why[512]);

/* Receives one row and its bytes; a skipped text has no bytes. */
typedef deberta_status (*merge_visitor)(void *context, const merge_shard *shard, const corpus_row *row,
                                        const uint8_t *bytes, size_t count_bytes, deberta_error *err);
/* Walks the rows in the order of the input, from its beginning. */
deberta_status merge_shards_walk(merge_shards *shards, merge_visitor visit, void *context, deberta_error *err);
/* Returns the bytes of the shard's next row, and advances past it. */
deberta_status merge_next_row(merge_shard *shard, const corpus_output *layout, const uint8_t **bytes, size_t *count,
                              deberta_error *err);

/* Options of `deberta merge`. */
typedef struct merge_options {
    common_options common;
    bool verify;
    double audit;      /* share of items to compute again; 0: none */
    const char *model; /* path on this machine; NULL: that in the shards' command */
    text_list files;   /* paths of the input on this machine, likewise */
} merge_options;

/* Joins all shards into --out and reports it in the result. */
void merge_join(merge_shards *shards, result *r);
/* Computes a random share of the items again on this machine and compares their bytes. Returns the exit code. */
int merge_audit(const merge_options *o, merge_shards *shards, result *r);
