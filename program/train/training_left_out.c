/* Replaces training in a build with -Dtraining=disabled. SPDX-License-Identifier: MIT */
#include "program/commands.h"

const bool training_is_built = false;
