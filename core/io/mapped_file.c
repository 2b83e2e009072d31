/* Maps regular files read-only, and reads one piece by piece into SHA-256.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/mapped_file.h"
#include "core/io/mapping_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/cpu.h"
#include "core/base/numbers.h"
#include "core/base/sha256.h"

static uint16_t load_u16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }
uint32_t load_u32(const uint8_t *at) { return load_u16(at) | (uint32_t)load_u16(at + 2) << 16; }
uint64_t load_u64(const uint8_t *at) { return load_u32(at) | (uint64_t)load_u32(at + 4) << 32; }

static bool starts_with(const uint8_t *bytes, size_t size_bytes, const char *prefix)
{
    size_t length = strlen(prefix);
    return size_bytes >= length && memcmp(bytes, prefix, length) == 0;
}

const char *content_guess(const uint8_t *bytes, size_t size_bytes)
{
    if (size_bytes > 8 && bytes[8] == '{' && load_u64(bytes) < size_bytes) return "a safetensors file";
    if (starts_with(bytes, size_bytes, "PK\x03\x04")) return "a zip archive";
    if (starts_with(bytes, size_bytes, "\x1f\x8b")) return "a gzip file";
    if (starts_with(bytes, size_bytes, "\x89HDF")) return "an HDF5 file";
    if (starts_with(bytes, size_bytes, "GGUF")) return "a GGUF file";
    if (starts_with(bytes, size_bytes, "<!") || starts_with(bytes, size_bytes, "<html")) return "an HTML page";
    if (size_bytes >= 262 && memcmp(bytes + 257, "ustar", 5) == 0) return "a tar archive";
    if (size_bytes >= 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5) return "a Python pickle";
    return NULL;
}

/* Returns the reason why an opened path cannot be mapped (a folder, not regular, empty), or NULL. */
static const char *not_a_file(const struct stat *status)
{
    if (S_ISDIR(status->st_mode)) return "is a folder, expected a file";
    if (!S_ISREG(status->st_mode)) return "is not a regular file";
    if (status->st_size == 0) return "is empty (0 bytes)";
    return NULL;
}

/* Maps the file. The mapping outlives the descriptor, which may be closed. */
static deberta_status map(mapped_file *file, int descriptor, deberta_error *err)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be examined: %s", file->name.text, strerror(errno));
    const char *problem = not_a_file(&status);
    if (problem) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", file->name.text, problem);

    size_t size_bytes = (size_t)status.st_size;
    void *bytes = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED) {
        deberta_status code = errno == ENOMEM ? DEBERTA_E_MEMORY : DEBERTA_E_FILE;
        DEBERTA_FAIL(err, code, "%s: cannot be mapped: %s", file->name.text, strerror(errno));
    }
    file->bytes = bytes;
    file->size_bytes = size_bytes;
    file->modified = status.st_mtim;
    file->guard = mapping_guard_add(bytes, size_bytes);
    return DEBERTA_OK;
}

deberta_status mapped_file_open(mapped_file *file, const char *path, deberta_error *err)
{
    *file = (mapped_file){.name = quote_bytes(path, strlen(path))};
    /* Without O_NONBLOCK, opening a named pipe would wait for a writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        struct stat status;
        bool dangling = errno == ENOENT && lstat(path, &status) == 0;
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be opened: %s", file->name.text,
                     dangling ? "a symbolic link to a file that does not exist" : strerror(errno));
    }
    deberta_status status = map(file, descriptor, err);
    close(descriptor);
    if (status != DEBERTA_OK) return status;
    if (starts_with(file->bytes, file->size_bytes, "version https://git-lfs")) {
        size_t size_bytes = file->size_bytes;
        mapped_file_close(file);
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: is a git-lfs pointer of %zu bytes, not the file itself (\"git lfs pull\" fetches it)",
                     file->name.text, size_bytes);
    }
    return DEBERTA_OK;
}

deberta_status mapped_file_open_at_most(mapped_file *file, const char *path, size_t most_bytes, deberta_error *err)
{
    DEBERTA_TRY(mapped_file_open(file, path, err));
    const size_t size_bytes = file->size_bytes;
    if (size_bytes <= most_bytes) return DEBERTA_OK;
    mapped_file_close(file);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: expected at most %zu bytes, found %zu", file->name.text, most_bytes,
                 size_bytes);
}

void mapped_file_forget(const mapped_file *file, size_t offset, size_t length)
{
    if (!range_is_inside(offset, length, file->size_bytes)) return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t start = (offset + page - 1) / page * page, end = (offset + length) / page * page;
    if (start < end) madvise((void *)(file->bytes + start), end - start, MADV_DONTNEED);
}

void mapped_file_populate(const mapped_file *file, size_t length)
{
#ifdef MADV_POPULATE_READ
    /* The call is only a hint, since pages are also read at first touch. */
    madvise((void *)file->bytes, length, MADV_POPULATE_READ);
#else
    (void)file, (void)length;
#endif
}

deberta_status mapped_file_intact(const mapped_file *file, deberta_error *err)
{
    if (!mapping_guard_broke(file->guard)) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: became shorter, or could not be read, while it was in use", file->name.text);
}

deberta_status mapped_file_end(mapped_file *file, deberta_status status, deberta_error *err)
{
    const deberta_status intact = mapped_file_intact(file, err);
    mapped_file_close(file);
    return intact == DEBERTA_OK ? status : intact;
}

void mapped_file_close(mapped_file *file)
{
    mapping_guard_remove(file->guard);
    file->guard = 0;
    if (file->bytes) munmap((void *)file->bytes, file->size_bytes);
    file->bytes = NULL;
    file->size_bytes = 0;
}

/* ----------------------------------------------------------------------------------------------------------- digest */

/* bytes of a file that are in memory at once */
enum { PIECE_BYTES = 4 << 20 };

deberta_status file_digest(const char *path, char digest[65], deberta_error *err)
{
    mapped_file file;
    sha256 hash;
    DEBERTA_TRY(mapped_file_open(&file, path, err));
    sha256_begin(&hash, cpu_features());
    for (size_t at = 0; at < file.size_bytes; at += PIECE_BYTES) {
        const size_t count = minimum(PIECE_BYTES, file.size_bytes - at);
        sha256_add(&hash, file.bytes + at, count);
        mapped_file_forget(&file, at, count);
    }
    sha256_finish(&hash, digest);
    return mapped_file_end(&file, DEBERTA_OK, err);
}
