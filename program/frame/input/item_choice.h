/* Chooses the items of the input that a run takes: all, those of one shard, or a random share of them.
 *
 * The hash of an item's id decides its shard, so appended items do not move others. The id is the value of "id" in a
 * JSON object; without one, the last part of the file's name and the number of the line.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "program/frame/options.h"

enum { MOST_SHARDS = 1000000 };

typedef struct item_choice {
    size_t shards; /* 0: the whole input is taken */
    size_t shard;  /* index of the shard */
    bool of_array; /* true with --shards array: both come from the job array's variables */
    bool of_ranks; /* true: each rank takes one shard after another, with both members set */
    bool skip_bad; /* true: unusable items leave no row */
    double share;  /* probability that an audit draws an item; 0: all are taken */
    uint64_t seed; /* seed of that draw */
} item_choice;

/* Parses the value of --shards: a number or "array". */
void item_choice_parse_shards(common_options *options, const char *text, void *target);
/* Fills in the shard from the variables of a Slurm job array. given: member of the command's struct. */
void item_choice_settle(const common_options *options, const item_choice *given, item_choice *settled);

/* Name of an item. */
typedef struct item_name {
    const json_t *id; /* JSON id, or NULL */
    const char *source;
    size_t line;
} item_name;
bool item_is_taken(const item_choice *choice, const item_name *name);
