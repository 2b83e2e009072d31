/* Encodes corpora: checks the options, cuts texts into windows, pools, and writes rows in the order of the input.
 *
 * program/tasks/task_run.c reads, makes batches, resumes and ends.
 *
 * SPDX-License-Identifier: MIT */

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "bench/build_name.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/io/text_lines.h"
#include "include/deberta_unstable.h"
#include "output/json_text.h"
#include "output/scope.h"
#include "program/encode/encode_options.h"
#include "program/tasks/task_run.h"

const char *const pooling_names[] = {"mean", "cls", "none", NULL};

typedef struct corpus_job {
    const encode_options *o;
    corpus_format format;
    pooling pooling;
    bool normalize;        /* as modules.json asks for */
    const char *recipe;    /* settings followed from modules.json; NULL: none */
    size_t window, stride; /* 0: whole texts */
    size_t width;          /* h */
    double *sums;          /* [h] */

    /* The current window of the input */
    size_t row_count, vector_count, written; /* written: rows so far */
    corpus_row *rows;                        /* [row_count] in order */
    size_t *row_vectors;                     /* [row_count] index of each row's first vector */
    int32_t *ids, *types;                    /* framed windows */
    float *vectors;                          /* [vector_count][h] */
} corpus_job;

/* ---------------------------------------------------------------------------------------------------------- options */

/* Lists of members, each ended by 0: those that only corpora use, and those that only padded tensors use. */
#define AT(member) offsetof(encode_options, member)
static const size_t
    of_corpora[] = {AT(pool),
                    AT(window),
                    AT(stride),
                    AT(reading.batch_tokens),
                    AT(resume),
                    AT(reading.jsonl),
                    AT(reading.items.shards),
                    AT(reading.items.shard),
                    AT(reading.items.skip_bad),
                    0},
    of_tensors[] = {AT(reading.ids), AT(reading.tensors),     AT(hidden), AT(attention_layers), AT(component_layers),
                    AT(logits),      AT(reading.common.json), 0};

/* Returns the first of these members that the command line gives, or NULL. */
static const void *first_given(const encode_options *o, const size_t *members)
{
    for (; *members; members++)
        if (option_given(&o->reading.common, (const char *)o + *members)) return (const char *)o + *members;
    return NULL;
}

/* Returns the path of a file of objects, or of an output with one row for each text; NULL: neither is given. */
static const char *corpus_path(const encode_options *o)
{
    const text_list *files = &o->reading.files;
    const char *out = options_out(&o->reading.common);
    corpus_format format;
    for (size_t k = 0; k < files->count; k++)
        if (text_form_is_named(files->items[k])) return files->items[k];
    return corpus_format_of(out, &format) && format != CORPUS_SAFETENSORS ? out : NULL;
}

bool encode_corpus_wanted(const encode_options *o) { return first_given(o, of_corpora) || corpus_path(o); }

/* Refuses options of padded tensors where the options ask for a corpus. */
static void refuse_tensor_options(const encode_options *o)
{
    const void *reason = first_given(o, of_corpora), *wrong = first_given(o, of_tensors);
    if (!wrong) return;
    option_wrong(&o->reading.common, wrong, "does not go with the output of a corpus, which %s%s%s asks for",
                 reason ? "--" : "'", reason ? option_name(&o->reading.common, reason) : corpus_path(o),
                 reason ? "" : "'");
}

static void check_window(corpus_job *job, const task_run *run)
{
    const deberta_model_info *info = &run->batches.info;
    job->window = job->o->window;
    if (!job->window) return;
    const size_t inside = job->window - FRAME_TOKENS;
    job->stride = job->o->stride ? job->o->stride : (inside + 1) / 2;
    if (job->stride > inside)
        option_wrong(run->options, &job->o->stride, "expected 1 to %zu, found %zu", inside, job->stride);
    if (info->position_biased_input && job->window > info->max_positions)
        option_wrong(run->options, &job->o->window, "%zu is longer than the model's position table, %zu", job->window,
                     info->max_positions);
    if (job->format == CORPUS_NPY)
        usage_wrong(run->options,
                    "an .npy file cannot say which rows are windows of which text: use .safetensors or .jsonl");
}

