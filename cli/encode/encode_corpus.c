/* SPDX-License-Identifier: MIT */
#include "cli/encode/encode_corpus.h"

#include <math.h>
#include <string.h>

#include "cli/encode/corpus_output.h"
#include "command/options.h"
#include "command/progress.h"
#include "command/input/text_batches.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "output/json_text.h"

enum {
    CHUNK_TEXTS = 4096, /* sorted by length together */
    CHUNK_BATCHES = 16, /* or so many batches of tokens, whichever is less: the results wait in memory */
};

const char *const pooling_names[] = {"mean", "cls", "none", NULL};

typedef struct corpus_text {
    text_record record;
    deberta_tokens *tokens;
    size_t first_row, rows;
} corpus_text;

typedef struct corpus_job {
    const encode_options *o;
    const common_options *options; /* their common part */
    text_batches batches;
    text_stream stream;
    corpus_output output;
    corpus_progress progress; /* done and on disk, or about to be */
    pooling pooling;
    size_t window, stride; /* 0: whole texts */
    progress_bar bar;
    double began;
    uint64_t chunk_begin_bytes, skipped_bytes;
    double *sums; /* [h] */

    /* The chunk: */
    corpus_text *texts; /* [CHUNK_TEXTS] */
    size_t text_count;
    text_piece *pieces;   /* [row_count], sorted while encoding */
    corpus_row *rows;     /* [row_count] in order */
    size_t *row_vectors;  /* [row_count] where a row's vectors begin */
    int32_t *ids, *types; /* framed windows */
    size_t row_count, vector_count, encoded_pieces;
    float *vectors; /* [vector_count][h] */
} corpus_job;

/* ---------------------------------------------------------------------------------------------------------- options */

/* Members that only a corpus has a use for, and those that only padded tensors have. */
enum { CORPUS_MEMBERS = 6, TENSOR_MEMBERS = 7 };
typedef struct encode_members {
    const void *corpus[CORPUS_MEMBERS], *tensors[TENSOR_MEMBERS];
} encode_members;

static encode_members members_of(const encode_options *o)
{
    return (encode_members){{&o->pool, &o->window, &o->stride, &o->reading.batch_tokens, &o->resume, &o->reading.jsonl},
                            {&o->reading.ids, &o->reading.tensors, &o->hidden, &o->attention_layers,
                             &o->component_layers, &o->logits, &o->reading.common.json}};
}

/* A file of objects, or an output with one row a text; NULL: neither. */
static const char *corpus_path(const encode_options *o)
{
    const text_list *files = &o->reading.files;
    const char *out = options_out(&o->reading.common);
    corpus_format format;
    for (size_t k = 0; k < files->count; k++)
        if (text_stream_is_jsonl(files->items[k])) return files->items[k];
    return corpus_format_of(out, &format) && format != CORPUS_SAFETENSORS ? out : NULL;
}

/* The first option that asks for a corpus, or NULL. */
static const void *corpus_member(const encode_options *o)
{
    const encode_members members = members_of(o);
    for (size_t k = 0; k < CORPUS_MEMBERS; k++)
        if (option_given(&o->reading.common, members.corpus[k])) return members.corpus[k];
    return NULL;
}

bool encode_corpus_wanted(const encode_options *o) { return corpus_member(o) || corpus_path(o); }

/* Options for padded tensors, beside what asks for a corpus. */
static int refuse_tensor_options(const encode_options *o)
{
    const common_options *options = &o->reading.common;
    const encode_members members = members_of(o);
    const void *reason = corpus_member(o);
    for (size_t k = 0; k < TENSOR_MEMBERS; k++) {
        if (!option_given(options, members.tensors[k])) continue;
        return option_wrong(options, members.tensors[k],
                            "does not go with the output of a corpus, which %s%s%s asks for", reason ? "--" : "'",
                            reason ? option_name(options, reason) : corpus_path(o), reason ? "" : "'");
    }
    return EXIT_OK;
}

