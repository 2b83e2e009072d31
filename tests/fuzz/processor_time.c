/* A timer of processor time that ticks, and what it does when an input or all of them have had theirs.
 * SPDX-License-Identifier: MIT */
#include "tests/fuzz/processor_time.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks_of_input, ticks_of_all, limit_of_input, limit_of_all;

static void tick(int signal_number)
{
    static const char late[] = "an input takes too much processor time\n";
    (void)signal_number;
    ticks_of_input++;
    ticks_of_all++;
    if (ticks_of_input > limit_of_input) {
        if (write(STDERR_FILENO, late, sizeof late - 1) < 0) _exit(1);
        abort();
    }
    if (limit_of_all > 0 && ticks_of_all >= limit_of_all) raise(SIGUSR1);
}

void processor_time_watch(long microseconds, int of_input, int of_all)
{
    const struct timeval period = {microseconds / 1000000, microseconds % 1000000};
    const struct itimerval timer = {period, period};
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    limit_of_input = of_input;
    limit_of_all = of_all;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGPROF, &action, NULL) != 0 || setitimer(ITIMER_PROF, &timer, NULL) != 0) abort();
}

void processor_time_next(void) { ticks_of_input = 0; }
