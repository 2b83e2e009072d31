/* Writes PNG files with their resolution (pHYs) and provenance (tEXt); no other file uses libpng.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "core/base/status.h"
#include "output/byte_buffer.h"

/* Origin of a figure in one line, e.g. {"model", "demo, sha256 12ab..."}. Keys: 1-79 characters of ASCII. */
typedef struct provenance_entry {
    const char *key, *value;
} provenance_entry;

/* Encodes an image. rgb: rows * columns colours of 3 bytes. dpi <= 0 leaves pHYs out. Values beyond ASCII become iTXt
 * (UTF-8). There is no time chunk. */
void png_encode(const uint8_t *rgb, size_t rows, size_t columns, double dpi, const provenance_entry *entries,
                size_t entry_count, byte_buffer *out);
