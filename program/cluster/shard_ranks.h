/* A corpus by several ranks: each takes shards, and rank 0 joins them. SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

/* Do the ranks take all shards of a corpus? One rank does where it is asked for shards, but not for which. */
bool shard_ranks_wanted(const common_options *options);
/* Runs the command for the own shards, waits for the others, and joins all into --out. An exit code. */
int shard_ranks_run(common_options *options);
