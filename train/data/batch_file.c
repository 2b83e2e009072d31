/* Opens a prepared file, checks its tensors against each other, reads one step of it, and deals it to shards.
 *
 * SPDX-License-Identifier: MIT */
#include "train/data/batch_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "core/base/sha256.h"
#include "core/io/mapped_file.h"
#include "core/io/quote.h"
#include "core/io/record_keys.h"
#include "core/io/safetensors.h"

typedef enum batch_tensor {
    INPUT_IDS,
    ATTENTION_MASK,
    TOKEN_TYPES,
    POSITIONS,
    LABELS,
    STARTS,
    ENDS,
    SAMPLED,
    DELTA,
    BATCH_TENSORS
} batch_tensor;

static const char *const tensor_names[BATCH_TENSORS] = {"input_ids",     "attention_mask", "token_type_ids",
                                                        "position_ids",  "labels",         "start_positions",
                                                        "end_positions", "sampled_ids",    "delta"};

struct batch_file {
    mapped_file map;
    tensor_list list;
    const stored_tensor *tensors[BATCH_TENSORS]; /* tensors of the file; NULL: missing */
    deberta_training_task task;
    size_t steps, sequences, columns, choices; /* steps; size of each: sequences are rows of `columns` tokens */
};

/* ---------------------------------------------------------------------------------------------------------- opening */

static deberta_status find_tensors(batch_file *file, deberta_error *err)
{
    char problem[KEY_SENTENCE_BYTES];
    for (size_t i = 0; i < file->list.count; i++)
        if (batch_key_is_wrong(file->list.items[i].tensor.name, problem))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", file->map.name.text, problem);
    for (size_t i = 0; i < file->list.count; i++)
        for (int which = 0; which < BATCH_TENSORS; which++)
            if (strcmp(file->list.items[i].tensor.name, tensor_names[which]) == 0)
                file->tensors[which] = &file->list.items[i];
    if (!file->tensors[INPUT_IDS])
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor 'input_ids' is missing", file->map.name.text);
    return DEBERTA_OK;
}

static bool is_integer(tensor_dtype dtype) { return dtype == DTYPE_I64 || dtype == DTYPE_I32; }

static deberta_status take_shape(batch_file *file, bool has_steps, deberta_error *err)
{
    const tensor *ids = &file->tensors[INPUT_IDS]->tensor;
    const bool choice = file->task == DEBERTA_TRAIN_CHOICE;
    const size_t lead = has_steps, rank = lead + 2 + choice;
    bool fine = ids->rank == rank && is_integer(ids->dtype);
    for (size_t i = 0; fine && i < rank; i++) fine = ids->shape[i] > 0;
    if (!fine) {
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor 'input_ids' is %s %s, expected integers of shape [%s%s]",
                     file->map.name.text, dtype_name(ids->dtype), shape_describe(ids->shape, ids->rank).text,
                     has_steps ? "steps, " : "", choice ? "questions, choices, tokens" : "sequences, tokens");
    }
    file->steps = has_steps ? ids->shape[0] : 1;
    file->choices = choice ? ids->shape[lead + 1] : 1;
    file->sequences = ids->shape[lead] * file->choices;
    file->columns = ids->shape[rank - 1];
    return DEBERTA_OK;
}

deberta_status batch_file_open(batch_file **result, const char *path, bool has_steps, deberta_training_task task,
                               deberta_error *err)
{
    deberta_status status;
    *result = NULL;
    batch_file *file = calloc(1, sizeof *file);
    if (!file) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a batch");
    file->task = task;
    DEBERTA_TRY_OR_FAIL(status, mapped_file_open(&file->map, path, err));
    DEBERTA_TRY_OR_FAIL(status,
                        safetensors_list(&file->list, file->map.bytes, file->map.size_bytes, file->map.name.text, err));
    DEBERTA_TRY_OR_FAIL(status, find_tensors(file, err));
    DEBERTA_TRY_OR_FAIL(status, take_shape(file, has_steps, err));
    DEBERTA_TRY_OR_FAIL(status, mapped_file_intact(&file->map, err));
    *result = file;
    return DEBERTA_OK;
fail:
    batch_file_close(&file);
    return status;
}

