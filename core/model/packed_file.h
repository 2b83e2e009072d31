/* Packed weights in a file next to the model: opening then maps them instead of making them.
 *
 *     <model folder>/deberta.packed      (low precision: deberta.int16.packed, deberta.int8.packed)
 *
 *     offset 0     "deberta packed\n", a zero       16 bytes
 *            16    layout of this version           u32, little-endian
 *            20    where the contents begin         u32: 4096
 *            24    bytes of contents                u64
 *            32    stamp of the checkpoint          64 hex digits (checkpoint_stamp)
 *            96    digest of the checkpoint         64 hex digits (checkpoint_digest)
 *            160   SHA-256 of the table of digests  64 hex digits
 *            224   SHA-256 of all before            64 hex digits
 *            4096  the arena of the opened model, byte for byte
 *            then  SHA-256 of each block of it      64 hex digits a block of 256 KiB
 *
 * The arena holds no addresses, and is the same bits on every tier and for any number of threads, so one file serves
 * all of them; processes that map it share its memory. All sizes come from the model's own tables of contents, and
 * whatever else the bytes hold are numbers. Opening compares the header, the table of digests, and the last block,
 * which a copy that broke off has not: the rest would cost many times what mapping does, and is compared by
 * packed_file_check. A file that does not fit (other weights, another layout, damaged) is ignored by opening, never an
 * error: the weights themselves are there.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_PACKED_FILE_H
#define CORE_MODEL_PACKED_FILE_H

#include "core/io/checkpoint.h"
#include "core/io/mapped_file.h"

/* To be counted up with every change to what opening computes, or to where it puts it: pieces of the arena and their
 * order, panels, padding, folding. tests/unit/test_packed_file.c notices. */
enum { PACKED_FILE_LAYOUT = 5 };

/* Maps the packed weights of the checkpoint, whose arena has this capacity, and points *contents to them, 64-byte
 * aligned. Without a file that fits *contents is NULL and nothing is mapped; then *packed says whether there is none or
 * one of something else. */
deberta_status packed_file_map(const checkpoint *checkpoint, deberta_precision precision, size_t capacity_bytes,
                               mapped_file *file, const void **contents, deberta_packed *packed, deberta_error *err);
/* Compares all of it: every block with its digest, and the checkpoint's files with those of which it was made.
 * DEBERTA_E_FILE: there is none; DEBERTA_E_FORMAT: what differs. */
deberta_status packed_file_check(const checkpoint *checkpoint, deberta_precision precision, size_t capacity_bytes,
                                 deberta_error *err);
/* Writes it, whole or not at all; of the options on_temporary and precision count. */
deberta_status packed_file_write(const checkpoint *checkpoint, const void *contents, size_t capacity_bytes,
                                 const deberta_pack_options *options, deberta_error *err);

#endif
