/* Deliberately broken kernels: what they are, and those of training and of low precision, which have files of their
 * own.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECKASM_BROKEN_H
#define CHECKASM_BROKEN_H

#include "tests/checkasm/checkasm.h"

/* The scalar kernels, which most faults call before they spoil something. */
extern kernels sound;

/* What must catch it: the checks as they are, or also float64 and guard pages alone, when the kernel is compared with
 * itself. That is all there is for the scalar tier. A fault in the last bits is only seen by comparison. */
typedef enum fault_size { FAULT_BITS, FAULT_GROSS } fault_size;

typedef struct broken_kernel {
    slot_id slot;
    fault_size size;
    const char *name;
    void (*plant)(kernels *table);
} broken_kernel;

#define PLANT_FAULT(slot_, size, function)                                                                             \
    static void plant_##function(kernels *table) { table->slot_ = function; }
#define FAULT_ENTRY(slot_, size, function) {SLOT_##slot_, FAULT_##size, #function, plant_##function},

extern const broken_kernel training_faults[];
extern const size_t training_fault_count;
extern const broken_kernel integer_faults[];
extern const size_t integer_fault_count;

#endif
