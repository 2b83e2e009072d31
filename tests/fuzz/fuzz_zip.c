/* Files of torch.save, zip or legacy, as a whole; what they list is read.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include "core/io/torch_file.h"

enum { WINDOW = 64 };

static void read_end(torch_file *file, const stored_tensor *stored)
{
    const uint8_t *storage;
    float values[WINDOW];
    int64_t integers[WINDOW];
    deberta_error error;
    size_t count = stored->tensor.elements < WINDOW ? stored->tensor.elements : WINDOW;
    size_t first = stored->tensor.elements - count;
    if (torch_file_acquire(file, stored->storage, &storage, &error) != DEBERTA_OK) return;
    if (dtype_is_floating(stored->tensor.dtype))
        tensor_convert_f32(values, stored, storage, first, count);
    else
        tensor_convert_i64(integers, stored, storage, first, count);
    torch_file_release(file, stored->storage);
    torch_file_forget(file, stored->storage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    torch_file *file;
    deberta_error error;
    if (torch_file_open(&file, data, size, "file", &error) != DEBERTA_OK) return 0;
    const tensor_list *list = torch_file_tensors(file);
    for (size_t i = 0; i < list->count; i++) read_end(file, &list->items[i]);
    torch_file_close(&file);
    return 0;
}
