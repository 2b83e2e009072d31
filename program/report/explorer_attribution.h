/* Chooses the answers of a page that are attributed to words, distances and positions.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/report/explorer_parts.h"

enum { EXPLORER_ATTRIBUTION_STEPS = 32 };

/* Sets attribution_head or no_attribution of every text, whose answers are there. How long an attribution takes is
 * judged by the sizes of model and text, so that the same command makes the same page anywhere. */
void explorer_attributions_choose(const common_options *options, explorer_text *texts, size_t count);
