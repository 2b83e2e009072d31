/* Fills the table of kernels (core/kernels.h) for one tier. SPDX-License-Identifier: MIT */
#ifndef CORE_DISPATCH_H
#define CORE_DISPATCH_H

#include "core/base/status.h"
#include "core/kernels.h"

/* Fills the table with scalar kernels first; then every tier up to `isa` overrides those that it implements, so no slot
 * stays NULL. DEBERTA_ISA_AUTO is the best tier of this machine. Fails with DEBERTA_E_ARGUMENT, with the reason, for a
 * tier that cannot run here. */
deberta_status kernels_select(kernels *table, deberta_isa isa, deberta_error *err);
/* Puts the integer products on AMX into the table of `isa`, where processor and operating system have it.
 * kernels_select does not do this, because a process must request tiles, and its signal stacks then need more room.
 * Sessions of low precision request them. */
void kernels_use_tiles(kernels *table, deberta_isa isa);
/* Calls kernels_select and then the function above: fills the table that a session of low precision has, for code that
 * measures or compares kernels. */
deberta_status kernels_select_with_tiles(kernels *table, deberta_isa isa, deberta_error *err);

#endif
