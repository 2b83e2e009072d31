/* Chooses characters and frequent substrings of words as the first candidates. SPDX-License-Identifier: MIT */
#include "train/pieces/piece_learner.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"

enum { MOST_SEEDS = 1000000 };

#define CHARACTER_COVERAGE 0.9995

static int by_falling_count(const void *a, const void *b)
{
    const struct text_count *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The frequent characters that make up most of the texts. */
static bool add_characters(piece_learner *l, text_counts *covered)
{
    const size_t count = l->characters->count;
    double total = 0, sum = 0;
    struct text_count *sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted) return false;
    memcpy(sorted, l->characters->items, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_falling_count);
    for (size_t i = 0; i < count; i++) total += sorted[i].count;
    bool fits = true;
    for (size_t i = 0; fits && i < count && sum < CHARACTER_COVERAGE * total; i++) {
        fits = text_counts_add(covered, l->characters->texts + sorted[i].begin, sorted[i].bytes, sorted[i].count);
        sum += sorted[i].count;
    }
    free(sorted);
    return fits;
}

static bool is_covered(const trie *characters, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const size_t length = trie_longest(characters, text + at, bytes - at);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

/* All stretches of two to LONGEST_PIECE characters of a word. */
static bool add_stretches(text_counts *seeds, const char *text, size_t bytes, double count)
{
    for (size_t begin = 0; begin < bytes; begin++) {
        if (utf8_is_continuation(text[begin])) continue;
        size_t length = 0;
        for (size_t end = begin; end < bytes && length <= LONGEST_PIECE; end++) {
            if (utf8_is_continuation(text[end])) continue;
            if (length >= 2 && !text_counts_add(seeds, text + begin, end - begin, count)) return false;
            length++;
        }
        if (length >= 2 && length <= LONGEST_PIECE && !text_counts_add(seeds, text + begin, bytes - begin, count))
            return false;
    }
    return true;
}

static int by_falling_weight(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    const double left = x->expected * (double)x->length, right = y->expected * (double)y->length;
    if (x->required != y->required) return x->required ? -1 : 1;
    if (left != right) return left < right ? 1 : -1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Characters and what occurs twice; where there is too much of it, what covers most text. */
static bool take_seeds(piece_learner *l, size_t required)
{
    l->items = calloc(l->seeds.count + 1, sizeof *l->items);
    l->scaled = calloc(l->seeds.count + 1, sizeof *l->scaled);
    if (!l->items || !l->scaled) return false;
    for (size_t i = 0; i < l->seeds.count; i++) {
        const struct text_count *seed = &l->seeds.items[i];
        if (i >= required && seed->count < 2) continue;
        l->items[l->count++] = (candidate){.begin = seed->begin,
                                           .bytes = seed->bytes,
                                           .length = characters_in(l->seeds.texts + seed->begin, seed->bytes),
                                           .expected = seed->count,
                                           .required = i < required};
    }
    qsort(l->items, l->count, sizeof *l->items, by_falling_weight);
    if (l->count > MOST_SEEDS) l->count = MOST_SEEDS;
    double total = 0;
    for (size_t i = 0; i < l->count; i++) total += l->items[i].expected * (double)l->items[i].length;
    for (size_t i = 0; i < l->count; i++)
        l->items[i].probability = l->items[i].expected * (double)l->items[i].length / total;
    return true;
}

deberta_status piece_candidates_make(piece_learner *l, deberta_error *err)
{
    trie characters = {0};
    bool fits = add_characters(l, &l->seeds);
    const size_t required = l->seeds.count;
    trie_key *keys = calloc(required + 1, sizeof *keys);
    l->usable = calloc(l->words->count + 1, sizeof *l->usable);
    for (size_t i = 0; keys && i < required; i++)
        keys[i] = (trie_key){l->seeds.texts + l->seeds.items[i].begin, l->seeds.items[i].bytes, (int32_t)i};
    deberta_status status =
        fits && keys && l->usable ? trie_build(&characters, keys, required, "characters", err) : DEBERTA_E_MEMORY;
    for (size_t i = 0; status == DEBERTA_OK && i < l->words->count; i++) {
        const struct text_count *word = &l->words->items[i];
        const char *text = l->words->texts + word->begin;
        l->usable[i] = is_covered(&characters, text, word->bytes);
        if (l->usable[i] && !add_stretches(&l->seeds, text, word->bytes, word->count)) status = DEBERTA_E_MEMORY;
    }
    trie_free(&characters);
    free(keys);
    if (status == DEBERTA_OK && !take_seeds(l, required)) status = DEBERTA_E_MEMORY;
    if (status == DEBERTA_E_MEMORY) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the candidates of pieces");
    if (status == DEBERTA_OK && required > l->wanted)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the texts have %zu characters, which is more than %zu pieces", required,
                     l->wanted);
    return status;
}
