/* What `deberta merge` was asked for, and its parts. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_MERGE_MERGE_OPTIONS_H
#define PROGRAM_MERGE_MERGE_OPTIONS_H

#include "output/result.h"
#include "program/merge/merge_shards.h"

typedef struct merge_options {
    common_options common;
    bool verify;
    double audit;      /* the share of items to compute again; 0: none */
    const char *model; /* where it is on this machine; NULL: where the shards' command has it */
    text_list files;   /* the same of the input */
} merge_options;

/* Joins all shards into --out and says so in the result. EXIT_OK or an exit code, after saying why. */
int merge_join(merge_shards *shards, result *r);
/* Computes drawn items again on this machine and compares their bytes. */
int merge_audit(const merge_options *o, merge_shards *shards, result *r);

#endif
