/* Declares RUN/command.json: the options that say what a run with a chain computes, from which an audit rebuilds its
 * command.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

#define COMMAND_FILE "command.json"

/* Writes it, if the run has a chain and the file is not there. */
void train_command_write(const common_options *options);
/* Whether an option is recorded: one that says what is computed, not where or how. */
bool train_command_records(const option *row);
/* Whether an option names a file of training data. */
bool train_command_reads(const option *row);
