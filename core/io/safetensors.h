/* Reads the table of contents of a safetensors file (SPEC 10.1): where the values of each tensor lie.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/tensor.h"

/* Lists the tensors, in the order of their offsets. All listed tensors lie inside the file, do not overlap, and
 * together cover the data area. offset_bytes count from the beginning of the file, which is storage 0. `where` begins
 * messages. On failure *list is empty; else the caller frees it. */
deberta_status safetensors_list(tensor_list *list, const uint8_t *bytes, size_t size_bytes, const char *where,
                                deberta_error *err);
