/* Counts the words of texts, from which pieces are learned. The space before a word is U+2581; a word is cut where
 * letters, digits and punctuation meet, so that no piece holds two of them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/text_lines.h"

enum { LONGEST_WORD = 48 /* most characters of a word; longer ones are cut */, WORD_BYTES = 4 * LONGEST_WORD + 4 };

/* Texts, each once, with its accumulated count. Must be zero-initialised. */
typedef struct text_counts {
    char *texts;
    size_t texts_bytes, texts_capacity;
    struct text_count {
        size_t begin, bytes;
        double count;
    } * items;
    size_t count, capacity;
    size_t *slots, slot_count; /* number of the item + 1, 0: free */
} text_counts;

/* Adds to the count of a text. False: no memory. */
bool text_counts_add(text_counts *counts, const char *text, size_t bytes, double count);
void text_counts_free(text_counts *counts);

/* Adds the words of a file, or of the texts of its objects, and their characters. Broken UTF-8 is an error, with its
 * line. */
deberta_status piece_words_add_file(text_counts *words, text_counts *characters, const char *path,
                                    note_listener listener, deberta_error *err);
