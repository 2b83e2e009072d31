/* The loop of peak_tmpl.h counts multiply-adds of 512 bits in registers, compiled with the AVX-512 flags.
 *
 * SPDX-License-Identifier: MIT */
typedef float register_of_floats __attribute__((vector_size(64)));
#define PEAK_NAME   peak_avx512
#define PEAK_VECTOR register_of_floats
#define PEAK_CHAINS CHAINS_24
#include "bench/peak_tmpl.h"
