/* Declares the clocks of measurements. SPDX-License-Identifier: MIT */
#pragma once

/* Returns seconds of a clock that never jumps. */
double timer_now(void);
/* Returns the processor time in seconds of this process, over all its threads, and of its children that have
 * ended. */
double timer_process_seconds(void);
/* Returns the clock rate in GHz of this thread at this moment, from a chain of multiplications of known latency,
 * since /proc/cpuinfo is unreliable in virtual machines. Takes about a millisecond. 0: unknown on this
 * architecture. */
double timer_clock_ghz(void);
/* Does the same with one chain of a sixteenth of a millisecond, for a rate that lasts only briefly. */
double timer_clock_ghz_now(void);
