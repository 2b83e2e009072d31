/* Why a file holds no texts, by its first bytes: of compressed texts every line would be called bad, and none of the
 * messages would say why; of weights, archives and UTF-16 every line would be read.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <string.h>

enum { NO_TEXTS_BYTES = 64 /* of the beginning tell enough */ };

/* What is said of a line of a corpus that holds a NUL, to follow the place: no piece of a vocabulary can be written
 * with one, and whoever made the corpus did not mean it. */
#define NUL_IN_CORPUS "holds a NUL byte, and no text of a corpus has one: take it out first (tr -d '\\0')"

/* What is wrong, to follow the name of the file; NULL: nothing is. No text in UTF-8 begins as compressed ones do. A NUL
 * is a character like others, but no text begins with many. */
static inline const char *no_texts_reason(const void *bytes, size_t count)
{
    static const struct {
        const char *mark, *reason;
    } known[] = {{"\x1F\x8B", "is compressed (gzip), and texts are expected: unpack it first"},
                 {"\x28\xB5\x2F\xFD", "is compressed (zstd), and texts are expected: unpack it first"},
                 {"\xFD\x37zXZ", "is compressed (xz), and texts are expected: unpack it first"}};
    enum { MANY_ZEROS = 4 };
    size_t zeros = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const size_t length = strlen(known[k].mark);
        if (count >= length && memcmp(bytes, known[k].mark, length) == 0) return known[k].reason;
    }
    for (size_t k = 0; k < count && k < NO_TEXTS_BYTES; k++) zeros += ((const char *)bytes)[k] == 0;
    return zeros >= MANY_ZEROS ? "is no text in UTF-8: it begins with NUL bytes" : NULL;
}
