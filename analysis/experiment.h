/* Describes an experiment on a model's weights: how the model is opened and run, and the callback that receives
 * progress.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "include/deberta.h"

typedef struct experiment {
    const char *model;
    deberta_reference reference;
    deberta_isa isa;
    size_t threads, memory_limit_bytes;
    uint64_t seed;                     /* seed of made-up texts */
    const deberta_ablation *ablations; /* [ablation_count] */
    size_t ablation_count;
    void (*progress)(void *context, size_t done, size_t total, const char *what); /* may be NULL */
    void *context;
} experiment;
