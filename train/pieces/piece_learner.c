/* Repeats rounds of expectation, maximisation and pruning until the vocabulary has its size.
 *
 * SPDX-License-Identifier: MIT */
#include "train/pieces/piece_learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "train/state/exact_math.h"

enum {
    ROUND_STEPS = 2, /* steps of expectation and maximisation between two cuts */
};

#define FEWEST_EXPECTED 0.5  /* a candidate with a smaller expected count is dropped */
#define ROUND_KEEPS     0.75 /* share of the candidates that a round keeps */
#define LAST_ROUND      1.1  /* below this multiple of the wanted pieces, only the cut by probability is left */
/* Factor for every character. Probabilities of segmentations are products; the factor keeps them away from the smallest
 * numbers and cancels in every ratio. */
#define CHARACTER_SCALE 64.0

/* ------------------------------------------------------------------------------------------------------- candidates */

enum { MOST_SEEDS = 1000000 };

#define CHARACTER_COVERAGE 0.9995

static int by_falling_count(const void *a, const void *b)
{
    const struct text_count *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Finds the frequent characters that make up most of the texts. */
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

/* Counts all substrings of two to LONGEST_PIECE characters of a word. */
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

/* Selects the candidates: characters, and substrings that occur at least twice; if these are too many, those that cover
 * most text. */
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

/* Makes the candidates and their first probabilities, and marks the words that consist of covered characters. */
static deberta_status piece_candidates_make(piece_learner *l, deberta_error *err)
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

/* -------------------------------------------------------------------------------------------------------- the lattice */

static deberta_status build_trie(piece_learner *l, deberta_error *err)
{
    trie_key *keys = malloc((l->count + 1) * sizeof *keys);
    if (!keys) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the candidates of pieces");
    for (size_t i = 0; i < l->count; i++) {
        candidate *c = &l->items[i];
        keys[i] = (trie_key){candidate_text(l, c), c->bytes, (int32_t)i};
        c->score = exact_log(c->probability);
        l->scaled[i] = c->probability;
        for (size_t k = 0; k < c->length; k++) l->scaled[i] *= CHARACTER_SCALE;
    }
    trie_free(&l->trie);
    const deberta_status status = trie_build(&l->trie, keys, l->count, "pieces", err);
    free(keys);
    return status;
}

typedef void (*edge_visitor)(void *context, size_t begin, size_t end, size_t piece);

/* Finds all pieces in a text, ordered by begin, then by end. */
static void visit_edges(const piece_learner *l, const char *text, size_t bytes, edge_visitor visit, void *context)
{
    for (size_t begin = 0; begin < bytes; begin++) {
        int32_t node = TRIE_ROOT;
        if (utf8_is_continuation(text[begin])) continue;
        for (size_t end = begin; end < bytes; end++) {
            node = trie_step(&l->trie, node, text[end]);
            if (node == TRIE_NO_NODE) break;
            if (l->trie.nodes[node].value != TRIE_NO_VALUE)
                visit(context, begin, end + 1, (size_t)l->trie.nodes[node].value);
        }
    }
}

enum { MOST_EDGES = WORD_BYTES * LONGEST_PIECE };

typedef struct lattice {
    size_t count;
    struct {
        size_t begin, end, piece;
    } edges[MOST_EDGES];
} lattice;

static void add_edge(void *context, size_t begin, size_t end, size_t piece)
{
    lattice *paths = context;
    if (paths->count == MOST_EDGES) return;
    paths->edges[paths->count].begin = begin;
    paths->edges[paths->count].end = end;
    paths->edges[paths->count++].piece = piece;
}

/* Adds the expected counts of one word's pieces, and returns the logarithm of the word's probability. */
static double expect_word(piece_learner *l, const char *text, size_t bytes, double count)
{
    lattice paths = {.count = 0};
    double before[WORD_BYTES + 1] = {1}, behind[WORD_BYTES + 1] = {0};
    behind[bytes] = 1;
    visit_edges(l, text, bytes, add_edge, &paths);
    for (size_t k = 0; k < paths.count; k++)
        before[paths.edges[k].end] += before[paths.edges[k].begin] * l->scaled[paths.edges[k].piece];
    for (size_t k = paths.count; k-- > 0;)
        behind[paths.edges[k].begin] += behind[paths.edges[k].end] * l->scaled[paths.edges[k].piece];
    const double total = before[bytes], share = count / total;
    for (size_t k = 0; k < paths.count; k++)
        l->items[paths.edges[k].piece].expected +=
            share * before[paths.edges[k].begin] * l->scaled[paths.edges[k].piece] * behind[paths.edges[k].end];
    return exact_log(total) - (double)characters_in(text, bytes) * exact_log(CHARACTER_SCALE);
}

/* Computes the derivative of log gamma, whose exponential discounts a count (variational Bayes). */
static double digamma(double x)
{
    double sum = 0;
    for (; x < 8; x++) sum -= 1 / x;
    const double y = 1 / (x * x);
    return sum + exact_log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240))));
}

