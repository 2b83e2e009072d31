/* SPDX-License-Identifier: MIT */
#include "cli/figures/figure_data.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/run.h"
#include "core/base/grow.h"
#include "core/base/path.h"
#include "output/byte_buffer.h"

enum { PIECE_BYTES = 1 << 20, MOST_NOTES = 24 };

/* ---------------------------------------------------------------------------------------------------- collecting */

deberta_status figure_data_add_matrix(figure_data *data, const figure_matrix *matrix, deberta_error *err)
{
    figure_matrix *matrices = grown(data->matrices, &data->matrix_capacity, data->matrix_count + 1, sizeof *matrices);
    if (!matrices) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    data->matrices = matrices;
    data->matrices[data->matrix_count++] = *matrix;
    return DEBERTA_OK;
}

static deberta_status add_column(figure_data *data, figure_column column, size_t count, deberta_error *err)
{
    if (data->column_count == FIGURE_MOST_COLUMNS || (data->column_count && data->line_count != count))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "column '%s' of %zu values does not fit beside %zu columns of %zu",
                     column.name, count, data->column_count, data->line_count);
    data->columns[data->column_count++] = column;
    data->line_count = count;
    return DEBERTA_OK;
}

deberta_status figure_data_add_numbers(figure_data *data, const char *name, const double *numbers, size_t count,
                                       deberta_error *err)
{
    return add_column(data, (figure_column){.name = name, .numbers = numbers}, count, err);
}

deberta_status figure_data_add_texts(figure_data *data, const char *name, const char *const *texts, size_t count,
                                     deberta_error *err)
{
    return add_column(data, (figure_column){.name = name, .texts = texts}, count, err);
}

void figure_data_free(figure_data *data)
{
    free(data->matrices);
    *data = (figure_data){0};
}

/* ----------------------------------------------------------------------------------------------------------- CSV */

/* Lines on their way into the file, a piece at a time: a long text has millions. */
typedef struct csv_writer {
    atomic_file *file;
    byte_buffer text;
    uint64_t written_bytes;
    deberta_status status;
    deberta_error *err;
} csv_writer;

static void csv_flush(csv_writer *csv)
{
    if (csv->status == DEBERTA_OK && csv->text.failed)
        csv->status = status_fail(csv->err, DEBERTA_E_MEMORY, "no memory for a file of numbers");
    if (csv->status == DEBERTA_OK)
        csv->status = atomic_file_write(csv->file, csv->written_bytes, csv->text.data, csv->text.size_bytes, csv->err);
    csv->written_bytes += csv->text.size_bytes;
    csv->text.size_bytes = 0;
}

static void csv_end_line(csv_writer *csv)
{
    csv->text.data[csv->text.size_bytes - 1] = '\n'; /* in the place of the last comma */
    if (csv->text.size_bytes >= PIECE_BYTES) csv_flush(csv);
}

/* In quotes where RFC 4180 wants them. */
static void csv_text(csv_writer *csv, const char *text)
{
    const bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted) byte_buffer_append(&csv->text, "\"", 1);
    for (; *text; text++) {
        if (*text == '"') byte_buffer_append(&csv->text, "\"", 1);
        byte_buffer_append(&csv->text, text, 1);
    }
    byte_buffer_text(&csv->text, quoted ? "\"," : ",");
}

static void csv_index(csv_writer *csv, size_t index) { byte_buffer_format(&csv->text, "%zu,", index); }

/* 9 digits give a float back exactly. The sign of a NaN says nothing. */
static void csv_number(csv_writer *csv, double value, int digits)
{
    char text[40] = "nan,";
    if (!isnan(value)) snprintf(text, sizeof text, "%.*g,", digits, value);
    byte_buffer_text(&csv->text, text);
}

/* How many matrices from `first` on belong to the same layer and head: they stand side by side. */
static size_t block_length(const figure_data *data, size_t first)
{
    const figure_matrix *matrices = data->matrices;
    size_t end = first + 1;
    while (end < data->matrix_count && matrices[end].layer == matrices[first].layer &&
           matrices[end].head == matrices[first].head)
        end++;
    return end - first;
}

