/* "post_processor" of a tokenizer.json: the special tokens around a text and around a pair of texts.
 *
 * Accepted templates: [CLS] A [SEP] with [CLS] A [SEP] B [SEP] or, as transformers 5 writes it for v1, [CLS] A [SEP]
 * [SEP] B [SEP].
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct frame_token {
    const char *text; /* borrowed from the root */
    int32_t id;
} frame_token;

typedef struct text_frame {
    frame_token cls, sep;
    size_t pair_separators; /* separators between two segments: 1 or 2 */
} text_frame;

/* Reads the template; DEBERTA_E_UNSUPPORTED for every other template, and for none: the encoder was not trained with
 * ids without one. */
deberta_status post_processor_read(text_frame *frame, json_t *root, const char *where, deberta_error *err);
