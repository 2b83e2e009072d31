/* What the tests of core/io share: byte buffers, files in a temporary folder, and writers of safetensors, pickles, zips
 * and legacy torch files that can also write wrong ones.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <ftw.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/test_rows.h"

#include "core/base/numbers.h"
#include "core/base/status.h"

/* Allocations above this limit fail, so that a reader which believes a size in a file fails with DEBERTA_E_MEMORY
 * instead of the DEBERTA_E_FORMAT that the tests demand. The sanitizer has its own limit; without it the address space
 * of a program that defines TESTS_IN_LIMITED_MEMORY is limited. */
enum { ALLOCATION_LIMIT_MB = 192 };

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#elif __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif

#if defined(WITH_ASAN) || defined(WITH_TSAN)
#define SANITIZER_LIMIT "max_allocation_size_mb=192:allocator_may_return_null=1"
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return SANITIZER_LIMIT; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return SANITIZER_LIMIT; }
#elif defined(TESTS_IN_LIMITED_MEMORY)
__attribute__((constructor)) static void limit_memory(void)
{
    struct rlimit limit = {(rlim_t)2 * ALLOCATION_LIMIT_MB << 20, (rlim_t)2 * ALLOCATION_LIMIT_MB << 20};
    setrlimit(RLIMIT_AS, &limit);
}
#endif

/* ----------------------------------------------------------------------------------------------------- buffers */

typedef struct buffer {
    uint8_t *bytes;
    size_t count, capacity;
} buffer;

static inline void put(buffer *out, const void *bytes, size_t count)
{
    if (out->count + count > out->capacity) {
        out->capacity = 2 * (out->count + count) + 64;
        out->bytes = realloc(out->bytes, out->capacity);
        assert_non_null(out->bytes);
    }
    if (count > 0) memcpy(out->bytes + out->count, bytes, count);
    out->count += count;
}

static inline void put_byte(buffer *out, unsigned byte)
{
    uint8_t value = (uint8_t)byte;
    put(out, &value, 1);
}

/* Little-endian, `width` bytes. */
static inline void put_number(buffer *out, uint64_t number, size_t width)
{
    for (size_t i = 0; i < width; i++) put_byte(out, i < 8 ? (unsigned)(number >> 8 * i) & 255 : 0);
}

static inline void put_buffer(buffer *out, const buffer *from) { put(out, from->bytes, from->count); }
static inline void put_string(buffer *out, const char *text) { put(out, text, strlen(text)); }

static inline void buffer_free(buffer *out)
{
    free(out->bytes);
    *out = (buffer){0};
}

/* Exactly as long as the contents, so that the sanitizer sees a read behind them. */
static inline uint8_t *exact_copy(const uint8_t *bytes, size_t count)
{
    uint8_t *copy = malloc(count ? count : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, count);
    return copy;
}

/* -------------------------------------------------------------------------------------------------- safetensors */

static inline void put_safetensors(buffer *out, const char *header, const void *data, size_t data_bytes)
{
    put_number(out, strlen(header), 8);
    put_string(out, header);
    put(out, data, data_bytes);
}

/* ------------------------------------------------------------------------------------------------------ pickles */

static inline void put_text(buffer *out, const char *text)
{
    put_byte(out, 'X');
    put_number(out, strlen(text), 4);
    put_string(out, text);
}

static inline void put_integer(buffer *out, int64_t number)
{
    put_byte(out, 0x8a);
    put_byte(out, 8);
    put_number(out, (uint64_t)number, 8);
}

static inline void put_global(buffer *out, const char *module, const char *name)
{
    put_byte(out, 'c');
    put_string(out, module);
    put_byte(out, '\n');
    put_string(out, name);
    put_byte(out, '\n');
}

static inline void put_tuple(buffer *out, const int64_t *numbers, size_t count)
{
    put_byte(out, '(');
    for (size_t i = 0; i < count; i++) put_integer(out, numbers[i]);
    put_byte(out, 't');
}

static inline void put_storage(buffer *out, const char *type, const char *key, int64_t elements)
{
    put_byte(out, '(');
    put_text(out, "storage");
    put_global(out, "torch", type);
    put_text(out, key);
    put_text(out, "cpu");
    put_integer(out, elements);
    put_string(out, "tQ");
}

/* An expression whose value is a tensor. */
static inline void put_tensor(buffer *out, const char *type, const char *key, int64_t elements, int64_t offset,
                              const int64_t *shape, const int64_t *strides, size_t rank)
{
    put_global(out, "torch._utils", "_rebuild_tensor_v2");
    put_byte(out, '(');
    put_storage(out, type, key, elements);
    put_integer(out, offset);
    put_tuple(out, shape, rank);
    put_tuple(out, strides, rank);
    put_byte(out, 0x89);
    put_global(out, "collections", "OrderedDict");
    put_string(out, ")RtR");
}

/* -------------------------------------------------------------------------------------------------------- zips */

static inline uint32_t crc32_of(const uint8_t *bytes, size_t count)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Fields of a member's headers that a test wants to be wrong are changed in this description before zip_end. */
typedef struct zip_entry {
    char name[128];
    size_t name_bytes;
    uint32_t method, crc, packed, size, offset, flags;
} zip_entry;

typedef struct zip_writer {
    buffer out;
    zip_entry entries[16];
    size_t count;
} zip_writer;

static inline void zip_free(zip_writer *zip) { buffer_free(&zip->out); }