static void csv_block(csv_writer *csv, const figure_data *data, size_t first, size_t count)
{
    const figure_matrix *block = data->matrices + first;
    for (size_t cell = 0; cell < block->rows * block->columns && csv->status == DEBERTA_OK; cell++) {
        const size_t i = cell / block->columns, j = cell % block->columns;
        if (block->layer != no_index) csv_index(csv, block->layer);
        if (block->head != no_index) csv_index(csv, block->head);
        csv_index(csv, data->row_numbers ? data->row_numbers[i] : i);
        csv_index(csv, data->column_numbers ? data->column_numbers[j] : j);
        if (data->row_labels) csv_text(csv, data->row_labels[i].text);
        if (data->column_labels) csv_text(csv, data->column_labels[j].text);
        for (size_t k = 0; k < count; k++) csv_number(csv, block[k].values[cell], 9);
        csv_end_line(csv);
    }
}

static void csv_matrices(csv_writer *csv, const figure_data *data)
{
    const size_t each = block_length(data, 0);
    if (data->matrices->layer != no_index) csv_text(csv, "layer");
    if (data->matrices->head != no_index) csv_text(csv, "head");
    csv_text(csv, data->row_axis);
    csv_text(csv, data->column_axis);
    if (data->row_labels) byte_buffer_format(&csv->text, "%s_label,", data->row_axis);
    if (data->column_labels) byte_buffer_format(&csv->text, "%s_label,", data->column_axis);
    for (size_t k = 0; k < each; k++) csv_text(csv, data->matrices[k].name);
    csv_end_line(csv);
    for (size_t first = 0; first < data->matrix_count; first += each) csv_block(csv, data, first, each);
}

static void csv_columns(csv_writer *csv, const figure_data *data)
{
    for (size_t k = 0; k < data->column_count; k++) csv_text(csv, data->columns[k].name);
    csv_end_line(csv);
    for (size_t line = 0; line < data->line_count && csv->status == DEBERTA_OK; line++) {
        for (size_t k = 0; k < data->column_count; k++)
            if (data->columns[k].texts)
                csv_text(csv, data->columns[k].texts[line]);
            else
                csv_number(csv, data->columns[k].numbers[line], 12);
        csv_end_line(csv);
    }
}

static deberta_status write_csv(const figure_data *data, const char *path, atomic_file **file, deberta_error *err)
{
    csv_writer csv = {.err = err};
    DEBERTA_TRY(atomic_file_open(file, path, err));
    run_remove_on_signal(atomic_file_temporary(*file)); /* a long text takes seconds */
    csv.file = *file;
    if (data->matrix_count)
        csv_matrices(&csv, data);
    else
        csv_columns(&csv, data);
    csv_flush(&csv);
    byte_buffer_free(&csv.text);
    return csv.status;
}

/* --------------------------------------------------------------------------------------------------- safetensors */

/* What goes into the metadata: the provenance, and what tensors cannot hold. */
typedef struct note_list {
    export_note notes[MOST_NOTES];
    char *owned[2 * MOST_NOTES];
    size_t count, owned_count;
    bool failed;
} note_list;

static char *keep(note_list *list, char *text)
{
    if (!text || list->owned_count == sizeof list->owned / sizeof *list->owned) {
        free(text);
        list->failed = true;
        return NULL;
    }
    return list->owned[list->owned_count++] = text;
}

static void add_note(note_list *list, const char *key, const char *value)
{
    if (!key || !value || list->count == MOST_NOTES)
        list->failed = true;
    else
        list->notes[list->count++] = (export_note){key, value};
}

/* A list as JSON, under "<name><suffix>". */
static void add_list(note_list *list, const char *name, const char *suffix, json_t *array)
{
    char *key = NULL;
    if (asprintf(&key, "%s%s", name, suffix) < 0) key = NULL;
    add_note(list, keep(list, key), keep(list, array ? json_dumps(array, JSON_COMPACT) : NULL));
    json_decref(array);
}

