/* Cuts words by byte-level byte-pair encoding: neighbours merge in the order of their ranks.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/byte_bpe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/io/quote.h"

enum { MAX_ID = (1 << 24) - 1, NO_ID = -1 };

/* White space is written out: with UCP, PCRE2's \s also matches U+180E, which the reference does not. */
#define SPACES "\\x{9}-\\x{D} \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
static const char word_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d"
                                   "| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES "\\p{L}\\p{N}]+"
                                   "|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+";

typedef struct bpe_token {
    size_t begin, bytes; /* place in byte_bpe.texts; 0 bytes: no token has this id */
} bpe_token;

typedef struct bpe_merge {
    int32_t left, right; /* left is NO_ID in a free slot */
    int32_t merged;
    uint32_t rank;
} bpe_merge;

struct byte_bpe {
    char *texts; /* each terminated by NUL */
    size_t texts_bytes, texts_capacity;
    bpe_token *tokens; /* by id */
    size_t size, token_count, token_capacity;
    int32_t *slots; /* hash table from texts to ids; NO_ID: free. slot_count is a power of two, at most half is used */
    size_t slot_count;
    bpe_merge *merges; /* hash table from pairs, of the same kind */
    size_t merge_slots, merge_count;
    int32_t byte_ids[256]; /* NO_ID: not in the vocabulary */
    int32_t unknown_id;
    regex *words;
};

/* ----------------------------------------------------------------------------------------------- byte alphabet
 *
 * Printable bytes stand for themselves; the other 68 are, in order, U+0100 and following: 0-32, 127-160, 173. */

static uint32_t byte_character(unsigned char byte)
{
    if (byte < 33) return 0x100u + byte;
    if (byte >= 127 && byte <= 160) return 0x121u + (byte - 127u);
    return byte == 173 ? 0x143u : byte;
}

int byte_bpe_byte(uint32_t c)
{
    if (c >= 0x100 && c <= 0x120) return (int)(c - 0x100);
    if (c >= 0x121 && c <= 0x142) return (int)(c - 0x121 + 127);
    if (c == 0x143) return 173;
    return c < 0x100 && byte_character((unsigned char)c) == c ? (int)c : -1;
}

/* -------------------------------------------------------------------------------------------------- vocabulary */

deberta_status byte_bpe_create(byte_bpe **bpe, deberta_error *err)
{
    *bpe = calloc(1, sizeof **bpe);
    if (!*bpe) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a tokenizer");
    (*bpe)->unknown_id = NO_ID;
    deberta_status status = regex_compile(&(*bpe)->words, word_pattern, err);
    if (status != DEBERTA_OK) byte_bpe_free(bpe);
    return status;
}

void byte_bpe_free(byte_bpe **bpe)
{
    if (!*bpe) return;
    regex_free(&(*bpe)->words);
    free((*bpe)->texts);
    free((*bpe)->tokens);
    free((*bpe)->slots);
    free((*bpe)->merges);
    free(*bpe);
    *bpe = NULL;
}

size_t byte_bpe_size(const byte_bpe *bpe) { return bpe->size; }

const char *byte_bpe_token(const byte_bpe *bpe, int32_t id, size_t *bytes)
{
    if (id < 0 || (size_t)id >= bpe->size || bpe->tokens[id].bytes == 0) return NULL;
    if (bytes) *bytes = bpe->tokens[id].bytes;
    return bpe->texts + bpe->tokens[id].begin;
}

/* Hashes a text. The high half is used, because multiplication leaves the best bits there. */
static size_t hash_text(const char *text, size_t bytes)
{
    return (size_t)((hash_bytes(hash_of_nothing, text, bytes) * 0x9E3779B97F4A7C15u) >> 32);
}

/* Returns the slot of the text, or the free one where it belongs. */
static int32_t *find_slot(const byte_bpe *bpe, const char *text, size_t bytes)
{
    for (size_t at = hash_text(text, bytes);; at++) {
        int32_t *slot = &bpe->slots[at & (bpe->slot_count - 1)];
        if (*slot == NO_ID) return slot;
        const bpe_token *token = &bpe->tokens[*slot];
        if (token->bytes == bytes && memcmp(bpe->texts + token->begin, text, bytes) == 0) return slot;
    }
}

int32_t byte_bpe_find(const byte_bpe *bpe, const char *text, size_t bytes)
{
    return bpe->slot_count ? *find_slot(bpe, text, bytes) : NO_ID;
}

static bool reserve_slots(byte_bpe *bpe)
{
    if (2 * (bpe->token_count + 1) <= bpe->slot_count) return true;
    size_t count = bpe->slot_count ? 2 * bpe->slot_count : 1024;
    int32_t *slots = malloc(count * sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < count; i++) slots[i] = NO_ID;
    free(bpe->slots);
    bpe->slots = slots;
    bpe->slot_count = count;
    for (size_t id = 0; id < bpe->size; id++) {
        const bpe_token *token = &bpe->tokens[id];
        if (token->bytes > 0) *find_slot(bpe, bpe->texts + token->begin, token->bytes) = (int32_t)id;
    }
    return true;
}

