/* Opens zip archives by libzip over a mapped file, after checks of its own.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/zip_reader.h"

#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "core/io/mapped_file.h"

struct zip_reader {
    zip_t *archive;
    size_t size_bytes;
    zip_member *members;
    size_t count;
    char where[QUOTE_BYTES];
};

/* ----------------------------------------------------------------------------------------- before libzip is asked */

enum {
    END_BYTES = 22,     /* length of the end of central directory record without its comment */
    LOCATOR_BYTES = 20, /* length of the zip64 locator, right before it */
    SEARCH_BYTES = 65535 + END_BYTES + LOCATOR_BYTES,
    MAX_END_RECORDS = 4, /* limit of end records; one is correct, and a signature may occur in the values by chance */
    MAX_DIRECTORY_BYTES = 1 << 20, /* limit of the directory: about 100 bytes per tensor; 800 tensors are many */
};

/* Returns the directory's length that the end record at `at` states, itself or through a zip64 record; 0 if that record
 * is outside the file. */
static uint64_t directory_bytes(const uint8_t *bytes, size_t size_bytes, size_t at)
{
    if (at >= LOCATOR_BYTES && memcmp(bytes + at - LOCATOR_BYTES, "PK\x06\x07", 4) == 0) {
        uint64_t record = load_u64(bytes + at - LOCATOR_BYTES + 8);
        return range_is_inside(record, 48, size_bytes) ? load_u64(bytes + record + 40) : 0;
    }
    return load_u32(bytes + at + 12);
}

/* libzip parses a whole directory for every end record it finds in the last 64 KiB, and its table of names is slow when
 * many names collide. Either can make a small file take hours, so this function bounds the directories. */
static deberta_status guard(const uint8_t *bytes, size_t size_bytes, const char *where, deberta_error *err)
{
    size_t records = 0;
    for (size_t at = size_bytes > SEARCH_BYTES ? size_bytes - SEARCH_BYTES : 0; at + END_BYTES <= size_bytes; at++) {
        if (memcmp(bytes + at, "PK\x05\x06", 4) != 0) continue;
        if (++records > MAX_END_RECORDS)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the zip archive has more than %d end records, expected 1", where,
                         MAX_END_RECORDS);
        uint64_t length = directory_bytes(bytes, size_bytes, at);
        if (length > MAX_DIRECTORY_BYTES)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the zip directory has %llu bytes, expected at most %d", where,
                         (unsigned long long)length, MAX_DIRECTORY_BYTES);
    }
    if (records == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: the zip archive of %zu bytes has no end record; it is probably truncated", where, size_bytes);
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------- opening */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const zip_member *)a)->name, ((const zip_member *)b)->name);
}

static deberta_status list_members(zip_reader *reader, deberta_error *err)
{
    zip_int64_t entries = zip_get_num_entries(reader->archive, 0);
    size_t count = entries > 0 ? (size_t)entries : 0;
    reader->members = calloc(count + 1, sizeof *reader->members);
    if (!reader->members)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a list of %zu zip members", reader->where, count);
    const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    for (size_t i = 0; i < count; i++) {
        zip_stat_t stat;
        zip_stat_init(&stat);
        if (zip_stat_index(reader->archive, i, ZIP_FL_ENC_RAW, &stat) != 0 || (stat.valid & needed) != needed)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: zip member %zu: %s", reader->where, i,
                         zip_strerror(reader->archive));
        reader->members[i] =
            (zip_member){stat.name, i, stat.size, stat.comp_size, stat.comp_method, stat.encryption_method};
    }
    reader->count = count;
    qsort(reader->members, count, sizeof *reader->members, by_name);
    for (size_t i = 1; i < count; i++)
        if (by_name(reader->members + i - 1, reader->members + i) == 0)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: zip member '%s' occurs twice", reader->where,
                         QUOTE(reader->members[i].name));
    return DEBERTA_OK;
}

