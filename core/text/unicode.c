/* Looks up characters in the Unicode tables.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/unicode.h"

#include <string.h>

typedef struct decomposition_step {
    uint32_t character, first, second;
} decomposition_step;

typedef struct compatible_run {
    uint32_t first, last, to;
} compatible_run;

typedef struct compatible_text {
    uint32_t character;
    uint16_t begin, count;
} compatible_text;

typedef struct character_range {
    uint32_t first, last;
} character_range;

typedef struct class_range {
    uint32_t first, last;
    uint8_t value;
} class_range;

#include "core/text/unicode_tables.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* Returns the index of the first element whose `key`, by which a table ascends, is at least `character`; COUNT if none
 * is. */
#define FIRST_FROM(table, key, character)                                                                              \
    first_from(table, COUNT(table), sizeof *(table), (size_t)((const char *)&(table)->key - (const char *)(table)),    \
               character)

static size_t first_from(const void *table, size_t count, size_t stride, size_t key, uint32_t character)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        uint32_t found;
        memcpy(&found, (const char *)table + middle * stride + key, sizeof found);
        if (found < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Constants of the formula that composes Hangul's syllables: leading consonant, vowel, and perhaps a trailing
 * consonant. */
enum {
    SYLLABLES = 0xAC00,
    LEADING = 0x1100,
    VOWELS = 0x1161,
    TRAILING = 0x11A7, /* code before the first trailing consonant, which means none */
    LEADING_COUNT = 19,
    VOWEL_COUNT = 21,
    TRAILING_COUNT = 28,
    SYLLABLE_COUNT = LEADING_COUNT * VOWEL_COUNT * TRAILING_COUNT,
};

static bool is_within(uint32_t character, uint32_t first, uint32_t count) { return character - first < count; }

static const decomposition_step *find_step(uint32_t character)
{
    size_t low = FIRST_FROM(decomposition_steps, character, character);
    return low < COUNT(decomposition_steps) && decomposition_steps[low].character == character
               ? &decomposition_steps[low]
               : NULL;
}

size_t unicode_decompose(uint32_t parts[UNICODE_MAX_PARTS], uint32_t character)
{
    if (is_within(character, SYLLABLES, SYLLABLE_COUNT)) {
        uint32_t index = character - SYLLABLES, trailing = index % TRAILING_COUNT;
        parts[0] = LEADING + index / (VOWEL_COUNT * TRAILING_COUNT);
        parts[1] = VOWELS + index / TRAILING_COUNT % VOWEL_COUNT;
        parts[2] = TRAILING + trailing;
        return trailing ? 3 : 2;
    }
    /* Only the first of two parts can be decomposed again, so the others are collected from the end. */
    uint32_t reversed[UNICODE_MAX_PARTS];
    size_t count = 0;
    const decomposition_step *step;
    while (count + 1 < UNICODE_MAX_PARTS && (step = find_step(character))) {
        if (step->second) reversed[count++] = step->second;
        character = step->first;
    }
    parts[0] = character;
    for (size_t i = 0; i < count; i++) parts[1 + i] = reversed[count - 1 - i];
    return count + 1;
}

size_t unicode_decompose_compatible(uint32_t parts[UNICODE_MAX_COMPATIBLE_PARTS], uint32_t character)
{
    size_t low = FIRST_FROM(compatible_runs, last, character);
    if (low < COUNT(compatible_runs) && compatible_runs[low].first <= character) {
        parts[0] = compatible_runs[low].to + (character - compatible_runs[low].first);
        return 1;
    }
    low = FIRST_FROM(compatible_texts, character, character);
    if (low == COUNT(compatible_texts) || compatible_texts[low].character != character)
        return unicode_decompose(parts, character);
    const compatible_text *text = &compatible_texts[low];
    for (size_t i = 0; i < text->count; i++) parts[i] = compatible_parts[text->begin + i];
    return text->count;
}

uint32_t unicode_compose(uint32_t first, uint32_t second)
{
    if (is_within(first, LEADING, LEADING_COUNT) && is_within(second, VOWELS, VOWEL_COUNT))
        return SYLLABLES + ((first - LEADING) * VOWEL_COUNT + (second - VOWELS)) * TRAILING_COUNT;
    if (is_within(first, SYLLABLES, SYLLABLE_COUNT) && (first - SYLLABLES) % TRAILING_COUNT == 0 &&
        is_within(second, TRAILING + 1, TRAILING_COUNT - 1))
        return first + (second - TRAILING);

    size_t low = 0, high = COUNT(composition_order);
    while (low < high) {
        size_t middle = (low + high) / 2;
        const decomposition_step *step = &decomposition_steps[composition_order[middle]];
        if (step->first == first && step->second == second) return step->character;
        if (step->first < first || (step->first == first && step->second < second))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

uint8_t unicode_combining_class(uint32_t character)
{
    size_t low = FIRST_FROM(class_ranges, last, character);
    return low < COUNT(class_ranges) && class_ranges[low].first <= character ? class_ranges[low].value : 0;
}

bool unicode_may_follow(uint32_t character)
{
    if (unicode_combining_class(character)) return true;
    if (is_within(character, VOWELS, VOWEL_COUNT) || is_within(character, TRAILING + 1, TRAILING_COUNT - 1))
        return true;
    /* Blocks that hold the other characters that compose, two dozen vowel signs. Most characters of a block do not
     * compose, which does no harm. */
    return is_within(character, 0x900, 0x1E00 - 0x900) || is_within(character, 0x11000, 0x1000);
}

bool unicode_is_punctuation(uint32_t character)
{
    size_t low = FIRST_FROM(punctuation_ranges, last, character);
    return low < COUNT(punctuation_ranges) && punctuation_ranges[low].first <= character;
}
