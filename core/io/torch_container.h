/* Opens the containers that torch.save writes around a pickle: the zip of today and the legacy stream from before torch
 * 1.6 (SPEC 10.2 to 10.5). Formats are told apart by content, never by the name of the file.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/pickle.h"
#include "core/io/zip_reader.h"

enum { TORCH_MAX_TOP_BYTES = 256 };

typedef struct torch_container {
    zip_reader *zip; /* reader of the zip; NULL: a legacy stream. A caller that keeps the zip longer than the container
                        sets this to NULL */
    char top[TORCH_MAX_TOP_BYTES + 1]; /* the folder of a zip's members */
    size_t end;                        /* end of the object's pickle in a legacy stream */
    uint8_t *code;                     /* the object's pickle, from a zip */
    pickle *object;
} torch_container;

/* Opens a container. `bytes` and `where` must stay as long as the container; `where` begins messages. It must be closed
 * in any case. */
deberta_status torch_container_open(torch_container *container, const uint8_t *bytes, size_t size_bytes,
                                    const char *where, deberta_error *err);
void torch_container_close(torch_container *container);