static inline void zip_header(buffer *out, const zip_entry *entry, bool central)
{
    put_number(out, central ? 0x02014b50 : 0x04034b50, 4);
    if (central) put_number(out, 20, 2);
    put_number(out, 20, 2);
    put_number(out, entry->flags, 2);
    put_number(out, entry->method, 2);
    put_number(out, 0, 4);
    bool later = !central && entry->flags & 8; /* sizes follow in a data descriptor */
    put_number(out, later ? 0 : entry->crc, 4);
    put_number(out, later ? 0 : entry->packed, 4);
    put_number(out, later ? 0 : entry->size, 4);
    put_number(out, entry->name_bytes, 2);
    put_number(out, 0, 2);
    if (central) {
        put_number(out, 0, 10);
        put_number(out, entry->offset, 4);
    }
    put(out, entry->name, entry->name_bytes);
}

static inline zip_entry *zip_add(zip_writer *zip, const char *name, const void *bytes, size_t count, uint32_t flags)
{
    assert_true(zip->count < 16);
    zip_entry *entry = &zip->entries[zip->count++];
    *entry = (zip_entry){.name_bytes = strlen(name),
                         .crc = crc32_of(bytes, count),
                         .packed = (uint32_t)count,
                         .size = (uint32_t)count,
                         .offset = (uint32_t)zip->out.count,
                         .flags = flags};
    memcpy(entry->name, name, entry->name_bytes);
    zip_header(&zip->out, entry, false);
    put(&zip->out, bytes, count);
    if (flags & 8) {
        put_number(&zip->out, 0x08074b50, 4);
        put_number(&zip->out, entry->crc, 4);
        put_number(&zip->out, entry->packed, 4);
        put_number(&zip->out, entry->size, 4);
    }
    return entry;
}

/* zip64: the counts are all ones and a zip64 record has the real ones. */
static inline void zip_end(zip_writer *zip, bool zip64)
{
    size_t begin = zip->out.count;
    for (size_t i = 0; i < zip->count; i++) zip_header(&zip->out, &zip->entries[i], true);
    size_t record = zip->out.count, size = record - begin;
    if (zip64) {
        put_number(&zip->out, 0x06064b50, 4);
        put_number(&zip->out, 44, 8);
        put_number(&zip->out, 45 | 45 << 16, 4);
        put_number(&zip->out, 0, 8);
        put_number(&zip->out, zip->count, 8);
        put_number(&zip->out, zip->count, 8);
        put_number(&zip->out, size, 8);
        put_number(&zip->out, begin, 8);
        put_number(&zip->out, 0x07064b50, 4);
        put_number(&zip->out, 0, 4);
        put_number(&zip->out, record, 8);
        put_number(&zip->out, 1, 4);
    }
    put_number(&zip->out, 0x06054b50, 4);
    put_number(&zip->out, 0, 4);
    put_number(&zip->out, zip64 ? 0xffff : zip->count, 2);
    put_number(&zip->out, zip64 ? 0xffff : zip->count, 2);
    put_number(&zip->out, zip64 ? 0xffffffff : size, 4);
    put_number(&zip->out, zip64 ? 0xffffffff : begin, 4);
    put_number(&zip->out, 0, 2);
}

/* ------------------------------------------------------------------------------------------------ legacy streams */

/* The three pickles before the state dict. */
static inline void put_legacy_head(buffer *out)
{
    put(out, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
    put(out, "\x80\x02M\xe9\x03.", 6);
    put(out, "\x80\x02}(", 4);
    put_text(out, "little_endian");
    put(out, "\x88u.", 3);
}

/* ------------------------------------------------------------------------------------------------------- folders */

/* A fresh folder under /tmp; FREED_BY(remove_folder) removes it. */
static inline char *make_folder(void)
{
    char *path = strdup("/tmp/deberta-test-XXXXXX");
    assert_non_null(path);
    assert_non_null(mkdtemp(path));
    return path;
}

static inline int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

/* A shell that does it would take longer than most tests. */
static inline void remove_folder(char **path)
{
    if (!*path) return;
    assert_int_equal(nftw(*path, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
    free(*path);
    *path = NULL;
}

static inline void write_file(const char *folder, const char *name, const void *bytes, size_t count)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static inline buffer read_whole(const char *path)
{
    buffer content = {0};
    uint8_t block[4096];
    size_t count;
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there", path);
    while ((count = fread(block, 1, sizeof block, file)) > 0) put(&content, block, count);
    fclose(file);
    return content;
}

static inline void write_text(const char *folder, const char *name, const char *text)
{
    write_file(folder, name, text, strlen(text));
}

/* The folder of the golden data: DEBERTA_GOLDEN, or tests/golden beside this file. */
static inline const char *golden_folder(char room[static 512])
{
    const char *given = getenv("DEBERTA_GOLDEN");
    const char *slash = strrchr(__FILE__, '/');
    int folder = slash ? (int)(slash - __FILE__) : 0;
    if (given)
        snprintf(room, 512, "%s", given);
    else
        snprintf(room, 512, "%.*s/../golden", folder, __FILE__);
    struct stat status;
    if (stat(room, &status) != 0) fail_msg("%s: no golden data; DEBERTA_GOLDEN says where they are", room);
    return room;
}

/* A golden model's config.json and weights in a folder of their own; the caller removes it. */
static inline char *copy_of_model(const char *name)
{
    char golden[512], command[1200];
    char *folder = make_folder();
    snprintf(command, sizeof command, "cp '%s/%s/config.json' '%s/%s'/*model* '%s'", golden_folder(golden), name,
             golden, name, folder);
    assert_int_equal(system(command), 0);
    return folder;
}
