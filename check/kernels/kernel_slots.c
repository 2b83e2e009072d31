/* Holds the table of descriptions, made from the list of kernels, and answers questions about it.
 *
 * SPDX-License-Identifier: MIT */
#include "check/kernels/kernel_slots.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ slots */

static const kernel_description *const descriptions[KERNEL_SLOTS] = {
#define X(name, parameters) [SLOT_##name] = &describe_##name,
    KERNEL_LIST(X)
#undef X
};

const kernel_description *problem_description(kernel_slot slot) { return descriptions[slot]; }

const char *slot_name(kernel_slot slot) { return descriptions[slot]->name; }

const char *slot_isa(kernel_slot slot, const kernels *table)
{
    switch (slot) {
#define X(name, parameters)                                                                                            \
    case SLOT_##name: return table->name##_isa;
        KERNEL_LIST(X)
#undef X
    case KERNEL_SLOTS: break;
    }
    return NULL;
}

bool slot_same(kernel_slot slot, const kernels *a, const kernels *b)
{
    switch (slot) {
#define X(name, parameters)                                                                                            \
    case SLOT_##name: return a->name == b->name;
        KERNEL_LIST(X)
#undef X
    case KERNEL_SLOTS: break;
    }
    return false;
}

/* --------------------------------------------------------------------------------------------------------- problems */

void problem_lay_out(kernel_problem *p)
{
    memset(p->arrays, 0, sizeof p->arrays);
    descriptions[p->slot]->lay_out(p);
}

void problem_fill(kernel_problem *p)
{
    for (size_t k = 0; k < PROBLEM_ARRAYS; k++)
        if (p->arrays[k].scale != 0) draw_array(p, k);
    if (descriptions[p->slot]->fill) descriptions[p->slot]->fill(p);
}

void problem_call(const kernels *table, const kernel_problem *p) { descriptions[p->slot]->call(table, p); }

void problem_exact(const kernel_problem *p, const exact_judge *judge) { descriptions[p->slot]->exact(p, judge); }

/* ------------------------------------------------------------------------------------------------------------- words */

static size_t kernel_slots_add_text(char *text, size_t length, size_t capacity, const char *format, size_t number)
{
    if (length >= capacity) return length;
    const int more = snprintf(text + length, capacity - length, format, number);
    return more < 0 ? length : length + (size_t)more;
}

void problem_text(const kernel_problem *p, char *text, size_t capacity_bytes)
{
#define WORDS(name, words) words,
    static const char *const options[] = {PROBLEM_OPTIONS(WORDS)}, *const values[] = {PROBLEM_VALUES(WORDS)},
                             *const maps[] = {PROBLEM_MAPS(WORDS)};
#undef WORDS
    const kernel_description *d = descriptions[p->slot];
    size_t length = 0;
    if (!capacity_bytes) return;
    if (d->drawn.rows) length = kernel_slots_add_text(text, length, capacity_bytes, "rows %zu, ", p->rows);
    if (d->drawn.depth) length = kernel_slots_add_text(text, length, capacity_bytes, "depth %zu, ", p->depth);
    if (d->drawn.columns) length = kernel_slots_add_text(text, length, capacity_bytes, "columns %zu, ", p->columns);
    if (d->has_parts) length = kernel_slots_add_text(text, length, capacity_bytes, "parts %zu, ", p->parts);
    if (d->has_function)
        length = kernel_slots_add_text(text, length, capacity_bytes, "function %zu, ", (size_t)p->function);
    if (d->has_map) length = kernel_slots_add_text(text, length, capacity_bytes, maps[p->map], 0);
    length = kernel_slots_add_text(text, length, capacity_bytes, d->has_map ? ", " : "", 0);
    length = kernel_slots_add_text(text, length, capacity_bytes, values[p->values], 0);
    for (size_t k = 0; k < PROBLEM_OPTION_COUNT; k++) {
        if (!(p->options >> k & 1)) continue;
        length = kernel_slots_add_text(text, length, capacity_bytes, ", ", 0);
        length = kernel_slots_add_text(text, length, capacity_bytes, options[k], 0);
    }
}

problem_work problem_work_of(const kernel_problem *p)
{
    const kernel_description *d = descriptions[p->slot];
    const double rows = (double)p->rows, depth = (double)p->depth, columns = (double)p->columns;
    const double residual = has_option(p, WITH_RESIDUAL | RESIDUAL_IN_C) ? 1 : 0;
    const double words =
        (d->moved[0] + residual) * rows * columns + d->moved[1] * rows * depth + d->moved[2] * depth * columns;
    return (problem_work){.flop = d->multiplies ? 2 * rows * depth * columns : 0,
                          .bytes = words * sizeof(float),
                          .elements = d->elements == ROWS_DEPTH      ? rows * depth
                                      : d->elements == DEPTH_COLUMNS ? depth * columns
                                                                     : rows * columns};
}
