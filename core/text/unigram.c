/* Finds the best segmentation of a text, character by character (Viterbi's algorithm).
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/unigram.h"

#include <float.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/text.h"

/* An unknown character scores this much less than the worst piece. */
static const float unknown_penalty = 10;

#define NOT_REACHED UINT32_MAX /* begin of a step that no path reaches */

struct unigram {
    trie trie;
    double *scores; /* by id */
    double unknown_score;
    int32_t unknown_id;
    bool sums_in_double;
};

/* ----------------------------------------------------------------------------------------------------- loading */

/* Loads the scores. A user-defined piece scores as much as the best piece in every byte, so that it is always chosen.
 * If all scores are negative, the best counts as the smallest positive number, because the library begins its search
 * there. */
static void load_scores(unigram *u, const piece_model *model)
{
    float least = FLT_MAX, best = FLT_MIN;
    for (size_t i = 0; i < model->count; i++) {
        if (model->pieces[i].type != PIECE_NORMAL) continue;
        const float score = (float)model->pieces[i].score;
        if (score < least) least = score;
        if (score > best) best = score;
    }
    u->unknown_score = (double)(least - unknown_penalty);
    for (size_t i = 0; i < model->count; i++) {
        const piece *p = &model->pieces[i];
        float per_byte = (float)p->bytes * best;
        u->scores[i] = p->type == PIECE_USER_DEFINED ? (double)per_byte - 0.1 : p->score;
    }
}

/* Loads the scores as the library `tokenizers` does: it searches all pieces, including [PAD], for the worst score. */
static void load_scores_of_tokenizers(unigram *u, const piece_model *model)
{
    double least = DBL_MAX;
    for (size_t i = 0; i < model->count; i++) {
        u->scores[i] = model->pieces[i].score;
        if (u->scores[i] < least) least = u->scores[i];
    }
    u->unknown_score = least - (double)unknown_penalty;
    u->sums_in_double = true;
}

static deberta_status load(unigram *u, const piece_model *model, const char *where, deberta_error *err)
{
    u->unknown_id = model->unknown_id;
    DEBERTA_TRY(piece_model_trie(model, PIECES_OF_TEXT, &u->trie, where, err));
    size_t found = 0;
    for (size_t i = 0; i < u->trie.count; i++) {
        int32_t *id = &u->trie.nodes[i].value;
        found += *id != TRIE_NO_VALUE;
        if (*id != TRIE_NO_VALUE && model->pieces[*id].type == PIECE_UNUSED) *id = TRIE_NO_VALUE;
    }
    if (found == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: none of its pieces is for text", where);

    u->scores = malloc(model->count * sizeof *u->scores);
    if (!u->scores) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for %zu pieces", where, model->count);
    if (model->of_tokenizers)
        load_scores_of_tokenizers(u, model);
    else
        load_scores(u, model);
    return DEBERTA_OK;
}

deberta_status unigram_create(unigram **unigram_out, const piece_model *model, const char *where, deberta_error *err)
{
    *unigram_out = calloc(1, sizeof **unigram_out);
    if (!*unigram_out) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a tokenizer", where);
    deberta_status status = load(*unigram_out, model, where, err);
    if (status != DEBERTA_OK) unigram_free(unigram_out);
    return status;
}

void unigram_free(unigram **u)
{
    if (!*u) return;
    trie_free(&(*u)->trie);
    free((*u)->scores);
    free(*u);
    *u = NULL;
}

void unigram_workspace_free(unigram_workspace *workspace)
{
    free(workspace->steps);
    *workspace = (unigram_workspace){0};
}

/* ----------------------------------------------------------------------------------------------------- cutting */

/* Replaces the step if the score is larger; of equal ones the first stays. SentencePiece compares the sum as a double
 * and stores it as a float. */
static inline void offer(const unigram *u, unigram_step *step, double score, size_t begin, int32_t id)
{
    if (step->begin == NOT_REACHED || score > step->score)
        *step = (unigram_step){
            .score = u->sums_in_double ? score : (double)(float)score, .begin = (uint32_t)begin, .id = id};
}

static size_t character_bytes(char first)
{
    unsigned char byte = (unsigned char)first;
    return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/* Offers every piece that begins at a byte to the step where it ends. */
static void step_from(const unigram *u, unigram_step *steps, const char *text, size_t begin, size_t bytes)
{
    const size_t character_end = begin + character_bytes(text[begin]);
    const double so_far = steps[begin].score;
    bool covered = false; /* whether some piece is exactly this character */
    int32_t node = TRIE_ROOT;
    for (size_t end = begin; end < bytes;) {
        node = trie_step(&u->trie, node, text[end++]);
        if (node == TRIE_NO_NODE) break;
        int32_t id = u->trie.nodes[node].value;
        if (id == TRIE_NO_VALUE) continue;
        offer(u, &steps[end], u->scores[id] + so_far, begin, id);
        if (end == character_end) covered = true;
    }
    if (!covered) {
        double score = u->unknown_score + so_far;
        if (!u->sums_in_double) score = (double)((float)u->unknown_score + (float)so_far);
        offer(u, &steps[character_end], score, begin, u->unknown_id);
    }
}

/* Collects the cuts from the last step back to the beginning. */
static bool collect(const unigram_step *steps, size_t bytes, piece_cuts *cuts)
{
    size_t count = 0;
    for (size_t end = bytes; end > 0; end = steps[end].begin) count++;
    piece_cut *items = grown(cuts->items, &cuts->capacity, count, sizeof *items);
    if (!items) return false;
    cuts->items = items;
    cuts->count = count;
    for (size_t end = bytes; end > 0; end = steps[end].begin)
        items[--count] = (piece_cut){.end = (uint32_t)end, .id = steps[end].id};
    return true;
}

deberta_status unigram_cut(const unigram *u, unigram_workspace *w, const char *text, size_t bytes, piece_cuts *cuts,
                           deberta_error *err)
{
    unigram_step *steps = grown(w->steps, &w->capacity, bytes + 1, sizeof *steps);
    if (!steps) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to cut a text of %zu bytes", bytes);
    w->steps = steps;
    steps[0].score = 0;
    for (size_t i = 1; i <= bytes; i++) steps[i].begin = NOT_REACHED;
    for (size_t at = 0; at < bytes; at += character_bytes(text[at])) step_from(u, steps, text, at, bytes);
    if (!collect(steps, bytes, cuts))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to cut a text of %zu bytes", bytes);
    return DEBERTA_OK;
}
