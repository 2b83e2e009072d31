/* What a run has come to, when it ends. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TRAIN_TRAIN_END_H
#define PROGRAM_TRAIN_TRAIN_END_H

#include "program/train/train_options.h"

/* From the log in the folder of the run: the losses and the best step on stderr, or with --json as an object on
 * standard output. done: steps that are behind. EXIT_OK or an exit code, after saying why. */
int train_end(const train_options *options, size_t done, bool finished);

#endif
