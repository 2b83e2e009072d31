/* Collects a figure's style, notes, caption and data, and writes the output files.
 *
 * A kind adds its notes before it describes the figure, because a figure takes a copy of the style.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/attention/figure_data.h"
#include "program/attention/figure_source.h"

enum { FIGURE_MOST_PROVENANCE = 16, FIGURE_HIGHEST_MM = 240 /* FIGURE_HIGHEST_MM: height of the text area of A4 */ };

typedef struct figure_sheet {
    const figure_source *source;
    figure_style style;  /* includes the note, which sheet_note extends */
    const char *caption; /* caption of the --latex file, which sheet_caption extends */
    figure_data data;    /* data of --numbers */
    bool wants_words;    /* true: the figure is to be drawn again in words */
    double pieces_mm;    /* then: its height in pieces; 0: these do not fit */
    provenance_entry provenance[FIGURE_MOST_PROVENANCE];
} figure_sheet;

/* Fills in style, provenance and the notes that every figure of the source needs. */
void sheet_open(figure_sheet *sheet, figure_source *source);

/* Describes which tokens a choice shows, in sentences that each end in a space; empty for all of them. */
const char *sheet_describe_tokens(const figure_source *source, const token_view_choice *choice);
/* Adds a sentence, ending in a space, to the note under the figure. */
void sheet_note(figure_sheet *sheet, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a sentence at the beginning of the caption, which says what the figure shows. Model, text, layers and heads
 * follow. */
void sheet_caption(figure_sheet *sheet, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add numbers for --numbers: a matrix of the view, and a column with a line for each head of the source. */
void sheet_add_matrix(figure_sheet *sheet, const char *name, size_t layer, size_t head, const float *values);
void sheet_add_numbers(figure_sheet *sheet, const char *name, const double *numbers, size_t count);

/* Keeps those options of a list, separated by commas, that the figure's kind takes and the caller did not give:
 * "--heads, --words or --drop-special". The result is empty if none is left. */
const char *sheet_remedies(const figure_sheet *sheet, const char *words);

/* Writes figure, data and LaTeX file, all or none, and says on stderr what the figure cannot show. */
void sheet_finish(const figure_sheet *sheet, figure_layout layout, const void *figure);
/* Does the same; *notes becomes what the layout noted. */
void sheet_write(const figure_sheet *sheet, figure_layout layout, const void *figure, figure_notes *notes);
