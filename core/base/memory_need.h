/* One limit for all the memory of a piece of work: a model, its sessions and what is kept of their results.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

typedef struct memory_need {
    size_t model_bytes, session_bytes;
    size_t kept_bytes; /* attention and hidden states; SIZE_MAX for more than can be counted */
} memory_need;

/* DEBERTA_E_MEMORY with all parts where the sum is above limit_bytes (0: none). */
deberta_status memory_need_check(const memory_need *need, size_t limit_bytes, deberta_error *err);

/* "512 bytes", "3.0 MiB (3145728 bytes)" */
typedef struct byte_text {
    char text[48];
} byte_text;
byte_text bytes_describe(size_t bytes);
