/* Declares that training is built. It is a file, not a macro, so that the rest of the program is compiled alike.
 * SPDX-License-Identifier: MIT */
#include "program/commands.h"

const bool training_is_built = true;