void batch_file_close(batch_file **file_place)
{
    batch_file *file = *file_place;
    if (!file) return;
    tensor_list_free(&file->list);
    mapped_file_close(&file->map);
    free(file);
    *file_place = NULL;
}

/* These are upper bounds, because they do not read the masks. */
size_t batch_file_most_tokens(const batch_file *file) { return file->sequences * file->columns; }
size_t batch_file_longest(const batch_file *file) { return file->columns; }

/* ---------------------------------------------------------------------------------------------------------- reading */

/* A step while it is read: its rows as in the file. */
typedef struct raw_step {
    const batch_file *file;
    size_t number, step, width;     /* number of the step in the run; its number in the file */
    int64_t *values[BATCH_TENSORS]; /* values of a step; NULL: missing */
    float *targets, *delta;
    bool is_shifted; /* whether a sequence does not begin in column 0 */
    /* [sequences]: column of the first token that is not padding; number of tokens from there on */
    size_t *columns, *lengths, *shard_of;
} raw_step;

/* Returns whether a task has labels of tokens; else labels belong to sequences or questions. */
static bool labels_are_of_tokens(deberta_training_task task)
{
    return task == DEBERTA_TRAIN_MLM || task == DEBERTA_TRAIN_RTD || task == DEBERTA_TRAIN_TOKEN;
}

static size_t expected_count(const batch_file *file, batch_tensor which)
{
    const size_t questions = file->sequences / file->choices;
    if (which == LABELS) return labels_are_of_tokens(file->task) ? file->sequences * file->columns : questions;
    if (which == STARTS || which == ENDS) return file->sequences;
    return file->sequences * file->columns;
}

/* Reads `count` values of this step, integers or float32. */
static deberta_status read_values(const raw_step *raw, batch_tensor which, size_t count, bool floats, void *values,
                                  deberta_error *err)
{
    const batch_file *file = raw->file;
    const stored_tensor *stored = file->tensors[which];
    const tensor *t = &stored->tensor;
    if (t->elements != count * file->steps || (floats ? t->dtype != DTYPE_F32 : !is_integer(t->dtype))) {
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' is %s %s, expected %zu %s for each of %zu steps",
                     file->map.name.text, tensor_names[which], dtype_name(t->dtype),
                     shape_describe(t->shape, t->rank).text, count, floats ? "float32 values" : "integers",
                     file->steps);
    }
    if (floats)
        tensor_convert_f32(values, stored, file->map.bytes, raw->step * count, count);
    else
        tensor_convert_i64(values, stored, file->map.bytes, raw->step * count, count);
    return mapped_file_intact(&file->map, err);
}

/* Returns whether to read a tensor: the file may also have labels of other kinds of tasks, which are skipped. */
static bool is_read(deberta_training_task task, batch_tensor which)
{
    if (which == LABELS) return task != DEBERTA_TRAIN_QA;
    if (which == STARTS || which == ENDS) return task == DEBERTA_TRAIN_QA;
    return true;
}

static deberta_status no_memory(deberta_error *err)
{
    return status_fail(err, DEBERTA_E_MEMORY, "no memory for a batch");
}

static deberta_status read_raw(raw_step *raw, deberta_error *err)
{
    const batch_file *file = raw->file;
    for (int which = 0; which < BATCH_TENSORS; which++) {
        const size_t count = expected_count(file, (batch_tensor)which);
        if (!file->tensors[which] || !is_read(file->task, (batch_tensor)which)) continue;
        if (which == DELTA) {
            raw->delta = malloc(count * raw->width * sizeof *raw->delta);
            if (!raw->delta) return no_memory(err);
            DEBERTA_TRY(read_values(raw, DELTA, count * raw->width, true, raw->delta, err));
        } else if (which == LABELS && file->task == DEBERTA_TRAIN_SEQUENCE &&
                   file->tensors[LABELS]->tensor.dtype == DTYPE_F32) {
            raw->targets = malloc(count * sizeof *raw->targets);
            if (!raw->targets) return no_memory(err);
            DEBERTA_TRY(read_values(raw, LABELS, count, true, raw->targets, err));
        } else {
            raw->values[which] = malloc(count * sizeof **raw->values);
            if (!raw->values[which]) return no_memory(err);
            DEBERTA_TRY(read_values(raw, (batch_tensor)which, count, false, raw->values[which], err));
        }
    }
    return DEBERTA_OK;
}