static deberta_status open_archive(zip_reader *reader, const uint8_t *bytes, deberta_error *err)
{
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(bytes, reader->size_bytes, 0, &error);
    if (source) reader->archive = zip_open_from_source(source, ZIP_RDONLY, &error);
    deberta_status status = DEBERTA_OK;
    if (!reader->archive) {
        bool memory = zip_error_code_zip(&error) == ZIP_ER_MEMORY;
        status = status_fail(err, memory ? DEBERTA_E_MEMORY : DEBERTA_E_FORMAT, "%s: not a readable zip archive: %s",
                             reader->where, zip_error_strerror(&error));
        zip_source_free(source); /* An open archive owns the source. */
    }
    zip_error_fini(&error);
    return status;
}

deberta_status zip_reader_open(zip_reader **result, const uint8_t *bytes, size_t size_bytes, const char *where,
                               deberta_error *err)
{
    *result = NULL;
    DEBERTA_TRY(guard(bytes, size_bytes, where, err));
    zip_reader *reader = calloc(1, sizeof *reader);
    if (!reader) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for reading it", where);
    reader->size_bytes = size_bytes;
    strncpy(reader->where, where, sizeof reader->where - 1);
    deberta_status status = open_archive(reader, bytes, err);
    if (status == DEBERTA_OK) status = list_members(reader, err);
    if (status != DEBERTA_OK) {
        zip_reader_close(&reader);
        return status;
    }
    *result = reader;
    return DEBERTA_OK;
}

void zip_reader_close(zip_reader **reader)
{
    if (!*reader) return;
    if ((*reader)->archive) zip_discard((*reader)->archive);
    free((*reader)->members);
    free(*reader);
    *reader = NULL;
}

/* --------------------------------------------------------------------------------------------------------- members */

size_t zip_reader_count(const zip_reader *reader) { return reader->count; }
const zip_member *zip_reader_at(const zip_reader *reader, size_t index) { return reader->members + index; }

const zip_member *zip_reader_find(const zip_reader *reader, const char *name)
{
    zip_member key = {.name = name};
    return bsearch(&key, reader->members, reader->count, sizeof key, by_name);
}

deberta_status zip_reader_check(const zip_reader *reader, const zip_member *member, deberta_error *err)
{
    if (member->encryption != ZIP_EM_NONE)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: zip member '%s' is encrypted", reader->where,
                     QUOTE(member->name));
    if (member->method != ZIP_CM_STORE)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                     "%s: zip member '%s' is compressed (method %u), but torch.save stores members as they are",
                     reader->where, QUOTE(member->name), member->method);
    if (member->size_bytes > reader->size_bytes || member->size_bytes != member->packed_bytes)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: zip member '%s' claims %llu bytes stored in %llu, in a file of %zu bytes", reader->where,
                     QUOTE(member->name), (unsigned long long)member->size_bytes,
                     (unsigned long long)member->packed_bytes, reader->size_bytes);
    return DEBERTA_OK;
}

/* libzip compares the checksum at the end of a member, so this reads one byte more than the size. */
static bool zip_reader_read_all(zip_file_t *file, uint8_t *buffer, uint64_t size_bytes)
{
    uint64_t done = 0;
    uint8_t beyond;
    while (done < size_bytes) {
        zip_int64_t got = zip_fread(file, buffer + done, size_bytes - done);
        if (got <= 0) return false;
        done += (uint64_t)got;
    }
    return zip_fread(file, &beyond, 1) == 0;
}

deberta_status zip_reader_read(zip_reader *reader, const zip_member *member, uint8_t *buffer, deberta_error *err)
{
    DEBERTA_TRY(zip_reader_check(reader, member, err));
    deberta_status status = DEBERTA_OK;
    zip_file_t *file = zip_fopen_index(reader->archive, member->index, 0);
    if (!file || !zip_reader_read_all(file, buffer, member->size_bytes)) {
        zip_error_t *error = file ? zip_file_get_error(file) : zip_get_error(reader->archive);
        bool memory = zip_error_code_zip(error) == ZIP_ER_MEMORY;
        status =
            status_fail(err, memory ? DEBERTA_E_MEMORY : DEBERTA_E_FORMAT, "%s: zip member '%s' cannot be read: %s",
                        reader->where, QUOTE(member->name), zip_error_strerror(error));
    }
    if (file) zip_fclose(file);
    return status;
}
