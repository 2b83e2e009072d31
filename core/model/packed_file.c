/* deberta.packed: the arena of an opened model as a file. SPDX-License-Identifier: MIT */
#include "core/model/packed_file.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/cpu.h"
#include "core/base/integers.h"
#include "core/base/sha256.h"
#include "core/io/atomic_file.h"

enum { CONTENTS_OFFSET = 4096, DIGEST_BYTES = 64, BLOCK_BYTES = 256 << 10 };

typedef struct packed_header {
    char magic[16];
    uint32_t layout, contents_offset;
    uint64_t contents_bytes;
    char stamp[DIGEST_BYTES];
    char source[DIGEST_BYTES]; /* checkpoint_digest */
    char table[DIGEST_BYTES];  /* the digest of the digests after the contents */
    char header[DIGEST_BYTES]; /* of what stands before it */
} packed_header;

_Static_assert(sizeof(packed_header) == 288, "the header is written as it is in memory, without gaps");

static void digest_of(const void *bytes, size_t count_bytes, char digest[DIGEST_BYTES])
{
    sha256 hash;
    char text[DIGEST_BYTES + 1];
    sha256_begin(&hash, cpu_features());
    sha256_add(&hash, bytes, count_bytes);
    sha256_finish(&hash, text);
    memcpy(digest, text, DIGEST_BYTES);
}

static bool has_digest(const void *bytes, size_t count_bytes, const char digest[DIGEST_BYTES])
{
    char found[DIGEST_BYTES];
    digest_of(bytes, count_bytes, found);
    return memcmp(found, digest, DIGEST_BYTES) == 0;
}

static size_t block_count(size_t contents_bytes) { return ceiling_divide(contents_bytes, BLOCK_BYTES); }

/* What can be said without reading the contents or the checkpoint. */
static deberta_status begin_header(const checkpoint *files, size_t contents_bytes, packed_header *header,
                                   deberta_error *err)
{
    *header = (packed_header){
        .magic = "deberta packed\n",
        .layout = PACKED_FILE_LAYOUT,
        .contents_offset = CONTENTS_OFFSET,
        .contents_bytes = contents_bytes,
    };
    char stamp[DIGEST_BYTES + 1];
    DEBERTA_TRY(checkpoint_stamp(files, stamp, err));
    memcpy(header->stamp, stamp, DIGEST_BYTES);
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------- comparing */

/* A mapped file whose size and header are right. */
typedef struct packed_view {
    const packed_header *header;
    const uint8_t *contents;
    const char *digests;
    size_t contents_bytes, blocks;
} packed_view;

/* What keeps the file from being used, NULL if its header says that it is the right one. */
static const char *misfit(const mapped_file *file, const packed_header *expected, packed_view *view)
{
    const size_t capacity_bytes = expected->contents_bytes;
    *view = (packed_view){
        .header = (const packed_header *)file->bytes,
        .contents = file->bytes + CONTENTS_OFFSET,
        .digests = (const char *)file->bytes + CONTENTS_OFFSET + capacity_bytes,
        .contents_bytes = capacity_bytes,
        .blocks = block_count(capacity_bytes),
    };
    const packed_header *found = view->header;
    if (file->size_bytes < sizeof *found || memcmp(found->magic, expected->magic, sizeof found->magic) != 0)
        return "is no file of packed weights";
    if (found->layout != expected->layout || found->contents_offset != expected->contents_offset)
        return "was written by another version of this library";
    /* The size first: what lies beyond the end of a mapped file must not be touched. */
    if (file->size_bytes < CONTENTS_OFFSET + capacity_bytes + view->blocks * DIGEST_BYTES)
        return "is shorter than what this model needs";
    if (file->size_bytes > CONTENTS_OFFSET + capacity_bytes + view->blocks * DIGEST_BYTES ||
        found->contents_bytes != expected->contents_bytes)
        return "is of another size than what this model needs";
    if (!has_digest(found, offsetof(packed_header, header), found->header)) return "is damaged: its header";
    if (memcmp(found->stamp, expected->stamp, DIGEST_BYTES) != 0)
        return "was made of other files than the model's config.json and weights (name, size, time of modification or "
               "content)";
    if (!has_digest(view->digests, view->blocks * DIGEST_BYTES, found->table))
        return "is damaged: its table of digests";
    return NULL;
}

static size_t block_bytes(const packed_view *view, size_t block)
{
    return minimum(BLOCK_BYTES, view->contents_bytes - block * BLOCK_BYTES);
}

static bool block_is_right(const packed_view *view, size_t block)
{
    return has_digest(view->contents + block * BLOCK_BYTES, block_bytes(view, block),
                      view->digests + block * DIGEST_BYTES);
}

deberta_status packed_file_map(const checkpoint *files, deberta_precision precision, size_t capacity_bytes,
                               mapped_file *file, const void **contents, deberta_packed *packed, deberta_error *err)
{
    char *path = NULL;
    struct stat status;
    *contents = NULL;
    *packed = DEBERTA_PACKED_NONE;
    packed_view view;
    packed_header expected;
    deberta_error unusable = {0};
    DEBERTA_TRY(checkpoint_path(files, deberta_packed_file_name(precision), &path, err));
    const bool there = stat(path, &status) == 0;
    const deberta_status opened = there ? mapped_file_open(file, path, &unusable) : DEBERTA_E_FILE;
    free(path);
    if (!there) return DEBERTA_OK;
    *packed = DEBERTA_PACKED_STALE;
    if (opened == DEBERTA_E_MEMORY && err) *err = unusable;
    if (opened != DEBERTA_OK) return opened == DEBERTA_E_MEMORY ? opened : DEBERTA_OK;
    const deberta_status described = begin_header(files, capacity_bytes, &expected, err);
    if (described != DEBERTA_OK) {
        mapped_file_close(file);
        return described;
    }
    if (!misfit(file, &expected, &view) && block_is_right(&view, view.blocks - 1)) {
        *contents = view.contents;
        *packed = DEBERTA_PACKED_MAPPED;
    } else {
        mapped_file_close(file);
    }
    return DEBERTA_OK;
}

static deberta_status check_file(const checkpoint *files, const mapped_file *file, size_t capacity_bytes,
                                 deberta_error *err)
{
    const char *path = file->name.text;
    char source[DIGEST_BYTES + 1];
    packed_view view;
    packed_header expected;
    DEBERTA_TRY(begin_header(files, capacity_bytes, &expected, err));
    const char *reason = misfit(file, &expected, &view);
    if (reason) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", path, reason);
    size_t wrong = 0, first = 0;
    for (size_t block = view.blocks; block-- > 0;) {
        if (block_is_right(&view, block)) continue;
        wrong++;
        first = block;
    }
    if (wrong)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: is damaged: %zu of %zu blocks, the first at bytes %zu to %zu, are not what was written", path,
                     wrong, view.blocks, (size_t)CONTENTS_OFFSET + first * BLOCK_BYTES,
                     (size_t)CONTENTS_OFFSET + first * BLOCK_BYTES + block_bytes(&view, first) - 1);
    DEBERTA_TRY(checkpoint_digest(files, source, err));
    if (memcmp(view.header->source, source, DIGEST_BYTES) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: was made of other weights: the model's files have the SHA-256 %s, those that were packed "
                     "%.64s",
                     path, source, view.header->source);
    return DEBERTA_OK;
}

