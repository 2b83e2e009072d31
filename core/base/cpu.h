/* Declares the queries for the tiers that this processor and its operating system support.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "core/base/tiers.h"
#include "include/deberta.h"

/* Returns the feature bits of this processor: from CPUID, and from XGETBV for the registers that the operating system
 * saves. */
unsigned cpu_features(void);
/* Requests tiles (AMX) from the operating system, which only processes that request them may use. False if it refuses.
 * Asking again is a system call without effect. From then on signal stacks must have room for 8 KiB more. */
bool cpu_allow_tiles(void);
/* Returns NULL if a tier runs with these features and was compiled in, else a static text with the reason. */
const char *cpu_missing(deberta_isa isa, unsigned features);
/* Copies the model name of the processor, or "unknown". */
void cpu_name(char *name, size_t capacity_bytes);
