/* Puts JSON together: texts from any source become strings, which are UTF-8 or nothing.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

/* The text with U+FFFD in place of every broken unit. */
json_t *json_clean_string(const char *text, size_t bytes);
/* A text up to its NUL. */
json_t *json_clean_text(const char *text);

/* Members and elements, which they take over; without memory the program ends (output/scope.h). */
void json_put(json_t *object, const char *name, json_t *value);
void json_add(json_t *array, json_t *value);
