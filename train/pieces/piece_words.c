/* Cuts files into words and counts them in a hash table. SPDX-License-Identifier: MIT */
#include "train/pieces/piece_words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "core/base/text.h"

/* ---------------------------------------------------------------------------------------------------- counted texts */

static uint64_t hash_of(const char *text, size_t bytes)
{
    const uint64_t hash = hash_bytes(hash_of_nothing, text, bytes);
    return hash ^ hash >> 29; /* mixed once more */
}

static size_t *find_slot(const text_counts *c, const char *text, size_t bytes)
{
    size_t at = (size_t)hash_of(text, bytes) & (c->slot_count - 1);
    for (; c->slots[at]; at = (at + 1) & (c->slot_count - 1)) {
        const struct text_count *item = &c->items[c->slots[at] - 1];
        if (item->bytes == bytes && memcmp(c->texts + item->begin, text, bytes) == 0) break;
    }
    return &c->slots[at];
}

/* Grows the table, which is never more than half full. */
static bool grow_slots(text_counts *c)
{
    if (2 * (c->count + 1) <= c->slot_count) return true;
    const size_t slot_count = c->slot_count ? 2 * c->slot_count : 1024;
    size_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots) return false;
    free(c->slots);
    c->slots = slots;
    c->slot_count = slot_count;
    for (size_t i = 0; i < c->count; i++) *find_slot(c, c->texts + c->items[i].begin, c->items[i].bytes) = i + 1;
    return true;
}

bool text_counts_add(text_counts *c, const char *text, size_t bytes, double count)
{
    if (!grow_slots(c)) return false;
    size_t *slot = find_slot(c, text, bytes);
    if (*slot) {
        c->items[*slot - 1].count += count;
        return true;
    }
    char *texts = grown(c->texts, &c->texts_capacity, c->texts_bytes + bytes, 1);
    if (texts) c->texts = texts;
    struct text_count *items = grown(c->items, &c->capacity, c->count + 1, sizeof *items);
    if (items) c->items = items;
    if (!texts || !items) return false;
    memcpy(texts + c->texts_bytes, text, bytes);
    items[c->count++] = (struct text_count){.begin = c->texts_bytes, .bytes = bytes, .count = count};
    c->texts_bytes += bytes;
    *slot = c->count;
    return true;
}

void text_counts_free(text_counts *c)
{
    free(c->texts);
    free(c->items);
    free(c->slots);
    *c = (text_counts){0};
}

/* ------------------------------------------------------------------------------------------------------------ words */

#define SPACE_MARK "\u2581"

typedef enum character_class { CLASS_LETTER, CLASS_DIGIT, CLASS_PUNCTUATION } character_class;

static character_class class_of(uint32_t character)
{
    if (character >= '0' && character <= '9') return CLASS_DIGIT;
    return utf8_is_punctuation(character) ? CLASS_PUNCTUATION : CLASS_LETTER;
}

/* A word while its characters are collected. */
typedef struct word {
    text_counts *words, *characters;
    char text[WORD_BYTES];
    size_t bytes, length;
    character_class class; /* kind of its characters; a mark takes that of the next */
    bool marked;           /* whether it holds only the space mark so far */
} word;

static bool end_word(word *w)
{
    const bool fits = w->bytes == 0 || text_counts_add(w->words, w->text, w->bytes, 1);
    w->bytes = w->length = 0;
    w->marked = false;
    return fits;
}

static bool add_character(word *w, const char *text, size_t bytes, character_class class)
{
    if (!text_counts_add(w->characters, text, bytes, 1)) return false;
    if (((w->length && !w->marked && class != w->class) || w->length == LONGEST_WORD) && !end_word(w)) return false;
    memcpy(w->text + w->bytes, text, bytes);
    w->bytes += bytes;
    w->length++;
    w->class = class;
    w->marked = false;
    return true;
}

static bool begin_word(word *w)
{
    if (!end_word(w) || !add_character(w, SPACE_MARK, sizeof SPACE_MARK - 1, CLASS_LETTER)) return false;
    w->marked = true;
    return true;
}

/* Every line begins with a space, as a text does. */
static bool add_line(word *w, const char *line, size_t bytes)
{
    bool between = true;
    for (size_t at = 0; at < bytes;) {
        uint32_t character;
        const size_t length = utf8_decode(line + at, bytes - at, &character);
        const bool space = utf8_is_space(character);
        if (!space && between && !begin_word(w)) return false;
        if (!space && !add_character(w, line + at, length, class_of(character))) return false;
        between = space;
        at += length;
    }
    return end_word(w);
}

deberta_status piece_words_add_file(text_counts *words, text_counts *characters, const char *path,
                                    note_listener listener, deberta_error *err)
{
    text_lines lines;
    word w = {.words = words, .characters = characters};
    DEBERTA_TRY(text_lines_open(&lines, path, err));
    deberta_status status = DEBERTA_OK;
    for (;;) {
        const char *line, *name = lines.file.name.text;
        size_t bytes;
        status = text_lines_next(&lines, &line, &bytes, err);
        if (status != DEBERTA_OK || !line) break;
        if (!utf8_is_valid(line, bytes))
            status = status_fail(err, DEBERTA_E_FORMAT, "%s, line %zu: not UTF-8", name, lines.number);
        else if (!add_line(&w, line, bytes))
            status = status_fail(err, DEBERTA_E_MEMORY, "no memory for the words of %s", name);
        if (status != DEBERTA_OK) break;
    }
    return text_lines_end(&lines, status, listener, err);
}
