/* Reads members of a zip archive in memory through libzip.
 *
 * It reads only members stored without compression or encryption, as torch.save writes them. Sizes are compared with
 * the archive's own size before any allocation. Archives that would make libzip work for minutes are refused before it
 * opens them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "core/base/status.h"

typedef struct zip_reader zip_reader;

typedef struct zip_member {
    const char *name; /* name as stored, any bytes */
    uint64_t index, size_bytes, packed_bytes;
    unsigned method, encryption;
} zip_member;

/* Opens an archive. `bytes` must stay as long as the reader; `where` (which is copied) begins messages. */
deberta_status zip_reader_open(zip_reader **reader, const uint8_t *bytes, size_t size_bytes, const char *where,
                               deberta_error *err);
void zip_reader_close(zip_reader **reader);

/* Counts the members, which are in ascending order of their distinct names. */
size_t zip_reader_count(const zip_reader *reader);
const zip_member *zip_reader_at(const zip_reader *reader, size_t index);
/* Returns NULL if there is no member of that name. */
const zip_member *zip_reader_find(const zip_reader *reader, const char *name);

/* Checks that a member can be read, and that its size is plausible. Call it before allocating size_bytes. */
deberta_status zip_reader_check(const zip_reader *reader, const zip_member *member, deberta_error *err);
/* Reads all size_bytes of a member and checks its checksum. Calls must not overlap, because libzip keeps one position
 * in the archive. */
deberta_status zip_reader_read(zip_reader *reader, const zip_member *member, uint8_t *buffer, deberta_error *err);
