/* PNG files with their resolution (pHYs) and provenance (tEXt), and reading them back. The only file with libpng.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VIZ_PNG_METADATA_H
#define VIZ_PNG_METADATA_H

#include <stdint.h>

#include "core/base/status.h"
#include "output/byte_buffer.h"

/* What a figure says about its origin: one line, e.g. {"model", "demo, sha256 12ab..."}. Keys: 1-79 characters of
 * ASCII. */
typedef struct provenance_entry {
    const char *key, *value;
} provenance_entry;

/* rgb: rows * columns colours of 3 bytes. dpi <= 0 leaves pHYs out. Values beyond ASCII become iTXt (UTF-8). No time
 * chunk. */
deberta_status png_encode(const uint8_t *rgb, size_t rows, size_t columns, double dpi, const provenance_entry *entries,
                          size_t entry_count, byte_buffer *out, deberta_error *err);

typedef struct png_content {
    uint8_t *rgb; /* rows * columns * 3 bytes */
    size_t rows, columns;
    double dpi; /* 0: the file does not say */
    char **keys, **values;
    size_t entry_count;
} png_content;

/* Release with png_content_free, also after a failure. */
deberta_status png_decode(const uint8_t *data, size_t size_bytes, png_content *content, deberta_error *err);
void png_content_free(png_content *content);

#endif
