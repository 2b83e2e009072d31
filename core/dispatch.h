/* Filling a kernel table for one tier. SPDX-License-Identifier: MIT */
#ifndef CORE_DISPATCH_H
#define CORE_DISPATCH_H

#include "core/base/status.h"
#include "core/kernels.h"

/* Scalar kernels first, then every tier up to `isa` overrides what it implements: no slot stays NULL. DEBERTA_ISA_AUTO
 * is the best tier of this machine. DEBERTA_E_ARGUMENT, with the reason, for a tier that cannot run here. */
deberta_status kernels_select(kernels *table, deberta_isa isa, deberta_error *err);
/* Of a table for `isa`: integer products on AMX, where processor and operating system have it. Apart from the
 * selection, because the process must ask for tiles, which changes what it needs of its signal stacks: sessions of low
 * precision do. */
void kernels_use_tiles(kernels *table, deberta_isa isa);

#endif
