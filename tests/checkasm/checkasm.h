/* checkasm: every kernel of every tier against its contract in core/kernels.h.
 *
 * A *check* (check_*.c) walks through cases of one slot. The body of a case takes its buffers from the run, fills them,
 * calls the kernel under test and the scalar one on copies of the same bytes, and compares: the run compares every byte
 * of every buffer (outputs, inputs, gaps between rows, canaries), the body compares the result with the float64
 * formula. Every body runs twice, with its buffers against an unreadable page on the right and on the left.
 *
 * Errors are measured in a unit that the check names, mostly eps S: eps = 2^-24, half an ULP of 1, and S the sum of the
 * absolute values of the terms before cancellation.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_CHECKASM_CHECKASM_H
#define TESTS_CHECKASM_CHECKASM_H

#include "core/base/random.h"
#include "core/kernels.h"

#include <stdio.h>

#define EPS 0x1p-24

/* ------------------------------------------------------------------------------------------------------------ tiers */

typedef enum tier_id {
    TIER_SCALAR,
    TIER_SCALAR_FMA,
    TIER_AVX2,
    TIER_AVXVNNI,
    TIER_AVXVNNI_STAND_IN,
    TIER_AVX512,
    TIER_AVX512VNNI,
    TIER_AVX512AMX,
    TIER_AVX512AMX_STAND_IN,
    TIER_NEON,
    TIER_NEONDOT,
    TIER_NEONI8MM,
    TIER_COUNT
} tier_id;

const char *tier_name(tier_id tier);
/* NULL if it runs here, else why not. */
const char *tier_missing(tier_id tier);
/* Fills the table as the library does: scalar first, then every tier up to this one. */
void tier_init(tier_id tier, kernels *table);

typedef enum slot_id {
#define X(name, parameters) SLOT_##name,
    KERNEL_LIST(X)
#undef X
        SLOT_COUNT
} slot_id;

const char *slot_name(slot_id slot);
/* Whether both tables hold the same function in this slot. */
bool slot_same(slot_id slot, const kernels *a, const kernels *b);

/* ------------------------------------------------------------------------------------------------------------ a run */

typedef struct test_options {
    uint64_t seed;
    const char *kernel; /* check or slot, or NULL: all */
    int tier;           /* or -1: all */
    size_t only_case;   /* or SIZE_MAX: all */
    bool quick, no_guard, list, bench, self_test;
    unsigned require; /* bits of tiers that must run */
} test_options;

enum { COPY_INITIAL, COPY_EXPECTED, COPY_TESTED, COPY_COUNT };

typedef enum buffer_kind {
    BUFFER_INPUT,           /* mapped read-only during the call */
    BUFFER_OUTPUT,          /* also what is read and written */
    BUFFER_OUTPUT_ANY_ZERO, /* the sign of a zero may differ */
    BUFFER_OUTPUT_ANY       /* the body compares it; only what lies around it is compared with the scalar kernel's */
} buffer_kind;

/* One array in three copies: as the body filled it, after the scalar kernel, after the kernel under test. Words that
 * the body does not fill are POISON, a signalling NaN. */
typedef struct test_buffer {
    const char *name;
    size_t size; /* in floats */
    buffer_kind kind;
    float *copy[COPY_COUNT];
    size_t canary_before, canary_behind;
} test_buffer;

enum { MAX_BUFFERS = 12 };
#define POISON 0x7fa5a5a5u

/* What errors are measured in: ULP of the exact result, or eps S. */
typedef enum error_unit { UNIT_ULP, UNIT_EPS_S, UNIT_COUNT } error_unit;

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
    const char *check; /* "slot/what" */
    const char *isa;
    const kernels *expected, *tested; /* expected: a scalar tier */
    bool quiet;                       /* the self-test expects failures: keep the first, print none */

    size_t case_index; /* counts all cases, run or not, so that numbers do not depend on --quick */
    size_t cases, failures;
    char case_text[200], first_failure[256];
    uint64_t random_state;

    error_gauge gauges[UNIT_COUNT];
    double near_zero, sleef_near_zero; /* worst ULP of an activation on [-5, 5], ours and SLEEF's; 0 if there is none */

    test_buffer buffers[MAX_BUFFERS];
    size_t buffer_count;
    bool right_edge;
    struct buffer_mapping *mappings; /* [MAX_BUFFERS] */
};