static void free_raw(raw_step *raw)
{
    for (int which = 0; which < BATCH_TENSORS; which++) free(raw->values[which]);
    free(raw->targets);
    free(raw->delta);
    free(raw->columns);
    free(raw->lengths);
    free(raw->shard_of);
}

/* ----------------------------------------------------------------------------------------------------------- dealing */

/* Checks that tokens to be cut have no label that could be learned. */
static deberta_status check_cut(const raw_step *raw, size_t sequence, size_t first, size_t end, deberta_error *err)
{
    const batch_file *file = raw->file;
    const bool by_token = labels_are_of_tokens(file->task) && raw->values[LABELS];
    const int64_t *labels = by_token ? raw->values[LABELS] + sequence * file->columns : NULL;
    for (size_t t = 0; labels && t < file->columns; t++)
        if ((t < first || t >= end) && labels[t] != NOT_LABELLED)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "%s: sequence %zu, token %zu: label %lld where the attention_mask has padding, expected %d",
                         file->map.name.text, sequence, t, (long long)labels[t], NOT_LABELLED);
    for (batch_tensor which = STARTS; which <= ENDS; which++)
        if (raw->values[which] && raw->values[which][sequence] >= 0 && (uint64_t)raw->values[which][sequence] < first)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "%s: sequence %zu, token %lld: the %s of the answer is at padding of the attention_mask",
                         file->map.name.text, sequence, (long long)raw->values[which][sequence],
                         which == STARTS ? "start" : "end");
    return DEBERTA_OK;
}

/* Finds the sequence in a row, without padding on its left and right. */
static deberta_status measure_sequences(raw_step *raw, deberta_error *err)
{
    const batch_file *file = raw->file;
    for (size_t i = 0; i < file->sequences; i++) {
        size_t first = 0, end = file->columns;
        const int64_t *mask = raw->values[ATTENTION_MASK] ? raw->values[ATTENTION_MASK] + i * file->columns : NULL;
        while (mask && end > 0 && mask[end - 1] == 0) end--;
        if (end == 0)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the attention_mask of sequence %zu is 0 everywhere",
                         file->map.name.text, i);
        while (mask && mask[first] == 0) first++;
        DEBERTA_TRY(check_cut(raw, i, first, end, err));
        raw->columns[i] = first;
        raw->lengths[i] = end - first;
        raw->is_shifted = raw->is_shifted || first > 0;
    }
    return DEBERTA_OK;
}

/* Returns whether the batch needs positions. Without them positions count from 0, as those of columns do where nothing
 * is cut before the first token. */
static bool has_positions(const raw_step *raw) { return raw->values[POSITIONS] || raw->is_shifted; }

