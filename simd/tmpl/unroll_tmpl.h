/* Unrolls the loops over the rows and vectors of a tile. SPDX-License-Identifier: MIT */
#pragma once

/* Loops over the rows and vectors of a tile must be unrolled completely; otherwise the accumulators live in memory,
 * at a third of the speed. Every compiler has its own spelling for that. Under a sanitizer, which checks only the
 * callers, the loops need not be unrolled. */
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

/* Clang's time over the loops of a function grows faster than their number: where a tier has many tiles, each is a
 * separate function there, and AVX-512 takes a fifth of the time. */
#if defined __clang__ && defined __AVX512F__
#define TILES_APART 1
#define OF_PANELS(X, n) X(n, 1) X(n, 2) X(n, 3) X(n, 4)
#define OF_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#endif

#define VECTORS (PANEL / VF_LANES) /* tiles of one panel row */
