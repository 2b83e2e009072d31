/* Declares a growing buffer of bytes, in which backends write a file before anything touches the disk. Zero-initialise,
 * release with byte_buffer_free.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

typedef struct byte_buffer {
    unsigned char *data;
    size_t size_bytes, capacity_bytes;
} byte_buffer;

void byte_buffer_free(byte_buffer *buffer);
void byte_buffer_append(byte_buffer *buffer, const void *data, size_t size_bytes);
void byte_buffer_text(byte_buffer *buffer, const char *text);
/* Appends formatted text. The format has no floating-point conversions, which follow the locale; use
 * byte_buffer_number. */
void byte_buffer_format(byte_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a number with at most the given decimals (<= 6), trailing zeros removed, never "-0", always with a
 * point. */
void byte_buffer_number(byte_buffer *buffer, double value, int decimals);
void byte_buffer_base64(byte_buffer *buffer, const unsigned char *data, size_t size_bytes);
