/* What training writes: gradients, and models that other programs open.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_SAVE_H
#define TRAIN_SAVE_H

#include "train/training.h"

/* `loss` (F64, [1]; with SiFT also `loss.clean`) and `grad.NAME` (F32, stored name and shape) of every trained tensor.
 */
deberta_status save_gradients(const char *path, const parameter_set *set, const step_report *report,
                              bool has_clean_loss, deberta_error *err);

/* model.safetensors, float32, in the names of the files it came from, and copies of config.json and of the tokenizer's
 * files. The folder must exist. */
deberta_status save_model(const char *folder, const char *source_folder, const parameter_set *set, deberta_error *err);

#endif
