/* Headers of safetensors files; what they list is read.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include "core/io/safetensors.h"

enum { WINDOW = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tensor_list list;
    deberta_error error;
    if (safetensors_list(&list, data, size, "file", &error) != DEBERTA_OK) return 0;
    for (size_t i = 0; i < list.count; i++) {
        float values[WINDOW];
        int64_t integers[WINDOW];
        const stored_tensor *stored = &list.items[i];
        /* The last elements: those at the end of the file. */
        size_t count = stored->tensor.elements < WINDOW ? stored->tensor.elements : WINDOW;
        size_t first = stored->tensor.elements - count;
        if (dtype_is_floating(stored->tensor.dtype))
            tensor_convert_f32(values, stored, data, first, count);
        else if (dtype_bytes(stored->tensor.dtype) > 0)
            tensor_convert_i64(integers, stored, data, first, count);
    }
    tensor_list_free(&list);
    return 0;
}
