/* Draws a progress bar on stderr. SPDX-License-Identifier: MIT */
#include "program/frame/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "core/base/clock.h"

progress_bar progress_begin(const common_options *options, const char *what, size_t total)
{
    const bool enabled = options->progress != PROGRESS_NEVER && !options->quiet && isatty(STDERR_FILENO);
    return (progress_bar){.what = what, .enabled = enabled, .began = clock_seconds(), .total = total};
}

progress_bar progress_begin_long(const common_options *options, const char *what, size_t total)
{
    progress_bar bar = progress_begin(options, what, total);
    bar.lines = options->progress != PROGRESS_NEVER && !options->quiet && !isatty(STDERR_FILENO);
    bar.last = bar.began;
    return bar;
}

static void say_line(progress_bar *bar, double t, const char *detail)
{
    enum { SECONDS_A_LINE = 60 };
    if (t - bar->last < SECONDS_A_LINE) return;
    bar->last = t;
    fprintf(stderr, "%s\n", detail);
}

void progress_step(progress_bar *bar, size_t done, const char *detail)
{
    if (!bar->enabled && !bar->lines) return;
    const double t = clock_seconds(), elapsed = t - bar->began;
    if (bar->lines) {
        say_line(bar, t, detail);
        return;
    }
    if (elapsed < 1 || t - bar->last < 0.1) return;
    bar->last = t;
    bar->shown = true;
    if (!bar->total) { /* a pipe, whose size is unknown */
        fprintf(stderr, "\r\033[K%s  %s", bar->what, detail ? detail : "");
        return;
    }
    const double fraction = (double)done / (double)bar->total;
    char cells[25];
    for (int k = 0; k < 24; k++) cells[k] = k < (int)(fraction * 24) ? '#' : '.';
    cells[24] = 0;
    fprintf(stderr, "\r\033[K%s [%s] %3.0f %%  %.0f s left  %s", bar->what, cells, 100 * fraction,
            done ? elapsed / (double)done * (double)(bar->total - done) : 0.0, detail ? detail : "");
}

void progress_end(progress_bar *bar)
{
    if (bar->shown) fprintf(stderr, "\r\033[K");
    bar->shown = false;
}
