/* Which program compressed a file, by its first bytes: where texts are expected, every line of such a file would be
 * called bad, and none of the messages would say why.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_BASE_COMPRESSION_H
#define CORE_BASE_COMPRESSION_H

#include <stddef.h>
#include <string.h>

enum { COMPRESSION_BYTES = 5 /* of the beginning tell enough */ };

/* "gzip", or NULL. No text in UTF-8 begins so. */
static inline const char *compression_of(const void *bytes, size_t count)
{
    static const struct {
        const char *mark, *program;
    } known[] = {{"\x1F\x8B", "gzip"}, {"\x28\xB5\x2F\xFD", "zstd"}, {"\xFD\x37zXZ", "xz"}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const size_t length = strlen(known[k].mark);
        if (count >= length && memcmp(bytes, known[k].mark, length) == 0) return known[k].program;
    }
    return NULL;
}

#endif
