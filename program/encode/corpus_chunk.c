/* Reads a chunk of texts, cuts it into windows, encodes, pools and writes it in the order of the input.
 *
 * SPDX-License-Identifier: MIT */
#include "program/encode/corpus_chunk.h"

#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "include/deberta_unstable.h"
#include "output/json_text.h"

static size_t windows_of(const corpus_job *job, size_t tokens)
{
    if (!job->window || tokens <= job->window) return 1;
    return 1 + (tokens - job->window + job->stride - 1) / job->stride;
}

static bool skips_bad(const corpus_job *job) { return job->stream.choice.skip_bad; }

deberta_status corpus_chunk_read(corpus_job *job, bool *end, deberta_error *err)
{
    size_t tokens = 0;
    const size_t most_tokens = (job->output.of_shard ? SHARD_BATCHES : CHUNK_BATCHES) * job->batches.batch_tokens;
    job->chunk_begin_bytes = job->stream.done_bytes;
    job->text_count = job->row_count = job->vector_count = job->encoded_pieces = 0;
    *end = false;
    while (job->text_count < CHUNK_TEXTS && tokens < most_tokens) {
        corpus_text *text = &job->texts[job->text_count];
        DEBERTA_TRY(text_stream_next(&job->stream, &text->record, end, err));
        if (*end) return DEBERTA_OK;
        job->text_count++;
        DEBERTA_TRY(text_batches_tokenize(&job->batches, &text->record, &text->tokens, err));
        if (job->window && text->record.pair)
            DEBERTA_TRY(text_record_spoil(&text->record, "--window takes texts without a second segment"));
        if (!text->record.problem && !job->window)
            DEBERTA_TRY(text_batches_check_length(&job->batches, &text->record, text->tokens->count,
                                                  job->batches.longest, err));
        text->first_row = job->row_count;
        text->rows = !text->record.problem ? windows_of(job, text->tokens->count) : skips_bad(job) ? 0 : 1;
        job->row_count += text->rows;
        if (!text->record.problem) tokens += text->tokens->count + text->rows * (job->window ? job->window : 0);
    }
    return DEBERTA_OK;
}

/* Cuts one window of a text into ids and types, with the text's frame around it. */
static text_piece cut_window(const corpus_job *job, const corpus_text *text, size_t number, int32_t *ids,
                             int32_t *types, corpus_row *row)
{
    const deberta_tokens *list = text->tokens;
    const size_t first = 1 + number * job->stride, content = list->count - FRAME_TOKENS;
    const size_t left = content - (first - 1), inside = job->window - FRAME_TOKENS,
                 count = left < inside ? left : inside;
    ids[0] = list->ids[0];
    memcpy(ids + 1, list->ids + first, count * sizeof *ids);
    ids[count + 1] = list->ids[list->count - 1];
    memset(types, 0, (count + FRAME_TOKENS) * sizeof *types);
    if (count)
        row->characters = (deberta_span){deberta_token_place(list, first, text->record.text).characters.begin,
                                         list->character_spans[first + count - 1].end};
    return (text_piece){.ids = ids, .types = types, .tokens = count + FRAME_TOKENS};
}

/* Rows of all texts; pieces for those that can be encoded. Returns how many pieces. */
static size_t lay_out(corpus_job *job)
{
    size_t pieces = 0;
    for (size_t k = 0; k < job->text_count; k++) {
        const corpus_text *text = &job->texts[k];
        for (size_t number = 0; number < text->rows; number++) {
            const size_t r = text->first_row + number;
            job->rows[r] = (corpus_row){.text = text->record.index};
            job->row_vectors[r] = job->vector_count;
            if (!text->record.problem) {
                text_piece *piece = &job->pieces[pieces++];
                if (job->window)
                    *piece = cut_window(job, text, number, job->ids + r * job->window, job->types + r * job->window,
                                        &job->rows[r]);
                else
                    *piece = (text_piece){
                        .ids = text->tokens->ids, .types = text->tokens->token_types, .tokens = text->tokens->count};
                piece->index = r;
                job->rows[r].tokens = piece->tokens;
            }
            job->vector_count += job->pooling == POOL_NONE ? job->rows[r].tokens : 1;
        }
    }
    return pieces;
}

/* Rows, pieces and room for their vectors, until the chunk is written. Returns how many pieces. */
static size_t arrange_chunk(corpus_job *job)
{
    const common_options *options = job->options;
    const size_t rows = job->row_count, h = job->batches.info.hidden_size;
    job->pieces = options_take(options, rows, sizeof *job->pieces);
    job->rows = options_take(options, rows, sizeof *job->rows);
    job->row_vectors = options_take(options, rows, sizeof *job->row_vectors);
    job->ids = options_take(options, rows, job->window * sizeof *job->ids);
    job->types = options_take(options, rows, job->window * sizeof *job->types);
    const size_t pieces = lay_out(job);
    job->vectors = options_take(options, job->vector_count, h * sizeof *job->vectors);
    return pieces;
}

/* --------------------------------------------------------------------------------------------------------- encoding */

/* Adds in double, in the order of the tokens, so that batches have no effect on the mean. */
static void pool_mean(const corpus_job *job, float *to, const float *rows, size_t stride, size_t tokens)
{
    const size_t h = job->batches.info.hidden_size;
    memset(job->sums, 0, h * sizeof *job->sums);
    for (size_t t = 0; t < tokens; t++)
        for (size_t e = 0; e < h; e++) job->sums[e] += rows[t * stride + e];
    for (size_t e = 0; e < h; e++) to[e] = (float)(job->sums[e] / (double)tokens);
}

