/* Reads a file piece by piece into SHA-256. SPDX-License-Identifier: MIT */
#include "core/io/file_digest.h"

#include "core/base/cpu.h"
#include "core/base/numbers.h"
#include "core/base/sha256.h"
#include "core/io/mapped_file.h"

/* Bytes of a file that are held in memory at once. */
enum { PIECE_BYTES = 4 << 20 };

deberta_status file_digest(const char *path, char digest[65], deberta_error *err)
{
    mapped_file file;
    sha256 hash;
    DEBERTA_TRY(mapped_file_open(&file, path, err));
    sha256_begin(&hash, cpu_features());
    for (size_t at = 0; at < file.size_bytes; at += PIECE_BYTES) {
        const size_t count = minimum(PIECE_BYTES, file.size_bytes - at);
        sha256_add(&hash, file.bytes + at, count);
        mapped_file_forget(&file, at, count);
    }
    sha256_finish(&hash, digest);
    return mapped_file_end(&file, DEBERTA_OK, err);
}
