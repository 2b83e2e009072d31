/* Runs work in a separate process, so that its memory does not count as the caller's. SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

typedef deberta_status (*child_work)(const void *context, void *answer, deberta_error *err);

/* Runs work in a fork of this process, which sees its memory as it is now, and waits. *answer (answer_bytes, zero
 * before) is what the child wrote there; its status and error text are returned. A child that dies is
 * DEBERTA_E_SYSTEM, or DEBERTA_E_MEMORY if it was killed for using too much memory. The child has no threads but
 * those that its work makes. */
deberta_status child_run(child_work work, const void *context, void *answer, size_t answer_bytes, const char *what,
                         deberta_error *err);
