/* Computes SHA-256 of a file.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

/* Writes 64 hex digits, as `sha256sum` prints them. */
deberta_status file_digest(const char *path, char digest[65], deberta_error *err);
