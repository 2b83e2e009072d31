/* `deberta bench machine`, `bench kernel` and `bench schedule`: what the machine can do, what single kernels make of
 * it, and what the encoder would make of more cores. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_BENCH_MACHINE_H
#define CLI_BENCH_BENCH_MACHINE_H

#include "command/options.h"

int bench_machine_run(const parsed_options *options);
int bench_kernel_run(const parsed_options *options);
int bench_schedule_run(const parsed_options *options);

#endif
