/* Which tier runs: names, availability, and the table of kernels, filled by overriding from the scalar tier upwards.
 *
 * SPDX-License-Identifier: MIT */
#include "core/dispatch.h"

#include <assert.h>
#include <string.h>

#include "core/base/cpu.h"

static const char *const isa_names[DEBERTA_ISA_COUNT] = {
    [DEBERTA_ISA_AUTO] = "auto",     [DEBERTA_ISA_SCALAR] = "scalar", [DEBERTA_ISA_AVX2] = "avx2",
    [DEBERTA_ISA_AVX512] = "avx512", [DEBERTA_ISA_NEON] = "neon", [DEBERTA_ISA_WASM] = "wasm",
};

const char *deberta_isa_name(deberta_isa isa) { return (unsigned)isa < DEBERTA_ISA_COUNT ? isa_names[isa] : "unknown"; }

deberta_status deberta_isa_from_name(deberta_isa *isa, const char *name, deberta_error *err)
{
    if (!isa || !name) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_isa_from_name needs a place and a name");
    for (int i = 0; i < DEBERTA_ISA_COUNT; i++) {
        if (strcmp(name, isa_names[i]) == 0) {
            *isa = (deberta_isa)i;
            return DEBERTA_OK;
        }
    }
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "unknown instruction set '%s'; known are auto, scalar, avx2, avx512 and neon",
                 name);
}

const char *deberta_isa_missing(deberta_isa isa)
{
    if ((unsigned)isa >= DEBERTA_ISA_COUNT) return "no such instruction set";
    if (isa == DEBERTA_ISA_AUTO || isa == DEBERTA_ISA_SCALAR) return NULL;
    return cpu_missing(isa, cpu_features());
}

deberta_isa deberta_isa_best(void)
{
    static const deberta_isa best_first[] = {DEBERTA_ISA_AVX512, DEBERTA_ISA_AVX2, DEBERTA_ISA_NEON, DEBERTA_ISA_WASM};
    for (size_t i = 0; i < sizeof best_first / sizeof *best_first; i++) {
        if (!deberta_isa_missing(best_first[i])) return best_first[i];
    }
    return DEBERTA_ISA_SCALAR;
}

const char *deberta_kernel_name(deberta_isa isa, size_t kernel, const char **from)
{
    kernels table;
    size_t slot = 0;
    if (kernels_select(&table, isa, NULL) != DEBERTA_OK) return NULL;
    kernels_use_tiles(&table, isa);
#define X(name, parameters)                                                                                            \
    if (slot++ == kernel) {                                                                                            \
        if (from) *from = table.name##_isa;                                                                            \
        return #name;                                                                                                  \
    }
    KERNEL_LIST(X)
#undef X
    return NULL;
}

deberta_status kernels_select(kernels *table, deberta_isa isa, deberta_error *err)
{
    if (isa == DEBERTA_ISA_AUTO) isa = deberta_isa_best();
    const char *missing = deberta_isa_missing(isa);
    if (missing) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "instruction set '%s' cannot be used here: %s", deberta_isa_name(isa),
                     missing);
    }
    const unsigned features = cpu_features(); /* once: every CPUID leaves a virtual machine */
    memset(table, 0, sizeof *table);
    if (features & CPU_FMA) {
        kernels_init_scalar_fma(table);
    } else {
        kernels_init_scalar(table);
    }
#if HAVE_AVX2
    if (isa == DEBERTA_ISA_AVX2 || isa == DEBERTA_ISA_AVX512) kernels_init_avx2(table);
#endif
#if HAVE_AVXVNNI
    if (isa == DEBERTA_ISA_AVX2 && (features & CPU_AVXVNNI)) kernels_init_avxvnni(table);
#endif
#if HAVE_AVX512
    if (isa == DEBERTA_ISA_AVX512) kernels_init_avx512(table);
#endif
#if HAVE_AVX512VNNI
    if (isa == DEBERTA_ISA_AVX512 && (features & CPU_AVX512VNNI)) kernels_init_avx512vnni(table);
#endif
#if HAVE_NEON
    if (isa == DEBERTA_ISA_NEON) kernels_init_neon(table);
#endif
#if HAVE_NEONDOT
    if (isa == DEBERTA_ISA_NEON && (features & CPU_NEON_DOT)) kernels_init_neondot(table);
#endif
#if HAVE_NEONI8MM
    if (isa == DEBERTA_ISA_NEON && (features & CPU_NEON_I8MM)) kernels_init_neoni8mm(table);
#endif
#if HAVE_WASM
    if (isa == DEBERTA_ISA_WASM) kernels_init_wasm(table);
#endif
#define X(name, parameters) assert(table->name && table->name##_isa);
    KERNEL_LIST(X)
#undef X
    return DEBERTA_OK;
}

void kernels_use_tiles(kernels *table, deberta_isa isa)
{
    if (isa == DEBERTA_ISA_AUTO) isa = deberta_isa_best();
#if HAVE_AVX512AMX
    if (isa == DEBERTA_ISA_AVX512 && (cpu_features() & CPU_AVX512AMX) && cpu_allow_tiles())
        kernels_init_avx512amx(table);
#else
    (void)table;
#endif
}
