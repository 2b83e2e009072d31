/* Writes the attributions of a text as text and as JSON, and draws them. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "include/deberta_unstable.h"
#include "program/frame/figure_latex.h"
#include "program/tasks/task_run.h"
#include "viz/figure.h"

/* Attributions of one text and the answer they explain. Names and tokens live as long as the options. */
typedef struct attributed_text {
    const deberta_attribution *found;
    const char *head;
    const char *answer, *contrast; /* contrast: NULL: none */
    size_t answer_index, contrast_index;
    const char *of, *method, *baseline, *parts;
    const char *asked;           /* token whose logits are explained; NULL: those of the text */
    size_t asked_token;          /* index of that token */
    const figure_label *tokens;  /* [found->tokens] */
    const deberta_place *places; /* [found->tokens] spans in the text */
    unsigned changed;            /* set of DEBERTA_ATTRIBUTE_WORDS ... */
    const char *text, *pair;     /* text and second segment of a figure as they were read; pair: NULL: none */
    const char *model, *digest;  /* model of a figure, and its digest; NULL where a figure is anonymous */
    const char *latex;           /* value of --latex; NULL: none */
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
