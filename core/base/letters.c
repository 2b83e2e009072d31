/* Looks up characters in the tables of letters: lower case, and where words end in scripts without spaces.
 *
 * SPDX-License-Identifier: MIT */

#include <string.h>

#include "core/base/text.h"

/* Rows of both kinds begin with the last character of their range; tables ascend by it. */
typedef struct lower_run {
    uint32_t last, first, step, to;
} lower_run;

typedef struct character_range {
    uint32_t last, first;
} character_range;

#include "core/base/letter_tables.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* Returns the first row of a table that does not end before the character; NULL if all do. */
static const void *find_row(const void *table, size_t count, size_t stride, uint32_t character)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        uint32_t last;
        memcpy(&last, (const char *)table + middle * stride, sizeof last);
        if (last < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count ? (const char *)table + low * stride : NULL;
}

uint32_t letter_lower_case(uint32_t character)
{
    if (character < 0x80) return character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character;
    const lower_run *run = find_row(lower_runs, COUNT(lower_runs), sizeof *lower_runs, character);
    const bool known = run && run->first <= character && (character - run->first) % run->step == 0;
    return known ? run->to + (character - run->first) : character;
}

static bool is_within(const character_range *ranges, size_t count, uint32_t character)
{
    const character_range *range = find_row(ranges, count, sizeof *ranges, character);
    return range && range->first <= character;
}

static bool is_unspaced(uint32_t character) { return is_within(unspaced_ranges, COUNT(unspaced_ranges), character); }

bool word_ends_between(const char *text, size_t bytes, deberta_span before, deberta_span span)
{
    const size_t at = span.begin;
    if (at == 0 || at >= bytes || at == before.begin || utf8_is_continuation(text[at])) return false;
    size_t last = at - 1;
    while (last > 0 && utf8_is_continuation(text[last])) last--;
    uint32_t left = 0, right = 0;
    utf8_decode(text + last, at - last, &left);
    utf8_decode(text + at, bytes - at, &right);
    if (utf8_is_space(left) || utf8_is_space(right) || is_within(mark_ranges, COUNT(mark_ranges), right)) return false;
    return is_unspaced(left) || is_unspaced(right);
}