static bool reserve_token(byte_bpe *bpe, size_t id, size_t bytes)
{
    char *texts = grown(bpe->texts, &bpe->texts_capacity, bpe->texts_bytes + bytes + 1, 1);
    if (!texts) return false;
    bpe->texts = texts;
    bpe_token *tokens = grown(bpe->tokens, &bpe->token_capacity, id + 1, sizeof *tokens);
    if (!tokens) return false;
    bpe->tokens = tokens;
    for (; bpe->size <= id; bpe->size++) tokens[bpe->size] = (bpe_token){0, 0};
    return reserve_slots(bpe);
}

deberta_status byte_bpe_add_token(byte_bpe *bpe, const char *text, size_t bytes, int64_t id, const char *where,
                                  deberta_error *err)
{
    quoted name = quote_bytes(text, bytes);
    if (id < 0 || id > MAX_ID)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: token '%s' has the id %lld, expected 0 to %d", where, name.text,
                     (long long)id, MAX_ID);
    if (bytes == 0 || !utf8_is_valid(text, bytes))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the token with id %lld ('%s') is empty or not UTF-8", where,
                     (long long)id, name.text);
    const char *other = byte_bpe_token(bpe, (int32_t)id, NULL);
    if (other)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tokens '%s' and '%s' share the id %lld", where, QUOTE(other),
                     name.text, (long long)id);
    if (byte_bpe_find(bpe, text, bytes) != NO_ID)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: token '%s' has two ids", where, name.text);
    if (!reserve_token(bpe, (size_t)id, bytes))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for %zu tokens", where, bpe->token_count + 1);

    bpe->tokens[id] = (bpe_token){.begin = bpe->texts_bytes, .bytes = bytes};
    memcpy(bpe->texts + bpe->texts_bytes, text, bytes);
    bpe->texts[bpe->texts_bytes + bytes] = '\0';
    bpe->texts_bytes += bytes + 1;
    *find_slot(bpe, text, bytes) = (int32_t)id;
    bpe->token_count++;
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------ merges */

static bpe_merge *find_merge(const byte_bpe *bpe, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (size_t at = (size_t)((key * 0x9E3779B97F4A7C15u) >> 32);; at++) {
        bpe_merge *slot = &bpe->merges[at & (bpe->merge_slots - 1)];
        if (slot->left == NO_ID || (slot->left == left && slot->right == right)) return slot;
    }
}

static bool reserve_merges(byte_bpe *bpe)
{
    if (2 * (bpe->merge_count + 1) <= bpe->merge_slots) return true;
    bpe_merge *old = bpe->merges;
    size_t old_slots = bpe->merge_slots, slots = old_slots ? 2 * old_slots : 1024;
    bpe_merge *merges = malloc(slots * sizeof *merges);
    if (!merges) return false;
    for (size_t i = 0; i < slots; i++) merges[i].left = NO_ID;
    bpe->merges = merges;
    bpe->merge_slots = slots;
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].left != NO_ID) *find_merge(bpe, old[i].left, old[i].right) = old[i];
    free(old);
    return true;
}

deberta_status byte_bpe_add_merge(byte_bpe *bpe, const char *left, size_t left_bytes, const char *right,
                                  size_t right_bytes, const char *where, deberta_error *err)
{
    int32_t left_id = byte_bpe_find(bpe, left, left_bytes), right_id = byte_bpe_find(bpe, right, right_bytes);
    if (left_id == NO_ID || right_id == NO_ID)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: '%s' is not in the vocabulary", where,
                     left_id == NO_ID ? QUOTE_N(left, left_bytes) : QUOTE_N(right, right_bytes));

    char *merged = malloc(left_bytes + right_bytes);
    if (!merged || !reserve_merges(bpe)) {
        free(merged);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for %zu merges", where, bpe->merge_count + 1);
    }
    memcpy(merged, left, left_bytes);
    memcpy(merged + left_bytes, right, right_bytes);
    int32_t merged_id = byte_bpe_find(bpe, merged, left_bytes + right_bytes);
    quoted name = quote_bytes(merged, left_bytes + right_bytes);
    free(merged);
    if (merged_id == NO_ID)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: '%s', the result of the merge, is not in the vocabulary", where,
                     name.text);

    bpe_merge *slot = find_merge(bpe, left_id, right_id);
    if (slot->left != NO_ID)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the merge to '%s' is there twice", where, name.text);
    *slot = (bpe_merge){.left = left_id, .right = right_id, .merged = merged_id, .rank = (uint32_t)bpe->merge_count++};
    return DEBERTA_OK;
}

deberta_status byte_bpe_add_merge_line(byte_bpe *bpe, const char *line, size_t bytes, const char *where,
                                       deberta_error *err)
{
    size_t symbols = 0, at = 0;
    text_span symbol[2];
    while (at < bytes) {
        size_t begin = at;
        while (at < bytes && line[at] != ' ') at++;
        if (at > begin && symbols < 2) symbol[symbols] = (text_span){begin, at};
        if (at > begin) symbols++;
        at++;
    }
    if (symbols != 2)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: '%s' holds %zu symbols, expected 2", where, QUOTE_N(line, bytes),
                     symbols);
    return byte_bpe_add_merge(bpe, line + symbol[0].begin, symbol[0].end - symbol[0].begin, line + symbol[1].begin,
                              symbol[1].end - symbol[1].begin, where, err);
}