deberta_status packed_file_check(const checkpoint *files, deberta_precision precision, size_t capacity_bytes,
                                 deberta_error *err)
{
    char *path = NULL;
    mapped_file file;
    DEBERTA_TRY(checkpoint_path(files, deberta_packed_file_name(precision), &path, err));
    deberta_status status = mapped_file_open(&file, path, err);
    free(path);
    if (status != DEBERTA_OK) return status;
    status = check_file(files, &file, capacity_bytes, err);
    return mapped_file_end(&file, status, err);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static deberta_status write_parts(atomic_file *file, const packed_header *header, const void *contents,
                                  const char *digests, deberta_error *err)
{
    const size_t contents_bytes = header->contents_bytes;
    DEBERTA_TRY(atomic_file_write(file, 0, header, sizeof *header, err));
    DEBERTA_TRY(atomic_file_write(file, CONTENTS_OFFSET, contents, contents_bytes, err));
    return atomic_file_write(file, CONTENTS_OFFSET + contents_bytes, digests,
                             block_count(contents_bytes) * DIGEST_BYTES, err);
}

static void tell_temporary(const deberta_pack_options *options, const char *path)
{
    if (options->on_temporary) options->on_temporary(options->context, path);
}

static deberta_status write_file(const char *path, const packed_header *header, const void *contents,
                                 const char *digests, const deberta_pack_options *options, deberta_error *err)
{
    atomic_file *file = NULL;
    DEBERTA_TRY(atomic_file_open(&file, path, err));
    tell_temporary(options, atomic_file_temporary(file));
    deberta_status status = write_parts(file, header, contents, digests, err);
    if (status == DEBERTA_OK)
        status = atomic_file_commit(&file, err);
    else
        atomic_file_discard(&file);
    tell_temporary(options, NULL);
    return status;
}

deberta_status packed_file_write(const checkpoint *files, const void *contents, size_t capacity_bytes,
                                 const deberta_pack_options *options, deberta_error *err)
{
    const size_t blocks = block_count(capacity_bytes);
    packed_header header;
    char *path = NULL, source[DIGEST_BYTES + 1];
    DEBERTA_TRY(begin_header(files, capacity_bytes, &header, err));
    DEBERTA_TRY(checkpoint_digest(files, source, err));
    memcpy(header.source, source, DIGEST_BYTES);
    char *digests = malloc(blocks * DIGEST_BYTES + 1);
    if (!digests) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu digests", blocks);
    for (size_t block = 0; block < blocks; block++) {
        const size_t at = block * BLOCK_BYTES;
        digest_of((const uint8_t *)contents + at, minimum(BLOCK_BYTES, capacity_bytes - at),
                  digests + block * DIGEST_BYTES);
    }
    digest_of(digests, blocks * DIGEST_BYTES, header.table);
    digest_of(&header, offsetof(packed_header, header), header.header);
    deberta_status status = checkpoint_path(files, deberta_packed_file_name(options->precision), &path, err);
    if (status == DEBERTA_OK) status = write_file(path, &header, contents, digests, options, err);
    free(path);
    free(digests);
    return status;
}
