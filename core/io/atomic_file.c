/* Temporary name, then rename.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/io/quote.h"

struct atomic_file {
    int descriptor;
    FILE *stream; /* NULL unless there is one, which then owns the descriptor */
    char *target, *temporary;
    bool pending; /* the temporary file is there and must be renamed or removed */
};

enum { TEMPORARY_ATTEMPTS = 1000 };

/* Creates <folder of target>/.deberta-<process>-<number>.tmp. Not mkstemp: its files are readable by their owner only.
 */
static deberta_status create_temporary(atomic_file *file, deberta_error *err)
{
    const char *slash = strrchr(file->target, '/');
    int folder_bytes = slash ? (int)(slash - file->target + 1) : 0;
    size_t room = (size_t)folder_bytes + 64;
    file->temporary = malloc(room);
    if (!file->temporary) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for writing it", QUOTE(file->target));
    for (int i = 0; i < TEMPORARY_ATTEMPTS && file->descriptor < 0; i++) {
        snprintf(file->temporary, room, "%.*s.deberta-%ld-%d.tmp", folder_bytes, file->target, (long)getpid(), i);
        file->descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->descriptor < 0 && errno != EEXIST) break;
    }
    if (file->descriptor < 0)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be written: %s", QUOTE(file->target), strerror(errno));
    file->pending = true;
    return DEBERTA_OK;
}

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
    file->descriptor = -1;
    deberta_status made = atomic_file_target(&file->target, path, err);
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

deberta_status atomic_file_sync(atomic_file *file, deberta_error *err)
{
    if (fsync(file->descriptor) == 0) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be brought to the disk: %s", QUOTE(file->target), strerror(errno));
}

/* Network file systems report only here that they could not store something, and streams what they still held. */
static bool close_it(atomic_file *file)
{
    const bool written = !file->stream || !ferror(file->stream);
    const int failed = file->stream ? fclose(file->stream) : close(file->descriptor);
    file->stream = NULL;
    file->descriptor = -1;
    return failed == 0 && written;
}

deberta_status atomic_file_commit(atomic_file **file, deberta_error *err)
{
    atomic_file *done = *file;
    deberta_status status = DEBERTA_OK;
    if (close_it(done) && rename(done->temporary, done->target) == 0)
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
    if (gone->descriptor >= 0) close_it(gone);
    if (gone->pending) unlink(gone->temporary);
    free(gone->target);
    free(gone->temporary);
    free(gone);
    *file = NULL;
}

const char *atomic_file_temporary(const atomic_file *file) { return file->temporary; }
