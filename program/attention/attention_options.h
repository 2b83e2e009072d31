/* Parses the options of `deberta attention` once, and declares the rows that kinds of figures put into their tables.
 *
 * Every kind takes the rows of the input, of the page and of the files. Each kind's own tables, made of the rows below,
 * select its part and its look: a kind lists the options it takes, and the parser refuses the rest.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/attention/token_view.h"
#include "program/frame/ablate.h"
#include "program/frame/figure_style.h"
#include "viz/attention_figure.h"

/* Sets of components, one bit for each. */
enum {
    SHOW_TERMS = 1u << DEBERTA_C2C | 1u << DEBERTA_C2P | 1u << DEBERTA_P2C,
    SHOW_LOGITS = 1u << DEBERTA_LOGITS,
    SHOW_PROBABILITIES = 1u << DEBERTA_PROBABILITIES,
    SHOW_ALL = SHOW_TERMS | SHOW_LOGITS | SHOW_PROBABILITIES
};

/* Values of some options, in the order of their lists of words. */
typedef enum figure_measure { MEASURE_VARIANCE, MEASURE_SHAPLEY, MEASURE_KL, MEASURES } figure_measure;
typedef enum figure_form { FORM_MAP, FORM_BARS } figure_form;
typedef enum figure_statistic { STATISTIC_MEDIAN, STATISTIC_MEAN } figure_statistic;
typedef enum figure_centre { CENTRE_ROW, CENTRE_NONE } figure_centre;
extern const char *const figure_measures[], *const figure_forms[], *const figure_statistics[], *const figure_centres[];

/* Cells by their positions in the text, as --mark gives them. */
typedef struct cell_list {
    const attention_mark *items; /* [count] */
    size_t count;
} cell_list;

/* What `attention trace` corrupts, which answer it follows, and what it patches. */
typedef struct trace_choice {
    const char *corrupted, *mask_word, *swap, *noise; /* each NULL or a value; exactly one is given */
    double noise_scale;
    const char *answer, *label;
    size_t at; /* position of the answer; SIZE_MAX: that of the only [MASK] */
    int mlm_decoder, direction;
    unsigned parts; /* set of trace_part bits */
} trace_choice;

typedef struct attention_options {
    reading_options reading;
    size_t row; /* row of the input */

    const char *layers, *heads; /* lists of indices */
    unsigned components;        /* set of SHOW_ bits */
    token_view_choice shown;    /* --token-range, --words, --drop-special */
    const char *query;          /* number of a token of the text, or a word; NULL: none */
    const char *against;        /* folder of the other model */
    ablation_list against_ablated;
    double threshold, ribbon;
    int measure, form, statistic; /* values of figure_measure, figure_form, figure_statistic */

    heatmap_choice scales[HEATMAP_KINDS];
    const char *scale_text[HEATMAP_KINDS]; /* what --scale said of each kind; NULL: nothing */
    text_list scale_texts;                 /* all that it said */
    int palette, signed_palette;           /* indices in palette_list; -1: the defaults */
    int centre;                            /* a figure_centre */
    bool logarithmic, annotate, letters;
    cell_list marks;
    size_t columns; /* panels side by side; 0: as many as fit */

    trace_choice trace;

    figure_style style;
    bool anonymous;
    const char *data, *latex; /* paths of files, or NULL */
} attention_options;

#define ATTENTION_DEFAULTS                                                                                             \
    .shown = {.end = SIZE_MAX}, .threshold = 0.05, .ribbon = 0.1, .palette = -1, .signed_palette = -1

/* room for a list such as "c2c,probs" */
enum { COMPONENT_LIST_BYTES = 48 };
void component_list(unsigned components, char text[COMPONENT_LIST_BYTES]);
/* Checks the options that need no model: the names of the files, the font. */
void attention_options_check(const attention_options *asked);

/* ---------------------------------------------------------------------------------------------------------- tables */

enum { FIGURE_MOST_PATHS = 16 };
extern const option attention_input_rows[], attention_page_rows[], attention_file_rows[];

extern const char *const component_choices[]; /* names of the components, NULL-terminated */
void components_parse(common_options *options, const char *text, void *target);
void tokens_parse(common_options *options, const char *text, void *target);
void scale_parse(common_options *options, const char *text, void *target);
void mark_parse(common_options *options, const char *text, void *target);

