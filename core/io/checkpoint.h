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
/* Returns whether the folder has a file that checkpoint_open would open, whatever its content. */
bool checkpoint_has_weights(const char *folder);
/* Opens tensors in the caller's memory, which the caller keeps and must not change while it is read. name: the name in
 * messages. */
deberta_status checkpoint_open_memory(checkpoint **checkpoint, const char *name, const deberta_tensor *tensors,
                                      size_t count, deberta_error *err);
/* Returns whether the files hold a generator and a discriminator (Microsoft's replaced-token training). The tensors
 * here are the discriminator's. */
bool checkpoint_is_half(const checkpoint *checkpoint);
/* Returns whether the checkpoint has no files, so that digest, stamp and packed file do not apply. */
bool checkpoint_is_memory(const checkpoint *checkpoint);
void checkpoint_close(checkpoint **checkpoint);
/* Fails with DEBERTA_E_FILE if a file became shorter or unreadable while it was mapped (mapped_file_intact). */
deberta_status checkpoint_intact(const checkpoint *checkpoint, deberta_error *err);

/* Returns the place that messages about a missing tensor name: the weight file, or the folder if there are several. */
const char *checkpoint_place(const checkpoint *checkpoint);
/* Returns the file's name for a tensor of an open checkpoint. */
const char *checkpoint_stored_name(const tensor *tensor);
/* Returns whether the tensor's name in the file lacks the prefix that the base model's names have there, so that the
 * tensor does not belong to the base model. */
bool checkpoint_is_outside(const checkpoint *checkpoint, const tensor *tensor);
/* Returns the file of a tensor of an open checkpoint. */
const char *checkpoint_place_of(const tensor *tensor);
/* Counts the tensors, which are in ascending order of their names. */
size_t checkpoint_count(const checkpoint *checkpoint);
const tensor *checkpoint_at(const checkpoint *checkpoint, size_t index);
/* Returns NULL if there is no tensor of that name. */
const tensor *checkpoint_find(const checkpoint *checkpoint, const char *name);

/* Reads elements [first, first + count) of the tensor in row-major order of its shape (strides are honoured), as
 * float32: exact for F32, F16, BF16, rounded for F64. `tensor` comes from checkpoint_at or _find. Thread-safe.
 * DEBERTA_E_FORMAT for a dtype that holds no floating-point weights. */
deberta_status checkpoint_read_f32(const checkpoint *checkpoint, const tensor *tensor, size_t first, size_t count,
                                   float *values, deberta_error *err);
/* Returns all values of a tensor in place, if the mapped file has them as float32, in order and aligned; else NULL, and
 * reading converts. */
const float *checkpoint_view_f32(const checkpoint *checkpoint, const tensor *tensor);
/* Frees the memory that reading this tensor used: a member of a zip from the heap, pages of a mapped file. Thread-safe;
 * a storage that several tensors share is loaded again when another of them is read. */
void checkpoint_forget(const checkpoint *checkpoint, const tensor *tensor);
/* Computes SHA-256 over config.json and the weight files, as 64 hex digits: the identity in figures and results. It
 * equals `cat config.json <weight files in ascending order of their names> | sha256sum`. */
deberta_status checkpoint_digest(const checkpoint *checkpoint, char digest[65], deberta_error *err);
/* Opens a folder, and computes its digest. */
deberta_status checkpoint_digest_folder(const char *folder, char digest[65], deberta_error *err);
/* Computes a cheaper identity for every opening: SHA-256 over the following. Name, size and modification time of each
 * file, as of opening, including the index of a sharded checkpoint; config.json; samples of each weight file: 4 KiB at
 * both ends, and 64 bytes at 15 places between. So it detects trained weights even under old times, but not single
 * changed values whose time was restored. */
deberta_status checkpoint_stamp(const checkpoint *checkpoint, char stamp[65], deberta_error *err);
/* Returns <folder>/name in new memory. */
deberta_status checkpoint_path(const checkpoint *checkpoint, const char *name, char **path, deberta_error *err);
