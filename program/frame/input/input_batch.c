/* Turns texts of a stream into rows, checks the values of a batch against the tables of a model, and gives a batch to
 * the library.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/input/input_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/io/quote.h"
#include "program/frame/options.h"

void input_free(input_batch *input)
{
    for (size_t r = 0; r < input->rows; r++) {
        if (input->token_lists) deberta_tokens_free(&input->token_lists[r]);
        if (input->texts) free(input->texts[r]);
        if (input->pairs) free(input->pairs[r]);
    }
    deberta_tokenizer_free(&input->tokenizer);
    scope_free(&input->memory);
    *input = (input_batch){0};
}

deberta_batch input_as_batch(const input_batch *input)
{
    return (deberta_batch){.struct_size = sizeof(deberta_batch),
                           .ids = input->ids,
                           .sequence_starts = input->sequence_starts,
                           .sequences = input->sequences,
                           .token_types = input->token_types,
                           .position_ids = input->position_ids,
                           .mask = input->mask};
}

typedef struct table {
    const char *name, *what; /* names of the values and of their rows, for messages */
    size_t rows;
} table;

static deberta_status check_value(const input_batch *input, const char *source, const table *table, int32_t value,
                                  size_t row, size_t column, deberta_error *err)
{
    if (value >= 0 && (size_t)value < table->rows) return DEBERTA_OK;
    if (input->token_lists)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "text %zu: '%s' has the %s %d, but the model's %s has %zu rows (0 ... %zu)",
                     row + 1, QUOTE(deberta_tokens_text(input->token_lists[row], column, NULL)), table->what,
                     (int)value, table->name, table->rows, table->rows - 1);
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: %s %d in row %zu, column %zu: the %s has %zu rows (0 ... %zu)",
                 QUOTE(source), table->what, (int)value, row, column, table->name, table->rows, table->rows - 1);
}

deberta_status input_check(const input_batch *input, const deberta_model_info *info, const char *source,
                           deberta_error *err)
{
    const table words = {"vocabulary", "id", info->vocabulary_size};
    const table types = {"token type table", "token type", info->token_types};
    for (size_t r = 0; r < input->rows; r++) {
        const input_row row = input->row[r];
        for (size_t t = 0; t < row.tokens; t++) {
            const size_t token = input->sequence_starts[row.sequence] + t, column = row.first_column + t;
            DEBERTA_TRY(check_value(input, source, &words, input->ids[token], r, column, err));
            /* a model without the table ignores token types */
            if (input->token_types && info->token_types > 0)
                DEBERTA_TRY(check_value(input, source, &types, input->token_types[token], r, column, err));
        }
    }
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------- names of tokens */

const char *token_segment(const input_batch *input, size_t row, size_t column)
{
    return input->token_lists[row]->token_types[column] ? input->pairs[row] : input->texts[row];
}

/* Returns bytes in the form "<E4BD>". */
static const char *bytes_in_hexadecimal(scope *memory, const char *bytes, size_t count)
{
    char *text = scope_take(memory, 2 * count + 3, 1);
    text[0] = '<';
    for (size_t k = 0; k < count; k++) snprintf(text + 1 + 2 * k, 3, "%02X", (unsigned char)bytes[k]);
    text[2 * count + 1] = '>';
    return text;
}

const char *token_label(input_batch *input, size_t row, size_t column)
{
    const deberta_tokens *list = input->token_lists[row];
    const char *name = deberta_tokens_text(list, column, NULL);
    if (strncmp(name, "\u2581", 3) == 0 && name[3]) return name + 3;
    if (strcmp(deberta_tokenizer_kind_name(input->tokenizer), "byte-level BPE") != 0 ||
        list->roles[column] != DEBERTA_TOKEN_TEXT)
        return name;
    const char *text = token_segment(input, row, column) + list->byte_spans[column].begin;
    size_t bytes = list->byte_spans[column].end - list->byte_spans[column].begin;
    if (bytes > 1 && *text == ' ') {
        text++;
        bytes--;
    }
    if (!bytes || strspn(text, " \t\r\n") >= bytes || memchr(text, 0, bytes)) return name;
    return utf8_is_valid(text, bytes) ? scope_text(&input->memory, "%.*s", (int)bytes, text)
                                      : bytes_in_hexadecimal(&input->memory, text, bytes);
}

/* ------------------------------------------------------------------------------------------------ texts of a stream */

typedef struct record_list {
    text_record *records;
    size_t count, capacity;
} record_list;

static void add_record(record_list *list, text_record *record)
{
    list->records = memory_grown(list->records, &list->capacity, list->count + 1, sizeof *list->records);
    list->records[list->count++] = *record;
    *record = (text_record){0};
}

static deberta_status input_batch_read_all(text_stream *stream, record_list *list, deberta_error *err)
{
    text_record record = {0};
    deberta_status status = DEBERTA_OK;
    char place[256];
    for (bool end = false; status == DEBERTA_OK && !end; text_record_free(&record)) {
        status = text_stream_next(stream, &record, &end, err);
        if (status != DEBERTA_OK || end) continue;
        text_record_place(&record, place);
        if (record.problem)
            status = status_fail(err, DEBERTA_E_FORMAT, "%s: %s", place, record.problem);
        else
            add_record(list, &record);
    }
    if (status == DEBERTA_OK && list->count == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s has no lines", stream->path);
    return status;
}

/* Moves the texts of the records to the rows. */
static void fill_rows(input_batch *input, record_list *list)
{
    input->texts = scope_take(&input->memory, list->count, sizeof *input->texts);
    input->text_bytes = scope_take(&input->memory, list->count, sizeof *input->text_bytes);
    input->pairs = scope_take(&input->memory, list->count, sizeof *input->pairs);
    input->pair_bytes = scope_take(&input->memory, list->count, sizeof *input->pair_bytes);
    input->rows = list->count;
    for (size_t r = 0; r < list->count; r++) {
        text_record *record = &list->records[r];
        input->texts[r] = record->text;
        input->text_bytes[r] = record->text_bytes;
        input->pairs[r] = record->pair;
        input->pair_bytes[r] = record->pair_bytes;
        record->text = record->pair = NULL;
    }
}

void text_source_read(const reading_options *options, input_batch *input)
{
    const text_stream_names names = {.text = "text",
                                     .pair = option_exists(&options->common, &options->pairs) ? "pair" : NULL};
    record_list list = {0};
    deberta_error error = {0};
    text_stream stream;
    text_stream_open(&stream, options, &names);
    must(&options->common, input_batch_read_all(&stream, &list, &error), &error);
    fill_rows(input, &list);
    text_stream_close(&stream);
    for (size_t k = 0; k < list.count; k++) text_record_free(&list.records[k]);
    free(list.records);
}
