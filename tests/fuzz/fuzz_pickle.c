/* The pickle interpreter alone: a zip's checksum would keep most mutations of its pickle away from it.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include "core/io/pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pickle *p;
    deberta_error error;
    if (pickle_read(&p, data, size, "file", &error) != DEBERTA_OK) return 0;
    pickle_value root = pickle_root(p), item;
    size_t cursor = 0;
    if (root.kind == PICKLE_DICT || root.kind == PICKLE_LIST || root.kind == PICKLE_TUPLE)
        while (pickle_next(p, root, &cursor, &item)) {
            if (item.kind != PICKLE_TENSOR) continue;
            const pickle_tensor *view = pickle_tensor_of(p, item);
            const pickle_storage *storage = pickle_storage_at(p, view->storage);
            if (view->offset > storage->elements || view->elements > storage->elements) __builtin_trap();
        }
    if (pickle_length_bytes(p) > size) __builtin_trap();
    pickle_free(&p);
    return 0;
}
