/* Selects and labels the tokens that a figure shows: all, a range, without special ones, pieces merged into words.
 *
 * A view has `count` rows and columns; each stands for one or more tokens of the text. Matrices are captured whole and
 * brought into the view's shape by token_view_matrix.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "output/scope.h"
#include "program/frame/input/input.h"
#include "viz/figure.h"

/* Choice by --words, --pieces, --drop-special, --token-range. */
typedef struct token_view_choice {
    bool words, drop_special;
    bool pieces;       /* never words, whatever fits */
    bool fitted;       /* words because pieces do not fit */
    size_t first, end; /* tokens [first, end) of the text; end SIZE_MAX: to its end */
} token_view_choice;

typedef struct token_view {
    scope memory;         /* of all that follows */
    size_t row;           /* of the input */
    size_t first_token;   /* of the batch, where the text begins */
    size_t span[2];       /* 0 and the tokens of the text: a batch of this text alone */
    size_t count;         /* of what is shown */
    size_t *starts;       /* [count + 1] into members */
    size_t *members;      /* tokens of the text, ascending */
    size_t *tokens;       /* [count] the token of the text that each begins with */
    figure_label *names;  /* [count] what the data calls them */
    figure_label *labels; /* [count] what stands beside rows: "·ll" for a piece inside a word, grey what is no word */
    size_t boundary;      /* what the second segment begins with; 0: there is none to be seen */
    bool whole;           /* shows every token as it is */
} token_view;

/* Rule by which the tokens of a word become one. Probabilities add up over keys, so that rows still add up to 1, and
 * are averaged over queries, which are alternatives. Logits do not add up: they are averaged over both. */
typedef enum token_view_rule {
    TOKEN_VIEW_MEAN,
    TOKEN_VIEW_SUM_KEYS,
    TOKEN_VIEW_SHOWN /* is so already */
} token_view_rule;
token_view_rule token_view_rule_of(deberta_component component);

/* DEBERTA_E_ARGUMENT where the choice shows nothing of the row, or asks for words or special tokens of bare ids. */
deberta_status token_view_make(token_view *view, const input_batch *input, size_t row, const token_view_choice *choice,
                               deberta_error *err);
void token_view_free(token_view *view);

/* matrix: [n][n] of the whole text; out: [count][count]. */
void token_view_matrix(const token_view *view, const float *matrix, token_view_rule rule, float *out);
/* The row that shows a token of the text; SIZE_MAX: none does. */
size_t token_view_place(const token_view *view, size_t token);
/* The tokens that rows begin with where they are not 0, 1, 2 ...: what axes and data count. NULL: they are. */
const size_t *token_view_numbers(const token_view *view);
/* Describes the view for a reader, one sentence for each fact, with a space after it; empty for a whole view. The
 * sentences depend on which of probabilities and logits are shown. */
void token_view_describe(const token_view *view, const token_view_choice *choice, bool probabilities, bool logits,
                         char *text, size_t capacity);
/* Number of rows and columns of the view if pieces were merged; its present number if they cannot be. *uneven, unless
 * it is NULL: whether one word would hold more than a third of the pieces, as in a text without white space. */
size_t token_view_count_words(const token_view *view, const input_batch *input, const token_view_choice *choice,
                              bool *uneven);
