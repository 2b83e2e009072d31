/* PNG files read back: pixels, resolution, provenance. SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "core/base/status.h"

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
