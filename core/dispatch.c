/* Selects the tier that runs: its name, whether it is available, and its table of kernels, which is filled from the
 * scalar tier upwards.
 *
 * SPDX-License-Identifier: MIT */
#include "core/dispatch.h"

#include <assert.h>
#include <string.h>

#include "core/base/cpu.h"
#include "core/part_check.h"
#include "include/deberta_unstable.h"

static const char *const isa_names[DEBERTA_ISA_COUNT] = {[DEBERTA_ISA_AUTO] = "auto",
#define X(NAME, name, ...) [DEBERTA_ISA_##NAME] = #name,
                                                         TIER_LIST(X)
#undef X
};

/* The initialisers that fill the table for a tier, in this order: the tiers below it, itself, and those of its parts
 * that the processor has. */
static const struct {
    deberta_isa below;            /* for a part, the tier to which it belongs */
    void (*init)(kernels *table); /* NULL: not compiled in */
} tiers[DEBERTA_ISA_COUNT] = {
#define X(NAME, name, BELOW, ...)                                                                                      \
    [DEBERTA_ISA_##NAME] = {DEBERTA_ISA_##BELOW, IF_BUILT(HAVE_##NAME, kernels_init_##name)},
    TIER_LIST(X)
#undef X
};

static const struct {
    const char *name;
    deberta_isa of;
    unsigned needs;
    void (*init)(kernels *table);
} parts[] = {
#define X(NAME, name, OF, ARCH, needs, ...)                                                                            \
    {#name, DEBERTA_ISA_##OF, needs, IF_BUILT(HAVE_##NAME, kernels_init_##name)},
    PART_LIST(X)
#undef X
};
enum { PARTS = sizeof parts / sizeof *parts };

static part_verdict verdicts[PARTS];

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
#define X(NAME, name, ...) ", " #name
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "unknown instruction set '%s'; known are auto" TIER_LIST(X), name);
#undef X
}

const char *deberta_isa_missing(deberta_isa isa)
{
    if ((unsigned)isa >= DEBERTA_ISA_COUNT) return "no such instruction set";
    if (isa == DEBERTA_ISA_AUTO || isa == DEBERTA_ISA_SCALAR) return NULL;
    return cpu_missing(isa, cpu_features());
}

deberta_isa deberta_isa_best(void)
{
    for (int isa = DEBERTA_ISA_COUNT - 1; isa > DEBERTA_ISA_SCALAR; isa--)
        if (!deberta_isa_missing((deberta_isa)isa)) return (deberta_isa)isa;
    return DEBERTA_ISA_SCALAR;
}

const char *deberta_kernel_name(deberta_isa isa, size_t kernel, const char **from)
{
    kernels table;
    size_t slot = 0;
    if (kernels_select_with_tiles(&table, isa, NULL) != DEBERTA_OK) return NULL;
#define X(name, parameters)                                                                                            \
    if (slot++ == kernel) {                                                                                            \
        if (from) *from = table.name##_isa;                                                                            \
        return #name;                                                                                                  \
    }
    KERNEL_LIST(X)
#undef X
    return NULL;
}

const char *deberta_wrong_part(deberta_isa isa, size_t number)
{
    kernels table;
    if (isa == DEBERTA_ISA_AUTO) isa = deberta_isa_best();
    if (kernels_select_with_tiles(&table, isa, NULL) != DEBERTA_OK) return NULL;
    for (size_t i = 0; i < PARTS; i++)
        if (parts[i].of == isa && verdicts[i] == PART_WRONG && number-- == 0) return parts[i].name;
    return NULL;
}

static void override_by_parts(kernels *table, deberta_isa of, unsigned features)
{
    for (size_t i = 0; i < PARTS; i++)
        if (parts[i].of == of && parts[i].init && (features & parts[i].needs) == parts[i].needs &&
            part_is_right(&verdicts[i], parts[i].init))
            parts[i].init(table);
}

/* Fills the table with the kernels of the tiers below `isa`, lowest first, and then with its own. */
static void fill_up_to(kernels *table, deberta_isa isa, unsigned features)
{
    if (isa != tiers[isa].below) fill_up_to(table, tiers[isa].below, features);
    if (tiers[isa].init) tiers[isa].init(table);
    if (isa == DEBERTA_ISA_SCALAR) override_by_parts(table, isa, features);
}

deberta_status kernels_select(kernels *table, deberta_isa isa, deberta_error *err)
{
    if (isa == DEBERTA_ISA_AUTO) isa = deberta_isa_best();
    const char *missing = deberta_isa_missing(isa);
    if (missing) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "instruction set '%s' cannot be used here: %s", deberta_isa_name(isa),
                     missing);
    }
    const unsigned features =
        cpu_features() & ~(unsigned)CPU_ASKED_FOR; /* Queried once, because every CPUID makes a virtual machine exit. */
    memset(table, 0, sizeof *table);
    fill_up_to(table, isa, features);
    if (isa != DEBERTA_ISA_SCALAR) override_by_parts(table, isa, features);
#define X(name, parameters) assert(table->name && table->name##_isa);
    KERNEL_LIST(X)
#undef X
    return DEBERTA_OK;
}

void kernels_use_tiles(kernels *table, deberta_isa isa)
{
    if (isa == DEBERTA_ISA_AUTO) isa = deberta_isa_best();
    for (size_t i = 0; i < PARTS; i++) {
        const bool is_asked_for = parts[i].of == isa && (parts[i].needs & CPU_ASKED_FOR) != 0;
        if (is_asked_for && parts[i].init && (cpu_features() & parts[i].needs) && cpu_allow_tiles() &&
            part_is_right(&verdicts[i], parts[i].init))
            parts[i].init(table);
    }
}

deberta_status kernels_select_with_tiles(kernels *table, deberta_isa isa, deberta_error *err)
{
    DEBERTA_TRY(kernels_select(table, isa, err));
    kernels_use_tiles(table, isa);
    return DEBERTA_OK;
}
