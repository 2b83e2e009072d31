/* Builds the page's view of one text of a report. SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "program/frame/input/input.h"

typedef struct explorer_text {
    const input_batch *input;
    size_t row;                           /* of the input */
    const char *data, *figure, *document; /* paths: safetensors as `encode` writes them, PNG, PDF */
} explorer_text;

/* Puts the attention of every layer and head into the page, one element each (id "cells-<text>-<layer>-<head>",
 * base64), and returns what the page must know to read them. `budget_bytes` is what all of them may take, before
 * base64. */
json_t *explorer_text_put(const common_options *options, const explorer_text *text, size_t index, size_t budget_bytes,
                          FILE *out);

/* The head whose tokens look hardest at single other tokens: the page opens on it (explorer_guide.js). */
void explorer_text_telling_head(const common_options *options, const explorer_text *text, size_t *layer, size_t *head);
