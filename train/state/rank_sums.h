/* Sums of gradients over the shards of all ranks. SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/gradient_tree.h"
#include "train/state/ranks.h"

/* The sum at hand, of the own shards of a step, becomes that of all shards. */
deberta_status rank_sums_add(const deberta_ranks *ranks, size_t shards, const step_batch *batch,
                             const gradient_tree *tree, deberta_error *err);