/* Adds in double, in the order of the elements. The least length is that of PyTorch's normalize. */
static void normalize(float *vector, size_t h)
{
    double squares = 0;
    for (size_t e = 0; e < h; e++) squares += (double)vector[e] * (double)vector[e];
    const double length = squares > 1e-24 ? sqrt(squares) : 1e-12;
    for (size_t e = 0; e < h; e++) vector[e] = (float)((double)vector[e] / length);
}

static void corpus_chunk_show_progress(corpus_job *job, size_t pieces)
{
    char detail[64];
    const double share = job->row_count ? (double)(job->encoded_pieces += pieces) / (double)job->row_count : 1;
    const double chunk = (double)(job->stream.done_bytes - job->chunk_begin_bytes);
    const double done = (double)(job->chunk_begin_bytes - job->skipped_bytes) + share * chunk;
    snprintf(detail, sizeof detail, "%.0f tokens/s", (double)job->batches.tokens / (clock_seconds() - job->began));
    progress_step(&job->bar, (size_t)done, detail);
}

static deberta_status keep_batch(void *context, const text_piece *pieces, size_t count, const size_t *starts,
                                 const deberta_outputs *outputs, deberta_error *err)
{
    (void)err;
    corpus_job *job = context;
    const size_t h = job->batches.info.hidden_size;
    for (size_t k = 0; k < count; k++) {
        float *to = job->vectors + job->row_vectors[pieces[k].index] * h;
        const float *rows = outputs->hidden + starts[k] * outputs->hidden_stride;
        if (job->pooling == POOL_MEAN)
            pool_mean(job, to, rows, outputs->hidden_stride, pieces[k].tokens);
        else
            for (size_t t = 0; t < (job->pooling == POOL_CLS ? 1 : pieces[k].tokens); t++)
                memcpy(to + t * h, rows + t * outputs->hidden_stride, h * sizeof *to);
        if (job->normalize) normalize(to, h);
    }
    corpus_chunk_show_progress(job, count);
    return DEBERTA_OK;
}

deberta_status corpus_chunk_encode(corpus_job *job, deberta_error *err)
{
    const size_t pieces = arrange_chunk(job);
    return text_batches_run(&job->batches, job->pieces, pieces, keep_batch, job, err);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static void put_vector(FILE *file, const float *vector, size_t width)
{
    for (size_t e = 0; e < width; e++) fprintf(file, "%c%.9g", e ? ',' : '[', (double)vector[e]);
    fputc(']', file);
}

static void put_json(FILE *file, const char *key, json_t *value)
{
    fprintf(file, ",\"%s\":", key);
    json_dumpf(value, file, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
}

static void put_line(const corpus_job *job, const corpus_text *text, size_t row, const float *vectors)
{
    FILE *file = job->output.file;
    const text_record *record = &text->record;
    const size_t h = job->batches.info.hidden_size;
    fprintf(file, "{\"line\":%zu", record->line);
    if (record->source) put_json(file, "file", json_clean_text(record->source));
    if (record->id) put_json(file, "id", json_incref(record->id));
    if (record->problem) {
        put_json(file, "error", json_clean_text(record->problem));
    } else {
        fprintf(file, ",\"tokens\":%zu", job->rows[row].tokens);
        if (job->window)
            fprintf(file, ",\"window\":%zu,\"characters\":[%zu,%zu]", row - text->first_row,
                    job->rows[row].characters.begin, job->rows[row].characters.end);
        fprintf(file, ",\"%s\":", job->pooling == POOL_NONE ? "hidden" : "pooled");
        if (job->pooling != POOL_NONE) put_vector(file, vectors, h);
        for (size_t t = 0; job->pooling == POOL_NONE && t < job->rows[row].tokens; t++) {
            fputc(t ? ',' : '[', file);
            put_vector(file, vectors + t * h, h);
        }
        if (job->pooling == POOL_NONE) fputc(']', file);
    }
    fputs("}\n", file);
}

/* Notes a text that could not be used. */
static void note_problem(corpus_job *job, const text_record *record)
{
    char place[256];
    text_record_place(record, place);
    progress_end(&job->bar);
    text_stream_report(&job->stream, record);
    job->progress.bad++;
    if (skips_bad(job)) corpus_output_row(&job->output, (corpus_row){.text = record->index, .skipped = true});
    corpus_output_problem(&job->output, place, record->problem);
}

deberta_status corpus_chunk_write(corpus_job *job, deberta_error *err)
{
    const size_t h = job->batches.info.hidden_size;
    for (size_t k = 0; k < job->text_count; k++) {
        corpus_text *text = &job->texts[k];
        if (text->record.problem) note_problem(job, &text->record);
        for (size_t r = text->first_row; r < text->first_row + text->rows; r++) {
            float *vectors = job->vectors + job->row_vectors[r] * h;
            /* A row for every text, so that rows count as lines do; without an encoding it holds no numbers. */
            if (text->record.problem && job->pooling != POOL_NONE)
                for (size_t e = 0; e < h; e++) vectors[e] = NAN;
            if (job->output.format == CORPUS_JSONL)
                put_line(job, text, r, vectors);
            else
                DEBERTA_TRY(corpus_output_values(&job->output, vectors,
                                                 job->pooling == POOL_NONE ? job->rows[r].tokens : 1, err));
            corpus_output_row(&job->output, job->rows[r]);
        }
        text_record_free(&text->record);
    }
    job->progress.texts = job->stream.read;
    job->progress.hash = job->stream.hash;
    return corpus_output_flush(&job->output, &job->progress, err);
}
