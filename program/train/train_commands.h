/* Subcommands of `deberta train` that train no model. SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "program/frame/options.h"

extern const command train_tokenizer, train_plot;
