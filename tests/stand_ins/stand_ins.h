/* Kernels for instructions that few processors have, compiled a second time with other instructions in the place of
 * those: tests run all of such a kernel but the encoding. Each needs the tier it is a part of (avx2, avx512).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/kernels.h"

void kernels_init_avxvnni_stand_in(kernels *table);
void kernels_init_avx512amx_stand_in(kernels *table);
