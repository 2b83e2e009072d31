/* Records of a stream are collected and handed over to the rows of an input. SPDX-License-Identifier: MIT */
#include "program/frame/input/input_batch.h"

#include <stdlib.h>

#include "output/scope.h"
#include "program/frame/options.h"
#include "core/base/grow.h"
#include "core/base/status.h"

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

static deberta_status read_all(text_stream *stream, record_list *list, deberta_error *err)
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

/* The texts go from the records to the rows. */
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

int text_source_read(const reading_options *options, input_batch *input)
{
    const text_stream_names names = {.text = "text",
                                     .pair = option_exists(&options->common, &options->pairs) ? "pair" : NULL};
    record_list list = {0};
    deberta_error error = {0};
    text_stream stream;
    int status = text_stream_open(&stream, options, &names);
    if (status == EXIT_OK && read_all(&stream, &list, &error) != DEBERTA_OK)
        status = say_error(&options->common, &error);
    if (status == EXIT_OK) fill_rows(input, &list);
    text_stream_close(&stream);
    for (size_t k = 0; k < list.count; k++) text_record_free(&list.records[k]);
    free(list.records);
    return status;
}
