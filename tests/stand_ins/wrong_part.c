/* A fault in every part of a tier, for the program that must notice it: the last product of 15 bits is one bit off. The
 * linker puts these functions before those that fill the tables (--wrap). SPDX-License-Identifier: MIT */
#include "core/kernels.h"

#include <string.h>

static void put_a_bit_off(const integer_gemm_task *task)
{
    float *last = &task->c[(task->rows - 1) * task->ldc + (task->panels - 1) * task->c_panel_stride + PANEL - 1];
    uint32_t bits;
    memcpy(&bits, last, sizeof bits);
    bits ^= 1;
    memcpy(last, &bits, sizeof bits);
}

/* Of the parts that were built, which the build lists. */
#define X(name)                                                                                                        \
    void __real_kernels_init_##name(kernels *table);                                                                   \
    void __wrap_kernels_init_##name(kernels *table);                                                                   \
    static void (*sound_##name)(const integer_gemm_task *task);                                                        \
    static void wrong_##name(const integer_gemm_task *task)                                                            \
    {                                                                                                                  \
        sound_##name(task);                                                                                            \
        if (task->rows) put_a_bit_off(task);                                                                           \
    }                                                                                                                  \
    void __wrap_kernels_init_##name(kernels *table)                                                                    \
    {                                                                                                                  \
        __real_kernels_init_##name(table);                                                                             \
        sound_##name = table->gemm_u15;                                                                                \
        table->gemm_u15 = wrong_##name;                                                                                \
    }
PARTS_BUILT(X)
#undef X
