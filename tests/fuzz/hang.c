/* Does an input that computes too long end the process, and one that only waits not? SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/processor_time.h"

enum { TICK = 20000, LIMIT = 5 }; /* microseconds, ticks: 0.1 s */

static volatile sig_atomic_t asked_to_end;

static void end(int signal_number)
{
    (void)signal_number;
    asked_to_end = 1;
}

static void compute(void)
{
    for (volatile unsigned i = 0;; i++)
        ;
}

static void wait_longer(void)
{
    for (int i = 0; i < 5; i++) usleep(5 * TICK);
}

/* Many inputs, each of them short, until the time of all is over. */
static void compute_in_turn(void)
{
    signal(SIGUSR1, end);
    processor_time_watch(TICK, LIMIT, 4 * LIMIT);
    while (!asked_to_end) processor_time_next();
}

/* The signal that ended it, or 0. */
static int signal_of(void (*run)(void))
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        processor_time_watch(TICK, LIMIT, 0);
        run();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(void)
{
    const int computed = signal_of(compute), waited = signal_of(wait_longer), many = signal_of(compute_in_turn);
    const bool fine[] = {computed == SIGABRT, waited == 0, many == 0};
    printf("an endless loop: signal %d\nan input that waits: signal %d\nmany short inputs: signal %d\n", computed,
           waited, many);
    const int passed = fine[0] + fine[1] + fine[2];
    printf("%d passed, %d failed\n", passed, 3 - passed);
    return passed == 3 ? 0 : 1;
}
