/* SPDX-License-Identifier: MIT */
#include "studies/study_texts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"

static const common_options *options_of(const study_texts *texts) { return &texts->model.options->common; }

/* The record's text is taken over, the list is copied. */
static deberta_status add_list(study_texts *texts, text_record *record, const deberta_tokens *list, deberta_error *err)
{
    size_t capacity = texts->capacity;
    texts->lists = options_grown(options_of(texts), texts->lists, &capacity, texts->count, sizeof *texts->lists);
    texts->sentences =
        options_grown(options_of(texts), texts->sentences, &texts->capacity, texts->count, sizeof *texts->sentences);
    DEBERTA_TRY(deberta_tokens_copy(&texts->lists[texts->count], list, err));
    texts->sentences[texts->count++] = record->text;
    record->text = NULL;
    return DEBERTA_OK;
}

static deberta_status read_text(study_texts *texts, text_record *record, deberta_tokens **list, deberta_error *err)
{
    DEBERTA_TRY(text_batches_tokenize(&texts->model, record, list, err));
    if (!record->problem)
        DEBERTA_TRY(text_batches_check_length(&texts->model, record, (*list)->count, texts->model.longest, err));
    if (!record->problem) return add_list(texts, record, *list, err);
    char place[256];
    text_record_place(record, place);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", place, record->problem);
}

static deberta_status read_all(study_texts *texts, text_stream *stream, size_t most, deberta_error *err)
{
    deberta_tokens *list = NULL;
    deberta_status status = DEBERTA_OK;
    while (status == DEBERTA_OK && texts->count < most) {
        text_record record;
        bool end = true;
        status = text_stream_next(stream, &record, &end, err);
        if (status == DEBERTA_OK && !end) status = read_text(texts, &record, &list, err);
        text_record_free(&record);
        if (end) break;
    }
    deberta_tokens_free(&list);
    if (status == DEBERTA_OK && texts->count == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "the files hold no sentence");
    return status;
}

static void lay_side_by_side(study_texts *texts)
{
    size_t tokens = 0;
    for (size_t k = 0; k < texts->count; k++) tokens += texts->lists[k]->count;
    texts->starts = options_take(options_of(texts), texts->count + 1, sizeof *texts->starts);
    texts->ids = options_take(options_of(texts), tokens, sizeof *texts->ids);
    for (size_t k = 0; k < texts->count; k++) {
        const deberta_tokens *list = texts->lists[k];
        memcpy(texts->ids + texts->starts[k], list->ids, list->count * sizeof *texts->ids);
        texts->starts[k + 1] = texts->starts[k] + list->count;
    }
}

int study_texts_open(study_texts *texts, const reading_options *options, size_t most)
{
    static const text_stream_names names = {.text = "text"};
    *texts = (study_texts){0};
    text_stream stream;
    deberta_error error = {0};
    int status = text_stream_open(&stream, options, &names);
    if (status == EXIT_OK) status = text_batches_open(&texts->model, options, 0);
    if (status == EXIT_OK && read_all(texts, &stream, most, &error) != DEBERTA_OK)
        status = say_error(&options->common, &error);
    if (status == EXIT_OK) lay_side_by_side(texts);
    text_stream_close(&stream);
    return status;
}

void study_texts_close(study_texts *texts)
{
    for (size_t k = 0; k < texts->count; k++) {
        deberta_tokens_free(&texts->lists[k]);
        free(texts->sentences[k]);
    }
    text_batches_close(&texts->model);
    *texts = (study_texts){0};
}

size_t study_texts_batch_end(const study_texts *texts, size_t first, size_t tokens)
{
    return texts_batch_end(texts->starts, texts->count, first, tokens);
}

size_t study_texts_largest_batch(const study_texts *texts, size_t tokens)
{
    size_t largest = 0;
    for (size_t first = 0, end; first < texts->count; first = end) {
        end = study_texts_batch_end(texts, first, tokens);
        const size_t found = texts->starts[end] - texts->starts[first];
        if (found > largest) largest = found;
    }
    return largest;
}

deberta_batch study_texts_batch(const study_texts *texts, size_t first, size_t end, size_t *starts_room)
{
    for (size_t k = first; k <= end; k++) starts_room[k - first] = texts->starts[k] - texts->starts[first];
    return (deberta_batch){.struct_size = sizeof(deberta_batch),
                           .ids = texts->ids + texts->starts[first],
                           .sequence_starts = starts_room,
                           .sequences = end - first};
}

deberta_status study_texts_hide(const study_texts *texts, uint64_t seed, masked_texts *masked, double *masks,
                                deberta_error *err)
{
    static const double rate = 0.15;
    uint8_t *maskable = options_take(options_of(texts), texts->starts[texts->count], sizeof *maskable);
    for (size_t k = 0; k < texts->count; k++)
        for (size_t t = 0; t < texts->lists[k]->count; t++)
            maskable[texts->starts[k] + t] = texts->lists[k]->roles[t] == DEBERTA_TOKEN_TEXT;
    DEBERTA_TRY(masked_texts_make(masked, texts->ids, maskable, texts->starts, texts->count,
                                  deberta_tokenizer_special_id(texts->model.tokenizer, DEBERTA_SPECIAL_MASK), rate,
                                  seed, err));
    for (size_t k = 0; k < texts->count; k++) masks[k] = (double)masked_texts_masks(masked, k, k + 1);
    return DEBERTA_OK;
}