static int check_window(corpus_job *job)
{
    const deberta_model_info *info = &job->batches.info;
    job->window = job->o->window;
    if (!job->window) return EXIT_OK;
    const size_t inside = job->window - FRAME_TOKENS;
    job->stride = job->o->stride ? job->o->stride : (inside + 1) / 2;
    if (job->stride > inside)
        return option_wrong(job->options, &job->o->stride, "expected 1 to %zu, found %zu", inside, job->stride);
    if (info->position_biased_input && job->window > info->max_positions)
        return option_wrong(job->options, &job->o->window, "%zu is longer than the model's position table, %zu",
                            job->window, info->max_positions);
    if (job->output.format == CORPUS_NPY)
        return say_usage(job->options,
                         "an .npy file cannot say which rows are windows of which text: use .safetensors or .jsonl");
    return EXIT_OK;
}

static int check_output(corpus_job *job)
{
    const char *path = options_out(job->options);
    if (!path) return say_usage(job->options, "say where the results go: --out FILE");
    if (!corpus_format_of(path, &job->output.format))
        return say_usage(job->options, "--out: expected a name that ends in .npy, .safetensors or .jsonl, found '%s'",
                         path);
    job->pooling = (pooling)job->o->pool;
    if (job->pooling == POOL_NONE && job->output.format == CORPUS_NPY)
        return say_usage(
            job->options,
            "an .npy file cannot hold texts of different length: use .safetensors or .jsonl, or --pool mean");
    job->output.per_token = job->pooling == POOL_NONE;
    job->output.resumable = job->o->resume;
    return EXIT_OK;
}

static void note_number(json_t *notes, const char *name, size_t number)
{
    if (number) json_object_set_new(notes, name, json_sprintf("%zu", number));
}

/* How the vectors were made, for whoever finds the file. */
static json_t *describe_making(const corpus_job *job)
{
    const deberta_isa isa = job->batches.session_options.isa;
    const char *ablations = job->options->ablate_text;
    json_t *notes = json_pack(
        "{s:s, s:o, s:s, s:s, s:s, s:s}", "isa", deberta_isa_name(isa == DEBERTA_ISA_AUTO ? deberta_isa_best() : isa),
        "model", json_clean_text(job->batches.info.name), "reference", reference_name(job->options->reference),
        "precision", deberta_precision_name(job->batches.info.precision), "version", deberta_version(), "pool",
        pooling_names[job->pooling]);
    if (ablations) json_object_set_new(notes, "ablate", json_string(ablations));
    note_number(notes, "window", job->window);
    note_number(notes, "stride", job->stride);
    note_number(notes, "max_tokens", job->batches.cut);
    return notes;
}

/* What a resumed run must have in common with the one that began. In a safetensors file that is also what its header
 * says of it: the header has a room of fixed size, and tells of all rows. */
static deberta_status describe_settings(const corpus_job *job, json_t **settings, deberta_error *err)
{
    char digest[65];
    const char *ablations = job->options->ablate_text;
    DEBERTA_TRY(deberta_model_digest(job->batches.model, digest, err));
    *settings = json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:b, s:s, s:s, s:s}", "version", deberta_version(),
                          "model", digest, "pool", pooling_names[job->pooling], "format", (int)job->output.format,
                          "window", (json_int_t)job->window, "stride", (json_int_t)job->stride, "max_tokens",
                          (json_int_t)job->batches.cut, "strict", job->batches.strict, "reference",
                          reference_name(job->options->reference), "ablations", ablations ? ablations : "", "precision",
                          deberta_precision_name(job->batches.info.precision));
    if (!*settings) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    if (job->output.format == CORPUS_SAFETENSORS) json_object_set(*settings, "notes", job->output.notes);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------- a chunk of texts */

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t count) /* FNV-1a */
{
    if (hash == 0) hash = 0xcbf29ce484222325;
    for (size_t k = 0; k < count; k++) hash = (hash ^ (unsigned char)bytes[k]) * 0x100000001b3;
    return hash;
}

