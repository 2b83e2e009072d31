/* Reads members of JSON objects and checks their types.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/status.h"

/* Limit of a file with a vocabulary. mDeBERTa's tokenizer.json, the largest known, has 16 MB. */
enum { VOCABULARY_FILE_MOST_BYTES = 256 << 20 };

/* Reads an object from a file of the size of a vocabulary. The caller releases *root; NULL on failure. */
deberta_status json_value_read(json_t **root, const char *path, deberta_error *err);
/* Parses a text as json_value_read does a file, out of which rows of two values were taken: they count as values. */
deberta_status json_value_parse_without(json_t **root, const char *text, size_t bytes, size_t row_count,
                                        deberta_error *err);
/* Reads a small file in which numbers do not matter: transformers writes 10^30 as an integer for "no limit". */
deberta_status json_value_read_settings(json_t **root, const char *path, deberta_error *err);

/* Finds a member. *value is borrowed, and NULL if the member is absent or null. JSON_TRUE means true or false,
 * JSON_REAL any number. */
deberta_status json_value_member(json_t **value, const json_t *object, const char *key, json_type type,
                                 const char *where, deberta_error *err);
/* Finds a member that must exist. */
deberta_status json_value_required(json_t **value, const json_t *object, const char *key, json_type type,
                                   const char *where, deberta_error *err);
/* Reads a flag; *flag stays unchanged if the member is absent. */
deberta_status json_value_flag(bool *flag, const json_t *object, const char *key, const char *where,
                               deberta_error *err);
