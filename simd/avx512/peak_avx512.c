/* The peak of AVX-512 is measured with multiply-adds of 512 bits. Products of bytes are measured by its part with VNNI,
 * or as those of AVX2.
 *
 * SPDX-License-Identifier: MIT */
<<<<<<< HEAD:simd/avx512/peak_avx512.c
/* The peak of AVX-512; of bytes it has what its part with VNNI or AVX2 has. SPDX-License-Identifier: MIT */
=======
/* The loop of peak_tmpl.h counts multiply-adds of 512 bits in registers, compiled with the AVX-512 flags.
 *
 * SPDX-License-Identifier: MIT */
>>>>>>> main:bench/peak_avx512.c
typedef float register_of_floats __attribute__((vector_size(64)));
#define PEAK_NAME   peak_avx512
#define PEAK_VECTOR register_of_floats
#define PEAK_CHAINS CHAINS_24
#include "simd/tmpl/peak_tmpl.h"
