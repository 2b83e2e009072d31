/* Arrays of floats that are walked from end to end. SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* Zeros at the beginning of a cache line, in huge pages where the system has them and the array fills some: free()
 * gives them back. At least one float; NULL: no memory. */
float *large_floats(size_t count);
