/* Reads the environment sheet from /proc, /sys and the build; notes say why a measurement may be off.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "bench/commit.h"
#include "bench/timer.h"
#include "core/base/cpu.h"
#include "core/base/text.h"

#ifndef BENCH_FLAGS /* the build passes the flags of the library */
#define BENCH_FLAGS "unknown"
#endif

/* Reads the first line of a small file without its newline; returns false if there is none. */
static bool read_line(const char *path, char *line, size_t capacity_bytes)
{
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool found = fgets(line, (int)capacity_bytes, file) != NULL;
    stream_discard(file);
    if (found) line[strcspn(line, "\n")] = '\0';
    return found;
}

/* --------------------------------------------------------------------------------------------------------- activity */

/* Reads "cpu user nice system idle iowait irq softirq steal ...", in ticks since boot, summed over all processors. */
machine_counters machine_read_counters(void)
{
    machine_counters counters = {.wall = timer_now(), .own = timer_process_seconds()};
    char line[256];
    unsigned long long user, nice, system, idle, wait, interrupt, soft, steal;
    if (!read_line("/proc/stat", line, sizeof line)) return counters;
    if (sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &interrupt,
               &soft, &steal) != 8)
        return counters;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    counters.busy = (double)(user + nice + system + interrupt + soft) * tick;
    counters.stolen = (double)steal * tick;
    return counters;
}

machine_activity machine_activity_between(const machine_counters *before, const machine_counters *after)
{
    double wall = after->wall - before->wall;
    if (!(wall > 0) || after->busy == 0) return (machine_activity){0};
    double others = (after->busy - before->busy - (after->own - before->own)) / wall;
    return (machine_activity){.others = others > 0 ? others : 0, .stolen = (after->stolen - before->stolen) / wall};
}

/* ------------------------------------------------------------------------------------------------ environment sheet */

void machine_note(machine_sheet *sheet, const char *format, ...)
{
    if (sheet->note_count == MACHINE_MAX_NOTES) return;
    char *note = sheet->notes[sheet->note_count];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(note, sizeof sheet->notes[0], format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < sheet->note_count; i++) {
        if (strcmp(sheet->notes[i], note) == 0) return;
    }
    sheet->note_count++;
}

static bool has_word(const char *line, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = line; (at = strstr(at, word)); at += length) {
        if (at > line && at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n')) return true;
    }
    return false;
}

/* Reads the value of the first line of a file with this key, "key : value"; returns false if there is none. */
static bool read_value(const char *path, const char *key, char *value, size_t capacity_bytes)
{
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file && !found && getline(&line, &capacity, file) > 0) {
        const char *colon = strchr(line, ':');
        found = colon && strncmp(line, key, strlen(key)) == 0;
        if (!found) continue;
        const char *text = colon + 1 + strspn(colon + 1, " \t");
        utf8_copy(value, capacity_bytes, text);
        value[strcspn(value, "\n")] = '\0';
    }
    stream_discard(file);
    free(line);
    return found;
}

/* Takes the setting out of "always [madvise] never". */
static void name_huge_pages(machine_sheet *sheet)
{
    char line[128];
    if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line)) return;
    const char *chosen = strchr(line, '[');
    if (chosen)
        snprintf(sheet->huge_pages, sizeof sheet->huge_pages, "%.*s", (int)strcspn(chosen + 1, "]"), chosen + 1);
}

size_t machine_huge_page_bytes(void)
{
    char value[64];
    if (!read_value("/proc/self/smaps_rollup", "AnonHugePages", value, sizeof value)) return 0;
    return (size_t)strtoull(value, NULL, 10) << 10;
}

/* Takes the hypervisor's name, which stands where a processor has its maker's: "KVMKVMKVM". */
static void name_hypervisor(machine_sheet *sheet)
{
    if (read_line("/sys/hypervisor/type", sheet->hypervisor, sizeof sheet->hypervisor)) return;
#if defined(__x86_64__)
    unsigned most, name[3];
    if (!sheet->virtual_machine) return;
    __cpuid(0x40000000, most, name[0], name[1], name[2]);
    memcpy(sheet->hypervisor, name, sizeof name);
    sheet->hypervisor[sizeof name] = '\0';
    for (char *at = sheet->hypervisor; *at; at++)
        if (*at < ' ' || *at > '~') *at = '?'; /* the name may hold any bytes */
#endif
}

static bool is_virtual(void)
{
    char *line = NULL;
    size_t capacity = 0;
    bool found = access("/sys/hypervisor/type", R_OK) == 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !found && getline(&line, &capacity, file) > 0) {
        if (strncmp(line, "flags", 5) == 0) {
            found = has_word(line, "hypervisor");
            break;
        }
    }
    stream_discard(file);
    free(line);
    return found;
}

