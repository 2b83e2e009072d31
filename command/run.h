/* The frame of a command in one include: options, the model opened, progress, where results go.
 * SPDX-License-Identifier: MIT */
#ifndef COMMAND_RUN_H
#define COMMAND_RUN_H

#include "command/open_model.h"
#include "command/options.h"
#include "command/progress.h"
#include "command/text_output.h"

#endif
