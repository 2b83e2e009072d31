/* The table of contents of a packed file of low precision: the tensors of the checkpoint, and their shapes. With it the
 * file serves as a weight_source that finds the same tensors as the checkpoint, so the walk over a model
 * (weight_loader.h) needs nothing else. It reads no values, because the packed numbers replace them.
 *
 *     a tensor    dtype, rank, bytes of the name    u32 each, little-endian
 *                 shape                             u64 [rank]
 *                 name                              canonical, without a zero
 *
 * Nothing in it is trusted: every step of every walk stays inside it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/weight_loader.h"

typedef struct packed_tensors {
    const uint8_t *bytes;
    size_t size_bytes;
    const char *place; /* name of the file, for messages */
} packed_tensors;

size_t packed_tensors_bytes(const checkpoint *files);
void packed_tensors_write(const checkpoint *files, uint8_t *to);

/* Checks a table; returns the problem, or NULL if there is none. */
const char *packed_tensors_problem(const packed_tensors *table);
/* Makes a source from a table without a problem; the caller keeps the table. */
weight_source weight_source_of_packed(const packed_tensors *table);
