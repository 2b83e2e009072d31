/* Finds what is asked of a text among its tokens and among the labels of its model. SPDX-License-Identifier: MIT */
#include "program/frame/input/asked_answer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/status.h"
#include "output/scope.h"

/* ------------------------------------------------------------------------------------------------------------- words */

static bool joins_words(char c) { return isalnum((unsigned char)c) || (unsigned char)c >= 0x80; }

/* Returns the next occurrence of a word in a text, as a whole word; NULL: none. */
static const char *find_occurrence(const char *text, const char *from, const char *word)
{
    const size_t bytes = strlen(word);
    for (const char *at = strstr(from, word); at; at = strstr(at + 1, word)) {
        const bool begins = at == text || !joins_words(at[-1]) || !joins_words(*word),
                   ends = !joins_words(at[bytes]) || !joins_words(word[bytes - 1]);
        if (begins && ends) return at;
    }
    return NULL;
}

/* Returns the segment of token t. */
static const char *segment_of(const asked_text *in, size_t t)
{
    return in->tokens->token_types[t] ? in->given->pair : in->given->text;
}

/* Returns true for SentencePiece's space before a text, which is of no character and of no word. */
static bool is_added_space(const deberta_tokens *tokens, size_t t)
{
    size_t bytes;
    const char *name = deberta_tokens_text(tokens, t, &bytes);
    return bytes == strlen("\u2581") && memcmp(name, "\u2581", bytes) == 0;
}

/* Returns true if token t overlaps a range of a segment's bytes. Of several tokens made of one character all but the
 * last have empty spans at its beginning. */
static bool overlaps(const asked_text *in, size_t t, const char *segment, deberta_span range)
{
    if (in->tokens->roles[t] == DEBERTA_TOKEN_FRAME || segment_of(in, t) != segment) return false;
    const deberta_span given = in->tokens->byte_spans[t];
    if (given.begin == given.end && given.begin == range.begin) return !is_added_space(in->tokens, t);
    const deberta_span span = deberta_token_place(in->tokens, t, segment).bytes;
    return span.begin < range.end && range.begin < span.end;
}

/* Returns the number of tokens of each segment without the frame: counts [2]. */
static void count_segments(const deberta_tokens *tokens, size_t *counts)
{
    counts[0] = counts[1] = 0;
    for (size_t t = 0; t < tokens->count; t++)
        if (tokens->roles[t] != DEBERTA_TOKEN_FRAME) counts[tokens->token_types[t]]++;
}

/* Tells for each token of the whole text which token of the cut one it is; SIZE_MAX: none. A cut keeps the frame and
 * the first tokens of each segment. */
static void find_kept(const asked_text *in, const asked_text *whole, size_t *kept)
{
    size_t left[2], next = 0;
    count_segments(in->tokens, left);
    for (size_t t = 0; t < whole->tokens->count; t++) {
        const bool is_frame = whole->tokens->roles[t] == DEBERTA_TOKEN_FRAME;
        size_t *of_segment = &left[whole->tokens->token_types[t]];
        kept[t] = is_frame || *of_segment ? next++ : SIZE_MAX;
        if (!is_frame && *of_segment) --*of_segment;
    }
}

/* Counts one occurrence, and marks its tokens if none of them was cut off. One without tokens, as of characters that
 * the tokenizer leaves out, does not count. */
static void mark_occurrence(const asked_text *whole, const char *segment, deberta_span range, const size_t *kept,
                            bool *marked, asked_count *count)
{
    bool any = false, cut = false;
    for (size_t t = 0; t < whole->tokens->count; t++)
        if (overlaps(whole, t, segment, range)) {
            any = true;
            cut = cut || kept[t] == SIZE_MAX;
        }
    count->kept += any && !cut;
    count->cut += cut;
    for (size_t t = 0; !cut && t < whole->tokens->count; t++)
        if (overlaps(whole, t, segment, range)) marked[kept[t]] = true;
}

