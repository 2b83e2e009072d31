/* Walks a folder and compares each of its files. SPDX-License-Identifier: MIT */
#include "core/io/folder_kind.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/base/text.h"

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool find_regular(const char *path, struct stat *about)
{
    return stat(path, about) == 0 && S_ISREG(about->st_mode);
}

static bool holds(const char *place, const struct stat *file, int folders)
{
    struct stat about;
    if (stat(place, &about) != 0) return false;
    if (S_ISREG(about.st_mode)) return is_same(&about, file);
    DIR *entries = folders > 0 && S_ISDIR(about.st_mode) ? opendir(place) : NULL;
    const struct dirent *entry;
    bool found = false;
    while (entries && !found && (entry = readdir(entries))) {
        if (entry->d_name[0] == '.' && (!entry->d_name[1] || (entry->d_name[1] == '.' && !entry->d_name[2]))) continue;
        char *path = path_join(place, entry->d_name);
        found = path && holds(path, file, folders - 1);
        free(path);
    }
    if (entries) closedir(entries);
    return found;
}

bool place_holds(const char *place, const char *path)
{
    struct stat file;
    return find_regular(path, &file) && holds(place, &file, 2);
}

bool descriptor_is_file(int descriptor, const char *path)
{
    struct stat file, about;
    return find_regular(path, &file) && fstat(descriptor, &about) == 0 && is_same(&about, &file);
}
