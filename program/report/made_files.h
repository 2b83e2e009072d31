/* What a report has made so far, so that one that fails can take it away again. SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

enum { MOST_MADE_FILES = 256 }; /* far more than a report has; of folders nested deeper than that some stay */

typedef struct made_files {
    const char *paths[MOST_MADE_FILES]; /* borrowed, in the order in which they were made */
    size_t count;
} made_files;

/* Before a file is written, or behind the making of a folder: what is there already was somebody else's. */
void made_files_expect(made_files *made, const char *path);
void made_files_add(made_files *made, const char *path);
/* The latest first. What cannot be removed, as a folder that holds something else, stays. */
void made_files_remove(made_files *made);