deberta_status asked_word_mark(const asked_text *in, const char *word, bool *marked, asked_count *count,
                               deberta_error *err)
{
    const char *const segments[] = {in->given->text, in->given->pair};
    deberta_tokens *uncut = NULL;
    asked_text whole = *in;
    *count = (asked_count){0};
    if (in->tokens->dropped) {
        deberta_text text = *in->given;
        text.max_tokens = 0;
        DEBERTA_TRY(deberta_tokenize(&uncut, in->tokenizer, &text, err));
        whole.tokens = uncut;
    }
    size_t *kept = memory_take(whole.tokens->count, sizeof *kept);
    find_kept(in, &whole, kept);
    for (size_t k = 0; *word && k < 2 && segments[k]; k++)
        for (const char *at = segments[k]; (at = find_occurrence(segments[k], at, word)); at += strlen(word)) {
            const size_t begin = (size_t)(at - segments[k]);
            mark_occurrence(&whole, segments[k], (deberta_span){begin, begin + strlen(word)}, kept, marked, count);
        }
    free(kept);
    deberta_tokens_free(&uncut);
    return DEBERTA_OK;
}

const char *asked_word_was_cut(const common_options *options, const asked_text *in, const char *word)
{
    return options_text(options, "the word '%s' is in the part of the text that --max-tokens cuts: %zu tokens are left",
                        word, in->tokens->count);
}

/* ------------------------------------------------------------------------------------------------------------- [MASK] */

size_t asked_masks(const asked_text *in, size_t *place)
{
    const int32_t mask = deberta_tokenizer_special_id(in->tokenizer, DEBERTA_SPECIAL_MASK);
    size_t count = 0;
    for (size_t t = 0; t < in->tokens->count; t++)
        if (in->tokens->ids[t] == mask) {
            *place = t;
            count++;
        }
    return count;
}

deberta_status asked_word_fill(const common_options *options, const asked_text *in, size_t at, const char *word,
                               int32_t *id, size_t *pieces, deberta_error *err)
{
    const char *segment = segment_of(in, at);
    deberta_span range = deberta_token_place(in->tokens, at, segment).bytes;
    if (*word == ' ' && range.begin > 0 && segment[range.begin - 1] == ' ')
        word++; /* the text has that blank already */
    const char *filled = options_text(options, "%.*s%s%s", (int)range.begin, segment, word, segment + range.end);
    deberta_text text = *in->given;
    asked_text after = {.given = &text, .tokenizer = in->tokenizer};
    deberta_tokens *tokens = NULL;
    *(segment == in->given->pair ? &text.pair : &text.text) = filled;
    *(segment == in->given->pair ? &text.pair_bytes : &text.text_bytes) = 0;
    text.max_tokens = 0; /* a cut would hide that the word is of several tokens */
    DEBERTA_TRY(deberta_tokenize(&tokens, in->tokenizer, &text, err));
    after.tokens = tokens;
    range.end = range.begin + strlen(word);
    *pieces = 0;
    *id = -1;
    for (size_t t = 0; t < tokens->count; t++) {
        if (!overlaps(&after, t, filled, range)) continue;
        const deberta_span span = deberta_token_place(tokens, t, filled).bytes;
        const bool is_word = span.end <= range.end && span.begin + strspn(filled + span.begin, " ") >= range.begin;
        *id = ++*pieces == 1 && is_word ? tokens->ids[t] : -1;
    }
    deberta_tokens_free(&tokens);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------------- labels */

void asked_pair_split(const common_options *options, const char *asked, const char **word, const char **other)
{
    const char *comma = *asked ? strchr(asked + 1, ',') : NULL;
    *word = comma ? options_text(options, "%.*s", (int)(comma - asked), asked) : asked;
    *other = comma ? comma + 1 : NULL;
}

static size_t find_label(const common_options *options, const deberta_model *model, size_t labels, const char *asked)
{
    for (size_t k = 0; k < labels; k++) {
        const char *name = deberta_model_label(model, k);
        if (strcmp(name ? name : options_text(options, "LABEL_%zu", k), asked) == 0) return k;
    }
    const bool is_number = *asked && !asked[strspn(asked, "0123456789")];
    const unsigned long long number = strtoull(asked, NULL, 10);
    return is_number && number < labels ? (size_t)number : SIZE_MAX;
}

const char *asked_labels_find(const common_options *options, const deberta_model *model, size_t labels,
                              const char *asked, size_t *label, size_t *other)
{
    *other = SIZE_MAX;
    *label = find_label(options, model, labels, asked);
    for (const char *comma = strchr(asked, ','); *label == SIZE_MAX && comma; comma = strchr(comma + 1, ',')) {
        *label = find_label(options, model, labels, options_text(options, "%.*s", (int)(comma - asked), asked));
        if (*label == SIZE_MAX) continue;
        *other = find_label(options, model, labels, comma + 1);
        return *other == SIZE_MAX ? comma + 1 : NULL;
    }
    return *label == SIZE_MAX ? asked : NULL;
}
