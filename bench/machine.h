/* Describes the machine under a measurement: its environment sheet, with its limits of speed (machine_roofs.h), and
 * whether it was quiet.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/machine_roofs.h"

/* --------------------------------------------------------------------------------------------------------- activity */

/* Cores that others may use before it is worth a sentence. */
#define NOISY_CORES 0.05

/* Use of the machine by others between two moments, in cores: 0.5 is half of one core. */
typedef struct machine_activity {
    double others; /* cores used by other processes */
    double stolen; /* cores taken by the hypervisor */
} machine_activity;

typedef struct machine_counters {
    double wall, busy, stolen, own; /* seconds */
} machine_counters;

machine_counters machine_read_counters(void);
machine_activity machine_activity_between(const machine_counters *before, const machine_counters *after);

/* ------------------------------------------------------------------------------------------------ environment sheet */

enum { MACHINE_MAX_NOTES = 16 };

typedef struct machine_sheet {
    char version[32], commit[64], date[32]; /* date: of the sheet, UTC */
    bool dirty;                             /* true: built from uncommitted files */
    char compiler[96], flags[512];
    char cpu[96], architecture[32], system[128];
    bool virtual_machine;
    char hypervisor[32], microcode[32]; /* empty: unknown */
    char huge_pages[16];                /* default policy for huge pages: always, madvise, never */
    size_t huge_page_bytes;  /* memory in huge pages of a process with the model and a session; 0: none, or no
                              * model */
    char tiers[64], isa[16]; /* tiers: names separated by blanks */
    topology_info topology;
    size_t memory_bytes;
    char governor[32];
    double load;                                 /* one-minute load average at the time of the sheet */
    double clock_ghz, clock_ghz_after;           /* measured at the beginning and at the end; 0: unknown */
    double clock_wide_ghz, clock_wide_ghz_after; /* the same clock right after products of the widest registers */
    machine_activity activity;                   /* activity of others during the measurement */
    machine_roofs roofs;
    size_t note_count;
    char notes[MACHINE_MAX_NOTES][192]; /* reasons why the machine was not quiet; none if it was */
} machine_sheet;

/* Returns the anonymous memory of this process in huge pages; 0 if the system does not report it. */
size_t machine_huge_page_bytes(void);

/* Fills the sheet without roofs and without members that are only known at the end. */
deberta_status machine_read_sheet(machine_sheet *sheet, deberta_error *err);
/* Measures clock and activity at the end, and adds the notes that follow from them. */
void machine_finish_sheet(machine_sheet *sheet, const machine_counters *before);
/* Adds a reason to doubt the numbers, the same text only once. */
void machine_note(machine_sheet *sheet, const char *format, ...) __attribute__((format(printf, 2, 3)));
