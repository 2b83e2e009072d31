/* Digests everything that the next steps of a run depend on: weights and moments of all trained models, and the number
 * of completed steps. Random numbers need no state of their own: they are functions of the recipe's seed and the step
 * (train/state/counters.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/run/run_parts.h"

/* Computes the state's digest: SHA-256 of this text, whose lines end in a newline.
 *
 *     deberta-state 1
 *     step 100
 *     part                                    "part generator", "part discriminator" of a pair
 *     deberta.encoder.layer.0.output.dense.weight 64 256
 *     9f86...                                 SHA-256 of the values, a line for each 262,144 of them
 *     ...                                     the same of the first moments, then of the second ones
 *
 * Tensors have their names in model.safetensors and are in ascending order of these. Values are float32, little-endian.
 * The blocks have a fixed size, so that the digest does not depend on the number of threads. */
deberta_status state_digest(const run_parts *parts, char digest[65], deberta_error *err);
