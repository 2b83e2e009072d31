/* A training run in a folder: log.jsonl, one line a step, and at the end the model as any program opens it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_RUN_FOLDER_H
#define TRAIN_RUN_FOLDER_H

#include "train/pair.h"
#include "train/save.h"

/* A folder that is new or empty. */
deberta_status run_folder_prepare(const char *folder, deberta_error *err);

/* All steps of the recipe. on_step is told of each; other than 0 stops behind it, and the model is saved as it is then.
 * A step that fails leaves the log of those before it, and no model. */
typedef int (*step_listener)(void *context, const step_report *report);

deberta_status run_folder_train(training *training, const char *folder, const char *source_folder,
                                step_listener on_step, void *context, deberta_error *err);

/* The same of a pair, whose models go to folder/generator and folder/discriminator. on_step is told of the
 * discriminator. */
deberta_status run_folder_train_pair(training_pair *pair, const char *folder, const char *generator_folder,
                                     const char *discriminator_folder, step_listener on_step, void *context,
                                     deberta_error *err);

#endif
