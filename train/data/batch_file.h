/* Reads prepared batches: a safetensors file with input_ids and its companions (docs/training.md, "--one-batch"), of
 * one step or with a leading axis of steps.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/text_lines.h"
#include "include/deberta_training.h"
#include "train/state/step_batch.h"

typedef struct batch_file batch_file;

/* Opens a file. has_steps: tensors have a leading axis of steps. */
deberta_status batch_file_open(batch_file **file, const char *path, bool has_steps, deberta_training_task task,
                               deberta_error *err);
void batch_file_close(batch_file **file);

/* Returns the tokens of the longest step, for which a learner must have room. */
size_t batch_file_most_tokens(const batch_file *file);
/* Returns the tokens of the longest sequence. */
size_t batch_file_longest(const batch_file *file);

/* Computes SHA-256 of the file. */
void batch_file_digest(const batch_file *file, char digest[65]);

/* Reports the first sequence whose mask begins with zeros: these are padding, which is cut. */
deberta_status batch_file_tell_padding(const batch_file *file, note_listener listener, deberta_error *err);

/* Makes a source; steps beyond the last begin again with the first. */
batch_source batch_file_source(batch_file *file);
