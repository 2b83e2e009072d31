/* Writes matrices and columns as CSV, or as safetensors with labels in the metadata.
 *
 * SPDX-License-Identifier: MIT */
#include "program/attention/figure_data.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/text.h"
#include "output/text_table.h"
#include "program/frame/unfinished.h"

enum { MOST_NOTES = 24 };

/* ---------------------------------------------------------------------------------------------------- collecting */

void figure_data_add_matrix(figure_data *data, figure_matrix matrix)
{
    data->matrices =
        options_grown(data->options, data->matrices, &data->matrix_capacity, data->matrix_count, sizeof matrix);
    data->matrices[data->matrix_count++] = matrix;
}

void figure_data_add_column(figure_data *data, figure_column column)
{
    data->columns =
        options_grown(data->options, data->columns, &data->column_capacity, data->column_count, sizeof column);
    data->columns[data->column_count++] = column;
}

/* ----------------------------------------------------------------------------------------------------------- CSV */

static void csv_text(FILE *out, const char *text)
{
    print_csv_cell(text, out);
    fputc(',', out);
}

/* Writes a number of a CSV file: 9 digits give a float back exactly, 12 are enough for a double. The sign of a NaN is
 * dropped, as it has no meaning. */
static void csv_number(FILE *out, double value, int digits, char end)
{
    if (isnan(value))
        fprintf(out, "nan%c", end);
    else
        fprintf(out, "%.*g%c", digits, value, end);
}

/* Number of matrices from `first` on that belong to the same layer and head; they share the lines of the file. */
static size_t block_length(const figure_data *data, size_t first)
{
    const figure_matrix *matrices = data->matrices;
    size_t end = first + 1;
    while (end < data->matrix_count && matrices[end].layer == matrices[first].layer &&
           matrices[end].head == matrices[first].head)
        end++;
    return end - first;
}

static void csv_block(FILE *out, const figure_data *data, size_t first, size_t count)
{
    const figure_matrix *block = data->matrices + first;
    for (size_t cell = 0; cell < block->rows * block->columns && !ferror(out); cell++) {
        const size_t i = cell / block->columns, j = cell % block->columns;
        if (block->layer != no_index) fprintf(out, "%zu,", block->layer);
        if (block->head != no_index) fprintf(out, "%zu,", block->head);
        fprintf(out, "%zu,%zu,", data->row_numbers ? data->row_numbers[i] : i,
                data->column_numbers ? data->column_numbers[j] : j);
        if (data->row_labels) csv_text(out, data->row_labels[i].text);
        if (data->column_labels) csv_text(out, data->column_labels[j].text);
        for (size_t k = 0; k < count; k++)
            csv_number(out, (double)block[k].values[cell], 9, k + 1 < count || data->words ? ',' : '\n');
        if (data->words) fputs("1\n", out);
    }
}

static void csv_matrices(FILE *out, const figure_data *data)
{
    const size_t each = block_length(data, 0);
    if (data->matrices->layer != no_index) fputs("layer,", out);
    if (data->matrices->head != no_index) fputs("head,", out);
    fprintf(out, "%s,%s,", data->row_axis, data->column_axis);
    if (data->row_labels) fprintf(out, "%s_label,", data->row_axis);
    if (data->column_labels) fprintf(out, "%s_label,", data->column_axis);
    for (size_t k = 0; k < each; k++) fprintf(out, "%s%s", k ? "," : "", data->matrices[k].name);
    fputs(data->words ? ",words\n" : "\n", out);
    for (size_t first = 0; first < data->matrix_count; first += each) csv_block(out, data, first, each);
}

static void csv_columns(FILE *out, const figure_data *data)
{
    const size_t last = data->column_count - 1;
    for (size_t k = 0; k <= last; k++) fprintf(out, "%s%s", k ? "," : "", data->columns[k].name);
    fputs(data->words ? ",words\n" : "\n", out);
    for (size_t line = 0; line < data->line_count && !ferror(out); line++) {
        for (size_t k = 0; k <= last; k++)
            if (data->columns[k].texts)
                csv_text(out, data->columns[k].texts[line]);
            else
                csv_number(out, data->columns[k].numbers[line], 12, k < last || data->words ? ',' : '\n');
        if (data->words) fputs("1\n", out);
    }
}

