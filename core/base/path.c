/* Suffixes are compared without regard to case; names are joined with a slash. SPDX-License-Identifier: MIT */
#include "core/base/path.h"

#include <stdlib.h>
#include <string.h>

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

bool path_has_suffix(const char *path, const char *suffix)
{
    const size_t path_bytes = path ? strlen(path) : 0, suffix_bytes = strlen(suffix);
    if (path_bytes < suffix_bytes) return false;
    const char *end = path + path_bytes - suffix_bytes;
    for (size_t k = 0; k < suffix_bytes; k++)
        if (lower(end[k]) != lower(suffix[k])) return false;
    return true;
}

char *path_join(const char *folder, const char *name)
{
    size_t folder_bytes = strlen(folder), name_bytes = strlen(name);
    bool slash = folder_bytes > 0 && folder[folder_bytes - 1] != '/'; /* no folder: the current one, not the root */
    char *path = malloc(folder_bytes + name_bytes + 2);
    if (!path) return NULL;
    memcpy(path, folder, folder_bytes);
    if (slash) path[folder_bytes++] = '/';
    memcpy(path + folder_bytes, name, name_bytes + 1);
    return path;
}
