/* Writes the attributions of a text for a person and as JSON, and draws them. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "include/deberta_unstable.h"
#include "program/frame/figure_latex.h"
#include "program/tasks/task_run.h"
#include "viz/figure.h"

/* Attributions of one text and what they are of. Names and tokens live as long as the options. */
typedef struct attributed_text {
    const deberta_attribution *found;
    const char *head;
    const char *answer, *contrast; /* contrast NULL: none */
    size_t answer_index, contrast_index;
    const char *of, *method, *baseline, *parts;
    const char *asked;           /* the token whose logits these are; NULL: the text's */
    size_t asked_token;          /* its number */
    const figure_label *tokens;  /* [found->tokens] */
    const deberta_place *places; /* [found->tokens] in the text */
    unsigned changed;            /* DEBERTA_ATTRIBUTE_WORDS ... */
    const char *text, *pair;     /* as they were read, of a figure; NULL: no second segment */
    const char *model, *digest;  /* of a figure */
    const char *latex;           /* --latex; NULL: none */
    const common_options *options;
} attributed_text;

/* Returns a token's name without the mark of a word's beginning. */
const char *attribute_word(const char *token);
bool attribute_has_positions(const deberta_attribution *attribution);
/* Returns the size of the largest attribution. */
double attribute_largest(const deberta_attribution *attribution);
void attribute_show(FILE *out, const common_options *options, const attributed_text *text);
json_t *attribute_describe(const attributed_text *text);

/* Writes a line for each token and part, and for each row of the relative table and term, into a .csv. */
deberta_status attribute_write_numbers(const common_options *options, const attributed_text *text, const char *path,
                                       deberta_error *err);
/* Draws an attributed_text: the tokens as shaded text, and bars over distances (output_drawing). */
deberta_status attribute_draw(const void *text, const figure_style *style, const char *const *paths, size_t path_count,
                              deberta_error *err);