/* clang-format off */
#define NO_MORE_ROWS {.name = NULL}
#define HEADS_ROWS \
    {"layers", 0, "LIST", "layers, counted from 0: all, or such as 0,3-5", TEXT_AT(attention_options, layers), \
     .tells_default = true}, \
    {"heads", 0, "LIST", "heads, counted from 0, in the same way", TEXT_AT(attention_options, heads), \
     .tells_default = true}
#define TOKENS_ROWS \
    {"token-range", 0, "A:B", "show tokens A to B-1 of the text only", PARSED_AT(attention_options, shown, tokens_parse)}, \
    {"drop-special", 0, NULL, "leave special tokens out; nothing is renormalised", \
     FLAG_AT(attention_options, shown.drop_special)}, \
    {"words", 0, NULL, "merge pieces into words (what white space separates; scripts without it keep pieces): " \
     "probabilities are added over the keys of a word and averaged over its queries, logits averaged over both; heat maps do " \
     "so themselves where pieces have no room, or make a high figure higher", FLAG_AT(attention_options, shown.words)}, \
    {"pieces", 0, NULL, "never merge them, also where they have no room", FLAG_AT(attention_options, shown.pieces), \
     .not_with = "words"}
#define PART_ROWS HEADS_ROWS, TOKENS_ROWS
#define COMPONENTS_ROW \
    {"components", 0, "LIST", "some of c2c,c2p,p2c,logits,probs (default: what the figure shows)", \
     PARSED_AT(attention_options, components, components_parse), .choices = component_choices}
#define QUERY_ROW \
    {"query", 0, "QUERY", "this query only: a number, counted in tokens of the text from 0, or a word that is shown once", \
     TEXT_AT(attention_options, query)}
#define CURVES_ROWS \
    {"statistic", 0, "WHAT", "the curve: median (default of distance) or mean (of kernel)", \
     CHOICE_AT(attention_options, statistic, figure_statistics)}, \
    {"ribbon", 0, "PART", "what the ribbon leaves out on each side (default 0.1)", \
     NUMBER_AT(attention_options, ribbon, 0, 0.5)}

#define CENTER_ROW \
    {"center", 0, "WHAT", "row: subtract what is constant over the keys, which a softmax ignores (default); none", \
     CHOICE_AT(attention_options, centre, figure_centres)}
#define SCALE_ROW \
    {"scale", 0, "SCALE", "shared: one colour scale for all panels of a kind (default); row: one a row; panel: one each; robust[:P]: " \
     "to percentile P (default 99), clipped cells counted; LOW,HIGH: signed panels if LOW < 0, else the others, and " \
     "above 0 with --log; may be repeated", PARSED_AT(attention_options, scales, scale_parse), .adds_up = true}
#define PALETTE_ROW \
    {"palette", 0, "NAME", "of what cannot be negative: blues (default), greys, viridis, cividis, magma, polar", \
     CHOICE_AT(attention_options, palette, palette_list)}
#define SIGNED_PALETTE_ROW \
    {"signed-palette", 0, "NAME", "of signed panels: the same names (default polar, which is diverging)", \
     CHOICE_AT(attention_options, signed_palette, palette_list)}
#define LOG_ROW \
    {"log", 0, NULL, "probabilities in logarithmic colours", FLAG_AT(attention_options, logarithmic)}
#define ANNOTATE_ROW \
    {"annotate", 0, NULL, "the number in every cell", FLAG_AT(attention_options, annotate)}
#define MARK_ROW \
    {"mark", 0, "QUERY,KEY", "outline this cell, counted in tokens of the text from 0; may be repeated", \
     PARSED_AT(attention_options, marks, mark_parse), .adds_up = true}
#define LETTERS_ROW \
    {"letters", 0, NULL, "a, b, c before the titles of panels", FLAG_AT(attention_options, letters)}
#define LAYOUT_ROW \
    {"layout", 0, "COLUMNS", "panels side by side (default: as many as leave room for the tokens)", \
     SIZE_AT(attention_options, columns, 1, 100)}
/* clang-format on */
