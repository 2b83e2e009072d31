/* What `deberta receptive-field` was asked for. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_RECEPTIVE_FIELD_RECEPTIVE_FIELD_OPTIONS_H
#define PROGRAM_RECEPTIVE_FIELD_RECEPTIVE_FIELD_OPTIONS_H

#include "program/frame/input/text_stream.h"

typedef struct field_request {
    reading_options reading; /* texts or ids: where influence is measured */
    size_t tokens;           /* 0: distances of texts of any length */
    size_t layers;           /* 0: the model's */
    text_list plots;
    bool behaviour, influence, rows;
    size_t behaviour_layers, behaviour_tokens, influence_tokens, influence_sources;
} field_request;

#endif
