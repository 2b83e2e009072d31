/* Makes text from a file or a command line safe to print in a message.
 *
 * Names in hostile files may be megabytes long, hold line breaks or terminal escapes, or be no text at all. Messages
 * stay one short printable sentence because all untrusted text passes through here: cut in the middle, unprintable
 * bytes written as \xNN.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <string.h>

enum { QUOTE_BYTES = 132 };

typedef struct quoted {
    char text[QUOTE_BYTES]; /* always terminated */
} quoted;

quoted quote_bytes(const void *bytes, size_t count_bytes);

/* These are arguments of status_fail: the text lives until the end of the full expression. */
#define QUOTE_N(bytes, count_bytes) (quote_bytes((bytes), (count_bytes)).text)
#define QUOTE(string)               QUOTE_N((string), strlen(string))
