/* Checks parts of tiers at run time: products of integers on AMX, AVX-VNNI, i8mm and the like run on processors that
 * the project's own machines may lack. So a process compares each with the scalar kernels on a small problem before it
 * uses it for the first time, in less than a millisecond, and does not use a part whose bits differ.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "core/kernels.h"

/* The verdict on a part, remembered for the process, because the processor does not change. */
typedef _Atomic unsigned char part_verdict;
enum { PART_UNKNOWN, PART_RIGHT, PART_WRONG };

/* Returns whether the integer products that `init` puts into a table have the bits of the scalar kernels. It compares
 * at most once for each verdict, or twice where threads race. Without enough memory the part is not used this time. */
bool part_is_right(part_verdict *verdict, void (*init)(kernels *table));
