/* Declares the processes that run a command together. The program deberta-mpi finds them by MPI (cluster_mpi.c); the
 * plain program, which is alone, has nothing of that (cluster_alone.c).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "program/frame/options.h"

typedef struct cluster cluster;

bool cluster_has_mpi(void);
/* Fills options->ranks where there are several (NULL: this one computes nothing, and tells the others so). From here to
 * cluster_close all but rank 0 print nothing. The end of the program closes it, also after a failure. */
void cluster_open(cluster **cluster, common_options *options);
/* Waits for the others, also where nothing was opened because help was asked for. A rank that failed says so, unless
 * all failed alike, which one says; one that failed alone ends all. Returns the exit code. */
int cluster_close(cluster **cluster, int status);

/* A corpus by several ranks: each takes shards, and rank 0 joins them. */
/* Do the ranks take all shards of a corpus? One rank does where it is asked for shards, but not for which. */
bool shard_ranks_wanted(const common_options *options);
/* Runs the command for the own shards, waits for the others, and joins all into --out. An exit code. */
int shard_ranks_run(common_options *options);