static uint64_t hash_record(uint64_t hash, const text_record *record)
{
    hash = hash_bytes(hash, record->text, record->text ? record->text_bytes : 0);
    hash = hash_bytes(hash, "\n", 1);
    hash = hash_bytes(hash, record->pair, record->pair ? record->pair_bytes : 0);
    return hash_bytes(hash, "\n", 1);
}

static size_t windows_of(const corpus_job *job, size_t tokens)
{
    if (!job->window || tokens <= job->window) return 1;
    return 1 + (tokens - job->window + job->stride - 1) / job->stride;
}

/* Reads and tokenizes until there is enough to sort. */
static deberta_status read_chunk(corpus_job *job, bool *end, deberta_error *err)
{
    size_t tokens = 0;
    job->chunk_begin_bytes = job->stream.done_bytes;
    job->text_count = job->row_count = job->vector_count = job->encoded_pieces = 0;
    *end = false;
    while (job->text_count < CHUNK_TEXTS && tokens < CHUNK_BATCHES * job->batches.batch_tokens) {
        corpus_text *text = &job->texts[job->text_count];
        DEBERTA_TRY(text_stream_next(&job->stream, &text->record, end, err));
        if (*end) return DEBERTA_OK;
        job->text_count++;
        job->progress.hash = hash_record(job->progress.hash, &text->record);
        DEBERTA_TRY(text_batches_tokenize(&job->batches, &text->record, &text->tokens, err));
        if (job->window && text->record.pair)
            DEBERTA_TRY(text_record_spoil(&text->record, err, "--window takes texts without a second segment"));
        if (!text->record.problem && !job->window)
            DEBERTA_TRY(text_batches_check_length(&job->batches, &text->record, text->tokens->count,
                                                  job->batches.longest, err));
        text->first_row = job->row_count;
        text->rows = text->record.problem ? 1 : windows_of(job, text->tokens->count);
        job->row_count += text->rows;
        if (!text->record.problem) tokens += text->tokens->count + text->rows * (job->window ? job->window : 0);
    }
    return DEBERTA_OK;
}

/* One window of a text into ids and types, with the text's own frame around it. */
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
            job->rows[r] = (corpus_row){.text = job->progress.texts + k};
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

/* In double, in the order of the tokens: nothing about batches can show. */
static void pool_mean(const corpus_job *job, float *to, const float *rows, size_t stride, size_t tokens)
{
    const size_t h = job->batches.info.hidden_size;
    memset(job->sums, 0, h * sizeof *job->sums);
    for (size_t t = 0; t < tokens; t++)
        for (size_t e = 0; e < h; e++) job->sums[e] += rows[t * stride + e];
    for (size_t e = 0; e < h; e++) to[e] = (float)(job->sums[e] / (double)tokens);
}

static void show_progress(corpus_job *job, size_t pieces)
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
    }
    show_progress(job, count);
    return DEBERTA_OK;
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

static deberta_status write_chunk(corpus_job *job, deberta_error *err)
{
    const size_t h = job->batches.info.hidden_size;
    for (size_t k = 0; k < job->text_count; k++) {
        corpus_text *text = &job->texts[k];
        if (text->record.problem) {
            progress_end(&job->bar);
            text_stream_report(&job->stream, &text->record);
            job->progress.bad++;
        }
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
            DEBERTA_TRY(corpus_output_row(&job->output, job->rows[r], err));
        }
        text_record_free(&text->record);
    }
    job->progress.texts += job->text_count;
    return corpus_output_flush(&job->output, &job->progress, err);
}

/* --------------------------------------------------------------------------------------------------------- the work */

