/* Reads the tensors of a model folder in any supported file format.
 *
 * Opening reads the tables of contents only: names, types, shapes, offsets. Nothing in a file is trusted; every listed
 * tensor has been checked to lie inside its file. Names are canonical: the prefix before
 * `embeddings.word_embeddings.weight` ("deberta.", "bert." or none) is stripped from encoder tensors, heads keep theirs
 * (SPEC 9).
 *
 * Opening looks for, in this order: model.safetensors, model.safetensors.index.json, pytorch_model.bin,
 * pytorch_model.bin.index.json.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"
#include "core/io/tensor.h"

typedef struct checkpoint checkpoint;

deberta_status checkpoint_open(checkpoint **checkpoint, const char *folder, deberta_error *err);
/* Is there a file in the folder that checkpoint_open would open, whatever it holds? */
bool checkpoint_has_weights(const char *folder);
/* Opens tensors that lie in the caller's memory, which stays the caller's: it must not change while it is read.
 * name: what messages call it. */
deberta_status checkpoint_open_memory(checkpoint **checkpoint, const char *name, const deberta_tensor *tensors,
                                      size_t count, deberta_error *err);
/* The files are those of a generator and a discriminator (Microsoft's replaced-token training). The tensors here are
 * the discriminator's. */
bool checkpoint_is_half(const checkpoint *checkpoint);
/* No files: nothing to digest, to stamp or to pack beside. */
bool checkpoint_is_memory(const checkpoint *checkpoint);
void checkpoint_close(checkpoint **checkpoint);
/* DEBERTA_E_FILE: a file became shorter or unreadable while it was mapped (mapped_file_intact). */
deberta_status checkpoint_intact(const checkpoint *checkpoint, deberta_error *err);

/* Where messages say that a tensor is missing: the weight file, or the folder if there are several. */
const char *checkpoint_place(const checkpoint *checkpoint);
/* The name that the file has for a tensor of an open checkpoint. */
const char *checkpoint_stored_name(const tensor *tensor);
/* Does its name in the file lack the prefix that the names of the base model have there: is it no part of that? */
bool checkpoint_is_outside(const checkpoint *checkpoint, const tensor *tensor);
/* The file that a tensor of an open checkpoint is in. */
const char *checkpoint_place_of(const tensor *tensor);
/* In ascending order of the names. */
size_t checkpoint_count(const checkpoint *checkpoint);
const tensor *checkpoint_at(const checkpoint *checkpoint, size_t index);
const tensor *checkpoint_find(const checkpoint *checkpoint, const char *name); /* NULL if absent */

/* Elements [first, first + count) of the tensor in row-major order of its shape (strides are honoured), as float32:
 * exact for F32, F16, BF16, rounded for F64. `tensor` is one that checkpoint_at or _find returned.
 * Thread-safe. DEBERTA_E_FORMAT for a dtype that holds no floating-point weights. */
deberta_status checkpoint_read_f32(const checkpoint *checkpoint, const tensor *tensor, size_t first, size_t count,
                                   float *values, deberta_error *err);
/* All values of a tensor where the mapped file has them, if they are float32 in order and aligned there; else NULL, and
 * reading converts. */
const float *checkpoint_view_f32(const checkpoint *checkpoint, const tensor *tensor);
/* Drops what reading of this tensor brought into memory: a member of a zip from the heap, pages of a mapped file.
 * Thread-safe; a storage that several tensors share is loaded again when another of them is read. */
void checkpoint_forget(const checkpoint *checkpoint, const tensor *tensor);
/* SHA-256 over config.json and the weight files, as 64 hex digits: the identity that figures and results state. The
 * same as `cat config.json <weight files in ascending order of their names> | sha256sum`. */
deberta_status checkpoint_digest(const checkpoint *checkpoint, char digest[65], deberta_error *err);
/* A cheaper identity, for every opening: SHA-256 over name, size and time of modification of each file as the file
 * system described it when it was opened, the index of a sharded checkpoint among them; over config.json; and over
 * samples of each weight file: 4 KiB at both ends, and 64 bytes at 15 places between. So weights that were trained on
 * are noticed under the old times, too; single values that were changed and whose time was set back are not. */
deberta_status checkpoint_stamp(const checkpoint *checkpoint, char stamp[65], deberta_error *err);
/* <folder>/name in new memory. */
deberta_status checkpoint_path(const checkpoint *checkpoint, const char *name, char **path, deberta_error *err);
