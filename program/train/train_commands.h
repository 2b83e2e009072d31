/* Subcommands of `deberta train` that train no model. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TRAIN_TRAIN_COMMANDS_H
#define PROGRAM_TRAIN_TRAIN_COMMANDS_H

#include <jansson.h>

#include "program/frame/options.h"

extern const command train_tokenizer, train_plot;

#endif
