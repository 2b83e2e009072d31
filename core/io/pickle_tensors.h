/* The opcodes of a pickle that make storages and tensors, and the only names that mean anything here. Only for
 * pickle_read.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/pickle_machine.h"

/* The one place where a name from the file could become code. It becomes a number in a table of thirteen, or an error.
 */
deberta_status pickle_push_global(pickle *p, const char *module, size_t module_bytes, const char *name,
                                  size_t name_bytes);
/* Protocol 4 takes the two names from the stack. */
deberta_status pickle_push_stack_global(pickle *p);
/* ("storage", type, key, location, elements [, None or (view key, offset, elements)]) */
deberta_status pickle_push_storage(pickle *p);
/* REDUCE. The three functions that exist do not run anything: their results are built here. */
deberta_status pickle_call(pickle *p);
/* An OrderedDict's attributes (torch puts `_metadata` there): not needed. */
deberta_status pickle_discard_attributes(pickle *p);
