/* Writes under a temporary name, then renames.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/atomic_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/io/quote.h"

struct atomic_file {
    int descriptor;
    int lock; /* duplicate of descriptor, which holds the lock until the file has its name, when descriptor is closed
                 already */
    FILE *stream; /* stream over descriptor, which it then owns; NULL: none */
    char *target, *temporary;
    bool pending; /* whether the temporary file exists and must be renamed or removed */
};

enum { TEMPORARY_ATTEMPTS = 1000 };

/* ------------------------------------------------------------------------------------------------- temporary files */

static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path + 1) : 0;
}

enum { HOST_BYTES = 65, STALE_SECONDS = 24 * 60 * 60 };

static const char prefix[] = ".deberta-";

/* Writes the name of this machine in letters and digits: every other character, such as a dash, becomes a dot. */
static void name_host(char host[HOST_BYTES])
{
    if (gethostname(host, HOST_BYTES) != 0 || !*host) strcpy(host, "host");
    host[HOST_BYTES - 1] = '\0';
    for (char *at = host; *at; at++)
        if (!isalnum((unsigned char)*at)) *at = '.';
}

/* Returns the end of the digits at a place, or NULL if there are none. */
static const char *behind_digits(const char *at)
{
    const char *end = at + strspn(at, "0123456789");
    return end > at ? end : NULL;
}

/* Returns whether a name has the form ".deberta-<host>-<digits>-<digits>.tmp"; earlier versions wrote no host.
 * *host_bytes becomes the length of the host's name, or 0. */
static bool read_temporary(const char *name, size_t *host_bytes)
{
    *host_bytes = 0;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return false;
    const char *at = name + sizeof prefix - 1, *process = behind_digits(at), *number;
    for (int try = 0; try < 2; try++) {
        number = process && *process == '-' ? behind_digits(process + 1) : NULL;
        if (number && strcmp(number, ".tmp") == 0) return true;
        *host_bytes = strcspn(at, "-");
        if (!*host_bytes || at[*host_bytes] != '-') return false;
        process = behind_digits(at + *host_bytes + 1);
    }
    return false;
}

bool atomic_file_is_temporary(const char *name)
{
    size_t host_bytes;
    return read_temporary(name, &host_bytes);
}

static bool is_of_this_host(const char *name)
{
    char host[HOST_BYTES];
    size_t host_bytes;
    name_host(host);
    return read_temporary(name, &host_bytes) && host_bytes == strlen(host) &&
           strncmp(name + sizeof prefix - 1, host, host_bytes) == 0;
}

/* Removes a temporary file whose writer has ended: a writer holds a lock on its file, which ends with the process. Many
 * shared file systems do not show the locks of other machines, so another machine's file stays until nobody has written
 * it for a day. */
