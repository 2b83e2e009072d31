/* The loop of peak_tmpl.h counts multiply-adds of 128 bits in registers, on aarch64. SPDX-License-Identifier: MIT */
typedef float register_of_floats __attribute__((vector_size(16)));
#define PEAK_NAME   peak_neon
#define PEAK_VECTOR register_of_floats
#define PEAK_CHAINS CHAINS_24
#include "bench/peak_tmpl.h"
