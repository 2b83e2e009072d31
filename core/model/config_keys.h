/* Lists every known key of config.json and how it is treated, so that no setting of a config is ignored silently.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/text.h"

/* Checks each key of the object. Unsupported keys that would change the answer are refused (DEBERTA_E_UNSUPPORTED) or
 * become a note, as the list says; keys that are on no list become one note together. `where` begins the messages,
 * `inside` the names of keys: "" or "pooling.". */
deberta_status config_keys_check(const json_t *object, const char *where, const char *inside, kept_notes *list,
                                 deberta_error *err);
