/* Lists every known key of config.json and how it is treated, so that no setting of a config is ignored silently, and
 * recognises checkpoints of wrapper classes around a DeBERTa.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/text.h"

/* Checks each key of the object. Unsupported keys that would change the answer are refused (DEBERTA_E_UNSUPPORTED) or
 * become a note, as the list says; keys that are on no list become one note together. `where` begins the messages,
 * `inside` the names of keys: "" or "pooling.". NULL: the object is around the one
 * that describes the model, so that keys which are followed there are not used. */
deberta_status config_keys_check(const json_t *object, const char *where, const char *inside, kept_notes *list,
                                 deberta_error *err);

/* Refuses a config that belongs to another class, or names a base model and has no sizes: the defaults would be another
 * model's. The config.json of a wrapper class holds the wrapper's settings and names the model inside. Its tensors can
 * be opened once the config.json of that model lies next to them, so the refusal names that model. */
deberta_status wrapper_check_config(const json_t *config, const char *where, deberta_error *err);
