/* In the place of mapping_guard.c: what is mapped is memory already, and no signal comes. SPDX-License-Identifier: MIT
 */
#include "core/io/mapping_guard.h"

#include "core/base/status.h"

size_t mapping_guard_add(const void *bytes, size_t size_bytes) { return (void)bytes, (void)size_bytes, 0; }
bool mapping_guard_broke(size_t number) { return (void)number, false; }
void mapping_guard_remove(size_t number) { (void)number; }

deberta_status deberta_guard_files(deberta_error *err)
{
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "WebAssembly has no signals, and its files do not change");
}