static void add_texts(note_list *list, const char *name, const char *suffix, const char *const *texts,
                      const figure_label *labels, size_t count)
{
    json_t *array = json_array();
    for (size_t k = 0; k < count; k++) {
        char *clean = draw_clean_text(texts ? texts[k] : labels[k].text);
        if (!clean || json_array_append_new(array, json_string(clean)) != 0) list->failed = true;
        free(clean);
    }
    add_list(list, name, suffix, array);
}

static void add_numbers(note_list *list, const char *name, const size_t *numbers, size_t count)
{
    json_t *array = json_array();
    for (size_t k = 0; k < count; k++)
        if (json_array_append_new(array, json_integer((json_int_t)numbers[k])) != 0) list->failed = true;
    add_list(list, name, "_numbers", array);
}

static void collect_notes(note_list *list, const figure_data *data, const provenance_entry *provenance, size_t count)
{
    for (size_t k = 0; k < count; k++)
        add_note(list, provenance[k].key, keep(list, draw_clean_text(provenance[k].value)));
    if (data->row_labels) add_texts(list, data->row_axis, "_labels", NULL, data->row_labels, data->matrices->rows);
    if (data->column_labels)
        add_texts(list, data->column_axis, "_labels", NULL, data->column_labels, data->matrices->columns);
    if (data->row_numbers) add_numbers(list, data->row_axis, data->row_numbers, data->matrices->rows);
    if (data->column_numbers) add_numbers(list, data->column_axis, data->column_numbers, data->matrices->columns);
    for (size_t k = 0; k < data->column_count; k++)
        if (data->columns[k].texts)
            add_texts(list, data->columns[k].name, "", data->columns[k].texts, NULL, data->line_count);
}

static char *tensor_name(const figure_matrix *matrix)
{
    char layer[40] = "", head[40] = "", *name;
    if (matrix->layer != no_index) snprintf(layer, sizeof layer, "layer.%zu.", matrix->layer);
    if (matrix->head != no_index) snprintf(head, sizeof head, "head.%zu.", matrix->head);
    return asprintf(&name, "%s%s%s", layer, head, matrix->name) < 0 ? NULL : name;
}

/* Declares one tensor for each matrix and each column of numbers. */
static size_t declare(const figure_data *data, export_tensor *tensors, bool *failed)
{
    size_t count = 0;
    for (size_t k = 0; k < data->matrix_count; k++) {
        const figure_matrix *matrix = &data->matrices[k];
        tensors[count++] = (export_tensor){tensor_name(matrix), DTYPE_F32, 2, {matrix->rows, matrix->columns}};
    }
    for (size_t k = 0; k < data->column_count; k++)
        if (data->columns[k].numbers)
            tensors[count++] = (export_tensor){strdup(data->columns[k].name), DTYPE_F32, 1, {data->line_count}};
    for (size_t k = 0; k < count; k++) *failed |= !tensors[k].name;
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
    note_list notes = {0};
    collect_notes(&notes, data, provenance, provenance_count);
    export_tensor *tensors = calloc(data->matrix_count + data->column_count + 1, sizeof *tensors);
    bool failed = notes.failed || !tensors;
    const size_t count = tensors ? declare(data, tensors, &failed) : 0;
    deberta_status status = failed ? status_fail(err, DEBERTA_E_MEMORY, "%s: no memory for its header", path)
                                   : export_safetensors(file, path, tensors, count, notes.notes, notes.count, err);
    if (status == DEBERTA_OK) {
        run_remove_on_signal(export_temporary(*file));
        status = write_values(data, *file, err);
    }
    for (size_t k = 0; k < count; k++) free((char *)tensors[k].name);
    free(tensors);
    for (size_t k = 0; k < notes.owned_count; k++) free(notes.owned[k]);
    return status;
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
    run_remove_on_signal(NULL);
    return status;
}

void figure_data_discard(figure_data_file *file)
{
    atomic_file_discard(&file->csv);
    export_discard(&file->tensors);
    run_remove_on_signal(NULL);
}
