/* Reads the clocks of the operating system, and measures the processor's clock by a chain of multiplications.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/timer.h"

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include "core/base/clock.h"

double timer_now(void) { return clock_seconds(); }

static double seconds_of(struct timeval time) { return (double)time.tv_sec + 1e-6 * (double)time.tv_usec; }

double timer_process_seconds(void)
{
    struct rusage children;
    double ended =
        getrusage(RUSAGE_CHILDREN, &children) == 0 ? seconds_of(children.ru_utime) + seconds_of(children.ru_stime) : 0;
    struct timespec own;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    return (double)own.tv_sec + 1e-9 * (double)own.tv_nsec + ended;
}

enum { CHAIN_ROUNDS = 4000, LINKS_PER_ROUND = 16 };

/* A 64-bit multiplication has 3 cycles latency on every x86-64 processor with AVX (Intel since Nehalem, AMD since
 * Zen). An addition would be simpler, but newer processors execute some additions while renaming registers, without
 * latency. */
#if defined(__x86_64__)
enum { CYCLES_PER_LINK = 3 };
#define LINK(x, y) __asm__ volatile("imulq %1, %0" : "+r"(x) : "r"(y))
#elif defined(__aarch64__)
enum { CYCLES_PER_LINK = 1 };
#define LINK(x, y) __asm__ volatile("eor %0, %0, %1" : "+r"(x) : "r"(y))
#endif

#ifdef LINK
static double chain_seconds(void)
{
    uint64_t x = 3, y = 5;
    double start = timer_now();
    for (int round = 0; round < CHAIN_ROUNDS; round++) {
        for (int link = 0; link < LINKS_PER_ROUND; link++) LINK(x, y);
    }
    return timer_now() - start;
}

static double clock_of(double seconds) { return 1e-9 * CHAIN_ROUNDS * LINKS_PER_ROUND * CYCLES_PER_LINK / seconds; }

double timer_clock_ghz_now(void) { return clock_of(chain_seconds()); }

/* Returns the fastest of a few measurements, because interruptions only lengthen them. */
double timer_clock_ghz(void)
{
    double best = chain_seconds();
    for (int i = 0; i < 9; i++) {
        double seconds = chain_seconds();
        if (seconds < best) best = seconds;
    }
    return clock_of(best);
}
#else
double timer_clock_ghz(void) { return 0; }

double timer_clock_ghz_now(void) { return 0; }
#endif
