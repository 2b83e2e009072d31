/* The program: options, tiers, the list of checks, the report, and the proof that nothing was left out.
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include "core/base/cpu.h"
#include "tests/stand_ins/stand_ins.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ tiers */

/* A tier of the library, a part that only some processors of a tier have, or the stand-in of such a part. */
static const struct {
    const char *name;
    tier_id below; /* whose kernels it overrides; scalar has none */
    deberta_isa isa;
    void (*init)(kernels *table);
    unsigned needs; /* beyond the tier, or 0 */
    const char *lacking;
} tiers[TIER_COUNT] = {
#define X(NAME, name, BELOW, ...)                                                                                      \
    [TIER_##NAME] = {#name, TIER_##BELOW, DEBERTA_ISA_##NAME, IF_BUILT(HAVE_##NAME, kernels_init_##name), 0, NULL},
    TIER_LIST(X)
#undef X
#define X(NAME, name, OF, ARCH, needs, parts, not_saved, word, ...)                                                    \
    [TIER_##NAME] = {#name, TIER_##OF, DEBERTA_ISA_##OF, IF_BUILT(HAVE_##NAME, kernels_init_##name), needs, word},
        PART_LIST(X)
#undef X
            [TIER_AVXVNNI_STAND_IN] = {"avxvnni_stand_in", TIER_AVX2, DEBERTA_ISA_AVX2,
                                       IF_BUILT(HAVE_AVX2, kernels_init_avxvnni_stand_in), 0, NULL},
    [TIER_AVX512AMX_STAND_IN] = {"avx512amx_stand_in", TIER_AVX512, DEBERTA_ISA_AVX512,
                                 IF_BUILT(HAVE_AVX512, kernels_init_avx512amx_stand_in), 0, NULL},
};

const char *tier_name(tier_id tier) { return tiers[tier].name; }

const char *tier_missing(tier_id tier)
{
    static char lacking[64];
    const unsigned features = cpu_features();
    if (!tiers[tier].init) return "not compiled in";
    const char *missing = cpu_missing(tiers[tier].isa, features);
    if (tier == TIER_AVX512AMX && (features & CPU_AVX512AMX) && !cpu_allow_tiles())
        return "the operating system does not let this process use tiles";
    if (missing || (features & tiers[tier].needs) == tiers[tier].needs) return missing;
    snprintf(lacking, sizeof lacking, "the processor lacks %s", tiers[tier].lacking);
    return lacking;
}

void tier_init(tier_id tier, kernels *table)
{
    if (tiers[tier].below != tier) tier_init(tiers[tier].below, table);
    if (tiers[tier].below == TIER_SCALAR && tier > TIER_SCALAR && !tier_missing(TIER_SCALAR_FMA))
        tiers[TIER_SCALAR_FMA].init(table);
    if (tiers[tier].init) tiers[tier].init(table);
}

tier_id scalar_tier(void) { return tier_missing(TIER_SCALAR_FMA) ? TIER_SCALAR : TIER_SCALAR_FMA; }

static int tier_from_name(const char *name)
{
    for (int t = 0; t < TIER_COUNT; t++)
        if (strcmp(name, tiers[t].name) == 0) return t;
    fprintf(stderr, "checkasm: no tier is called '%s'; there are", name);
    for (int t = 0; t < TIER_COUNT; t++) fprintf(stderr, "%s %s", t ? "," : "", tiers[t].name);
    fputs("\n", stderr);
    exit(2);
}

/* ----------------------------------------------------------------------------------------------------------- checks */

const kernel_check *checks_of(kernel_slot slot)
{
    static const kernel_check *const all[KERNEL_SLOTS] = {
#define X(name, parameters) [SLOT_##name] = checks_of_##name,
        KERNEL_LIST(X)
#undef X
    };
    return all[slot];
}

static bool is_in_part(const test_options *options, size_t slot) { return slot % options->parts + 1 == options->part; }

/* --kernel may name a slot or one check of it. */
static bool check_wanted(const test_options *options, kernel_slot slot, const kernel_check *check)
{
    if (!is_in_part(options, slot)) return false;
    if (!options->kernel) return true;
    return strcmp(options->kernel, check->name) == 0 || strcmp(options->kernel, slot_name(slot)) == 0;
}

void run_check(test_run *run, kernel_slot slot, const kernel_check *check)
{
    run->slot = slot;
    run->check = check->name;
    run->case_index = run->cases = run->failures = 0;
    memset(run->gauges, 0, sizeof run->gauges);
    run->near_zero = run->sleef_near_zero = 0;
    run->first_failure[0] = '\0';
    check->walk(run);
}

static void print_result(const test_run *run)
{
    printf("%-6s %-29s %-18s %5zu cases", run->failures ? "FAILED" : "ok", run->check, run->isa, run->cases);
    bool is_exact = true;
    for (int unit = 0; unit < UNIT_COUNT; unit++) {
        const error_gauge *gauge = &run->gauges[unit];
        if (gauge->worst > 0) {
            printf(", worst %.2f %s (%.0f %%%s)", gauge->worst, unit_name((error_unit)unit),
                   100 * gauge->worst_of_limit, is_exact ? " of the bound" : "");
            is_exact = false;
        }
    }
    if (is_exact) printf(", exact");
    if (run->near_zero > 0) printf(", %.2f on [-5, 5]", run->near_zero);
    if (run->sleef_near_zero > 0) printf(" where SLEEF has %.2f", run->sleef_near_zero);
    if (run->failures) printf(", %zu failures", run->failures);
    printf("\n");
    fflush(stdout);
}

/* -------------------------------------------------------------------------------------------------------- all tiers */

typedef struct test_tally {
    size_t passed, failed, skipped;
    bool checked[TIER_COUNT][KERNEL_SLOTS]; /* with at least one case */
    kernels tables[TIER_COUNT];
} test_tally;

static size_t wanted_checks(const test_options *options)
{
    size_t count = 0;
    for (int slot = 0; slot < KERNEL_SLOTS; slot++)
        for (const kernel_check *check = checks_of((kernel_slot)slot); check->walk; check++)
            count += check_wanted(options, (kernel_slot)slot, check);
    return count;
}

/* The tier below that holds the same function and has been checked, or -1: a tier need not fill every slot. */
static int checked_below(const test_tally *tally, tier_id tier, kernel_slot slot)
{
    for (int below = 0; below < (int)tier; below++)
        if (tally->checked[below][slot] && slot_same(slot, &tally->tables[below], &tally->tables[tier])) return below;
    return -1;
}

static void tally_check(test_run *run, test_tally *tally, tier_id tier, kernel_slot slot, const kernel_check *check)
{
    const int below = checked_below(tally, tier, slot);
    if (below >= 0) {
        printf("ok     %-29s %-18s is %s's\n", check->name, run->isa, tier_name((tier_id)below));
        tally->passed++;
        return;
    }
    run_check(run, slot, check);
    print_result(run);
    if (run->failures)
        tally->failed++;
    else if (run->cases)
        tally->passed++;
    else
        tally->skipped++;
    if (run->cases) tally->checked[tier][slot] = true;
}

static void run_tier(test_run *run, test_tally *tally, tier_id tier, const kernels *scalar)
{
    /* scalar_fma is compared with scalar, the other tiers with the faster of the two. */
    kernels plain;
    tier_init(TIER_SCALAR, &plain);
    tier_init(tier, &tally->tables[tier]);
    run->isa = tier_name(tier);
    run->tested = &tally->tables[tier];
    run->expected = tier == TIER_SCALAR ? run->tested : tier == TIER_SCALAR_FMA ? &plain : scalar;
    for (int slot = 0; slot < KERNEL_SLOTS; slot++)
        for (const kernel_check *check = checks_of((kernel_slot)slot); check->walk; check++)
            if (check_wanted(run->options, (kernel_slot)slot, check))
                tally_check(run, tally, tier, (kernel_slot)slot, check);
}

/* A slot without a check, or a tier that had to run and did not, is a failure: silence proves nothing. */
static void check_coverage(const test_options *options, test_tally *tally, const bool ran[TIER_COUNT])
{
    for (int t = 0; t < TIER_COUNT; t++) {
        if ((options->require >> t & 1) && !ran[t]) {
            const char *missing = tier_missing((tier_id)t);
            printf("FAILED --require=%s: %s\n", tiers[t].name, missing ? missing : "not selected by --isa");
            tally->failed++;
        }
        if (!ran[t] || options->kernel || options->only_case != SIZE_MAX) continue;
        for (int s = 0; s < KERNEL_SLOTS; s++) {
            if (!is_in_part(options, (size_t)s) || tally->checked[t][s] ||
                checked_below(tally, (tier_id)t, (kernel_slot)s) >= 0)
                continue;
            printf("FAILED coverage: no check ran for %s of %s\n", slot_name((kernel_slot)s), tiers[t].name);
            tally->failed++;
        }
    }
}

static int check_all(const test_options *options)
{
    static test_tally tally;
    bool ran[TIER_COUNT] = {false};
    kernels scalar;
    test_run run;
    run_setup(&run, options);
    tier_init(scalar_tier(), &scalar);
    printf("seed %llu%s%s\n", (unsigned long long)options->seed, options->quick ? ", quick" : "",
           options->no_guard ? ", no guard pages" : "");
    for (int t = 0; t < TIER_COUNT; t++) {
        const char *missing = tier_missing((tier_id)t);
        if (options->tier >= 0 && options->tier != t) continue;
        if (missing) {
            printf("skipped %s: %s\n", tiers[t].name, missing);
            tally.skipped += wanted_checks(options);
            continue;
        }
        run_tier(&run, &tally, (tier_id)t, &scalar);
        ran[t] = true;
    }
    check_coverage(options, &tally, ran);
    run_release(&run);
    printf("%zu passed, %zu failed, %zu skipped\n", tally.passed, tally.failed, tally.skipped);
    return tally.failed || tally.passed + tally.failed == 0 ? 1 : 0;
}

/* ---------------------------------------------------------------------------------------------------------- options */

static const char usage[] =
    "usage: checkasm [options]\n"
    "Compares every kernel of every tier that this processor has with float64 and, bit for bit, with the\n"
    "scalar kernel.\n"
    "  --isa=TIER       only this tier (a wrong name brings the list)\n"
    "  --require=TIER   fail if this tier did not run; may be repeated\n"
    "  --kernel=NAME    only this slot, or one check of it (--list)\n"
    "  --part=K/N       the K-th of N parts of the slots; together they check what the whole does\n"
    "  --seed=N         other random numbers (default 1)\n"
    "  --case=N         only this case of each check\n"
    "  --quick          a sample of the cases, for emulators; so does DEBERTA_TEST_QUICK in the environment\n"
    "  --no-guard       no unreadable pages, for emulators that fault on masked loads\n"
    "  --bench          measure instead\n"
    "  --self-test      run the checks on deliberately broken kernels, all of which must be caught\n"
    "  --list           names of the checks\n";

static uint64_t number_from(const char *text, const char *option)
{
    char *end;
    const unsigned long long value = strtoull(text, &end, 0);
    if (*text >= '0' && *text <= '9' && !*end) return value;
    fprintf(stderr, "checkasm: --%s=%s is not a number\n", option, text);
    exit(2);
}

static const char *kernel_from(const test_options *options)
{
    if (options->kernel && wanted_checks(options) == 0) {
        fprintf(stderr, "checkasm: no kernel or check is called '%s'; --list shows them\n", options->kernel);
        exit(2);
    }
    return options->kernel;
}

static void read_part(test_options *options, const char *text)
{
    int end = 0;
    if (sscanf(text, "%zu/%zu%n", &options->part, &options->parts, &end) == 2 && !text[end] && options->part > 0 &&
        options->part <= options->parts)
        return;
    fprintf(stderr, "checkasm: --part=%s is not K/N with 1 <= K <= N\n", text);
    exit(2);
}

static test_options read_options(int argc, char **argv)
{
    enum { ISA, REQUIRE, KERNEL, PART, SEED, CASE, QUICK, NO_GUARD, BENCH, SELF_TEST, LIST, HELP };
    static const struct option names[] = {{"isa", 1, NULL, ISA},
                                          {"require", 1, NULL, REQUIRE},
                                          {"kernel", 1, NULL, KERNEL},
                                          {"part", 1, NULL, PART},
                                          {"seed", 1, NULL, SEED},
                                          {"case", 1, NULL, CASE},
                                          {"quick", 0, NULL, QUICK},
                                          {"bench", 0, NULL, BENCH},
                                          {"no-guard", 0, NULL, NO_GUARD},
                                          {"list", 0, NULL, LIST},
                                          {"help", 0, NULL, HELP},
                                          {"self-test", 0, NULL, SELF_TEST},
                                          {0}};
    test_options o = {.seed = 1,
                      .tier = -1,
                      .only_case = SIZE_MAX,
                      .quick = getenv("DEBERTA_TEST_QUICK") != NULL,
                      .part = 1,
                      .parts = 1};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case ISA: o.tier = tier_from_name(optarg); break;
        case REQUIRE: o.require |= 1u << tier_from_name(optarg); break;
        case KERNEL: o.kernel = optarg; break;
        case PART: read_part(&o, optarg); break;
        case SEED: o.seed = number_from(optarg, "seed"); break;
        case CASE: o.only_case = (size_t)number_from(optarg, "case"); break;
        case QUICK: o.quick = true; break;
        case NO_GUARD: o.no_guard = true; break;
        case BENCH: o.bench = true; break;
        case SELF_TEST: o.self_test = true; break;
        case LIST: o.list = true; break;
        case HELP: fputs(usage, stdout); exit(0);
        default: fputs(usage, stderr); exit(2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "checkasm: unexpected argument '%s'\n%s", argv[optind], usage);
        exit(2);
    }
    o.kernel = kernel_from(&o);
    return o;
}

int main(int argc, char **argv)
{
    const test_options options = read_options(argc, argv);
    if (options.list) {
        for (int slot = 0; slot < KERNEL_SLOTS; slot++)
            for (const kernel_check *check = checks_of((kernel_slot)slot); check->walk; check++) puts(check->name);
        return 0;
    }
    if (options.bench) return bench(&options);
    if (options.self_test) return self_test(&options);
    return check_all(&options);
}
