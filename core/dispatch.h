/* Fills a kernel table for one tier. SPDX-License-Identifier: MIT */
#ifndef CORE_DISPATCH_H
#define CORE_DISPATCH_H

#include "core/base/status.h"
#include "core/kernels.h"

/* Scalar kernels first, then every tier up to `isa` overrides what it implements: no slot stays NULL. DEBERTA_ISA_AUTO
 * is the best tier of this machine. DEBERTA_E_ARGUMENT, with the reason, for a tier that cannot run here. */
deberta_status kernels_select(kernels *table, deberta_isa isa, deberta_error *err);
/* Gives the table of `isa` integer products on AMX, where processor and operating system have it. This is no part of
 * the selection, because a process must ask for tiles, and its signal stacks then need more room. Sessions of low
 * precision ask. */
void kernels_use_tiles(kernels *table, deberta_isa isa);
/* Both: the table of a session of low precision, for those who measure and compare kernels. */
deberta_status kernels_select_with_tiles(kernels *table, deberta_isa isa, deberta_error *err);

#endif
