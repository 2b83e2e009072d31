/* Checkpoints of a class of its own around a DeBERTa: their settings are the wrapper's, and name the model inside.
 *
 * Their tensors open once the config.json of that model lies next to them. So they are refused with the name of it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/status.h"

/* Refuses a folder that has GLiNER's settings in place of a config.json. */
deberta_status wrapper_check_folder(const char *folder, deberta_error *err);
/* Refuses a config that names a model to begin from and has no sizes: the defaults would be another model's. */
deberta_status wrapper_check_config(const json_t *config, const char *where, deberta_error *err);
