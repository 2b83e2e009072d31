/* Recognises checkpoints of wrapper classes around a DeBERTa, whose config.json holds the wrapper's settings and names
 * the model inside.
 *
 * Their tensors can be opened once the config.json of that model lies next to them, so the refusal names that model.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/status.h"

/* Refuses a config that belongs to another class, or names a base model and has no sizes: the defaults would be another
 * model's. */
deberta_status wrapper_check_config(const json_t *config, const char *where, deberta_error *err);
