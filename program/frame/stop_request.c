/* A signal handler has nothing but state of the program's own. SPDX-License-Identifier: MIT */
#include "program/frame/stop_request.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t came;

static void note(int signal_number)
{
    (void)signal_number;
    came = 1;
}

void stop_request_watch(void)
{
    const int signals[] = {SIGTERM, SIGUSR1};
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++) {
        struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND | SA_RESTART}, before;
        sigemptyset(&action.sa_mask);
        if (sigaction(signals[k], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[k], &action, NULL);
    }
}

bool stop_request_came(void) { return came != 0; }
