/* Builds JSON: texts from any source become strings in valid UTF-8. SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

/* Returns a text as a string, with U+FFFD in place of every broken unit. */
json_t *json_clean_string(const char *text, size_t bytes);
/* Does the same with a text up to its NUL. */
json_t *json_clean_text(const char *text);

/* Add members and elements, and take them over; if memory runs out, the program ends (output/scope.h). */
void json_put(json_t *object, const char *name, json_t *value);
void json_add(json_t *array, json_t *value);
