/* Collects a figure's style, notes, caption and data, and writes the output files.
 *
 * A kind adds its notes before it describes the figure, because a figure takes a copy of the style.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/attention/figure_data.h"
#include "program/attention/figure_source.h"

enum { FIGURE_MOST_PROVENANCE = 16, FIGURE_HIGHEST_MM = 240 /* of type, on A4 */ };

typedef struct figure_sheet {
    const figure_source *source;
    figure_style style;  /* with its note, which sheet_note makes longer */
    const char *caption; /* of --latex; sheet_caption makes it longer */
    figure_data data;    /* of --numbers */
    bool wants_words;    /* it is to be made again in words */
    provenance_entry provenance[FIGURE_MOST_PROVENANCE];
} figure_sheet;

/* Style, what must be said of every figure of the source, provenance. */
void sheet_open(figure_sheet *sheet, figure_source *source);

/* A sentence under the figure, ending in a space. */
void sheet_note(figure_sheet *sheet, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A sentence at the beginning of the caption: what the figure shows. Model, text, layers, heads follow. */
void sheet_caption(figure_sheet *sheet, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Numbers for --numbers: a matrix of the view, and a column with a line for each head of the source. */
void sheet_add_matrix(figure_sheet *sheet, const char *name, size_t layer, size_t head, const float *values);
void sheet_add_numbers(figure_sheet *sheet, const char *name, const double *numbers, size_t count);

/* Keeps from a list of options, parted by commas, those that the figure's kind takes and the caller did not give:
 * "--heads, --words or --drop-special". Empty if none is left. */
const char *sheet_remedies(const figure_sheet *sheet, const char *words);

/* Writes figure, data and LaTeX file, all or none, and says on stderr what the reader of the figure cannot see. */
void sheet_finish(const figure_sheet *sheet, figure_layout layout, const void *figure);
/* The same; notes: the facts that the figure's reader needs. */
void sheet_write(const figure_sheet *sheet, figure_layout layout, const void *figure, figure_notes *notes);
