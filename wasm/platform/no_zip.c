/* Replaces zip_reader.c: .bin files of PyTorch are refused. SPDX-License-Identifier: MIT */
#include "core/io/zip_reader.h"

deberta_status zip_reader_open(zip_reader **reader, const uint8_t *bytes, size_t size_bytes, const char *where,
                               deberta_error *err)
{
    (void)bytes, (void)size_bytes;
    *reader = NULL;
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: WebAssembly reads weights from safetensors only", where);
}

void zip_reader_close(zip_reader **reader) { *reader = NULL; }
size_t zip_reader_count(const zip_reader *reader) { return (void)reader, 0; }
const zip_member *zip_reader_at(const zip_reader *reader, size_t index) { return (void)reader, (void)index, NULL; }
const zip_member *zip_reader_find(const zip_reader *reader, const char *name) { return (void)reader, (void)name, NULL; }

deberta_status zip_reader_check(const zip_reader *reader, const zip_member *member, deberta_error *err)
{
    (void)reader, (void)member;
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "WebAssembly reads no zip archives");
}

deberta_status zip_reader_read(zip_reader *reader, const zip_member *member, uint8_t *buffer, deberta_error *err)
{
    (void)buffer;
    return zip_reader_check(reader, member, err);
}