deberta_status byte_bpe_finish(byte_bpe *bpe, int32_t unknown_id, const char *where, deberta_error *err)
{
    bpe->unknown_id = unknown_id;
    if (!reserve_merges(bpe)) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its merges", where);
    for (size_t byte = 0; byte < 256; byte++) {
        char text[UTF8_MAX_BYTES];
        const size_t bytes = utf8_encode(text, byte_character((unsigned char)byte));
        bpe->byte_ids[byte] = byte_bpe_find(bpe, text, bytes);
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------- encoding */

/* Notes the pair of the symbol and its right neighbour if it can be merged. New pairs wait until all pairs of the
 * current rank are done, because the rule merges every occurrence of a pair before it looks for the next. */
static bool note_pair(const byte_bpe *bpe, byte_bpe_workspace *w, uint32_t at)
{
    const merge_symbol *symbols = w->merges.symbols;
    uint32_t next = symbols[at].next;
    if (next == w->merges.bytes || symbols[at].what == NO_ID || symbols[next].what == NO_ID) return true;
    const bpe_merge *merge = find_merge(bpe, symbols[at].what, symbols[next].what);
    if (merge->left == NO_ID) return true;
    merge_pair *fresh = grown(w->fresh, &w->fresh_capacity, w->fresh_count + 1, sizeof *fresh);
    if (!fresh) return false;
    w->fresh = fresh;
    fresh[w->fresh_count++] =
        (merge_pair){.rank = merge->rank, .at = at, .end = symbols[next].next, .merged = merge->merged};
    return true;
}

static bool merge_all(const byte_bpe *bpe, byte_bpe_workspace *w)
{
    merge_list *merges = &w->merges;
    merge_pair pair = {.rank = 0}; /* the last one */
    for (;;) {
        if (merges->heap_count == 0 || merges->heap[0].rank != pair.rank) {
            for (size_t i = 0; i < w->fresh_count; i++)
                if (!merge_list_push(merges, w->fresh[i])) return false;
            w->fresh_count = 0;
        }
        if (merges->heap_count == 0) return true;
        if (!merge_list_take(merges, &pair)) continue;
        uint32_t previous = merges->symbols[pair.at].previous;
        if (previous != MERGE_NO_SYMBOL && !note_pair(bpe, w, previous)) return false;
        if (!note_pair(bpe, w, pair.at)) return false;
    }
}

/* Makes the symbols of a word and merges them. */
static bool cut_word(const byte_bpe *bpe, byte_bpe_workspace *w, const char *word, size_t bytes)
{
    uint32_t previous = MERGE_NO_SYMBOL;
    if (!merge_list_begin(&w->merges, bytes)) return false;
    for (size_t i = 0; i < bytes; i++)
        merge_list_add(&w->merges, i, i + 1, bpe->byte_ids[(unsigned char)word[i]], &previous);
    w->fresh_count = 0;
    for (size_t i = 0; i < bytes; i++)
        if (!note_pair(bpe, w, (uint32_t)i)) return false;
    return merge_all(bpe, w);
}

static deberta_status append_word(const byte_bpe *bpe, const merge_list *merges, text_span word, token_list *list,
                                  deberta_error *err)
{
    for (size_t at = 0; at < merges->bytes; at = merges->symbols[at].next) {
        const merge_symbol *symbol = &merges->symbols[at];
        int32_t id = symbol->what == NO_ID ? bpe->unknown_id : symbol->what;
        size_t bytes = 0;
        const char *text = byte_bpe_token(bpe, id, &bytes);
        assert(text);
        text_span span = {word.begin + at, word.begin + symbol->next};
        DEBERTA_TRY(token_list_append(list, id, text, bytes, span, TOKEN_TEXT, err));
    }
    return DEBERTA_OK;
}

deberta_status byte_bpe_encode(const byte_bpe *bpe, byte_bpe_workspace *w, const char *text, size_t bytes,
                               token_list *list, deberta_error *err)
{
    for (size_t at = 0; at < bytes;) {
        bool found;
        text_span word = {at, bytes};
        DEBERTA_TRY(regex_find(bpe->words, &w->match, text, bytes, at, &found, &word.begin, &word.end, err));
        assert(found && word.begin == at && word.end > at); /* every character is of one of the kinds in the pattern */
        if (!cut_word(bpe, w, text + word.begin, word.end - word.begin))
            DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to cut a word of %zu bytes", word.end - word.begin);
        DEBERTA_TRY(append_word(bpe, &w->merges, word, list, err));
        at = word.end;
    }
    return DEBERTA_OK;
}

void byte_bpe_workspace_free(byte_bpe_workspace *workspace)
{
    regex_match_free(&workspace->match);
    merge_list_free(&workspace->merges);
    free(workspace->fresh);
    *workspace = (byte_bpe_workspace){0};
}
