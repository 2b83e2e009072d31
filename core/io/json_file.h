/* Reads JSON objects from untrusted files: jansson with limits.
 *
 * jansson builds a tree that takes up to a hundred times the memory of its text and reads nested values recursively. A
 * preceding scan refuses texts that are too long, too deep or have too many values, so that both stay bounded.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/status.h"
#include "core/io/quote.h"

typedef struct json_limits {
    size_t bytes;
    size_t depth;          /* deepest nesting of arrays and objects */
    size_t values;         /* approximate number of values: separators and opening brackets outside strings */
    bool integers_as_real; /* whether to read integers as real numbers, so that none is too large */
    bool long_texts;       /* whether to allow texts of any length, and with NUL */
} json_limits;

/* Parses a text. The root must be an object; duplicate keys, invalid UTF-8 and anything after the object are errors; a
 * byte order mark before it is skipped. `where` begins the message. The caller releases *root with json_decref; on
 * failure it is NULL. */
deberta_status json_file_parse(json_t **root, const char *text, size_t size_bytes, const json_limits *limits,
                               const char *where, deberta_error *err);
deberta_status json_file_read(json_t **root, const char *path, const json_limits *limits, deberta_error *err);
/* Reads like json_file_read a file whose root must be an array. */
deberta_status json_file_read_array(json_t **root, const char *path, const json_limits *limits, deberta_error *err);

/* Sets a member, and takes ownership of the value. Without memory for either, it sets *lost to true; it never resets
 * it. */
void json_add_member(json_t *object, const char *key, json_t *value, bool *lost);
void json_add_item(json_t *array, json_t *value, bool *lost);

/* Prints like json_dumps, but returns NULL if memory lacks for a part of the text: jansson silently omits such a
 * key. */
char *json_print(const json_t *value, size_t flags);

/* Describes a value that a message reports as found: "an array", "the number 8.5", "the text 'abc'", "missing" for
 * NULL. */
quoted json_describe(const json_t *value);
