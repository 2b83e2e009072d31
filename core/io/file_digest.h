/* SHA-256 of a file.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_IO_FILE_DIGEST_H
#define CORE_IO_FILE_DIGEST_H

#include "core/base/status.h"

/* 64 hex digits, as `sha256sum` prints them. */
deberta_status file_digest(const char *path, char digest[65], deberta_error *err);

#endif
