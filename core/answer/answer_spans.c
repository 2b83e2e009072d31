/* Finds the spans of a context that answer a question: softmaxes of the logits of begins and ends, and the most
 * probable pairs.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/base/status.h"
#include "include/deberta_unstable.h"

#define EMPTY (-1.0) /* in place of the probability of an empty token */

/* Softmaxes of the logits of one text: index 0 is [CLS], index k is the token first + k - 1. */
typedef struct span_scores {
    size_t first, count; /* first token of the context, and number of its tokens */
    double *begin, *end; /* [count + 1] */
} span_scores;

static void find_context(const deberta_tokens *tokens, span_scores *scores)
{
    scores->first = scores->count = 0;
    for (size_t t = 0; t < tokens->count; t++) {
        if (tokens->token_types[t] != 1 || tokens->roles[t] == DEBERTA_TOKEN_FRAME) continue;
        if (scores->count++ == 0) scores->first = t;
    }
}

size_t deberta_context_tokens(const deberta_tokens *tokens)
{
    span_scores scores;
    find_context(tokens, &scores);
    return scores.count;
}

static deberta_status score(span_scores *scores, const float *logits, deberta_error *err)
{
    const size_t room = scores->count + 1;
    float *column = malloc(room * sizeof *column);
    scores->begin = malloc(room * sizeof *scores->begin);
    scores->end = malloc(room * sizeof *scores->end);
    const bool fine = column && scores->begin && scores->end;
    for (size_t side = 0; fine && side < 2; side++) {
        column[0] = logits[side];
        for (size_t k = 0; k < scores->count; k++) column[k + 1] = logits[2 * (scores->first + k) + side];
        deberta_softmax(side ? scores->end : scores->begin, column, room);
    }
    free(column);
    if (!fine) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the answers of %zu tokens", scores->count);
    return DEBERTA_OK;
}

/* Returns whether a token has no place of its own: a lone space mark, or any but the last of those that share a
 * character. */
static bool is_empty(const deberta_tokens *tokens, size_t token, const char *context)
{
    const deberta_span bytes = deberta_token_place(tokens, token, context).bytes;
    return bytes.begin >= bytes.end;
}

/* Adds what is carried to a value, or carries on the value of an empty token. */
static void carry(double *carried, double *value, bool empty)
{
    const double sum = *carried + *value;
    *carried = empty ? sum : 0;
    *value = empty ? EMPTY : sum;
}

/* Gives the probability of an empty token's begin to the next token and that of its end to the one before, because
 * they mean the same place there. So the product of two ends is the sum over all spans of tokens with that place. */
static void join_empty(span_scores *scores, const deberta_tokens *tokens, const char *context)
{
    double begin = 0, end = 0;
    for (size_t k = 1; k <= scores->count; k++)
        carry(&begin, &scores->begin[k], is_empty(tokens, scores->first + k - 1, context));
    for (size_t k = scores->count; k > 0; k--)
        carry(&end, &scores->end[k], is_empty(tokens, scores->first + k - 1, context));
}

static size_t later(size_t a, size_t b) { return a > b ? a : b; }

static deberta_place place_of(const deberta_tokens *tokens, const char *context, size_t begin, size_t end)
{
    const deberta_place first = deberta_token_place(tokens, begin, context);
    const deberta_place last = deberta_token_place(tokens, end, context);
    return (deberta_place){
        .bytes = {first.bytes.begin, later(last.bytes.end, first.bytes.begin)},
        .characters = {first.characters.begin, later(last.characters.end, first.characters.begin)},
    };
}

/* Collects the best spans in descending order; among equal ones the first comes first. A span is given by its first and
 * last token, both of which belong to it. */
static size_t best_spans(const span_scores *scores, size_t longest, deberta_answer *answers, size_t top)
{
    size_t held = 0;
    for (size_t b = 1; b <= scores->count; b++)
        for (size_t e = b; e <= scores->count && e - b < longest; e++) {
            const double probability = scores->begin[b] * scores->end[e];
            if (scores->begin[b] == EMPTY || scores->end[e] == EMPTY) continue;
            if (held == top && !(probability > answers[held - 1].probability)) continue;
            size_t place = held < top ? held++ : held - 1;
            for (; place > 0 && probability > answers[place - 1].probability; place--)
                answers[place] = answers[place - 1];
            answers[place] = (deberta_answer){
                .first_token = scores->first + b - 1, .last_token = scores->first + e - 1, .probability = probability};
        }
    return held;
}

deberta_status deberta_answers(deberta_answer *answers, size_t *count, double *no_answer, const deberta_tokens *tokens,
                               const char *context, const float *logits, size_t longest, deberta_error *err)
{
    span_scores scores = {0};
    find_context(tokens, &scores);
    const deberta_status status = score(&scores, logits, err);
    if (status == DEBERTA_OK) {
        join_empty(&scores, tokens, context);
        *count = *count ? best_spans(&scores, longest, answers, *count) : 0;
        for (size_t k = 0; k < *count; k++)
            answers[k].place = place_of(tokens, context, answers[k].first_token, answers[k].last_token);
        *no_answer = scores.begin[0] * scores.end[0];
    }
    free(scores.begin);
    free(scores.end);
    return status;
}
