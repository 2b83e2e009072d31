/* Paths are kept in the order in which they were made, and are removed in the other one.
 *
 * SPDX-License-Identifier: MIT */
#include "program/report/made_files.h"

#include <stdio.h>
#include <unistd.h>

void made_files_add(made_files *made, const char *path)
{
    if (made->count < MOST_MADE_FILES) made->paths[made->count++] = path;
}

void made_files_expect(made_files *made, const char *path)
{
    if (access(path, F_OK) != 0) made_files_add(made, path);
}

void made_files_remove(made_files *made)
{
    while (made->count > 0) remove(made->paths[--made->count]);
}
