/* Opens the containers that torch.save writes around a pickle: the zip of today and the legacy stream from before torch
 * 1.6 (SPEC 10.2 to 10.5). Formats are told apart by content, never by the name of the file.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/pickle.h"
#include "core/io/zip_reader.h"

enum { TORCH_MAX_TOP_BYTES = 256 };

typedef struct torch_container {
    zip_reader *zip; /* NULL: a legacy stream. Whoever wants it longer than the container puts NULL in its place */
    char top[TORCH_MAX_TOP_BYTES + 1]; /* of a zip: the folder that its members lie in */
    size_t end;                        /* of a legacy stream: where the object's pickle ends */
    uint8_t *code;                     /* of the object, from a zip */
    pickle *object;
} torch_container;

/* `bytes` and `where` must stay as long as the container; `where` begins messages. To be closed in any case. */
deberta_status torch_container_open(torch_container *container, const uint8_t *bytes, size_t size_bytes,
                                    const char *where, deberta_error *err);
void torch_container_close(torch_container *container);
