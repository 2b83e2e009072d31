/* Reads files of torch.save: the zip of today and the legacy stream from before torch 1.6 (SPEC 10.2 to 10.5).
 *
 * The state dict is found at the root or one level below it; its members that are no tensors are ignored. Nothing is
 * executed.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/tensor.h"

typedef struct torch_file torch_file;

/* Opens a file. `bytes` must stay as long as the result; `where` (which is copied) begins messages. All listed tensors
 * lie inside their storages, and the storages inside the file. */
deberta_status torch_file_open(torch_file **file, const uint8_t *bytes, size_t size_bytes, const char *where,
                               deberta_error *err);
void torch_file_close(torch_file **file);

const tensor_list *torch_file_tensors(const torch_file *file);

/* Returns the bytes of a storage, loaded onto the heap first if they are a member of a zip. They stay valid until the
 * matching release, and cached after it until torch_file_forget. All three functions are thread-safe. */
deberta_status torch_file_acquire(torch_file *file, size_t storage, const uint8_t **bytes, deberta_error *err);
void torch_file_release(torch_file *file, size_t storage);
void torch_file_forget(torch_file *file, size_t storage);
