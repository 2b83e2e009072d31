/* Writes tensors into safetensors files.
 *
 * All tensors are declared first, so that the header can be written first and every later piece has its offset; pieces
 * come in any order and may be as small as a row, so nothing large is held in memory. Values that are never written are
 * zero. The file appears under its name only when it is finished. The same calls give the same bytes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/tensor_header.h"

typedef struct export_file export_file;

deberta_status export_safetensors(export_file **file, const char *path, const export_tensor *tensors, size_t count,
                                  const export_note *notes, size_t note_count, deberta_error *err);

/* Writes elements [first, first + count) of the declared tensor with this index; values have its dtype. */
deberta_status export_write(export_file *file, size_t tensor, size_t first, const void *values, size_t count,
                            deberta_error *err);
/* Either function ends the writing and frees *file. A failed finish leaves no file, like discard. */
deberta_status export_finish(export_file **file, deberta_error *err);
void export_discard(export_file **file); /* Accepts NULL. */

/* Returns the temporary name until the file is finished, for a program that must stop. */
const char *export_temporary(const export_file *file);