static void check_output(corpus_job *job)
{
    const common_options *options = &job->o->reading.common;
    const char *path = options_out(options);
    if (!path) usage_wrong(options, "say where the results go: --out FILE");
    if (!corpus_format_of(path, &job->format))
        usage_wrong(options, "--out: expected a name that ends in .npy, .safetensors or .jsonl, found '%s'", path);
    job->pooling = (pooling)job->o->pool;
    if (job->pooling == POOL_NONE && job->format == CORPUS_NPY)
        usage_wrong(options,
                    "an .npy file cannot hold texts of different length: use .safetensors or .jsonl, or --pool mean");
}

/* Takes the way to make vectors from a sentence-transformers folder. A given --pool replaces all of it; a given
 * --max-tokens or --window replaces the length. */
static void follow_recipe(corpus_job *job, task_run *run)
{
    const encode_options *o = job->o;
    deberta_vector_recipe recipe;
    deberta_error error = {0};
    const char *folder = run->options->arguments[0];
    if (option_given(run->options, &o->pool) || strncmp(folder, "synthetic:", 10) == 0) return;
    must(run->options, deberta_vector_recipe_read(&recipe, folder, &error), &error);
    if (!recipe.given) return;
    if (*recipe.obstacle)
        end_with(run->options, EXIT_INPUT,
                 "%.200s: modules.json asks for %s, which is not followed: give --pool mean or --pool cls for vectors "
                 "without it",
                 folder, recipe.obstacle);
    job->pooling = recipe.cls ? POOL_CLS : POOL_MEAN;
    job->normalize = recipe.normalized;
    if (!run->batches.cut && !job->window && recipe.max_tokens)
        run->batches.cut = run->batches.longest = recipe.max_tokens;
    char *words = options_take(run->options, 80, 1);
    char length[40] = "";
    if (run->batches.cut) snprintf(length, sizeof length, ", at most %zu tokens", run->batches.cut);
    snprintf(words, 80, "%s%s%s", pooling_names[job->pooling], job->normalize ? ", length 1" : "", length);
    job->recipe = words;
    say_note(run->options, "note: vectors as modules.json of %.200s says: %s (--pool takes its place)", folder, words);
}

static void note_number(json_t *notes, const char *name, size_t number)
{
    if (number) json_object_set_new(notes, name, json_sprintf("%zu", number));
}

/* Describes how the vectors were made, for readers of the file. It omits the instruction set, on which no byte
 * depends. */
static json_t *describe_making(const corpus_job *job, const task_run *run)
{
    const char *ablations = run->options->ablated.text;
    json_t *notes = json_pack("{s:o, s:s, s:s, s:s, s:s}", "model", json_clean_text(run->batches.info.name),
                              "reference", reference_name((int)run->batches.info.reference), "precision",
                              deberta_precision_name(run->batches.info.precision), "version", deberta_version(), "pool",
                              pooling_names[job->pooling]);
    if (ablations) json_object_set_new(notes, "ablate", json_string(ablations));
    note_number(notes, "window", job->window);
    note_number(notes, "stride", job->stride);
    note_number(notes, "max_tokens", run->batches.cut);
    if (job->recipe) json_object_set_new(notes, "recipe", json_string(job->recipe));
    return notes;
}

/* Describes the settings that a resumed run must share with the first. With safetensors they include the notes of the
 * header, which has fixed room and describes all rows. */
static deberta_status describe_settings(const corpus_job *job, const task_run *run, json_t **settings,
                                        deberta_error *err)
{
    char digest[65];
    const char *ablations = run->options->ablated.text;
    DEBERTA_TRY(deberta_model_digest(run->batches.model, digest, err));
    *settings = json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:b, s:b, s:s, s:s, s:s}", "version", build_name(), "model", digest,
        "pool", pooling_names[job->pooling], "format", (int)job->format, "window", (json_int_t)job->window, "stride",
        (json_int_t)job->stride, "max_tokens", (json_int_t)run->batches.cut, "strict", run->batches.strict, "skip_bad",
        job->o->reading.items.skip_bad, "reference", reference_name((int)run->batches.info.reference), "ablations",
        ablations ? ablations : "", "precision", deberta_precision_name(run->batches.info.precision));
    if (!*settings) memory_short();
    if (job->recipe) json_object_set_new(*settings, "recipe", json_string(job->recipe));
    if (job->format == CORPUS_SAFETENSORS) json_object_set(*settings, "notes", run->rows.notes);
    return DEBERTA_OK;
}

