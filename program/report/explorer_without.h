/* Computes the model's answers to the texts of a page, with all terms and without some.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/report/explorer_parts.h"

/* Most multiplications for all texts of a page, of their answers and of their attributions each: about two seconds of
 * one core. */
#define EXPLORER_MOST_MULTIPLICATIONS 1e11

/* Fills `answers` and `multiplications` of every text: {"full": answer, "layers": [L + 1 of them], "without": {"c2p@3":
 * answer}}, each as in explorer_answer.h. "layers" is missing and "without" is shorter if they would take long; NULL if
 * the model has no head that answers. Returns why the page shows none of its labels, or NULL. */
const char *explorer_answers_compute(const common_options *options, explorer_text *texts, size_t count);
