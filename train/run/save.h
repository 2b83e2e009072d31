/* Saves the results of training: gradients, and models that other programs open.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/step/training.h"

typedef struct named_loss {
    const char *name; /* "loss", "loss.clean" ... */
    double value;
} named_loss;

typedef struct named_set {
    const char *prefix; /* prefix of its gradients, such as "grad." */
    const parameter_set *set;
} named_set;

/* Writes losses (F64, [1]), then prefix + NAME (F32, stored name and shape) of every trained tensor of the sets. */
deberta_status save_gradients(const char *path, const named_loss *losses, size_t loss_count, const named_set *sets,
                              size_t set_count, deberta_error *err);

/* Write and read training.safetensors: m.NAME and v.NAME (F32, stored name and shape) of every tensor of the set. */
deberta_status save_moments(const char *folder, const parameter_set *set, const optimizer *optimizer,
                            deberta_error *err);
deberta_status read_moments(const char *folder, const parameter_set *set, optimizer *optimizer, deberta_error *err);

/* Writes model.safetensors, float32 or float16, with the tensor names of the source files; config.json with this text,
 * except for the dtype; and copies of the source folder's tokenizer files. The folder must exist. */
deberta_status save_model(const char *folder, const char *source_folder, const parameter_set *set, const char *config,
                          deberta_dtype dtype, deberta_error *err);
