/* deberta.packed: the arena of an opened model as a file. SPDX-License-Identifier: MIT */
#include "core/model/packed_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/io/atomic_file.h"

enum { CONTENTS_OFFSET = 4096, STAMP_BYTES = 64 };

typedef struct packed_header {
    char magic[16];
    uint32_t layout, contents_offset;
    uint64_t contents_bytes;
    char stamp[STAMP_BYTES];
} packed_header;

_Static_assert(sizeof(packed_header) == 96, "the header is written as it is in memory, without gaps");

static packed_header make_header(const checkpoint *checkpoint, size_t contents_bytes)
{
    packed_header header = {
        .magic = "deberta packed\n",
        .layout = PACKED_FILE_LAYOUT,
        .contents_offset = CONTENTS_OFFSET,
        .contents_bytes = contents_bytes,
    };
    char stamp[STAMP_BYTES + 1];
    checkpoint_stamp(checkpoint, stamp);
    memcpy(header.stamp, stamp, STAMP_BYTES);
    return header;
}

deberta_status packed_file_map(const checkpoint *checkpoint, deberta_precision precision, size_t capacity_bytes,
                               mapped_file *file, const void **contents, deberta_packed *packed, deberta_error *err)
{
    char *path = NULL;
    struct stat status;
    *contents = NULL;
    *packed = DEBERTA_PACKED_NONE;
    DEBERTA_TRY(checkpoint_path(checkpoint, deberta_packed_file_name(precision), &path, err));
    bool there = stat(path, &status) == 0;
    bool open = there && mapped_file_open(file, path, NULL) == DEBERTA_OK;
    free(path);
    if (!there) return DEBERTA_OK;
    *packed = DEBERTA_PACKED_STALE;
    if (!open) return DEBERTA_OK;

    packed_header expected = make_header(checkpoint, capacity_bytes);
    /* The size first: what lies beyond the end of a mapped file must not be touched. */
    if (file->size_bytes == CONTENTS_OFFSET + capacity_bytes && memcmp(file->bytes, &expected, sizeof expected) == 0) {
        *contents = file->bytes + CONTENTS_OFFSET;
        *packed = DEBERTA_PACKED_MAPPED;
    } else {
        mapped_file_close(file);
    }
    return DEBERTA_OK;
}

static deberta_status write_parts(atomic_file *file, const packed_header *header, const void *contents,
                                  deberta_error *err)
{
    DEBERTA_TRY(atomic_file_write(file, 0, header, sizeof *header, err));
    return atomic_file_write(file, CONTENTS_OFFSET, contents, header->contents_bytes, err);
}

static void tell_temporary(const deberta_pack_options *options, const char *path)
{
    if (options->on_temporary) options->on_temporary(options->context, path);
}

deberta_status packed_file_write(const checkpoint *checkpoint, const void *contents, size_t capacity_bytes,
                                 const deberta_pack_options *options, deberta_error *err)
{
    packed_header header = make_header(checkpoint, capacity_bytes);
    char *path = NULL;
    atomic_file *file = NULL;
    DEBERTA_TRY(checkpoint_path(checkpoint, deberta_packed_file_name(options->precision), &path, err));
    deberta_status status = atomic_file_open(&file, path, err);
    free(path);
    if (status != DEBERTA_OK) return status;
    tell_temporary(options, atomic_file_temporary(file));
    status = write_parts(file, &header, contents, err);
    if (status == DEBERTA_OK)
        status = atomic_file_commit(&file, err);
    else
        atomic_file_discard(&file);
    tell_temporary(options, NULL);
    return status;
}
