/* Which tiers this processor and its operating system offer. SPDX-License-Identifier: MIT */
#ifndef CORE_BASE_CPU_H
#define CORE_BASE_CPU_H

#include "include/deberta.h"
#include <stdbool.h>

/* Features as a plain word so that tests can replace it. */
enum { CPU_FMA = 1, CPU_AVX2 = 2 /* with FMA and F16C */, CPU_AVX512 = 4 /* F, BW, DQ, VL */, CPU_NEON = 8 };

/* CPUID and, through the compiler's run-time library, the register state that the operating system saves. */
unsigned cpu_features(void);
/* NULL if a tier runs with these features and was compiled in, else why not. */
const char *cpu_missing(deberta_isa isa, unsigned features);
/* Model name of the processor, or "unknown". */
void cpu_name(char *name, size_t capacity_bytes);

#endif