/* Passes over the texts that an interrupted run has finished, and makes sure that they are the same. */
static deberta_status skip_finished(corpus_job *job, deberta_error *err)
{
    uint64_t hash = 0;
    for (size_t k = 0; k < job->progress.texts; k++) {
        text_record record;
        bool end;
        DEBERTA_TRY(text_stream_next(&job->stream, &record, &end, err));
        if (!end) hash = hash_record(hash, &record);
        text_record_free(&record);
        if (end)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s holds %zu texts, but the input only %zu", job->output.part,
                         job->progress.texts, k);
    }
    if (hash != job->progress.hash)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the first %zu texts of the input are not those that %s was made from",
                     job->progress.texts, job->output.part);
    if (job->progress.texts) say_note(job->options, "%zu texts are done already", job->progress.texts);
    job->skipped_bytes = job->stream.done_bytes;
    return DEBERTA_OK;
}

static deberta_status encode_chunks(corpus_job *job, deberta_error *err)
{
    for (bool end = false; !end;) {
        option_memory *mark = options_mark(job->options);
        DEBERTA_TRY(read_chunk(job, &end, err));
        const size_t pieces = arrange_chunk(job);
        DEBERTA_TRY(text_batches_run(&job->batches, job->pieces, pieces, keep_batch, job, err));
        DEBERTA_TRY(write_chunk(job, err));
        options_release(job->options, mark);
    }
    return DEBERTA_OK;
}

static deberta_status encode_all(corpus_job *job, deberta_error *err)
{
    json_t *settings = NULL;
    if (job->output.resumable) DEBERTA_TRY(describe_settings(job, &settings, err));
    deberta_status status = corpus_output_open(&job->output, options_out(job->options), settings, &job->progress, err);
    json_decref(settings);
    DEBERTA_TRY(status);
    DEBERTA_TRY(skip_finished(job, err));
    job->bar = progress_begin(job->options, "encode",
                              (size_t)(job->stream.total_bytes ? job->stream.total_bytes - job->skipped_bytes : 0));
    job->began = clock_seconds();
    status = encode_chunks(job, err);
    progress_end(&job->bar);
    text_stream_report_rest(&job->stream);
    DEBERTA_TRY(status);
    if (job->progress.texts == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s has no lines", job->stream.path);
    DEBERTA_TRY(corpus_output_finish(&job->output, err));
    const double seconds = clock_seconds() - job->began;
    say_note(job->options, "%zu text%s, %zu tokens in %.2f s: %.0f tokens/s, %.1f %% of the time in the encoder",
             job->progress.texts, job->progress.texts == 1 ? "" : "s", job->batches.tokens, seconds,
             (double)job->batches.tokens / seconds, 100 * job->batches.encoder_seconds / seconds);
    return DEBERTA_OK;
}

static int run_job(corpus_job *job)
{
    static const text_stream_names names = {.text = "text", .pair = "pair"};
    deberta_error error = {0};
    int status = refuse_tensor_options(job->o);
    if (status == EXIT_OK) status = check_output(job);
    if (status == EXIT_OK) status = text_stream_open(&job->stream, &job->o->reading, &names);
    if (status == EXIT_OK) status = text_batches_open(&job->batches, &job->o->reading, 0);
    if (status == EXIT_OK) status = check_window(job);
    if (status != EXIT_OK) return status;
    job->output.width = job->batches.info.hidden_size;
    job->output.windows = job->window != 0;
    job->output.notes = describe_making(job);
    job->sums = options_take(job->options, job->output.width, sizeof *job->sums);
    if (!job->output.notes) return say_no_memory(job->options);
    if (encode_all(job, &error) != DEBERTA_OK) return say_error(job->options, &error);
    return job->progress.bad ? EXIT_INPUT : EXIT_OK;
}

int encode_corpus(const encode_options *o)
{
    corpus_job job = {.o = o, .options = &o->reading.common};
    job.texts = options_take(job.options, CHUNK_TEXTS, sizeof *job.texts);
    const int status = run_job(&job);
    for (size_t k = 0; k < CHUNK_TEXTS; k++) {
        text_record_free(&job.texts[k].record);
        deberta_tokens_free(&job.texts[k].tokens);
    }
    json_decref(job.output.notes);
    corpus_output_close(&job.output);
    text_stream_close(&job.stream);
    text_batches_close(&job.batches);
    return status;
}
