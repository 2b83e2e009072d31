/* Runs work in a separate process, so that its memory does not count as the caller's. SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

typedef deberta_status (*child_work)(const void *context, void *answer, deberta_error *err);

/* Runs work in a fork of this process, which sees all of our memory as it is now, and waits. *answer (answer_bytes,
 * zero before) is what the child wrote there; its status and error text become ours. A child that dies is
 * DEBERTA_E_SYSTEM, or DEBERTA_E_MEMORY when it was killed as one that uses too much memory is. Threads do not exist in
 * the child: work makes its own. */
deberta_status child_run(child_work work, const void *context, void *answer, size_t answer_bytes, const char *what,
                         deberta_error *err);