typedef struct kernel_check {
    slot_id slot;
    const char *name; /* "slot/what" */
    void (*walk)(test_run *run);
} kernel_check;

/* In the order of the report. */
extern const kernel_check checks[];
extern const size_t check_count;

/* One case: runs the body at both edges. The text, given as for printf, describes it in failures. Cases are numbered in
 * the order of these calls. weight: how many others of its kind stand for it in --quick, 1 for a case that must always
 * run. */
void run_case(test_run *run, size_t weight, case_body body, const void *parameters, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The next array of the case; size may be 0. */
test_buffer *run_buffer(test_run *run, const char *name, size_t size, buffer_kind kind);
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

/* ------------------------------------------------------------------------------------------------ numbers for cases */

uint64_t random_bits(test_run *run);
size_t random_index(test_run *run, size_t limit); /* 0 if limit is 0 */
bool random_flag(test_run *run);
float random_uniform(test_run *run, float low, float high);
float random_bell(test_run *run); /* roughly normal, sigma 1 */

/* Fills count floats from `first`, every stride-th row: a matrix [rows][width] with leading dimension ld. */
typedef enum value_kind { DIST_BELL, DIST_WIDE, DIST_EXACT } value_kind;
void fill_matrix(test_run *run, float *values, size_t rows, size_t width, size_t ld, value_kind distribution,
                 float scale);
/* Floats from the first to the last element of such a matrix; 0 if it has none. */
size_t matrix_span(size_t rows, size_t width, size_t ld);
/* 0, 1 or 7 floats more than the width. */
size_t random_ld(test_run *run, size_t width);

uint32_t float_bits(float x);
float float_from_bits(uint32_t bits);
/* Distance of neighbouring floats at the size of x, not below the smallest normal number's. */
double ulp_of(double x);

/* The formulas in float64, from their definitions. */
double reference_activation(double x, kernel_activation function);
const char *activation_name(kernel_activation function);

/* ----------------------------------------------------------------------------------------- the parts of the program */

void check_gemm_products(test_run *run);
void check_gemm_epilogues(test_run *run);
void check_gemm_special(test_run *run);
void check_pack_panels(test_run *run);
void check_position_bias_unit_steps(test_run *run);
void check_position_bias_irregular(test_run *run);
void check_softmax_sizes(test_run *run);
void check_softmax_chunks(test_run *run);
void check_softmax_special(test_run *run);
void check_layernorm_sizes(test_run *run);
void check_layernorm_hard_rows(test_run *run);
void check_activate_tails(test_run *run);
void check_activate_gelu(test_run *run);
void check_activate_gelu_tanh(test_run *run);
void check_activate_gelu_quick(test_run *run);
void check_activate_relu(test_run *run);
void check_activate_silu(test_run *run);
void check_activate_tanh(test_run *run);
void check_activate_sigmoid(test_run *run);
void check_activate_exp(test_run *run);
void check_gemm_tn_chains(test_run *run);
void check_gemm_tn_parts(test_run *run);
void check_sum_rows(test_run *run);
void check_dot_rows(test_run *run);
void check_layernorm_backward(test_run *run);
void check_activate_backward(test_run *run);
void check_softmax_backward(test_run *run);
void check_fold_runs(test_run *run);
void check_adam(test_run *run);
void check_dropout(test_run *run);
void check_quantize_u8(test_run *run);
void check_quantize_u8x2(test_run *run);
void check_quantize_u15(test_run *run);
void check_quantize_panels_s8(test_run *run);
void check_gemm_u8(test_run *run);
void check_gemm_u8x2(test_run *run);
void check_gemm_u15(test_run *run);

/* Fastest first: which scalar tier the others are compared with. */
tier_id scalar_tier(void);
/* Runs one check on `run->tested`; the run's counters tell how it went. */
void run_check(test_run *run, const kernel_check *check);

/* Whether every deliberately broken kernel is caught; prints a line each and the last line. */
int self_test(const test_options *options);
int bench(const test_options *options);

#endif
