/* The environment sheet, work in child processes, clocks, and the measured limits in rough bounds.
 * SPDX-License-Identifier: MIT */
#include <signal.h>
#include <unistd.h>

#include "tests/unit/test.h"

#include "bench/child.h"
#include "bench/machine.h"
#include "bench/timer.h"
#include "core/base/memory.h"
#include "include/deberta_unstable.h"

static deberta_status add_one(const void *context, void *answer, deberta_error *err)
{
    (void)err;
    *(int *)answer = *(const int *)context + 1;
    return DEBERTA_OK;
}

static deberta_status refuse(const void *context, void *answer, deberta_error *err)
{
    (void)context, (void)answer;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "no such luck");
}

static deberta_status die(const void *context, void *answer, deberta_error *err)
{
    (void)answer, (void)err;
    signal(*(const int *)context, SIG_DFL);
    raise(*(const int *)context);
    return DEBERTA_OK;
}

static deberta_status work_hard(const void *context, void *answer, deberta_error *err)
{
    (void)err;
    double begin = timer_process_seconds(), *worked = answer;
    while ((*worked = timer_process_seconds() - begin) < *(const double *)context) continue;
    return DEBERTA_OK;
}

/* Or the measurement of the machine's limits, which children do, would count as somebody else's load. */
TEST(test_work_of_children_is_ours)
{
    double seconds = 0.1, worked = 0, before = timer_process_seconds();
    assert_ok(child_run(work_hard, &seconds, &worked, sizeof worked, "working", &(deberta_error){0}));
    assert_true(worked >= seconds && timer_process_seconds() - before >= 0.9 * seconds);
}

TEST(test_children_answer_fail_and_die)
{
    int question = 41, answer = 0;
    deberta_error err = {0};
    assert_ok(child_run(add_one, &question, &answer, sizeof answer, "adding", &err));
    assert_int_equal(answer, 42);
    assert_int_equal(child_run(refuse, NULL, &answer, sizeof answer, "asking", &err), DEBERTA_E_FORMAT);
    assert_string_equal(err.message, "no such luck");
    int number = SIGKILL;
    check_refused(child_run(die, &number, &answer, sizeof answer, "dying", &err), &err, DEBERTA_E_MEMORY,
                  "dying: the process was killed");
    number = SIGTERM;
    check_refused(child_run(die, &number, &answer, sizeof answer, "dying", &err), &err, DEBERTA_E_SYSTEM,
                  "died of signal 15");
}

