/* Reads the shards of one corpus, compares them with each other, and walks them in the order of the whole input.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/mapped_file.h"
#include "output/result.h"
#include "program/frame/corpus/shard_files.h"

/* A finished shard and how far it was gone through. */
typedef struct merge_shard {
    shard_manifest manifest;
    mapped_file rows, items; /* empty where the file is */
    const char *item_at, *item_end;
    const uint8_t *row_at, *row_end;
    corpus_row row; /* the next one, if there is one */
    bool has_row;
} merge_shard;

typedef struct merge_shards {
    const common_options *options;
    const char *folder;
    merge_shard *list; /* [count], those that are there */
    size_t count, shards;
    size_t *missing; /* [missing_count] numbers */
    size_t missing_count;
    corpus_output layout; /* closed: format, width, per_token, windows, notes of all of them */
    size_t total, bad, rows, tokens;
    uint32_t *owner; /* [total] place in the list, plus 1; 0: none has the item */
} merge_shards;

/* Reads the manifests and finds what is missing. */
void merge_shards_open(merge_shards *shards, const common_options *options, const char *folder);
/* Checks the shards that are there: one version, model, input, layout; rows and items as they were written. */
void merge_shards_check(merge_shards *shards);
/* Every item of the input is in exactly one shard. */
void merge_shards_cover(merge_shards *shards);
void merge_shards_close(merge_shards *shards);

/* The first thing in which b is not of the same making as a, as a sentence in `why`; false: nothing. */
bool merge_differ(const shard_manifest *a, const shard_manifest *b, char why[512]);

/* Visits one row and its bytes; a skipped text has no bytes. */
typedef deberta_status (*merge_visitor)(void *context, const merge_shard *shard, const corpus_row *row,
                                        const uint8_t *bytes, size_t count_bytes, deberta_error *err);
/* Walks the rows in the order of the input, from its beginning. */
deberta_status merge_shards_walk(merge_shards *shards, merge_visitor visit, void *context, deberta_error *err);
/* The bytes of the shard's next row, which is passed over. */
deberta_status merge_next_row(merge_shard *shard, const corpus_output *layout, const uint8_t **bytes, size_t *count,
                              deberta_error *err);

/* Options of `deberta merge`, and its parts. */
typedef struct merge_options {
    common_options common;
    bool verify;
    double audit;      /* the share of items to compute again; 0: none */
    const char *model; /* where it is on this machine; NULL: where the shards' command has it */
    text_list files;   /* the same of the input */
} merge_options;

/* Joins all shards into --out and says so in the result. */
void merge_join(merge_shards *shards, result *r);
/* Computes drawn items again on this machine and compares their bytes. The exit code. */
int merge_audit(const merge_options *o, merge_shards *shards, result *r);
