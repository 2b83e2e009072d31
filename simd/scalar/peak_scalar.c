/* Measures the peak of the scalar tier with one multiply-add at a time. SPDX-License-Identifier: MIT */
#define PEAK_NAME   peak_scalar
#define PEAK_VECTOR float
#define PEAK_CHAINS CHAINS_12
#include "simd/tmpl/peak_tmpl.h"
