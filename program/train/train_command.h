/* Declares RUN/command.json: the options that determine what a run with a chain computes, from which an audit
 * rebuilds its command.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

#define COMMAND_FILE "command.json"

/* Writes the file, if the run has a chain and the file does not exist. */
void train_command_write(const common_options *options);
/* Names the steps that a chain lacks which begins when a run goes on from step `first`; refuses one without a step. */
void train_command_begin_late(const common_options *options, size_t first, size_t steps);
/* Returns true if an option is recorded because it decides what is computed, rather than where or how. */
bool train_command_records(const option *row);
/* Returns true if an option names a file of training data. */
bool train_command_reads(const option *row);
