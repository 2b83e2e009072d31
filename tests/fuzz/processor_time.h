/* Time of the processor, not of the clock, for what a fuzzer runs: a neighbour that takes the processor makes no reader
 * hang. SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_PROCESSOR_TIME_H
#define TESTS_FUZZ_PROCESSOR_TIME_H

/* From now on: an input that takes `of_input` ticks of processor time ends the process with SIGABRT, which libFuzzer
 * reports with the input; `of_all` ticks in all (0: no end) bring SIGUSR1, upon which libFuzzer ends in order. A tick
 * has `microseconds`. */
void processor_time_watch(long microseconds, int of_input, int of_all);

/* The next input begins, or the last one has ended. */
void processor_time_next(void);

#endif
