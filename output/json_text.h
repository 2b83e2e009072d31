/* Texts that come from anywhere, as JSON strings, which are UTF-8 or nothing.
 *
 * SPDX-License-Identifier: MIT */
#ifndef OUTPUT_JSON_TEXT_H
#define OUTPUT_JSON_TEXT_H

#include <jansson.h>

/* The text with U+FFFD in place of every broken unit; NULL if memory ran out. */
json_t *json_clean_string(const char *text, size_t bytes);
/* A text up to its NUL. */
json_t *json_clean_text(const char *text);

#endif
