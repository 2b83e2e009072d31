/* Finds the pickle of an object inside a zip or a legacy stream. SPDX-License-Identifier: MIT */
#include "core/io/torch_container.h"

#include <stdlib.h>
#include <string.h>

#include "core/io/mapped_file.h"
#include "core/io/quote.h"

/* ------------------------------------------------------------------------------------------------------------- zip */

/* Finds the member <top>/data.pkl. */
static deberta_status find_pickle(torch_container *c, const char *where, const zip_member **member, deberta_error *err)
{
    size_t top_bytes = 0;
    *member = NULL;
    for (size_t i = 0; i < zip_reader_count(c->zip); i++) {
        const zip_member *candidate = zip_reader_at(c->zip, i);
        const char *slash = strchr(candidate->name, '/');
        if (!slash || strcmp(slash, "/data.pkl") != 0) continue;
        if (*member)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: both '%s' and '%s' in the zip archive, expected one data.pkl",
                         where, QUOTE((*member)->name), QUOTE(candidate->name));
        *member = candidate;
        top_bytes = (size_t)(slash - candidate->name);
    }
    if (!*member || top_bytes >= sizeof c->top)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: a zip archive without a member <folder>/data.pkl, not written by torch.save", where);
    memcpy(c->top, (*member)->name, top_bytes);
    return zip_reader_check(c->zip, *member, err);
}

static deberta_status open_zip(torch_container *c, const uint8_t *bytes, size_t size_bytes, const char *where,
                               deberta_error *err)
{
    const zip_member *member;
    DEBERTA_TRY(zip_reader_open(&c->zip, bytes, size_bytes, where, err));
    DEBERTA_TRY(find_pickle(c, where, &member, err));
    c->code = malloc(member->size_bytes + 1);
    if (!c->code)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for the %llu bytes of its pickle", where,
                     (unsigned long long)member->size_bytes);
    DEBERTA_TRY(zip_reader_read(c->zip, member, c->code, err));
    return pickle_read(&c->object, c->code, member->size_bytes, where, err);
}

/* ---------------------------------------------------------------------------------------------------------- legacy */

static const uint8_t legacy_magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
enum { LEGACY_PROTOCOL = 1001, MAGIC_SEARCH_BYTES = 32 };

/* Returns whether the file begins as a legacy stream: its first pickle is a long of these bytes, after an opcode or
 * two. */
static bool is_legacy(const uint8_t *bytes, size_t size_bytes)
{
    size_t search = size_bytes < MAGIC_SEARCH_BYTES ? size_bytes : MAGIC_SEARCH_BYTES;
    return search > 2 && bytes[0] == 0x80 && memmem(bytes, search, legacy_magic, sizeof legacy_magic);
}

static deberta_status check_protocol(const pickle *p, const char *where, deberta_error *err)
{
    pickle_value protocol = pickle_root(p);
    if (protocol.kind != PICKLE_INTEGER || protocol.as.integer != LEGACY_PROTOCOL)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: not protocol %d of legacy torch files", where, LEGACY_PROTOCOL);
    return DEBERTA_OK;
}

/* Checks the writer's description: its integers have the same sizes everywhere, so only byte order matters. */
static deberta_status check_system(const pickle *p, const char *where, deberta_error *err)
{
    pickle_value key, value;
    if (pickle_root(p).kind != PICKLE_DICT)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the system description is %s, expected a dict", where,
                     pickle_kind_name(pickle_root(p)));
    size_t cursor = 0;
    while (pickle_next(p, pickle_root(p), &cursor, &key) && pickle_next(p, pickle_root(p), &cursor, &value))
        if (pickle_text_is(key, "little_endian") && value.kind == PICKLE_BOOL && !value.as.integer)
            DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: a legacy torch file from a big-endian machine", where);
    return DEBERTA_OK;
}

/* A legacy stream holds pickles in a row: magic number, protocol, system description, object. */
static deberta_status open_legacy(torch_container *c, const uint8_t *bytes, size_t size_bytes, const char *where,
                                  deberta_error *err)
{
    enum { MAGIC, PROTOCOL, SYSTEM, OBJECT };
    for (int part = MAGIC; part <= OBJECT; part++) {
        pickle_free(&c->object);
        DEBERTA_TRY(pickle_read(&c->object, bytes + c->end, size_bytes - c->end, where, err));
        c->end += pickle_length_bytes(c->object);
        if (part == PROTOCOL) DEBERTA_TRY(check_protocol(c->object, where, err));
        if (part == SYSTEM) DEBERTA_TRY(check_system(c->object, where, err));
    }
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------- interface */

deberta_status torch_container_open(torch_container *container, const uint8_t *bytes, size_t size_bytes,
                                    const char *where, deberta_error *err)
{
    *container = (torch_container){0};
    if (size_bytes >= 4 && memcmp(bytes, "PK\x03\x04", 4) == 0)
        return open_zip(container, bytes, size_bytes, where, err);
    if (is_legacy(bytes, size_bytes)) return open_legacy(container, bytes, size_bytes, where, err);
    const char *guess = content_guess(bytes, size_bytes);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s%s, expected a file of torch.save (a zip archive or the legacy format)",
                 where, guess ? "looks like " : "of unknown content", guess ? guess : "");
}

void torch_container_close(torch_container *container)
{
    pickle_free(&container->object);
    free(container->code);
    zip_reader_close(&container->zip);
    *container = (torch_container){0};
}