TEST(test_the_sheet_is_filled)
{
    machine_sheet sheet;
    deberta_error err = {0};
    if (machine_read_sheet(&sheet, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    assert_non_null(strstr(sheet.tiers, "scalar"));
    assert_string_equal(sheet.isa, deberta_isa_name(deberta_isa_best()));
    assert_true(*sheet.cpu && *sheet.compiler && *sheet.flags && *sheet.commit && *sheet.system && *sheet.governor);
    assert_null(strstr(sheet.commit, "dirty"));
    assert_int_equal(strlen(sheet.date), strlen("2000-01-01T00:00:00Z"));
    assert_true(sheet.memory_bytes > 0);
    assert_true(sheet.topology.usable_cores > 0);
    /* What the system does not tell stays empty; a virtual machine on x86 has a name, a bare one none. */
#if defined(__x86_64__)
    assert_int_equal(*sheet.hypervisor != '\0', sheet.virtual_machine);
    assert_true(sheet.clock_wide_ghz > 0.3 && sheet.clock_wide_ghz < 8);
#endif
    assert_int_equal(*sheet.huge_pages != '\0', access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) == 0);
    if (*sheet.huge_pages) assert_non_null(strstr("always madvise never", sheet.huge_pages));
}

/* Memory in huge pages is counted where the system gives some: of a block that asks for them. */
TEST(test_huge_pages_are_counted)
{
    enum { BYTES = 32 << 20 };
    const size_t before = machine_huge_page_bytes();
    arena memory = {0};
    arena_take(&memory, BYTES, 1);
    assert_ok(arena_allocate(&memory, "a block", 0, NULL));
    memset(arena_take(&memory, BYTES, 1), 1, BYTES);
    const size_t after = machine_huge_page_bytes(); /* a wish, which the system may refuse */
    if (after != before) assert_true(after - before >= BYTES / 16 && after - before <= BYTES + (2 << 20));
    arena_release(&memory);
}

TEST(test_notes_are_kept_once)
{
    machine_sheet sheet = {0};
    for (int i = 0; i < 100; i++) machine_note(&sheet, "note %d", i % 3);
    assert_int_equal(sheet.note_count, 3);
    for (int i = 0; i < 100; i++) machine_note(&sheet, "other note %d", i);
    assert_int_equal(sheet.note_count, MACHINE_MAX_NOTES);
}

static bool has_note(const machine_sheet *sheet, const char *text)
{
    for (size_t i = 0; i < sheet->note_count; i++) {
        if (strstr(sheet->notes[i], text)) return true;
    }
    return false;
}

/* Processors that are shared with somebody whom this system does not see. */
TEST(test_an_unsteady_rate_is_noted)
{
    machine_sheet sheet = {
        .roofs = {.count = 3, .roof = {{.threads = 1}, {2, .typical_share = 0.97}, {4, .typical_share = 0.99}}}};
    machine_counters now = machine_read_counters();
    machine_finish_sheet(&sheet, &now);
    assert_false(has_note(&sheet, "best rate"));
    sheet.roofs.roof[1].typical_share = 0.7;
    sheet.roofs.roof[2].typical_share = 0.8;
    machine_finish_sheet(&sheet, &now);
    assert_true(has_note(&sheet, "2 threads did at most 70 % of the best rate"));
    assert_false(has_note(&sheet, "4 threads"));
}

TEST(test_activity_subtracts_what_is_ours)
{
    machine_counters before = {.wall = 10, .busy = 100, .stolen = 1, .own = 5}, after = {12, 107, 2, 9};
    machine_activity activity = machine_activity_between(&before, &after);
    assert_true(activity.others == 1.5 && activity.stolen == 0.5);
    after.own = 20;
    assert_true(machine_activity_between(&before, &after).others == 0);
    assert_true(machine_activity_between(&before, &before).others == 0);
}

TEST(test_clocks_run)
{
    double wall = timer_now(), own = timer_process_seconds();
    usleep(2000);
    assert_true(timer_now() - wall >= 0.002);
    assert_true(timer_process_seconds() >= own);
    double clock = timer_clock_ghz();
    assert_true(clock == 0 || (clock > 0.02 && clock < 20)); /* emulators are slow */
}

/* Adding products of bytes is no slower than half of multiplying floats, int16 a third of int8; scalar has no peak. */
static bool peaks_have_their_order(const machine_roofs *roofs)
{
    for (int isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
        const double of_floats = machine_peak_gflops(roofs, (deberta_isa)isa, 1);
        const double of_bytes = machine_peak_of(roofs, (deberta_isa)isa, 1, DEBERTA_PRECISION_INT8);
        assert_float_equal(3 * machine_peak_of(roofs, (deberta_isa)isa, 1, DEBERTA_PRECISION_INT16), of_bytes, 1e-6);
        if (isa == DEBERTA_ISA_SCALAR || of_floats == 0) assert_true(of_bytes == 0);
        if (isa != DEBERTA_ISA_SCALAR && of_floats > 0 && of_bytes <= of_floats / 2) return false;
    }
    return true;
}

TEST(test_limits_of_the_machine)
{
    enum { TRIES = 5 }; /* neighbours take a processor away for a while */
    static machine_roofs roofs;
    const size_t threads[] = {1, 2};
    deberta_error err = {0};
    bool in_order = false;
    for (int i = 0; i < TRIES && !in_order; i++) {
        if (machine_measure_roofs(&roofs, threads, 2, ~0u, false, &err) != DEBERTA_OK) fail_msg("%s", err.message);
        in_order = peaks_have_their_order(&roofs);
    }
    assert_true(in_order);
    assert_int_equal(roofs.count, 2);
    assert_true(machine_peak_gflops(&roofs, deberta_isa_best(), 1) > 0);
    assert_true(machine_peak_gflops(&roofs, DEBERTA_ISA_AUTO, 1) == 0);
    assert_true(machine_peak_gflops(&roofs, deberta_isa_best(), 3) == 0);
    assert_null(machine_find_roof(&roofs, 3));
    assert_true(roofs.roof[0].read_gbs == 0);
    for (size_t i = 0; i < 2; i++) assert_true(roofs.roof[i].typical_share > 0 && roofs.roof[i].typical_share <= 1);
    size_t many[MACHINE_MAX_ROOFS + 1] = {0};
    assert_int_equal(machine_measure_roofs(&roofs, many, MACHINE_MAX_ROOFS + 1, 0, false, &err), DEBERTA_E_ARGUMENT);
}
