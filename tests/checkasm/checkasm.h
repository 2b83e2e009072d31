/* checkasm: every kernel of every tier against its contract in core/kernels.h.
 *
 * What a kernel is asked, and what its answer should be, is in check/kernels/. A *check* (check_*.c) walks through
 * sizes and options of one slot, and plants special values. For each the run lays the problem out in buffers, calls the
 * kernel under test and the scalar one on copies of the same bytes, compares every byte of every buffer (outputs,
 * inputs, gaps between rows, canaries), and the results with float64. Every case runs twice, with its buffers against
 * an unreadable page on the right and on the left.
 *
 * The file of a check also holds *faults*: kernels that are wrong in one way each, which the checks must catch. A slot
 * without checks or without faults does not link.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "check/kernels/kernel_slots.h"

#include <stdio.h>

/* ------------------------------------------------------------------------------------------------------------ tiers */

/* The tiers and parts of core/base/tiers.h, and the stand-ins of parts that machines of tests lack. */
typedef enum tier_id {
#define X(NAME, name, ...) TIER_##NAME,
    TIER_LIST(X) PART_LIST(X)
#undef X
        TIER_AVXVNNI_STAND_IN,
    TIER_AVX512AMX_STAND_IN,
    TIER_COUNT
} tier_id;

const char *tier_name(tier_id tier);
/* NULL if it runs here, else why not. */
const char *tier_missing(tier_id tier);
/* Fills the table as the library does: scalar first, then every tier up to this one. */
void tier_init(tier_id tier, kernels *table);

/* ------------------------------------------------------------------------------------------------------------ a run */

typedef struct test_options {
    uint64_t seed;
    const char *kernel; /* check or slot, or NULL: all */
    int tier;           /* or -1: all */
    size_t only_case;   /* or SIZE_MAX: all */
    bool quick, no_guard, list, bench, self_test;
    unsigned require;   /* bits of tiers that must run */
    size_t part, parts; /* the part-th of so many, from 1: which slots are checked */
} test_options;

enum { COPY_INITIAL, COPY_EXPECTED, COPY_TESTED, COPY_COUNT };

/* One array in three copies: as the problem filled it, after the scalar kernel, after the kernel under test. Words that
 * the problem does not fill are POISON. */
typedef struct test_buffer {
    const char *name;
    size_t size; /* in floats */
    array_kind kind;
    float *copy[COPY_COUNT];
    size_t canary_before, canary_behind;
} test_buffer;

typedef struct error_gauge {
    bool used;
    double worst, worst_of_limit; /* in units; as a part of what was allowed */
} error_gauge;

typedef struct test_run test_run;
/* Calls the slot of `table` with the arguments in `task`. */
typedef void (*kernel_call)(const kernels *table, const void *task);
typedef void (*case_body)(test_run *run, const void *parameters);

struct test_run {
    const test_options *options;
    kernel_slot slot;
    const char *check; /* "slot/what" */
    const char *isa;
    const kernels *expected, *tested; /* expected: a scalar tier */
    bool quiet;                       /* the self-test expects failures: keep the first, print none */

    size_t case_index; /* counts all cases, run or not, so that numbers do not depend on --quick */
    size_t cases, failures;
    char case_text[256], first_failure[256];
    uint64_t random_state;

    error_gauge gauges[UNIT_COUNT];
    double near_zero, sleef_near_zero; /* worst ULP of an activation on [-5, 5], ours and SLEEF's; 0 if there is none */

    kernel_problem *problem; /* of the case, where it is one */
    test_buffer buffers[PROBLEM_ARRAYS];
    size_t buffer_count;
    bool right_edge;
    struct buffer_mapping *mappings; /* [PROBLEM_ARRAYS] */
};

/* Values that a problem's own filling does not bring; `what` is what the walk says of them. after: a last look. */
typedef struct planted_values {
    const char *name;
    void (*plant)(kernel_problem *p, const void *what);
    void (*after)(test_run *run, const kernel_problem *p);
} planted_values;

/* One case of the run's slot. weight: how many others of its kind stand for it in --quick, 1 for a case that must
 * always run. Cases are numbered in the order of these calls. */