static bool allocate_batch(const raw_step *raw, size_t shards, step_batch *batch)
{
    const batch_file *file = raw->file;
    const size_t sequences = batch->sequences, tokens = batch->tokens, questions = sequences / file->choices;
    batch->starts = calloc(sequences + 1, sizeof *batch->starts);
    batch->shard_bounds = calloc(shards + 1, sizeof *batch->shard_bounds);
    batch->origin = calloc(sequences, sizeof *batch->origin);
    batch->columns = calloc(sequences, sizeof *batch->columns);
    batch->ids = calloc(tokens, sizeof *batch->ids);
    batch->mask = calloc(tokens, sizeof *batch->mask);
    batch->token_types = raw->values[TOKEN_TYPES] ? calloc(tokens, sizeof *batch->token_types) : NULL;
    batch->positions = has_positions(raw) ? calloc(tokens, sizeof *batch->positions) : NULL;
    batch->sampled_ids = raw->values[SAMPLED] ? calloc(tokens, sizeof *batch->sampled_ids) : NULL;
    batch->labels = calloc(tokens, sizeof *batch->labels);
    batch->sequence_labels = calloc(sequences, sizeof *batch->sequence_labels);
    batch->targets = raw->targets ? calloc(sequences, sizeof *batch->targets) : NULL;
    batch->starts_of_answer = calloc(sequences, sizeof *batch->starts_of_answer);
    batch->ends_of_answer = calloc(sequences, sizeof *batch->ends_of_answer);
    batch->question_labels = calloc(questions, sizeof *batch->question_labels);
    batch->delta = raw->delta ? calloc(tokens * raw->width, sizeof *batch->delta) : NULL;
    return batch->starts && batch->shard_bounds && batch->origin && batch->columns && batch->ids && batch->mask &&
           (batch->token_types || !raw->values[TOKEN_TYPES]) && (batch->positions || !has_positions(raw)) &&
           (batch->sampled_ids || !raw->values[SAMPLED]) && batch->labels && batch->sequence_labels &&
           (batch->targets || !raw->targets) && batch->starts_of_answer && batch->ends_of_answer &&
           batch->question_labels && (batch->delta || !raw->delta);
}