static deberta_status write_csv(const figure_data *data, const char *path, atomic_file **file, deberta_error *err)
{
    FILE *out;
    unfinished_hold();
    const deberta_status made = atomic_file_open(file, path, err);
    unfinished_add(made == DEBERTA_OK ? atomic_file_temporary(*file) : NULL); /* long texts take seconds */
    DEBERTA_TRY(made);
    DEBERTA_TRY(atomic_file_stream(&out, *file, err));
    if (data->matrix_count)
        csv_matrices(out, data);
    else
        csv_columns(out, data);
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------- safetensors */

/* Collects the metadata: the provenance, and values that tensors cannot hold. */
typedef struct note_list {
    const common_options *options;
    export_note notes[MOST_NOTES];
    size_t count;
} note_list;

static const char *clean(const note_list *list, const char *text)
{
    char *drawn = draw_clean_text(text);
    const char *kept = options_text(list->options, "%s", drawn);
    free(drawn);
    return kept;
}

static void add_note(note_list *list, const char *key, const char *value)
{
    if (list->count < MOST_NOTES) list->notes[list->count++] = (export_note){key, value};
}

/* Adds a list to the metadata, as JSON. */
static void add_list(note_list *list, const char *key, json_t *array)
{
    char *text = array ? json_dumps(array, JSON_COMPACT) : NULL;
    if (!text) memory_short();
    add_note(list, key, options_text(list->options, "%s", text));
    json_decref(array);
    free(text);
}

static void add_labels(note_list *list, const char *axis, const figure_label *labels, size_t count)
{
    if (!labels) return;
    json_t *array = json_array();
    for (size_t k = 0; k < count; k++) json_array_append_new(array, json_string(clean(list, labels[k].text)));
    add_list(list, options_text(list->options, "%s_labels", axis), array);
}

static void add_numbers(note_list *list, const char *axis, const size_t *numbers, size_t count)
{
    if (!numbers) return;
    json_t *array = json_array();
    for (size_t k = 0; k < count; k++) json_array_append_new(array, json_integer((json_int_t)numbers[k]));
    add_list(list, options_text(list->options, "%s_numbers", axis), array);
}

static void add_texts(note_list *list, const figure_column *column, size_t count)
{
    json_t *array = json_array();
    for (size_t k = 0; k < count; k++) json_array_append_new(array, json_string(clean(list, column->texts[k])));
    add_list(list, column->name, array);
}

static void collect_notes(note_list *list, const figure_data *data, const provenance_entry *provenance, size_t count)
{
    const size_t rows = data->matrix_count ? data->matrices->rows : 0,
                 columns = data->matrix_count ? data->matrices->columns : 0;
    for (size_t k = 0; k < count; k++) add_note(list, provenance[k].key, clean(list, provenance[k].value));
    if (data->words) add_note(list, "Words", "pieces are merged into words");
    if (data->note) add_note(list, "Note", clean(list, data->note));
    add_labels(list, data->row_axis, data->row_labels, rows);
    add_labels(list, data->column_axis, data->column_labels, columns);
    add_numbers(list, data->row_axis, data->row_numbers, rows);
    add_numbers(list, data->column_axis, data->column_numbers, columns);
    for (size_t k = 0; k < data->column_count; k++)
        if (data->columns[k].texts) add_texts(list, &data->columns[k], data->line_count);
}

static const char *tensor_name(const common_options *options, const figure_matrix *matrix)
{
    const char *head = matrix->head == no_index ? "" : options_text(options, "head.%zu.", matrix->head);
    return matrix->layer == no_index ? options_text(options, "%s%s", head, matrix->name)
                                     : options_text(options, "layer.%zu.%s%s", matrix->layer, head, matrix->name);
}

/* Declares one tensor for each matrix and each column of numbers. */
static size_t declare(const figure_data *data, export_tensor *tensors)
{
    size_t count = 0;
    for (size_t k = 0; k < data->matrix_count; k++) {
        const figure_matrix *matrix = &data->matrices[k];
        tensors[count++] =
            (export_tensor){tensor_name(data->options, matrix), DTYPE_F32, 2, {matrix->rows, matrix->columns}};
    }
    for (size_t k = 0; k < data->column_count; k++)
        if (data->columns[k].numbers)
            tensors[count++] = (export_tensor){data->columns[k].name, DTYPE_F32, 1, {data->line_count}};
    return count;
}

static deberta_status write_values(const figure_data *data, export_file *file, deberta_error *err)
{
    size_t tensor = 0;
    for (; tensor < data->matrix_count; tensor++) {
        const figure_matrix *matrix = &data->matrices[tensor];
        DEBERTA_TRY(export_write(file, tensor, 0, matrix->values, matrix->rows * matrix->columns, err));
    }
    for (size_t k = 0; k < data->column_count; k++) {
        if (!data->columns[k].numbers) continue;
        for (size_t line = 0; line < data->line_count; line++) {
            const float value = (float)data->columns[k].numbers[line];
            DEBERTA_TRY(export_write(file, tensor, line, &value, 1, err));
        }
        tensor++;
    }
    return DEBERTA_OK;
}

static deberta_status write_safetensors(const figure_data *data, const char *path, const provenance_entry *provenance,
                                        size_t provenance_count, export_file **file, deberta_error *err)
{
    note_list notes = {.options = data->options};
    collect_notes(&notes, data, provenance, provenance_count);
    export_tensor *tensors = options_take(data->options, data->matrix_count + data->column_count, sizeof *tensors);
    const size_t count = declare(data, tensors);
    unfinished_hold();
    const deberta_status made = export_safetensors(file, path, tensors, count, notes.notes, notes.count, err);
    unfinished_add(made == DEBERTA_OK ? export_temporary(*file) : NULL);
    DEBERTA_TRY(made);
    return write_values(data, *file, err);
}

/* --------------------------------------------------------------------------------------------------------- files */

bool figure_data_knows_suffix(const char *path)
{
    return path_has_suffix(path, ".csv") || path_has_suffix(path, ".safetensors");
}

deberta_status figure_data_write(const figure_data *data, const char *path, const provenance_entry *provenance,
                                 size_t provenance_count, figure_data_file *file, deberta_error *err)
{
    *file = (figure_data_file){0};
    return path_has_suffix(path, ".csv")
               ? write_csv(data, path, &file->csv, err)
               : write_safetensors(data, path, provenance, provenance_count, &file->tensors, err);
}

deberta_status figure_data_commit(figure_data_file *file, deberta_error *err)
{
    deberta_status status = DEBERTA_OK;
    if (file->csv) status = atomic_file_commit(&file->csv, err);
    if (file->tensors) status = export_finish(&file->tensors, err);
    unfinished_done();
    return status;
}

void figure_data_discard(figure_data_file *file)
{
    atomic_file_discard(&file->csv);
    export_discard(&file->tensors);
    unfinished_done();
}
