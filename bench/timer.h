/* Declares the clocks of measurements. SPDX-License-Identifier: MIT */
#pragma once

/* Seconds of a clock that never jumps. */
double timer_now(void);
/* Processor time of this process, all threads together, and of its children that have ended, in seconds. */
double timer_process_seconds(void);
/* The clock rate that this thread gets at this moment, in GHz, from a chain of multiplications of known latency: what
 * /proc/cpuinfo says is a guess in virtual machines. Takes about a millisecond. 0: not known on this architecture. */
double timer_clock_ghz(void);
/* The same from one chain, of a sixteenth of a millisecond: what holds at once and not for long. */
double timer_clock_ghz_now(void);
