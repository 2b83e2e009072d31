/* Reads and writes the files of a shard: its rows, the list of its items, and the manifest, which is written last and
 * says that the others are whole.
 *
 * OUT.shards/3-of-8.npy (or as OUT ends), 3-of-8.items, 3-of-8.json. A line of the items is a row: the number of its
 * text in the whole input, its tokens, the characters of its window; a text that was skipped has its number alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "program/frame/corpus/corpus_output.h"

#define SHARD_SCHEMA "deberta-shard/1"

typedef struct shard_manifest {
    json_t *root; /* owns all below */
    size_t shard, shards;
    const char *file, *digest; /* of the rows */
    size_t file_bytes;
    const char *items_file, *items_digest;
    size_t items, bad, rows, vectors, tokens;
    const json_t *problems; /* [place, why] */
    const json_t *corpus;   /* {"items", "hash", "files"}: the whole input */
    const json_t *layout;   /* what shard_layout wrote */
    const json_t *settings; /* what decides the rows */
    const json_t *command;  /* the words that asked for them, without shards and outputs */
    const json_t *made;     /* by which instruction set */
} shard_manifest;

/* "3-of-8" and a suffix: a file of that shard. */
char *shard_path(const char *folder, size_t shard, size_t shards, const char *suffix);

/* Adds "digest", of all the rest, and writes. Releases root. */
deberta_status shard_manifest_write(const char *path, json_t *root, deberta_error *err);
/* Refuses what was changed after it was written. Nothing to close on failure. */
deberta_status shard_manifest_read(shard_manifest *manifest, const char *path, deberta_error *err);
void shard_manifest_close(shard_manifest *manifest);

/* Describes how rows are stored, for the join; reading the description fills an output that is not open. */
json_t *shard_layout(const corpus_output *output);
bool shard_layout_read(const json_t *layout, corpus_output *output);

deberta_status shard_items_write(const char *path, const corpus_output *output, deberta_error *err);
/* The next line of a list of items in memory; *at moves on. False at the end, or with *damaged. */
bool shard_items_next(const char **at, const char *end, corpus_row *row, bool *damaged);

/* file_digest, for files that may be empty. */
deberta_status shard_digest(const char *path, char digest[65], size_t *size_bytes, deberta_error *err);