void run_problem(test_run *run, size_t weight, const kernel_problem *problem);
/* The same with planted values; NULL: none. */
void run_planted(test_run *run, size_t weight, const kernel_problem *problem, const planted_values *plant,
                 const void *what);
/* By its name; NULL if the problem has none. */
problem_array *run_array(kernel_problem *p, const char *name);

/* A case that is no problem of one call: its body takes buffers, fills them, calls, and compares. */
void run_case(test_run *run, size_t weight, case_body body, const void *parameters, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The next array of the case; size may be 0. */
test_buffer *run_buffer(test_run *run, const char *name, size_t size, array_kind kind);
/* After the buffers are filled: calls both kernels and compares all buffers. task_for(context, copy) must lay the
 * arguments out for one copy. False if the case has failed already and the result is not worth looking at. */
typedef const void *(*task_maker)(void *context, int copy);
bool run_kernels(test_run *run, kernel_call call, task_maker task_for, void *context);

/* Notes the error |got - want| / size, in units of that size, and fails if it is not <= limit. where: e.g. "c", with
 * the index of the element. */
bool run_error(test_run *run, const char *where, size_t index, double got, double want, error_unit unit, double size,
               double limit);
void run_fail(test_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

void run_setup(test_run *run, const test_options *options);
void run_release(test_run *run);

/* ----------------------------------------------------------------------------------------------------------- checks */

typedef struct kernel_check {
    const char *name; /* "slot/what" */
    void (*walk)(test_run *run);
} kernel_check;

#define X(name, parameters) extern const kernel_check checks_of_##name[];
KERNEL_LIST(X)
#undef X
#define CHECKS_OF(slot_, ...) const kernel_check checks_of_##slot_[] = {__VA_ARGS__, {.walk = NULL}};

/* Those of a slot, up to one without a walk. */
const kernel_check *checks_of(kernel_slot slot);
/* Runs one check on `run->tested`; the run's counters tell how it went. */
void run_check(test_run *run, kernel_slot slot, const kernel_check *check);

/* ----------------------------------------------------------------------------------------------------------- faults */

/* What must catch it: the checks as they are, or also float64 and guard pages alone, when the kernel is compared with
 * itself. That is all there is for the scalar tier. A fault in the last bits is only seen by comparison. */
typedef enum fault_size { FAULT_BITS, FAULT_GROSS } fault_size;

/* with: a table that has the fault in the place of its slot alone. */
typedef struct broken_kernel {
    fault_size size;
    const char *name;
    size_t place;
    kernels with;
} broken_kernel;

#define X(name, parameters) extern const broken_kernel faults_of_##name[];
KERNEL_LIST(X)
#undef X
#define FAULTS_OF(slot_, ...) const broken_kernel faults_of_##slot_[] = {__VA_ARGS__, {.name = NULL}};
#define GROSS_FAULT(slot_, function)                                                                                   \
    {                                                                                                                  \
        FAULT_GROSS, #function, offsetof(kernels, slot_), { .slot_ = function }                                        \
    }
#define BITS_FAULT(slot_, function)                                                                                    \
    {                                                                                                                  \
        FAULT_BITS, #function, offsetof(kernels, slot_), { .slot_ = function }                                         \
    }
/* A kernel that does something sound, but another task. */
#define CHANGED_TASK(slot_, function, task_type, change)                                                               \
    static void function(const task_type *t)                                                                           \
    {                                                                                                                  \
        task_type changed = *t;                                                                                        \
        change;                                                                                                        \
        sound.slot_(&changed);                                                                                         \
    }

/* The scalar kernels, which most faults call before they spoil something. */
extern kernels sound;
/* Reads without effect must not be optimised away. */
void read_float(const float *x);

/* ----------------------------------------------------------------------------------------- the parts of the program */

/* Fastest first: which scalar tier the others are compared with. */
tier_id scalar_tier(void);
/* Whether every deliberately broken kernel is caught; prints a line each and the last line. */
int self_test(const test_options *options);
int bench(const test_options *options);