static void remove_if_stale(int folder, const char *name)
{
    const int file = openat(folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat about, named;
    if (file < 0) return;
    /* Between open and lock, the writer may have finished this file and begun another one under the same name. */
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
        (is_of_this_host(name) || time(NULL) - about.st_mtime > STALE_SECONDS) && flock(file, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == about.st_dev &&
        named.st_ino == about.st_ino)
        unlinkat(folder, name, 0);
    close(file);
}

/* Removes stale files from the folder of the target. A file that cannot be removed stays, without an error. */
static void remove_stale(const char *target)
{
    const size_t length = folder_bytes(target);
    char *folder = length ? strndup(target, length) : strdup(".");
    DIR *entries = folder ? opendir(folder) : NULL;
    const struct dirent *entry;
    while (entries && (entry = readdir(entries)))
        if (atomic_file_is_temporary(entry->d_name)) remove_if_stale(dirfd(entries), entry->d_name);
    if (entries) closedir(entries);
    free(folder);
}

/* Locks the new file before another process considers it stale. Returns false where one did and has removed it, or is
 * about to. Where a file system has no locks, no file is ever considered stale. */
static bool hold(atomic_file *file)
{
    struct stat about;
    file->lock = fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0);
    if (flock(file->descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return fstat(file->descriptor, &about) != 0 || about.st_nlink > 0;
}

static void let_go(int *descriptor)
{
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
}

/* Copies the permissions of the overwritten file, and lets the owner write in any case. File systems without
 * permissions keep the mode of a new file. */
static void keep_mode(const atomic_file *file)
{
    struct stat about;
    if (stat(file->target, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid())
        (void)!fchmod(file->descriptor, (about.st_mode & 0777) | S_IWUSR);
}

/* Creates <folder of target>/.deberta-<host>-<process>-<number>.tmp. It does not use mkstemp, whose files only their
 * owner can read. */
static deberta_status create_temporary(atomic_file *file, deberta_error *err)
{
    const int length = (int)folder_bytes(file->target);
    const size_t room = (size_t)length + HOST_BYTES + 64;
    char host[HOST_BYTES];
    name_host(host);
    file->temporary = malloc(room);
    if (!file->temporary) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for writing it", QUOTE(file->target));
    for (int i = 0; i < TEMPORARY_ATTEMPTS && file->descriptor < 0; i++) {
        snprintf(file->temporary, room, "%.*s%s%s-%ld-%d.tmp", length, file->target, prefix, host, (long)getpid(), i);
        file->descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->descriptor < 0 && errno != EEXIST) break;
        if (file->descriptor < 0 || hold(file)) continue;
        let_go(&file->descriptor);
        let_go(&file->lock);
        errno = EEXIST;
    }
    if (file->descriptor < 0)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be written: %s", QUOTE(file->target), strerror(errno));
    file->pending = true;
    keep_mode(file);
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------- opening */

deberta_status atomic_file_target(char **target, const char *path, deberta_error *err)
{
    *target = NULL;
    struct stat status;
    const bool exists = stat(path, &status) == 0;
    if (exists && !S_ISREG(status.st_mode))
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be written: it exists and is not a regular file", QUOTE(path));
    const bool is_link = lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
    if (is_link && !exists)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM,
                     "%s: cannot be written: it is a symbolic link to a file that does not exist", QUOTE(path));
    *target = is_link ? realpath(path, NULL) : strdup(path);
    if (!*target) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be written: %s", QUOTE(path), strerror(errno));
    return DEBERTA_OK;
}

deberta_status atomic_file_open(atomic_file **result, const char *path, deberta_error *err)
{
    *result = NULL;
    atomic_file *file = calloc(1, sizeof *file);
    if (!file) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for writing it", QUOTE(path));
    file->descriptor = file->lock = -1;
    deberta_status made = atomic_file_target(&file->target, path, err);
    if (made == DEBERTA_OK) remove_stale(file->target);
    if (made == DEBERTA_OK) made = create_temporary(file, err);
    if (made != DEBERTA_OK) {
        atomic_file_discard(&file);
        return made;
    }
    *result = file;
    return DEBERTA_OK;
}

deberta_status atomic_file_stream(FILE **stream, atomic_file *file, deberta_error *err)
{
    *stream = file->stream = fdopen(file->descriptor, "w");
    if (*stream) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be written: %s", QUOTE(file->target), strerror(errno));
}

/* --------------------------------------------------------------------------------------------------------- writing */

deberta_status atomic_file_write(atomic_file *file, uint64_t offset, const void *bytes, size_t count_bytes,
                                 deberta_error *err)
{
    const char *at = bytes;
    while (count_bytes > 0) {
        ssize_t written = pwrite(file->descriptor, at, count_bytes, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0)
            DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: writing failed: %s", QUOTE(file->target),
                         written < 0 ? strerror(errno) : "nothing was written");
        at += written;
        offset += (uint64_t)written;
        count_bytes -= (size_t)written;
    }
    return DEBERTA_OK;
}

deberta_status atomic_file_set_size(atomic_file *file, uint64_t size_bytes, deberta_error *err)
{
    if (ftruncate(file->descriptor, (off_t)size_bytes) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot become %llu bytes long: %s", QUOTE(file->target),
                     (unsigned long long)size_bytes, strerror(errno));
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- ending */

bool file_sync(int descriptor)
{
    /* EINVAL and ENOSYS mean that the file system has nothing to synchronise. */
    return fsync(descriptor) == 0 || errno == EINVAL || errno == ENOSYS;
}

deberta_status folder_sync_of(const char *path, deberta_error *err)
{
    const size_t length = folder_bytes(path);
    char *folder = length ? strndup(path, length) : strdup(".");
    if (!folder) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its folder's name", QUOTE(path));
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    /* A folder that may be written but not read is no error: the name exists, and only a power cut could remove it. */
    if (descriptor < 0) return DEBERTA_OK;
    const bool synced = file_sync(descriptor);
    const int reason = errno;
    close(descriptor);
    if (synced) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: its name cannot be brought to the disk: %s", QUOTE(path),
                 strerror(reason));
}

/* Closes the file. Network file systems report only here that they could not store something, and streams write here
 * what they still buffer. */
static bool close_it(atomic_file *file)
{
    const bool closed = file->stream ? stream_close(file->stream) : close(file->descriptor) == 0;
    file->stream = NULL;
    file->descriptor = -1;
    return closed;
}

/* Waits until the content is on the disk, before the file gets its name: otherwise a power cut could leave an empty
 * file. */
static bool bring_to_disk(atomic_file *file)
{
    return (!file->stream || stream_flush(file->stream)) && file_sync(file->descriptor);
}

deberta_status atomic_file_commit(atomic_file **file, deberta_error *err)
{
    atomic_file *done = *file;
    deberta_status status = DEBERTA_OK;
    if (bring_to_disk(done) && close_it(done) && rename(done->temporary, done->target) == 0)
        done->pending = false;
    else
        status = status_fail(err, DEBERTA_E_SYSTEM, "%s: writing failed: %s", QUOTE(done->target), strerror(errno));
    atomic_file_discard(file);
    return status;
}

void atomic_file_discard(atomic_file **file)
{
    atomic_file *gone = *file;
    if (!gone) return;
    if (gone->stream)
        stream_discard(gone->stream);
    else
        let_go(&gone->descriptor);
    if (gone->pending) unlink(gone->temporary);
    let_go(&gone->lock);
    free(gone->target);
    free(gone->temporary);
    free(gone);
    *file = NULL;
}

deberta_status atomic_file_replace(const char *path, const void *bytes, size_t count_bytes, deberta_error *err)
{
    atomic_file *file;
    DEBERTA_TRY(atomic_file_open(&file, path, err));
    const deberta_status status = atomic_file_write(file, 0, bytes, count_bytes, err);
    if (status == DEBERTA_OK) return atomic_file_commit(&file, err);
    atomic_file_discard(&file);
    return status;
}

const char *atomic_file_temporary(const atomic_file *file) { return file->temporary; }
