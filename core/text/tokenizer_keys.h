/* Lists the followed settings of a tokenizer's JSON files, and the ignored ones that could change ids.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/text.h"

typedef enum tokenizer_file {
    TOKENIZER_SETTINGS,
    TOKENIZER_PIPELINE,
    TOKENIZER_MODEL
} tokenizer_file; /* ..._config.json; tokenizer.json; its member `model` */

/* Adds one sentence with all keys of the object that are not followed and could change ids, if there are any. */
deberta_status tokenizer_keys_note(kept_notes *list, const json_t *root, tokenizer_file kind, const char *where,
                                   deberta_error *err);
