/* The test of the tests: kernels with one deliberate fault each, planted in the files of the checks. A check that lets
 * one pass is worth nothing. Most call the sound scalar kernel and then spoil what it did.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <string.h>

kernels sound;

void read_float(const float *x)
{
    const volatile float *place = x;
    (void)*place;
}

/* Name of the first check that fails, or NULL. */
static const char *caught_by(test_run *run, kernel_slot slot, const kernels *expected, const kernels *broken)
{
    run->expected = expected;
    run->tested = broken;
    for (const kernel_check *check = checks_of(slot); check->walk; check++) {
        run_check(run, slot, check);
        if (run->failures) return check->name;
    }
    return NULL;
}

static bool try_fault(test_run *run, kernel_slot slot, const broken_kernel *fault)
{
    kernels broken = sound;
    memcpy((char *)&broken + fault->place, (const char *)&fault->with + fault->place, sizeof(void (*)(void)));
    const char *check = caught_by(run, slot, &sound, &broken);
    const char *alone = check;
    char message[sizeof run->first_failure];
    memcpy(message, run->first_failure, sizeof message);
    if (check && fault->size == FAULT_GROSS) alone = caught_by(run, slot, &broken, &broken);
    if (check && alone)
        printf("caught %-28s by %s: %s\n", fault->name, check, message);
    else
        printf("MISSED %s%s\n", fault->name, check ? " by float64 alone" : "");
    return check && alone;
}

static bool is_wanted(const test_options *options, kernel_slot slot)
{
    return !options->kernel || strcmp(options->kernel, slot_name(slot)) == 0;
}

int self_test(const test_options *options)
{
    static const broken_kernel *const all[KERNEL_SLOTS] = {
#define X(name, parameters) [SLOT_##name] = faults_of_##name,
        KERNEL_LIST(X)
#undef X
    };
    size_t caught = 0, missed = 0;
    test_run run;
    run_setup(&run, options);
    tier_init(scalar_tier(), &sound);
    run.isa = "broken";
    run.quiet = true;
    for (int slot = 0; slot < KERNEL_SLOTS; slot++)
        for (const broken_kernel *fault = all[slot]; is_wanted(options, (kernel_slot)slot) && fault->name; fault++)
            try_fault(&run, (kernel_slot)slot, fault) ? caught++ : missed++;
    run_release(&run);
    printf("%zu passed, %zu failed, 0 skipped\n", caught, missed);
    return missed ? 1 : 0;
}
