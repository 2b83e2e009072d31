/* Chooses the items of the input that a run takes: all, those of one shard, or a drawn share of them.
 *
 * An item belongs to the shard that the hash of its id says, so items that come later move no others. The id is what
 * its JSON object holds under "id"; without one, the last part of the file's name and the number of the line.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "program/frame/options.h"

enum { MOST_SHARDS = 1000000 };

typedef struct item_choice {
    size_t shards; /* 0: the whole input is taken */
    size_t shard;  /* one of them */
    bool of_array; /* --shards array: both come from the job array's variables */
    bool of_ranks; /* each of the ranks takes shards, one after the other: both are set */
    bool skip_bad; /* what cannot be used leaves no row */
    double share;  /* of an audit: the probability that an item is drawn; 0: all are taken */
    uint64_t seed; /* of that draw */
} item_choice;

/* The value of --shards: a number or "array". */
void item_choice_parse_shards(common_options *options, const char *text, void *target);
/* Fills what the variables of a Slurm job array say. given: the member of the command's struct. */
void item_choice_settle(const common_options *options, const item_choice *given, item_choice *settled);

/* Name of an item. */
typedef struct item_name {
    const json_t *id; /* or NULL */
    const char *source;
    size_t line;
} item_name;
bool item_is_taken(const item_choice *choice, const item_name *name);
