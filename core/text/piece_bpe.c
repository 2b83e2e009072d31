/* Merges the characters of a text into SentencePiece's pieces.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/piece_bpe.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"

/* A symbol is its node in the trie of pieces, or TRIE_NO_NODE if no piece begins with it, or: */
enum { FROZEN = -2 }; /* a user-defined piece, which is never merged */

struct piece_bpe {
    const piece_model *model;
    trie pieces, user_defined;
};

deberta_status piece_bpe_create(piece_bpe **bpe_out, const piece_model *model, const char *where, deberta_error *err)
{
    piece_bpe *bpe = *bpe_out = calloc(1, sizeof *bpe);
    if (!bpe) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a tokenizer", where);
    bpe->model = model;
    deberta_status status = piece_model_trie(model, PIECES_OF_TEXT, &bpe->pieces, where, err);
    if (status == DEBERTA_OK)
        status = piece_model_trie(model, 1u << PIECE_USER_DEFINED, &bpe->user_defined, where, err);
    if (status != DEBERTA_OK) piece_bpe_free(bpe_out);
    return status;
}

void piece_bpe_free(piece_bpe **bpe)
{
    if (!*bpe) return;
    trie_free(&(*bpe)->pieces);
    trie_free(&(*bpe)->user_defined);
    free(*bpe);
    *bpe = NULL;
}

void piece_bpe_workspace_free(piece_bpe_workspace *workspace)
{
    merge_list_free(&workspace->merges);
    free(workspace->halves);
    *workspace = (piece_bpe_workspace){0};
}

/* ----------------------------------------------------------------------------------------------------- merging */

/* Returns a rank that grows as the score falls (finite; 0 and -0 are equal). The bits of negative numbers grow as the
 * numbers fall; those of positive numbers are inverted and come first. */
static uint32_t rank_of(float score)
{
    uint32_t bits;
    score += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? bits : ~bits & 0x7FFFFFFFu;
}

/* Records how an unused piece was merged. Such a piece takes part in merging, but is split again at the end, in the way
 * in which it was last considered anywhere in this text. */
static bool note_halves(const piece_bpe *bpe, piece_bpe_workspace *w, int32_t id, uint32_t left_bytes)
{
    if (!w->has_halves) {
        uint32_t *halves = grown(w->halves, &w->halves_capacity, bpe->model->count, sizeof *halves);
        if (!halves) return false;
        w->halves = memset(halves, 0, bpe->model->count * sizeof *halves);
        w->has_halves = true;
    }
    w->halves[id] = left_bytes;
    return true;
}

/* Pushes the pair of the symbol and its right neighbour if it can be merged. */
static bool push_pair(const piece_bpe *bpe, piece_bpe_workspace *w, const char *text, uint32_t at)
{
    const merge_symbol *symbols = w->merges.symbols;
    uint32_t middle = symbols[at].next;
    if (symbols[at].what < 0 || middle == w->merges.bytes || symbols[middle].what == FROZEN) return true;
    uint32_t end = symbols[middle].next;
    int32_t node = trie_walk(&bpe->pieces, symbols[at].what, text + middle, end - middle);
    int32_t id = node == TRIE_NO_NODE ? TRIE_NO_VALUE : bpe->pieces.nodes[node].value;
    if (id == TRIE_NO_VALUE) return true;
    const piece *p = &bpe->model->pieces[id];
    if (p->type == PIECE_UNUSED && !note_halves(bpe, w, id, middle - at)) return false;
    return merge_list_push(&w->merges,
                           (merge_pair){.rank = rank_of((float)p->score), .at = at, .end = end, .merged = node});
}

static bool merge_all(const piece_bpe *bpe, piece_bpe_workspace *w, const char *text)
{
    merge_list *merges = &w->merges;
    merge_pair pair;
    while (merges->heap_count > 0) {
        if (!merge_list_take(merges, &pair)) continue;
        uint32_t previous = merges->symbols[pair.at].previous;
        if (previous != MERGE_NO_SYMBOL && !push_pair(bpe, w, text, previous)) return false;
        if (!push_pair(bpe, w, text, pair.at)) return false;
    }
    return true;
}

/* Makes symbols of the characters and of the user-defined pieces, and merges them. */
static bool merge_text(const piece_bpe *bpe, piece_bpe_workspace *w, const char *text, size_t bytes)
{
    uint32_t previous = MERGE_NO_SYMBOL, character;
    w->has_halves = false;
    if (!merge_list_begin(&w->merges, bytes)) return false;
    for (size_t at = 0, length; at < bytes; at += length) {
        length = trie_longest(&bpe->user_defined, text + at, bytes - at);
        bool frozen = length > 0;
        if (!frozen) length = utf8_decode(text + at, bytes - at, &character);
        int32_t node = frozen ? FROZEN : trie_walk(&bpe->pieces, TRIE_ROOT, text + at, length);
        merge_list_add(&w->merges, at, at + length, node, &previous);
    }
    for (size_t at = 0; at < bytes; at = w->merges.symbols[at].next)
        if (!push_pair(bpe, w, text, (uint32_t)at)) return false;
    return merge_all(bpe, w, text);
}

/* ----------------------------------------------------------------------------------------------------- cutting */

static int32_t find_piece(const piece_bpe *bpe, const char *text, size_t bytes)
{
    int32_t node = trie_walk(&bpe->pieces, TRIE_ROOT, text, bytes);
    int32_t id = node == TRIE_NO_NODE ? TRIE_NO_VALUE : bpe->pieces.nodes[node].value;
    return id == TRIE_NO_VALUE ? bpe->model->unknown_id : id;
}

/* Returns the piece that begins at a symbol. An unused piece becomes the left of its halves, and the right one becomes
 * a symbol. */
static piece_cut cut_at(const piece_bpe *bpe, const piece_bpe_workspace *w, const char *text, uint32_t at)
{
    merge_symbol *symbols = w->merges.symbols;
    for (;;) {
        uint32_t end = symbols[at].next;
        int32_t id = find_piece(bpe, text + at, end - at);
        uint32_t left_bytes = w->has_halves ? w->halves[id] : 0;
        if (left_bytes == 0) return (piece_cut){.end = end, .id = id};
        symbols[at].next = at + left_bytes;
        symbols[at + left_bytes].next = end;
    }
}

deberta_status piece_bpe_cut(const piece_bpe *bpe, piece_bpe_workspace *w, const char *text, size_t bytes,
                             piece_cuts *cuts, deberta_error *err)
{
    if (!merge_text(bpe, w, text, bytes)) goto no_memory;
    cuts->count = 0;
    for (uint32_t at = 0; at < bytes;) {
        piece_cut *items = grown(cuts->items, &cuts->capacity, cuts->count + 1, sizeof *items);
        if (!items) goto no_memory;
        cuts->items = items;
        items[cuts->count] = cut_at(bpe, w, text, at);
        at = items[cuts->count++].end;
    }
    return DEBERTA_OK;
no_memory:
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to cut a text of %zu bytes", bytes);
}
