/* Declares the signals that the tests' programs name; WebAssembly has none, and a trap ends the program.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include_next <signal.h>

typedef struct {
    void *si_addr;
} siginfo_t;
struct sigaction {
    void (*sa_sigaction)(int, siginfo_t *, void *);
    int sa_flags;
};
enum { SA_SIGINFO = 1, SA_NODEFER = 2 };
static inline int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    return (void)number, (void)action, (void)old, 0;
}
