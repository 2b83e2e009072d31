/* Tables of contents of packed files; every name that the walk over a model asks for is looked up.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include "core/load/packed_tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"embeddings.word_embeddings.weight", "encoder.layer.0.output.dense.bias", "a"};
    const packed_tensors table = {.bytes = data, .size_bytes = size, .place = "file"};
    const weight_source source = weight_source_of_packed(&table);
    weight_tensor found;
    size_t elements;
    if (packed_tensors_problem(&table)) return 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (source.find(source.context, names[k], &found) && !tensor_count_elements(&elements, found.shape, found.rank))
            __builtin_trap();
    return 0;
}
