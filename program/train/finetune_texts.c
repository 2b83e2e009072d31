/* Reads texts and pairs with a label or a value, and texts with choices. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "core/base/status.h"
#include "core/io/quote.h"
#include "program/frame/input/labelled_text.h"
#include "program/train/finetune_lists.h"

static bool read_label(finetune_reader *r, const char *text, deberta_example *example, text_record *record)
{
    char *end;
    if (!r->regression) return label_list_find(&r->labels, text, &example->label, record);
    example->target = strtof(text, &end);
    if (*text && !*end && isfinite(example->target)) return true;
    return text_record_spoil(record, "the label is '%s', expected a number", QUOTE(text));
}

static deberta_example example_of(const deberta_tokens *tokens)
{
    return (deberta_example){.tokens = tokens->count,
                             .ids = tokens->ids,
                             .token_types = tokens->token_types,
                             .label = NO_LABEL,
                             .start = NO_LABEL,
                             .end = NO_LABEL};
}

/* Takes one line of a file, and may spoil its record. */
typedef void (*line_taker)(finetune_reader *reader, text_record *record, const labelled_text *labelled,
                           example_list *list);

static deberta_status read_lines(finetune_reader *r, text_stream *stream, example_list *list, bool has_choices,
                                 line_taker take, deberta_error *err)
{
    deberta_status status = DEBERTA_OK;
    for (bool end = false; status == DEBERTA_OK && !end;) {
        text_record record;
        labelled_text labelled = {0};
        DEBERTA_TRY(text_stream_next(stream, &record, &end, err));
        if (!end) status = labelled_text_split(&labelled, stream, &record, has_choices, err);
        if (!end && status == DEBERTA_OK && !labelled.skipped && !record.problem) take(r, &record, &labelled, list);
        if (status == DEBERTA_OK) status = reader_problem(&record, err);
        labelled_text_free(&labelled);
        text_record_free(&record);
    }
    return status;
}

static void take_text(finetune_reader *r, text_record *record, const labelled_text *labelled, example_list *list)
{
    if (!reader_tokenize(r, record, record->pair, record->pair_bytes)) return;
    deberta_example example = example_of(r->tokens);
    if (read_label(r, labelled->label, &example, record)) example_list_add(list, &example);
}

deberta_status finetune_read_texts(finetune_reader *r, text_stream *stream, example_list *list, deberta_error *err)
{
    list->choices = 1;
    return read_lines(r, stream, list, false, take_text, err);
}

/* Reads a label that is the number of a choice. */
static bool read_choice(const labelled_text *labelled, int32_t *label, text_record *record)
{
    char *end;
    const size_t count = json_array_size(labelled->choices);
    const unsigned long number = strtoul(labelled->label, &end, 10);
    *label = (int32_t)number;
    if (labelled->label[0] >= '0' && labelled->label[0] <= '9' && !*end && number < count) return true;
    return text_record_spoil(record, "the label is '%s', expected the right choice, 0 to %zu", QUOTE(labelled->label),
                             count - 1);
}

static void take_choices(finetune_reader *r, text_record *record, const labelled_text *labelled, example_list *list)
{
    int32_t label;
    size_t k;
    const json_t *choice;
    const size_t count = json_array_size(labelled->choices);
    if (!read_choice(labelled, &label, record)) return;
    if (!list->choices) list->choices = count;
    if (count != list->choices) {
        text_record_spoil(record, "%zu choices, expected %zu as before", count, list->choices);
        return;
    }
    json_array_foreach(labelled->choices, k, choice)
    {
        if (!reader_tokenize(r, record, json_string_value(choice), json_string_length(choice))) return;
        deberta_example example = example_of(r->tokens);
        example.label = label;
        example_list_add(list, &example);
    }
}

deberta_status finetune_read_choices(finetune_reader *r, text_stream *stream, example_list *list, deberta_error *err)
{
    return read_lines(r, stream, list, true, take_choices, err);
}