static deberta_status expect_and_maximise(piece_learner *l, deberta_error *err)
{
    double likelihood = 0, characters = 0, total = 0;
    size_t kept = 0;
    DEBERTA_TRY(build_trie(l, err));
    for (size_t i = 0; i < l->count; i++) l->items[i].expected = 0;
    for (size_t i = 0; i < l->words->count; i++) {
        const struct text_count *word = &l->words->items[i];
        const char *text = l->words->texts + word->begin;
        if (!l->usable[i]) continue;
        likelihood += word->count * expect_word(l, text, word->bytes, word->count);
        characters += word->count * (double)characters_in(text, word->bytes);
    }
    l->bits_per_character = -likelihood / characters / exact_log(2);
    for (size_t i = 0; i < l->count; i++) {
        candidate *c = &l->items[i];
        if (c->required && c->expected < FEWEST_EXPECTED) c->expected = FEWEST_EXPECTED;
        if (c->expected < FEWEST_EXPECTED) continue;
        total += c->expected;
        l->items[kept++] = *c;
    }
    l->count = kept;
    for (size_t i = 0; i < l->count; i++)
        l->items[i].probability = exact_exp(digamma(l->items[i].expected) - digamma(total));
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------- the best cut */

/* Finds the most probable segmentation of a text; without: a piece that it must not use, SIZE_MAX: none. */
typedef struct best_cut {
    const piece_learner *learner;
    size_t without;
    double score[WORD_BYTES + 1];
    size_t from[WORD_BYTES + 1], piece[WORD_BYTES + 1];
} best_cut;

static void offer_edge(void *context, size_t begin, size_t end, size_t piece)
{
    best_cut *b = context;
    const double score = b->score[begin] + b->learner->items[piece].score;
    if (piece == b->without || !(score > b->score[end])) return;
    b->score[end] = score;
    b->from[end] = begin;
    b->piece[end] = piece;
}

static bool cut_best(best_cut *b, const piece_learner *l, const char *text, size_t bytes, size_t without)
{
    b->learner = l;
    b->without = without;
    for (size_t i = 0; i <= bytes; i++) b->score[i] = -INFINITY;
    b->score[0] = 0;
    visit_edges(l, text, bytes, offer_edge, b);
    return isfinite(b->score[bytes]);
}

/* ----------------------------------------------------------------------------------------------------------- pruning */

static void count_uses(const piece_learner *l, double *uses)
{
    best_cut b;
    for (size_t i = 0; i < l->words->count; i++) {
        const struct text_count *word = &l->words->items[i];
        if (!l->usable[i] || !cut_best(&b, l, l->words->texts + word->begin, word->bytes, SIZE_MAX)) continue;
        for (size_t at = word->bytes; at > 0; at = b.from[at]) uses[b.piece[at]] += word->count;
    }
}

/* Returns the mean loss of a word's likelihood when other pieces replace the piece. */
static double loss_of(const piece_learner *l, size_t piece, const double *uses, double total)
{
    best_cut b;
    const candidate *c = &l->items[piece];
    if (c->required || !cut_best(&b, l, candidate_text(l, c), c->bytes, piece)) return INFINITY;
    if (b.score[c->bytes] > c->score || uses[piece] == 0) return -1; /* The piece is unused. */
    size_t parts = 0;
    for (size_t at = c->bytes; at > 0; at = b.from[at]) parts++;
    const double log_total = exact_log(total + uses[piece] * (double)(parts - 1));
    double others = 0;
    for (size_t at = c->bytes; at > 0; at = b.from[at])
        others += exact_log(uses[b.piece[at]] + uses[piece]) - log_total;
    return uses[piece] / total * (exact_log(uses[piece]) - exact_log(total) - others);
}

typedef struct ranked_candidate {
    double loss;
    size_t index;
} ranked_candidate;

static int by_falling_loss(const void *a, const void *b)
{
    const ranked_candidate *x = a, *y = b;
    if (x->loss != y->loss) return x->loss < y->loss ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static deberta_status prune(piece_learner *l, deberta_error *err)
{
    const double last = LAST_ROUND * (double)l->wanted, share = ROUND_KEEPS * (double)l->count;
    const size_t most = (size_t)(last > share ? last : share);
    double total = 0;
    DEBERTA_TRY(build_trie(l, err));
    double *uses = calloc(l->count + 1, sizeof *uses);
    ranked_candidate *ranked = calloc(l->count + 1, sizeof *ranked);
    candidate *kept = calloc(l->count + 1, sizeof *kept);
    const bool fits = uses && ranked && kept;
    if (fits) {
        size_t count = 0;
        count_uses(l, uses);
        for (size_t i = 0; i < l->count; i++) total += uses[i];
        for (size_t i = 0; i < l->count; i++) ranked[i] = (ranked_candidate){loss_of(l, i, uses, total), i};
        qsort(ranked, l->count, sizeof *ranked, by_falling_loss);
        while (count < l->count && ranked[count].loss >= 0 && (count < most || ranked[count].loss == INFINITY)) {
            kept[count] = l->items[ranked[count].index];
            count++;
        }
        memcpy(l->items, kept, count * sizeof *kept);
        l->count = count;
    }
    free(uses);
    free(ranked);
    free(kept);
    if (!fits) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the candidates of pieces");
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------------- all */

static int by_falling_score(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->probability != y->probability) return x->probability < y->probability ? 1 : -1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static int required_first(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return x->required != y->required ? (x->required ? -1 : 1) : by_falling_score(a, b);
}

/* Selects the characters and the most probable of the other candidates. */
static deberta_status piece_learner_finish(piece_learner *l, learned_pieces *pieces, deberta_error *err)
{
    if (l->count < l->wanted)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "the texts give %zu pieces besides [PAD], [CLS], [SEP] and [UNK], expected %zu: ask for fewer, or "
                     "give more text",
                     l->count, l->wanted);
    qsort(l->items, l->count, sizeof *l->items, required_first);
    qsort(l->items, l->wanted, sizeof *l->items, by_falling_score);
    pieces->items = calloc(l->wanted, sizeof *pieces->items);
    if (!pieces->items) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu pieces", l->wanted);
    pieces->texts = l->seeds.texts;
    l->seeds.texts = NULL;
    for (size_t i = 0; i < l->wanted; i++)
        pieces->items[i] = (learned_piece){
            .begin = l->items[i].begin, .bytes = l->items[i].bytes, .score = exact_log(l->items[i].probability)};
    pieces->count = l->wanted;
    pieces->bits_per_character = l->bits_per_character;
    return DEBERTA_OK;
}

static deberta_status learn(piece_learner *l, learned_pieces *pieces, deberta_error *err)
{
    DEBERTA_TRY(piece_candidates_make(l, err));
    for (;;) {
        for (int step = 0; step < ROUND_STEPS; step++) DEBERTA_TRY(expect_and_maximise(l, err));
        if ((double)l->count <= LAST_ROUND * (double)l->wanted) break;
        const size_t before = l->count;
        DEBERTA_TRY(prune(l, err));
        if (l->count == before) break;
    }
    return piece_learner_finish(l, pieces, err);
}

deberta_status piece_learner_run(learned_pieces *pieces, const text_counts *words, const text_counts *characters,
                                 size_t count, deberta_error *err)
{
    piece_learner l = {.words = words, .characters = characters, .wanted = count};
    *pieces = (learned_pieces){0};
    const deberta_status status = learn(&l, pieces, err);
    text_counts_free(&l.seeds);
    trie_free(&l.trie);
    free(l.items);
    free(l.scaled);
    free(l.usable);
    if (status != DEBERTA_OK) learned_pieces_free(pieces);
    return status;
}

void learned_pieces_free(learned_pieces *pieces)
{
    free(pieces->texts);
    free(pieces->items);
    *pieces = (learned_pieces){0};
}
