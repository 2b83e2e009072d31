/* Defines the table of a part of a tier, whose only kernels are the products of integers.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

void VF_NAME(kernels_init)(kernels *table)
{
#define X(name, parameters)                                                                                            \
    table->name = VF_NAME(name);                                                                                       \
    table->name##_isa = VF_ISA;
    INTEGER_GEMM_KERNEL_LIST(X)
#undef X
}
