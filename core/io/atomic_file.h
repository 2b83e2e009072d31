/* Writes files that appear whole or not at all: under a temporary name in the same folder, renamed at the end.
 *
 * Until commit the target keeps what it held before. A program that handles a termination signal can unlink
 * atomic_file_temporary() itself. The next process that opens a file in the same folder removes the temporary files of
 * killed ones: a temporary file is locked while it is written, and the lock ends with its process. The temporary name
 * contains the host name: where machines share a folder, locks of other hosts may be invisible, so their files are
 * removed only after a day.
 *
 * Commit waits until the content is on the disk (fsync) before it gives the name, for every file alike: saving
 * milliseconds does not justify an empty file after a power cut. The file system writes the name later; until then the
 * old file remains. A caller that needs the name on the disk first, as checkpoints do before older ones are removed,
 * calls folder_sync_of.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/status.h"

typedef struct atomic_file atomic_file;

/* Resolves the final path of a file of this name, in new memory: it follows a symbolic link, because renaming onto it
 * would replace the link. It refuses an existing path that is not a regular file, and a link to a missing file. */
deberta_status atomic_file_target(char **target, const char *path, deberta_error *err);
/* Opens a temporary file next to atomic_file_target(path). */
deberta_status atomic_file_open(atomic_file **file, const char *path, deberta_error *err);
/* Opens a stream for writing text; commit closes it and reports failed writes, or discard closes it. */
deberta_status atomic_file_stream(FILE **stream, atomic_file *file, deberta_error *err);
/* Writes at any offset, in any order. Unwritten bytes below the size are zero. */
deberta_status atomic_file_write(atomic_file *file, uint64_t offset, const void *bytes, size_t count_bytes,
                                 deberta_error *err);
deberta_status atomic_file_set_size(atomic_file *file, uint64_t size_bytes, deberta_error *err);
/* Gives the file its name, or removes it on failure. Frees *file either way. */
deberta_status atomic_file_commit(atomic_file **file, deberta_error *err);
/* Removes the temporary file. Accepts NULL. */
void atomic_file_discard(atomic_file **file);

/* Writes a whole file of these bytes, or none. */
deberta_status atomic_file_replace(const char *path, const void *bytes, size_t count_bytes, deberta_error *err);

/* Returns the name under which it exists until commit. */
const char *atomic_file_temporary(const atomic_file *file);
/* Whether a name without its folder is that of a temporary file: ".deberta-<host>-<digits>-<digits>.tmp". */
bool atomic_file_is_temporary(const char *name);

/* Waits until the content of an open file, or folder, is on the disk. False with errno. */
bool file_sync(int descriptor);
/* Waits until the name of this file or folder, in the folder that holds it, is on the disk. */
deberta_status folder_sync_of(const char *path, deberta_error *err);
