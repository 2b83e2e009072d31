/* Fuzz targets that read through a path or a text: tables of them, of which FUZZ_TARGET in the environment names the
 * one that runs. The input is one file of a folder whose other files are right.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "include/deberta.h"

typedef struct fuzz_target {
    const char *name;   /* NULL ends a table */
    const char *beside; /* files of the golden folder that lie beside the input, separated by blanks */
    const char *file;   /* what the input is called; NULL: it is a text in memory */
    void (*read)(const char *place, size_t bytes); /* the folder, or the text and its bytes, after which a NUL stands */
} fuzz_target;

extern const fuzz_target fuzz_library_targets[], fuzz_made_targets[], fuzz_program_targets[];

/* Asks every head of the model for the logits of the first token. */
void fuzz_read_heads(deberta_session *session, const deberta_model *model);
