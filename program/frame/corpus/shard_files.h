/* Reads and writes the files of a shard: its rows, the list of its items, and the manifest, which is written last as
 * proof that the others are complete.
 *
 * The files are OUT.shards/3-of-8.npy (or the suffix of OUT), 3-of-8.items and 3-of-8.json. Each line of the items
 * describes a row: the number of its text in the whole input, its tokens, the characters of its window. A text that
 * was skipped has its number alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "program/frame/corpus/corpus_output.h"

#define SHARD_SCHEMA "deberta-shard/1"

typedef struct shard_manifest {
    json_t *root; /* owner of all members below */
    size_t shard, shards;
    const char *file, *digest; /* name and digest of the rows */
    size_t file_bytes;
    const char *items_file, *items_digest;
    size_t items, bad, rows, vectors, tokens;
    const json_t *problems; /* pairs [place, reason] */
    const json_t *corpus;   /* {"items", "hash", "files"} of the whole input */
    const json_t *layout;   /* description written by shard_layout */
    const json_t *settings; /* settings that decide the rows */
    const json_t *command;  /* words of the command line, without shards and outputs */
    const json_t *made;     /* {"isa"}: instruction set that computed the rows */
} shard_manifest;

/* Returns the path of a shard's file: "3-of-8" and a suffix. */
char *shard_path(const char *folder, size_t shard, size_t shards, const char *suffix);

/* Adds "digest", computed over all other members, and writes the manifest. Releases root. */
deberta_status shard_manifest_write(const char *path, json_t *root, deberta_error *err);
/* Reads a manifest, and refuses one that was changed after it was written. On failure there is nothing to close. */
deberta_status shard_manifest_read(shard_manifest *manifest, const char *path, deberta_error *err);
void shard_manifest_close(shard_manifest *manifest);

/* Describe how rows are stored, for the join, and read the description into an output that is not open; false: it is
 * damaged. */
json_t *shard_layout(const corpus_output *output);
bool shard_layout_read(const json_t *layout, corpus_output *output);

deberta_status shard_items_write(const char *path, const corpus_output *output, deberta_error *err);
/* Reads the next line of a list of items in memory and advances *at. Returns false at the end, or with *damaged
 * set. */
bool shard_items_next(const char **at, const char *end, corpus_row *row, bool *damaged);

/* Computes file_digest, also of empty files. */
deberta_status shard_digest(const char *path, char digest[65], size_t *size_bytes, deberta_error *err);
