/* Writes the numbers of a figure, `--numbers FILE`: named matrices, or named columns of equal length.
 *
 * .csv: matrices become one line a cell (layer and head where there are any, both numbers, both labels, then one column
 * for each name); columns become columns. Where pieces were merged into words, a last column "words" is 1.
 * .safetensors: a F32 tensor each, "layer.0.head.3.c2c" or the bare name; labels, texts and numbers that are not 0, 1,
 * 2 ... as JSON lists in the metadata, with the provenance. Cells are those of the model, neither centred nor pooled.
 *
 * Everything is borrowed and must live until the writing. SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/atomic_file.h"
#include "core/io/export.h"
#include "program/frame/options.h"
#include "viz/figure.h"

static const size_t no_index = SIZE_MAX; /* layer or head of a matrix that belongs to none */

typedef struct figure_matrix {
    const char *name;    /* name such as "c2c" */
    size_t layer, head;  /* or no_index, then in all matrices of the file */
    const float *values; /* [rows][columns] */
    size_t rows, columns;
} figure_matrix;

typedef struct figure_column {
    const char *name;
    const double *numbers;    /* [line_count] or NULL */
    const char *const *texts; /* [line_count] instead of numbers */
} figure_column;

typedef struct figure_data {
    const common_options *options;                  /* owner of the lists' memory */
    bool words;                                     /* true: pieces were merged into words, which a column says */
    const char *note;                               /* sentences below the figure, for the metadata; NULL: none */
    const char *row_axis, *column_axis;             /* names of the axes: "query", "key" */
    const figure_label *row_labels, *column_labels; /* or NULL */
    const size_t *row_numbers, *column_numbers;     /* token numbers in the text; NULL: 0, 1, 2 ... */
    figure_matrix *matrices;
    size_t matrix_count, matrix_capacity;
    figure_column *columns;
    size_t column_count, column_capacity, line_count; /* line_count: length of each column */
} figure_data;

/* Add to the data. Matrices of one layer and head follow each other and have one shape; all columns have line_count
 * lines. */
void figure_data_add_matrix(figure_data *data, figure_matrix matrix);
void figure_data_add_column(figure_data *data, figure_column column);

/* A data file that is complete but still has a temporary name, so that it appears together with the figure or not at
 * all. */
typedef struct figure_data_file {
    atomic_file *csv;
    export_file *tensors;
} figure_data_file;

/* Returns true if the suffix of the path is .csv or .safetensors. */
bool figure_data_knows_suffix(const char *path);
deberta_status figure_data_write(const figure_data *data, const char *path, const provenance_entry *provenance,
                                 size_t provenance_count, figure_data_file *file, deberta_error *err);
deberta_status figure_data_commit(figure_data_file *file, deberta_error *err);
void figure_data_discard(figure_data_file *file);