static void name_compiler(machine_sheet *sheet)
{
#if defined(__clang__)
    snprintf(sheet->compiler, sizeof sheet->compiler, "clang %d.%d.%d", __clang_major__, __clang_minor__,
             __clang_patchlevel__);
#elif defined(__GNUC__)
    snprintf(sheet->compiler, sizeof sheet->compiler, "gcc %d.%d.%d", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
    snprintf(sheet->compiler, sizeof sheet->compiler, "unknown");
#endif
    snprintf(sheet->flags, sizeof sheet->flags, "%s", BENCH_FLAGS);
}

/* Takes the commit from the tag, which ends in "-dirty" if files differ from it. */
static void name_version(machine_sheet *sheet)
{
    snprintf(sheet->version, sizeof sheet->version, "%s", deberta_version());
    snprintf(sheet->commit, sizeof sheet->commit, "%s", BENCH_COMMIT);
    char *suffix = strstr(sheet->commit, "-dirty");
    sheet->dirty = suffix != NULL;
    if (suffix) *suffix = '\0';
}

static void name_tiers(machine_sheet *sheet)
{
    size_t length = 0;
    for (int isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
        if (deberta_isa_missing((deberta_isa)isa)) continue;
        length += (size_t)snprintf(sheet->tiers + length, sizeof sheet->tiers - length, "%s%s", length ? " " : "",
                                   deberta_isa_name((deberta_isa)isa));
    }
    snprintf(sheet->isa, sizeof sheet->isa, "%s", deberta_isa_name(deberta_isa_best()));
}

static void name_system(machine_sheet *sheet)
{
    struct utsname name;
    if (uname(&name) != 0) return;
    snprintf(sheet->architecture, sizeof sheet->architecture, "%.31s", name.machine);
    snprintf(sheet->system, sizeof sheet->system, "%.40s %.80s", name.sysname, name.release);
}

deberta_status machine_read_sheet(machine_sheet *sheet, deberta_error *err)
{
    *sheet = (machine_sheet){0};
    DEBERTA_TRY(topology_read(&sheet->topology, err));
    name_version(sheet);
    name_compiler(sheet);
    name_tiers(sheet);
    name_system(sheet);
    cpu_name(sheet->cpu, sizeof sheet->cpu);
    sheet->virtual_machine = is_virtual();
    name_hypervisor(sheet);
    read_value("/proc/cpuinfo", "microcode", sheet->microcode, sizeof sheet->microcode);
    name_huge_pages(sheet);
    sheet->memory_bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    if (!read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", sheet->governor, sizeof sheet->governor))
        snprintf(sheet->governor, sizeof sheet->governor, "unknown");
    if (getloadavg(&sheet->load, 1) != 1) sheet->load = 0;
    sheet->clock_ghz = timer_clock_ghz();
    sheet->clock_wide_ghz = machine_wide_clock_ghz();
    time_t now = time(NULL);
    struct tm date;
    if (gmtime_r(&now, &date)) strftime(sheet->date, sizeof sheet->date, "%Y-%m-%dT%H:%M:%SZ", &date);
    return DEBERTA_OK;
}

/* Bounds above which measurements were seen to change by more than a few per cent. */
#define NOISY_CLOCK      0.03
#define NOISY_LOAD_SHARE 0.25
#define STEADY_SHARE     0.9

/* Notes an unsteady machine. The system has no count of a guest on the other hyper-thread of a core, so the
 * measurements are checked instead. */
static void note_unsteady(machine_sheet *sheet)
{
    const machine_roof *worst = NULL;
    for (size_t i = 0; i < sheet->roofs.count; i++) {
        const machine_roof *roof = &sheet->roofs.roof[i];
        if (roof->typical_share > 0 && (!worst || roof->typical_share < worst->typical_share)) worst = roof;
    }
    if (worst && worst->typical_share < STEADY_SHARE)
        machine_note(sheet, "half of the time %zu thread%s did at most %.0f %% of the best rate: the cores are shared",
                     worst->threads, worst->threads == 1 ? "" : "s", 100 * worst->typical_share);
}

void machine_finish_sheet(machine_sheet *sheet, const machine_counters *before)
{
    machine_counters after = machine_read_counters();
    sheet->activity = machine_activity_between(before, &after);
    sheet->clock_ghz_after = timer_clock_ghz();
    sheet->clock_wide_ghz_after = machine_wide_clock_ghz();
    if (sheet->activity.others > NOISY_CORES)
        machine_note(sheet, "other processes used %.2f cores while measuring", sheet->activity.others);
    if (sheet->activity.stolen > NOISY_CORES)
        machine_note(sheet, "the hypervisor took %.2f cores away while measuring", sheet->activity.stolen);
    note_unsteady(sheet);
    if (sheet->load > NOISY_LOAD_SHARE * (double)sheet->topology.usable_cores)
        machine_note(sheet, "the load was %.2f before the start", sheet->load);
    double drift = sheet->clock_ghz > 0 ? sheet->clock_ghz_after / sheet->clock_ghz - 1 : 0;
    if (drift > NOISY_CLOCK || drift < -NOISY_CLOCK)
        machine_note(sheet, "the clock went from %.2f to %.2f GHz", sheet->clock_ghz, sheet->clock_ghz_after);
    if (strcmp(sheet->governor, "unknown") != 0 && strcmp(sheet->governor, "performance") != 0)
        machine_note(sheet, "the frequency governor is '%s', not 'performance'", sheet->governor);
}