static deberta_status settle(task_run *run, json_t **settings, deberta_error *err)
{
    const corpus_job *job = run->context;
    if (!corpus_shard_wanted(&run->stream))
        return run->rows.resumable ? describe_settings(job, run, settings, err) : DEBERTA_OK;
    if (!(*settings = corpus_shard_settings(run->options, run->batches.model, err))) return DEBERTA_E_MEMORY;
    if (job->recipe) json_object_set_new(*settings, "recipe", json_string(job->recipe));
    return DEBERTA_OK;
}

static void corpus_begin(task_run *run)
{
    corpus_job *job = run->context;
    check_window(job, run);
    follow_recipe(job, run);
    job->width = run->batches.info.hidden_size;
    job->sums = options_take(run->options, job->width, sizeof *job->sums);
    run->any_length = job->window != 0;
    run->rows = (corpus_output){.format = job->format,
                                .width = job->width,
                                .per_token = job->pooling == POOL_NONE,
                                .windows = job->window != 0,
                                .resumable = job->o->resume,
                                .notes = describe_making(job, run)};
    if (!run->rows.notes) memory_short();
}

/* --------------------------------------------------------------------------------------------------------- windows */

static size_t windows_of(const corpus_job *job, size_t tokens)
{
    if (!job->window || tokens <= job->window) return 1;
    return 1 + (tokens - job->window + job->stride - 1) / job->stride;
}

/* Returns the rows of a text. A text without an encoding has a row as well, so that rows match lines, unless it is
 * skipped. */
static size_t rows_of(const corpus_job *job, const task_text *text)
{
    if (text->record.problem) return job->o->reading.items.skip_bad ? 0 : 1;
    return windows_of(job, text->tokens->count);
}

static deberta_status corpus_look(task_run *run, task_text *text, deberta_error *err)
{
    (void)err;
    const corpus_job *job = run->context;
    if (!job->window) return DEBERTA_OK;
    if (text->record.pair) return text_record_spoil(&text->record, "--window takes texts without a second segment");
    run->tokens += windows_of(job, text->tokens->count) * job->window;
    return DEBERTA_OK;
}

/* Cuts one window of a text into ids and types, with the text's frame around it. */
static text_piece cut_window(const corpus_job *job, const task_text *text, size_t number, int32_t *ids, int32_t *types,
                             corpus_row *row)
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

/* Lays out the rows of all texts, and pieces for those that can be encoded; the index of a piece is that of its row.
 * Returns the number of pieces. */
