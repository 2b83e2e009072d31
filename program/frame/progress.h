/* Shows a progress bar on stderr once the work has taken a second, on a terminal only; elsewhere long work prints
 * lines.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

typedef struct progress_bar {
    const char *what;
    bool shown, enabled;
    bool lines; /* true: prints the detail as a line, at most one a minute, instead of a bar */
    double began, last;
    size_t total; /* 0: unknown */
} progress_bar;

progress_bar progress_begin(const common_options *options, const char *what, size_t total);
progress_bar progress_begin_long(const common_options *options, const char *what, size_t total);
void progress_step(progress_bar *bar, size_t done, const char *detail); /* detail: not NULL with `lines` */
void progress_end(progress_bar *bar);
