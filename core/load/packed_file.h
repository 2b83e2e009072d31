/* Stores packed weights in a file next to the model, so that opening maps them instead of computing them.
 *
 *     <model folder>/deberta.packed      (low precision: deberta.int16.packed, deberta.int8.packed)
 *
 *     offset 0     "deberta packed\n", a zero       16 bytes
 *            16    layout of this version           u32, little-endian
 *            20    where the sections begin         u32: 4096
 *            24    bytes of each section            u64 [3]
 *            48    stamp of the checkpoint          64 hex digits (checkpoint_stamp)
 *            112   SHA-256 of config.json           64 hex digits
 *            176   digest of the checkpoint         64 hex digits (checkpoint_digest)
 *            240   SHA-256 of the table of digests  64 hex digits
 *            304   SHA-256 of all before            64 hex digits
 *            4096  the arena of the opened model, byte for byte
 *            then  in low precision, each from the next multiple of 64 bytes on: the words' tables (word_table.h),
 *                  the names and shapes of the checkpoint's tensors (packed_tensors.h)
 *            then  SHA-256 of each block of them    64 hex digits a block of 256 KiB of a section
 *
 * The arena holds no addresses, and is the same bits on every tier and for any number of threads, so one file serves
 * all of them; processes that map it share its memory. All sizes come from the model's own tables of contents, and all
 * other bytes are numbers. Opening compares the header, the table of digests, the names, and the arena's last block,
 * which an interrupted copy lacks. Comparing the rest would cost many times the mapping; packed_file_check does it. A
 * file that does not fit (other weights, another layout, damaged) is ignored by opening, never an error, because the
 * weights themselves are present.
 *
 * A folder that has config.json and a packed file of low precision, but no weights, is a model of that precision. Then
 * the names are those of a checkpoint, and a file that does not fit is an error.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/mapped_file.h"
#include "core/load/packed_tensors.h"

/* The layout version. It must increase with every change of the results of opening, or of their places: pieces of the
 * arena and their order, panels, padding, folding. tests/unit/test_packed_file.c detects a missing increase. */
enum { PACKED_FILE_LAYOUT = 6 };

enum packed_section { PACKED_ARENA, PACKED_WORDS, PACKED_TENSORS, PACKED_SECTIONS };

typedef struct packed_sections {
    struct {
        const void *bytes;
        size_t size_bytes;
    } of[PACKED_SECTIONS];
} packed_sections;

/* Maps the packed weights of the checkpoint, whose sections have these sizes, and points to them, 64-byte aligned.
 * Without a fitting file nothing is mapped, and *packed says whether there is no file or one that does not fit. */
deberta_status packed_file_map(const checkpoint *files, deberta_precision precision, packed_sections *sections,
                               mapped_file *file, deberta_packed *packed, deberta_error *err);
/* Compares every block with its digest, and the checkpoint's files with those from which the packed file was made.
 * Returns DEBERTA_E_FILE if there is no packed file, DEBERTA_E_FORMAT with the first difference. */
deberta_status packed_file_check(const checkpoint *files, deberta_precision precision, packed_sections sections,
                                 deberta_error *err);
/* Writes the packed file, whole or not at all; it uses only the options on_temporary and precision. */
deberta_status packed_file_write(const checkpoint *files, const packed_sections *sections,
                                 const deberta_pack_options *options, deberta_error *err);

/* Returns whether a folder without weights has a packed file of low precision. */
bool packed_file_is_alone(const char *folder, deberta_precision precision);
/* Maps the file and returns its sections; the caller compares sizes once it knows the model's. DEBERTA_E_FORMAT: it was
 * made with another config.json, or by another version, or is damaged. */
deberta_status packed_file_open_alone(const char *folder, deberta_precision precision, mapped_file *file,
                                      packed_sections *sections, deberta_error *err);
/* Compares every block of a file opened by packed_file_open_alone with its digest. */
deberta_status packed_file_check_alone(const mapped_file *file, deberta_error *err);
/* Returns the digest of the checkpoint from which a mapped file was made. */
void packed_file_source(const mapped_file *file, char digest[65]);