/* Converts a value to int32. One outside int32 cannot be an id or a label; the result is outside every range too. */
static int32_t narrow(int64_t value)
{
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

static void fill_tokens(const raw_step *raw, step_batch *batch, size_t sequence, size_t from)
{
    const size_t columns = raw->file->columns, first = batch->starts[sequence], n = batch->starts[sequence + 1] - first;
    const bool by_token = labels_are_of_tokens(raw->file->task) && raw->values[LABELS];
    for (size_t t = 0; t < n; t++) {
        const size_t column = raw->columns[from] + t, at = from * columns + column, to = first + t;
        batch->ids[to] = narrow(raw->values[INPUT_IDS][at]);
        batch->mask[to] = !raw->values[ATTENTION_MASK] || raw->values[ATTENTION_MASK][at] != 0;
        if (batch->token_types) batch->token_types[to] = narrow(raw->values[TOKEN_TYPES][at]);
        if (batch->positions)
            batch->positions[to] = narrow(raw->values[POSITIONS] ? raw->values[POSITIONS][at] : (int64_t)column);
        if (batch->sampled_ids) batch->sampled_ids[to] = narrow(raw->values[SAMPLED][at]);
        batch->labels[to] = by_token ? narrow(raw->values[LABELS][at]) : NOT_LABELLED;
        if (batch->delta)
            memcpy(batch->delta + to * raw->width, raw->delta + at * raw->width, raw->width * sizeof *raw->delta);
    }
}

/* Returns an end of the answer as a place in the sequence. */
static int32_t end_of_answer(const raw_step *raw, batch_tensor which, size_t sequence)
{
    if (!raw->values[which] || raw->values[which][sequence] < 0) return -1;
    return narrow(raw->values[which][sequence] - (int64_t)raw->columns[sequence]);
}

static void fill_sequence(const raw_step *raw, step_batch *batch, size_t sequence, size_t from)
{
    const bool by_sequence = raw->file->task == DEBERTA_TRAIN_SEQUENCE && raw->values[LABELS];
    batch->origin[sequence] = from;
    batch->sequence_labels[sequence] = by_sequence ? narrow(raw->values[LABELS][from]) : NOT_LABELLED;
    if (batch->targets) batch->targets[sequence] = raw->targets[from];
    batch->columns[sequence] = raw->columns[from];
    batch->starts_of_answer[sequence] = end_of_answer(raw, STARTS, from);
    batch->ends_of_answer[sequence] = end_of_answer(raw, ENDS, from);
    fill_tokens(raw, batch, sequence, from);
}

static deberta_status build(raw_step *raw, size_t shards, step_batch *batch, deberta_error *err)
{
    const batch_file *file = raw->file;
    size_t sequence = 0;
    *batch = (step_batch){.sequences = file->sequences,
                          .choices = file->choices,
                          .questions = file->sequences / file->choices,
                          .epoch = (double)(raw->number + 1) / (double)file->steps};
    for (size_t i = 0; i < file->sequences; i++) batch->tokens += raw->lengths[i];
    if (!allocate_batch(raw, shards, batch)) return no_memory(err);
    for (size_t shard = 0; shard < shards; shard++) {
        for (size_t i = 0; i < file->sequences; i++) {
            if (raw->shard_of[i] != shard) continue;
            batch->starts[sequence + 1] = batch->starts[sequence] + raw->lengths[i];
            fill_sequence(raw, batch, sequence++, i);
        }
        batch->shard_bounds[shard + 1] = sequence;
    }
    for (size_t q = 0; file->task == DEBERTA_TRAIN_CHOICE && q < batch->questions; q++)
        batch->question_labels[q] = raw->values[LABELS] ? narrow(raw->values[LABELS][q]) : NOT_LABELLED;
    return DEBERTA_OK;
}

/* width: the hidden size, which `delta` must have. */
static deberta_status batch_file_read_step(void *context, size_t step, size_t shards, size_t width, step_batch *batch,
                                           deberta_error *err)
{
    const batch_file *file = context;
    raw_step raw = {.file = file, .number = step, .step = step % file->steps, .width = width};
    *batch = (step_batch){0};
    raw.columns = calloc(file->sequences, sizeof *raw.columns);
    raw.lengths = calloc(file->sequences, sizeof *raw.lengths);
    raw.shard_of = calloc(file->sequences, sizeof *raw.shard_of);
    deberta_status status = raw.columns && raw.lengths && raw.shard_of ? read_raw(&raw, err) : no_memory(err);
    if (status == DEBERTA_OK) status = measure_sequences(&raw, err);
    if (status == DEBERTA_OK) status = step_batch_deal(raw.lengths, file->sequences, shards, raw.shard_of, err);
    if (status == DEBERTA_OK) status = build(&raw, shards, batch, err);
    free_raw(&raw);
    if (status != DEBERTA_OK) step_batch_free(batch);
    return status;
}

void batch_file_digest(const batch_file *file, char digest[65])
{
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    sha256_add(&hash, file->map.bytes, file->map.size_bytes);
    sha256_finish(&hash, digest);
}

static bool tell_first(const batch_file *file, const int64_t *mask, note_listener listener)
{
    char sentence[512];
    for (size_t i = 0; i < file->sequences; i++) {
        size_t zeros = 0;
        while (zeros < file->columns && mask[i * file->columns + zeros] == 0) zeros++;
        if (zeros == 0 || zeros == file->columns) continue; /* A mask of zeros alone is refused when it is read. */
        snprintf(
            sentence, sizeof sentence,
            "%.200s: the attention_mask of sequence %zu begins with %zu zero%s: what stands there is padding and is "
            "left out, so its first token is the first one that the mask keeps",
            file->map.name.text, i, zeros, zeros == 1 ? "" : "s");
        listener.call(listener.context, sentence);
        return true;
    }
    return false;
}

deberta_status batch_file_tell_padding(const batch_file *file, note_listener listener, deberta_error *err)
{
    if (!file->tensors[ATTENTION_MASK] || !listener.call) return DEBERTA_OK;
    const size_t count = expected_count(file, ATTENTION_MASK);
    int64_t *mask = malloc(count * sizeof *mask);
    if (!mask) return no_memory(err);
    deberta_status status = DEBERTA_OK;
    bool told = false;
    for (size_t step = 0; status == DEBERTA_OK && step < file->steps && !told; step++) {
        const raw_step raw = {.file = file, .number = step, .step = step};
        status = read_values(&raw, ATTENTION_MASK, count, false, mask, err);
        if (status == DEBERTA_OK) told = tell_first(file, mask, listener);
    }
    free(mask);
    return status;
}

batch_source batch_file_source(batch_file *file)
{
    return (batch_source){.context = file, .read = batch_file_read_step};
}
