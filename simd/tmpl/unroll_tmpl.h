/* Loops that must vanish. SPDX-License-Identifier: MIT */
#pragma once

/* Loops over the rows and vectors of a tile must vanish, or the accumulators live in memory and two thirds of the speed are
 * gone. Every compiler spells that differently. Where a sanitizer looks at the callers alone they may stay. */
#ifdef LOOPS_STAY
#define UNROLL
#define UNROLL_DEPTH
#elif defined __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_DEPTH _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_DEPTH _Pragma("GCC unroll 4")
#endif

#define VECTORS (PANEL / VF_LANES) /* of one panel row */
