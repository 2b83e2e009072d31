/* `deberta bench plot`. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_BENCH_PLOT_H
#define CLI_BENCH_BENCH_PLOT_H

#include "command/options.h"

int bench_plot_run(const parsed_options *options);

#endif
