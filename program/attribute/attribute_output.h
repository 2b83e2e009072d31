/* Writes the attributions of a text for a person and as JSON, and draws them. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "include/deberta_unstable.h"
#include "program/tasks/task_run.h"
#include "viz/figure.h"

/* Attributions of one text and what they are of. Names and tokens live as long as the options. */
typedef struct attributed_text {
    const deberta_attribution *found;
    const char *model, *head;
    const char *answer, *contrast; /* contrast NULL: none */
    size_t answer_index, contrast_index;
    const char *of, *method, *baseline, *parts;
    const char *asked;           /* the token whose logits these are; NULL: the text's */
    size_t asked_token;          /* its number */
    const figure_label *tokens;  /* [found->tokens] */
    const deberta_place *places; /* [found->tokens] in the text */
    unsigned changed;            /* DEBERTA_ATTRIBUTE_WORDS ... */
} attributed_text;

/* "logit of “good”", for a person. Lives as long as the options. */
const char *attribute_answer_text(const common_options *options, const attributed_text *text);
void attribute_show(FILE *out, const common_options *options, const attributed_text *text);
json_t *attribute_describe(const attributed_text *text);

/* Draws an attributed_text: the tokens as shaded text, and bars over distances (output_drawing). */
deberta_status attribute_draw(const void *text, const figure_style *style, const char *const *paths, size_t path_count,
                              deberta_error *err);
