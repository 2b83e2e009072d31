/* Declares the processes that run a command together. The program deberta-mpi finds them by MPI (cluster_mpi.c); the
 * plain program is a single process (cluster_alone.c).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "program/frame/options.h"

typedef struct cluster cluster;

bool cluster_has_mpi(void);
/* Fills options->ranks if there are several ranks. options NULL: this rank computes nothing, and tells the others so.
 * From here to cluster_close only rank 0 prints. The end of the program closes the cluster, also after a failure. */
void cluster_open(cluster **cluster, common_options *options);
/* Waits for the other ranks, also where nothing was opened because help was asked for, and returns the exit code. A
 * rank that failed reports it, unless all failed alike, when only one does; a rank that failed alone ends all. */
int cluster_close(cluster **cluster, int status);

/* A corpus by several ranks: each takes shards, and rank 0 joins them. */
/* Returns true if the ranks share all shards of a corpus. A single rank does all of them if it was given a number of
 * shards but not which. */
bool shard_ranks_wanted(const common_options *options);
/* Runs the command for the shards of this rank, waits for the others, and joins all into --out. Returns the exit
 * code. */
int shard_ranks_run(common_options *options);
