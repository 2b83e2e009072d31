/* Packed weights in a file beside the model: opening then maps them instead of making them.
 *
 *     <model folder>/deberta.packed      (low precision: deberta.int16.packed, deberta.int8.packed)
 *
 *     offset 0     "deberta packed\n", a zero       16 bytes
 *            16    layout of this version           u32, little-endian
 *            20    where the contents begin         u32: 4096
 *            24    bytes of contents                u64
 *            32    stamp of the checkpoint          64 hex digits (checkpoint_stamp)
 *            4096  the arena of the opened model, byte for byte
 *
 * The arena holds no addresses, and is the same bits on every tier and for any number of threads, so one file serves
 * all of them; processes that map it share its memory. Of a file only the header is looked at: all sizes come from the
 * model's own tables of contents, and whatever else the bytes hold are numbers. A file that does not fit (other
 * weights, another layout, damaged) is ignored, never an error: the weights themselves are there.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_PACKED_FILE_H
#define CORE_MODEL_PACKED_FILE_H

#include "core/io/checkpoint.h"
#include "core/io/mapped_file.h"

/* To be counted up with every change to what opening computes, or to where it puts it: pieces of the arena and their
 * order, panels, padding, folding. tests/unit/test_packed_file.c notices. */
enum { PACKED_FILE_LAYOUT = 4 };

/* Maps the packed weights of the checkpoint, whose arena has this capacity, and points *contents to them, 64-byte
 * aligned. Without a file that fits *contents is NULL and nothing is mapped; then *packed says whether there is none or
 * one of something else. */
deberta_status packed_file_map(const checkpoint *checkpoint, deberta_precision precision, size_t capacity_bytes,
                               mapped_file *file, const void **contents, deberta_packed *packed, deberta_error *err);
/* Writes it, whole or not at all; of the options on_temporary and precision count. */
deberta_status packed_file_write(const checkpoint *checkpoint, const void *contents, size_t capacity_bytes,
                                 const deberta_pack_options *options, deberta_error *err);

#endif
