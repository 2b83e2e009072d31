/* Names of precisions and of their packed files. SPDX-License-Identifier: MIT */
#include "include/deberta.h"

#include <stddef.h>

static const struct {
    const char *name, *packed_file;
} precisions[DEBERTA_PRECISION_COUNT] = {
    [DEBERTA_PRECISION_FLOAT32] = {"float32", DEBERTA_PACKED_FILE_NAME},
    [DEBERTA_PRECISION_INT16] = {"int16", "deberta.int16.packed"},
    [DEBERTA_PRECISION_INT8] = {"int8", "deberta.int8.packed"},
};

const char *deberta_precision_name(deberta_precision precision)
{
    return (unsigned)precision < DEBERTA_PRECISION_COUNT ? precisions[precision].name : "unknown";
}

const char *deberta_packed_file_name(deberta_precision precision)
{
    return (unsigned)precision < DEBERTA_PRECISION_COUNT ? precisions[precision].packed_file : NULL;
}
