/* Chooses the tokens that a masked language model must guess, as spans of words or singly, and replaces them by [MASK],
 * by others, or by themselves.
 *
 * SPDX-License-Identifier: MIT */
#include "train/data/masking.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/numbers.h"
#include "train/state/step_batch.h"

#define HIDDEN_SHARE  0.8 /* share of the labelled pieces that become [MASK] */
#define CHANGED_ABOVE 0.9 /* above this draw the piece becomes a random one; between the two it stays */

enum {
    FRAME = 2,        /* [CLS] and [SEP] */
    WHOLE_PIECES = 8, /* most pieces of an ordinary word; a longer one is treated as single pieces */
    SPARE_PARTS = 8,  /* the last word may exceed the quota by one part in this many */
};

typedef struct masking_job {
    const masking_options *options;
    counter_draws *draws;
    int32_t *ids, *labels;
    size_t count, quota, labelled;
    size_t *words; /* [words + 1]: first token of each, and the end of the last */
    size_t word_count;
    uint8_t *selected; /* [words] */
} masking_job;

static void label_piece(masking_job *job, size_t t)
{
    const double share = job->options->hides_all ? 0 : counter_fraction(job->draws);
    job->labels[t] = job->ids[t];
    job->labelled++;
    if (share < HIDDEN_SHARE)
        job->ids[t] = job->options->mask_id;
    else if (share >= CHANGED_ABOVE)
        job->ids[t] = (int32_t)counter_below(job->draws, job->options->vocabulary);
}

/* ---------------------------------------------------------------------------------------------------------- n-grams */

/* Finds words. With spans of one word every piece is a separate word, as in Microsoft's code. The same holds where a
 * word would have more pieces than ordinary ones, or than may be labelled: a protein, a long number or address is all
 * one word. */
static void find_words(masking_job *job, const uint8_t *begins)
{
    const size_t end = job->count - 1, most = job->options->max_ngram == 1 ? 1 : minimum(WHOLE_PIECES, job->quota);
    for (size_t t = 1, next; t < end; t = next) {
        for (next = t + 1; next < end && !begins[next];) next++;
        const size_t step = next - t <= most ? next - t : 1;
        for (size_t piece = t; piece < next; piece += step) job->words[job->word_count++] = piece;
    }
    job->words[job->word_count] = end;
}

/* Draws n with a probability proportional to 1 / n. */
static size_t draw_ngram(masking_job *job)
{
    const size_t most = job->options->max_ngram;
    double whole = 0, sum = 0;
    for (size_t n = 1; n <= most; n++) whole += 1 / (double)n;
    const double share = counter_fraction(job->draws);
    for (size_t n = 1; n < most; n++) {
        sum += 1 / (double)n;
        if (share < sum / whole) return n;
    }
    return most;
}

/* One stretch of n words is selected in a window of n times floor(1 / probability): 6 n for 15 %, as in Microsoft's
 * code. */
static void select_words(masking_job *job)
{
    const size_t windows = (size_t)(1 / job->options->probability);
    for (size_t at = 0; at < job->word_count;) {
        const size_t n = draw_ngram(job), window = minimum(windows * n, job->word_count - at);
        const size_t first = at + counter_below(job->draws, window);
        for (size_t word = first; word < minimum(first + n, job->word_count); word++) job->selected[word] = 1;
        at = maximum(at + window, first + n);
    }
}

static void mask_ngrams(masking_job *job, const uint8_t *begins)
{
    find_words(job, begins);
    select_words(job);
    for (size_t word = 0; word < job->word_count && job->labelled < job->quota; word++) {
        if (!job->selected[word]) continue;
        /* Cuts a word that would exceed the quota by more than SPARE_PARTS allows. */
        const size_t left = job->quota - job->labelled, pieces = job->words[word + 1] - job->words[word];
        const size_t labelled = pieces <= left + job->quota / SPARE_PARTS ? pieces : left;
        for (size_t t = job->words[word]; t < job->words[word] + labelled; t++) label_piece(job, t);
    }
}

/* ---------------------------------------------------------------------------------------------------------- uniform */

/* Shuffles by Fisher and Yates, until the quota is reached. */
static void mask_uniform(masking_job *job)
{
    const size_t pieces = job->count - FRAME;
    for (size_t i = 0; i < pieces; i++) job->words[i] = i + 1;
    for (size_t i = 0; i < minimum(job->quota, pieces); i++) {
        const size_t j = i + counter_below(job->draws, pieces - i), chosen = job->words[j];
        job->words[j] = job->words[i];
        label_piece(job, chosen);
    }
}

/* nearbyint rounds halves to even, as Python's round does. */
static size_t quota_of(const masking_options *options, size_t count)
{
    const double share = options->probability;
    const size_t most = 10 * (size_t)ceil(share * (double)options->full_tokens / 10);
    return maximum(1, minimum(most, (size_t)nearbyint(share * (double)count)));
}

deberta_status mask_sequence(const masking_options *options, counter_draws *draws, size_t count, int32_t *ids,
                             const uint8_t *begins, int32_t *labels, deberta_error *err)
{
    masking_job job = {.options = options, .draws = draws, .ids = ids, .labels = labels, .count = count};
    for (size_t t = 0; t < count; t++) labels[t] = NOT_LABELLED;
    if (count <= FRAME) return DEBERTA_OK;
    job.quota = quota_of(options, count);
    job.words = malloc(count * sizeof *job.words);
    job.selected = calloc(count, sizeof *job.selected);
    const bool fine = job.words && job.selected;
    if (fine && options->kind == DEBERTA_MASKING_UNIFORM) mask_uniform(&job);
    if (fine && options->kind == DEBERTA_MASKING_NGRAM) mask_ngrams(&job, begins);
    free(job.words);
    free(job.selected);
    if (!fine) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to mask a text of %zu tokens", count);
    return DEBERTA_OK;
}
