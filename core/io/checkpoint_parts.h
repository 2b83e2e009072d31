/* Defines the members of an open checkpoint; for checkpoint*.c only.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/io/mapped_file.h"
#include "core/io/safetensors.h"
#include "core/io/tensor_names.h"
#include "core/io/torch_file.h"

typedef struct weight_file {
    char *name; /* base name of the file */
    mapped_file map;
    torch_file *torch;    /* reader of a torch file; NULL: safetensors, or no file at all */
    tensor_list contents; /* contents of a safetensors file or of memory; a torch file keeps its own */
    const void **memory;  /* caller's address of each storage if there is no file; NULL: a file */
} weight_file;

/* `public` comes first: callers hold pointers to it. */
typedef struct entry {
    tensor public;
    const stored_tensor *stored;
    weight_file *file;
    size_t number; /* position among all entries, for a stable order of equal names */
} entry;

/* File system metadata of a file that is read as a whole, and not kept open. */
typedef struct file_facts {
    bool there;
    size_t size_bytes;
    struct timespec modified;
} file_facts;

struct checkpoint {
    char *folder;
    file_facts config, index; /* facts of config.json, and of the index of a sharded checkpoint, at opening */
    weight_file *files;       /* in ascending order of their names */
    size_t file_count;
    entry *entries; /* in ascending order of the canonical names */
    size_t count;
    char *renamed;      /* canonical names that are not a part of a stored one */
    name_prefix prefix; /* prefix of the base model's names in the files */
    bool is_half;       /* whether the files also hold a generator, whose tensors are left out */
};

/* Lists the tensors of the files under canonical names, sorted; refuses ambiguous names. map: that of an index, or
 * NULL. */
deberta_status checkpoint_list_entries(struct checkpoint *c, json_t *map, deberta_error *err);
deberta_status checkpoint_name_entries(struct checkpoint *c, deberta_error *err);
