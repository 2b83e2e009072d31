/* Tables of which a call reads only some rows: word embeddings, and the decoder where it is a separate table.
 *
 * They stay in their file. In float32 a row has the file's values. In low precision it is integers with a scale, and
 * the values of a row are
 *
 *     int8     scale = max |w| / 127,      w' = scale rint(w 127 / max |w|)
 *     int16    scale = max |w| / 32767,    w' = scale rint(w 32767 / max |w|)
 *
 * all of them 0 unless 2^-100 <= max |w|. A read checks the weights, since opening does not. A checkpoint's rows are rounded as they
 * are read; a packed file (packed_file.h) has the integers. Both give the same bits, so a packed file needs no other
 * file for its words.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/weight_loader.h"

typedef struct word_table {
    weight_tensor stored; /* [rows][width] */
    size_t digits;        /* as in packed_matrix; 0: float32 */
    const float *scales;  /* [rows]; NULL: rows are quantized as they are read */
    const void *integers; /* [rows][width] of int8_t or int16_t */
} word_table;

/* Computes the bytes of the table as integers, in whole pieces of 64; 0 in float32. Call it when the shape is known. */
size_t word_table_bytes(const word_table *table);
/* Writes the integers to `memory` of that size. */
deberta_status word_table_store(const word_table *table, const weight_source *source, void *memory, deberta_error *err);
/* Makes later reads use `memory`, which word_table_store has filled. */
void word_table_view(word_table *table, const void *memory);

/* Reads rows [first, first + rows) as float32. */
deberta_status word_table_read(const word_table *table, const weight_source *source, size_t first, size_t rows,
                               float *values, deberta_error *err);
