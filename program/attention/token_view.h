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
    bool pieces;       /* true: never words, whatever fits */
    bool fitted;       /* true: words were chosen because pieces do not fit, or make the figure higher */
    double pieces_mm;  /* height of the figure of pieces, if fitted; 0: they do not fit */
    size_t first, end; /* tokens [first, end) of the text; end SIZE_MAX: to its end */
} token_view_choice;

typedef struct token_view {
    scope memory;         /* owner of all memory below */
    size_t row;           /* row of the input */
    size_t first_token;   /* column of the batch where the text begins */
    size_t span[2];       /* bounds {0, tokens of the text} of a batch of this text alone */
    size_t count;         /* number of rows and columns shown */
    size_t *starts;       /* [count + 1] offsets into members */
    size_t *members;      /* tokens of the text, ascending */
    size_t *tokens;       /* [count] first text token of each row */
    figure_label *names;  /* [count] names in the data */
    figure_label *labels; /* [count] labels beside rows: "·ll" for a piece inside a word, grey for special tokens */
    size_t boundary;      /* row where the second segment begins; 0: none is shown */
    bool whole;           /* true: every token is shown as it is */
} token_view;

/* How the tokens of a word become one. Probabilities are summed over keys, so that rows still sum to 1, and averaged
 * over queries, which are alternatives. Logits do not sum to anything, so they are averaged over both. */
typedef enum token_view_rule {
    TOKEN_VIEW_MEAN,
    TOKEN_VIEW_SUM_KEYS,
    TOKEN_VIEW_SHOWN /* values that already have the shape of the view */
} token_view_rule;
token_view_rule token_view_rule_of(deberta_component component);

/* Makes a view of one row. Fails with DEBERTA_E_ARGUMENT if the choice shows nothing of the row, or if it asks for
 * words or special tokens of bare ids. */
deberta_status token_view_make(token_view *view, const input_batch *input, size_t row, const token_view_choice *choice,
                               deberta_error *err);
void token_view_free(token_view *view);

/* Merges a matrix. matrix: [n][n] of the whole text; out: [count][count]. */
void token_view_matrix(const token_view *view, const float *matrix, token_view_rule rule, float *out);
/* Returns the row that shows a token of the text; SIZE_MAX if none does. */
size_t token_view_place(const token_view *view, size_t token);
/* Returns the first token of each row, which axes and data show; NULL if these are 0, 1, 2 ... */
const size_t *token_view_numbers(const token_view *view);
/* Describes the view for a reader, one sentence for each fact, with a space after it; empty for a whole view. The
 * sentences depend on which of probabilities and logits are shown. */
void token_view_describe(const token_view *view, const token_view_choice *choice, bool probabilities, bool logits,
                         char *text, size_t capacity);
/* Returns the number of rows of the view if pieces were merged, or its present number if they cannot be. *uneven,
 * unless NULL, becomes true if one word would hold more than a third of the pieces, as in a text without white
 * space. */
size_t token_view_count_words(const token_view *view, const input_batch *input, const token_view_choice *choice,
                              bool *uneven);
