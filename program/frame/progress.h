/* Shows a progress bar on stderr once the work has taken a second, on a terminal only; long work prints lines
 * elsewhere.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

typedef struct progress_bar {
    const char *what;
    bool shown, enabled;
    bool lines; /* no bar, the detail as a separate line, at most one a minute */
    double began, last;
    size_t total; /* 0: not known */
} progress_bar;

progress_bar progress_begin(const common_options *options, const char *what, size_t total);
progress_bar progress_begin_long(const common_options *options, const char *what, size_t total);
void progress_step(progress_bar *bar, size_t done, const char *detail); /* detail may be NULL, of long work not */
void progress_end(progress_bar *bar);
