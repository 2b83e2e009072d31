/* A polite way to be stopped: SIGTERM or SIGUSR1, which a cluster's scheduler sends before it ends a job, only leave a
 * mark. The program finishes what it has begun, keeps its state and ends with EXIT_AGAIN. A second signal ends it at
 * once. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* From now on. */
void stop_request_watch(void);
/* Has one come? */
bool stop_request_came(void);
