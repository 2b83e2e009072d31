/* Makes what a trace needs of a command line: a corrupted text of as many tokens as the clean one, and the answer that
 * is followed.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/trace.h"
#include "program/attention/figure_source.h"

typedef struct trace_texts {
    size_t tokens;
    const int32_t *clean, *corrupted, *clean_types, *corrupted_types; /* types: NULL without a tokenizer */
    const float *noise;                                               /* or NULL */
    const char *what;                                                 /* what is corrupted: "'boy' is [MASK]" */
    trace_answer answer;
} trace_texts;

/* Ends the program where the options do not fit the text. */
trace_texts trace_texts_make(figure_source *source);
/* Returns the name of a column of the answer's logits. */
const char *trace_column_name(const figure_source *source, const trace_answer *answer, int64_t column);
