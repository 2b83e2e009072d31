/* The loop of peak_tmpl.h counts multiply-adds of 256 bits in registers, compiled with the AVX2 flags.
 *
 * SPDX-License-Identifier: MIT */
typedef float register_of_floats __attribute__((vector_size(32)));
#define PEAK_NAME   peak_avx2
#define PEAK_VECTOR register_of_floats
#define PEAK_CHAINS CHAINS_12
#include "bench/peak_tmpl.h"