static size_t lay_out(corpus_job *job, const task_run *run, text_piece *pieces)
{
    size_t count = 0, r = 0;
    for (size_t k = 0; k < run->count; k++) {
        const task_text *text = &run->texts[k];
        for (size_t number = 0, rows = rows_of(job, text); number < rows; number++, r++) {
            job->rows[r] = (corpus_row){.text = text->record.index};
            job->row_vectors[r] = job->vector_count;
            if (!text->record.problem) {
                text_piece *piece = &pieces[count++];
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
    return count;
}

/* Allocates rows, pieces and room for their vectors. */
static size_t corpus_arrange(task_run *run, text_piece **pieces)
{
    corpus_job *job = run->context;
    const common_options *options = run->options;
    size_t rows = 0;
    for (size_t k = 0; k < run->count; k++) rows += rows_of(job, &run->texts[k]);
    job->vector_count = job->written = 0;
    job->rows = options_take(options, rows, sizeof *job->rows);
    job->row_vectors = options_take(options, rows, sizeof *job->row_vectors);
    job->ids = options_take(options, rows, job->window * sizeof *job->ids);
    job->types = options_take(options, rows, job->window * sizeof *job->types);
    *pieces = options_take(options, rows, sizeof **pieces);
    const size_t count = lay_out(job, run, *pieces);
    job->vectors = options_take(options, job->vector_count, job->width * sizeof *job->vectors);
    return count;
}

/* --------------------------------------------------------------------------------------------------------- encoding */

/* Writes the mean of a piece's rows; it adds in double, in the order of the tokens, so that batches have no effect on
 * it. */
static void pool_mean(const corpus_job *job, float *to, const float *rows, size_t stride, size_t tokens)
{
    const size_t h = job->width;
    memset(job->sums, 0, h * sizeof *job->sums);
    for (size_t t = 0; t < tokens; t++)
        for (size_t e = 0; e < h; e++) job->sums[e] += rows[t * stride + e];
    for (size_t e = 0; e < h; e++) to[e] = (float)(job->sums[e] / (double)tokens);
}

/* Divides a vector by its norm; it adds in double, in the order of the elements. The least norm is that of PyTorch's
 * normalize. */
static void normalize(float *vector, size_t h)
{
    double squares = 0;
    for (size_t e = 0; e < h; e++) squares += (double)vector[e] * (double)vector[e];
    const double length = squares > 1e-24 ? sqrt(squares) : 1e-12;
    for (size_t e = 0; e < h; e++) vector[e] = (float)((double)vector[e] / length);
}

static deberta_status corpus_keep(void *context, const text_piece *pieces, size_t count, const size_t *starts,
                                  const deberta_outputs *outputs, deberta_error *err)
{
    (void)err;
    corpus_job *job = ((task_run *)context)->context;
    const size_t h = job->width;
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

static void put_line(FILE *file, const corpus_job *job, const task_text *text, size_t number)
{
    const text_record *record = &text->record;
    const size_t h = job->width;
    const corpus_row *row = &job->rows[job->written];
    const float *vectors = job->vectors + job->row_vectors[job->written] * h;
    fprintf(file, "{\"line\":%zu", record->line);
    if (record->source) put_json(file, "file", json_clean_text(record->source));
    if (record->id) put_json(file, "id", json_incref(record->id));
    if (record->problem) {
        put_json(file, "error", json_clean_text(record->problem));
    } else {
        fprintf(file, ",\"tokens\":%zu", row->tokens);
        if (job->window)
            fprintf(file, ",\"window\":%zu,\"characters\":[%zu,%zu]", number, row->characters.begin,
                    row->characters.end);
        fprintf(file, ",\"%s\":", job->pooling == POOL_NONE ? "hidden" : "pooled");
        if (job->pooling != POOL_NONE) put_vector(file, vectors, h);
        for (size_t t = 0; job->pooling == POOL_NONE && t < row->tokens; t++) {
            fputc(t ? ',' : '[', file);
            put_vector(file, vectors + t * h, h);
        }
        if (job->pooling == POOL_NONE) fputc(']', file);
    }
    fputs("}\n", file);
}

static deberta_status corpus_write(task_run *run, const task_text *text, deberta_error *err)
{
    corpus_job *job = run->context;
    for (size_t number = 0, rows = rows_of(job, text); number < rows; number++, job->written++) {
        const corpus_row *row = &job->rows[job->written];
        float *vectors = job->vectors + job->row_vectors[job->written] * job->width;
        if (text->record.problem && job->pooling != POOL_NONE)
            for (size_t e = 0; e < job->width; e++) vectors[e] = NAN;
        if (job->format == CORPUS_JSONL)
            put_line(run->rows.file, job, text, number);
        else
            DEBERTA_TRY(corpus_output_values(&run->rows, vectors, job->pooling == POOL_NONE ? row->tokens : 1, err));
        corpus_output_row(&run->rows, *row);
    }
    return DEBERTA_OK;
}

static deberta_status corpus_finish(task_run *run, FILE *out, deberta_error *err)
{
    (void)out, (void)err;
    const text_batches *batches = &run->batches;
    const double seconds = clock_seconds() - run->began;
    char left_out[48] = "";
    const size_t problems = run->stream.problems, used = run->stream.read - problems;
    if (problems) snprintf(left_out, sizeof left_out, " (%zu more cannot be used)", problems);
    say_note(run->options, "%s%zu text%s%s, %zu tokens in %.2f s: %.0f tokens/s, %.1f %% of the time in the encoder",
             run->shard.folder ? "a shard of " : "", used, used == 1 ? "" : "s", left_out, batches->tokens, seconds,
             (double)batches->tokens / seconds, 100 * batches->encoder_seconds / seconds);
    return DEBERTA_OK;
}

int encode_corpus(const encode_options *o)
{
    static const task_command command = {.names = {.text = "text", .pair = "pair"},
                                         .begin = corpus_begin,
                                         .look = corpus_look,
                                         .arrange = corpus_arrange,
                                         .keep = corpus_keep,
                                         .write = corpus_write,
                                         .settle = settle,
                                         .finish = corpus_finish};
    corpus_job job = {.o = o};
    refuse_tensor_options(o);
    check_output(&job);
    return task_run_all(&o->reading.common, &command, &job);
}
