/* Serves from memory the file calls of libc that core/io makes: mmap returns the bytes in place, without a copy, and
 * other files do not exist. The linker replaces libc's functions by these (--wrap).
 *
 * SPDX-License-Identifier: MIT */
#include "wasm/platform/memory_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 32, NAME_BYTES = 96, FOLDER = 100, FIRST = 101 };

static struct {
    char name[NAME_BYTES];
    const unsigned char *bytes;
    size_t size_bytes;
} files[FILES];
static size_t count;

int memory_files_add(const char *name, const unsigned char *bytes, size_t size_bytes)
{
    if (count == FILES || strlen(name) >= NAME_BYTES) return -1;
    strcpy(files[count].name, name);
    files[count].bytes = bytes;
    files[count++].size_bytes = size_bytes;
    return 0;
}

void memory_files_clear(void) { count = 0; }

/* Returns a descriptor; -1 with errno. */
static int find_name(const char *name)
{
    for (size_t k = 0; k < count; k++)
        if (strcmp(files[k].name, name) == 0) return FIRST + (int)k;
    errno = ENOENT;
    return -1;
}

static int find(const char *path)
{
    const size_t folder = strlen(MEMORY_FOLDER);
    if (strncmp(path, MEMORY_FOLDER, folder) != 0) return find_name(""); /* there is no other folder */
    const char *name = path + folder;
    name += strspn(name, "/");
    return *name ? find_name(name) : FOLDER;
}

static int tell(int descriptor, struct stat *about)
{
    if (descriptor < FOLDER) return -1;
    *about = (struct stat){.st_mode = descriptor == FOLDER ? S_IFDIR : S_IFREG,
                           .st_size = descriptor == FOLDER ? 0 : (off_t)files[descriptor - FIRST].size_bytes};
    return 0;
}

int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int descriptor);
int __wrap_stat(const char *path, struct stat *about);
int __wrap_lstat(const char *path, struct stat *about);
int __wrap_fstat(int descriptor, struct stat *about);
int __wrap_fstatat(int folder, const char *path, struct stat *about, int flags);
int __wrap_access(const char *path, int mode);

int __wrap_open(const char *path, int flags, ...)
{
    if (!(flags & O_WRONLY)) return find(path); /* in wasi-libc O_RDONLY is a bit, which folders are opened without */
    errno = EROFS;
    return -1;
}
int __wrap_close(int descriptor) { return (void)descriptor, 0; }
int __wrap_stat(const char *path, struct stat *about) { return tell(find(path), about); }
int __wrap_lstat(const char *path, struct stat *about) { return tell(find(path), about); }
int __wrap_fstat(int descriptor, struct stat *about) { return tell(descriptor, about); }
int __wrap_fstatat(int folder, const char *path, struct stat *about, int flags)
{
    return (void)flags, tell(folder == FOLDER ? find_name(path) : find(path), about);
}
int __wrap_access(const char *path, int mode) { return (void)mode, find(path) < 0 ? -1 : 0; }

/* Position of a listing. The one folder holds files alone, so no second listing begins before the first has ended. */
static size_t listed;
static _Alignas(struct dirent) unsigned char entry_room[sizeof(struct dirent) + NAME_BYTES];

DIR *__wrap_opendir(const char *path);
struct dirent *__wrap_readdir(DIR *folder);
int __wrap_closedir(DIR *folder);

DIR *__wrap_opendir(const char *path)
{
    listed = 0;
    if (find(path) == FOLDER) return (DIR *)(void *)&listed;
    errno = ENOENT;
    return NULL;
}
struct dirent *__wrap_readdir(DIR *folder)
{
    struct dirent *entry = (struct dirent *)(void *)entry_room;
    (void)folder;
    if (listed == count) return NULL;
    strcpy(entry->d_name, files[listed++].name);
    return entry;
}
int __wrap_closedir(DIR *folder) { return (void)folder, 0; }

void *mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    (void)at, (void)protection, (void)flags;
    const size_t size_bytes = descriptor >= FIRST ? files[descriptor - FIRST].size_bytes : 0, from = (size_t)offset;
    if (from <= size_bytes && bytes <= size_bytes - from) return (void *)(files[descriptor - FIRST].bytes + from);
    errno = EINVAL;
    return MAP_FAILED;
}

int munmap(void *start, size_t bytes) { return (void)start, (void)bytes, 0; }
