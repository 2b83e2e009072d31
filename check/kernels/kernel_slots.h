/* Describes every kernel once, for all that test or time it: `deberta verify`, `deberta bench kernel`, and in the tests
 * checkasm and its benchmark.
 *
 * A problem is a slot of the kernel table with sizes and options. Its description (problem_*.c) says which arrays it
 * works on, what is in them, how the slot is called, what the results are in float64, and how much work a call is. A
 * problem goes through these steps:
 *
 *     kernel_problem p = {.slot = SLOT_softmax_f32, .rows = 3, .columns = 37, .random = seed};
 *     problem_lay_out(&p);        which arrays there are, how large, with which gaps between rows
 *     ... memory: p.arrays[k].initial and .at have place for p.arrays[k].words numbers of 32 bits each ...
 *     problem_fill(&p);           writes `initial`
 *     ... `at` becomes a copy of `initial`, or is the same memory ...
 *     problem_call(&table, &p);   works on `at`
 *     problem_exact(&p, &judge);  hands every result in `at` to the judge, with what it should be
 *
 * Whose memory that is makes the difference between the users: checkasm's arrays touch pages that cannot be read, those
 * of verify lie at another address in every tier, those of a benchmark are aligned.
 *
 * The table of descriptions is made from the list of kernels (core/kernels.h): a kernel without a description does not
 * link, and a description without one of its functions does not compile.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "check/kernels/kernel_problem.h"

const char *slot_name(kernel_slot slot);
/* Returns the name of the tier whose kernel the table holds in the slot: "avx2". */
const char *slot_isa(kernel_slot slot, const kernels *table);
/* Returns whether both tables hold the same function. */
bool slot_same(kernel_slot slot, const kernels *a, const kernels *b);

const kernel_description *problem_description(kernel_slot slot);

void problem_lay_out(kernel_problem *p);
void problem_fill(kernel_problem *p);
void problem_call(const kernels *table, const kernel_problem *p);
void problem_exact(const kernel_problem *p, const exact_judge *judge);

/* Describes a problem for messages: "rows 3, depth 7, columns 48, bias, gelu". */
void problem_text(const kernel_problem *p, char *text, size_t capacity_bytes);

/* The work of one call: its multiplications and additions (0: not counted), the least memory traffic, restored
 * arrays included, and the elements by which times are divided. The problem must be laid out. */
typedef struct problem_work {
    double flop, bytes, elements;
} problem_work;
problem_work problem_work_of(const kernel_problem *p);
