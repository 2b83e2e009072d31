/* Checks the options of a corpus, opens or resumes its output, and processes chunks until the input ends.
 *
 * SPDX-License-Identifier: MIT */

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
#include "program/encode/corpus_chunk.h"
#include "program/frame/unfinished.h"

const char *const pooling_names[] = {"mean", "cls", "none", NULL};

/* ---------------------------------------------------------------------------------------------------------- options */

/* Members that only a corpus has a use for, and those that only padded tensors have; each list ends with 0. */
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

/* The first of these members that the command line gives, or NULL. */
static const void *first_given(const encode_options *o, const size_t *members)
{
    for (; *members; members++)
        if (option_given(&o->reading.common, (const char *)o + *members)) return (const char *)o + *members;
    return NULL;
}

/* A file of objects, or an output with one row a text; NULL: neither. */
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

/* Options for padded tensors, beside what asks for a corpus. */
static void refuse_tensor_options(const encode_options *o)
{
    const void *reason = first_given(o, of_corpora), *wrong = first_given(o, of_tensors);
    if (!wrong) return;
    option_wrong(&o->reading.common, wrong, "does not go with the output of a corpus, which %s%s%s asks for",
                 reason ? "--" : "'", reason ? option_name(&o->reading.common, reason) : corpus_path(o),
                 reason ? "" : "'");
}

static void check_window(corpus_job *job)
{
    const deberta_model_info *info = &job->batches.info;
    job->window = job->o->window;
    if (!job->window) return;
    const size_t inside = job->window - FRAME_TOKENS;
    job->stride = job->o->stride ? job->o->stride : (inside + 1) / 2;
    if (job->stride > inside)
        option_wrong(job->options, &job->o->stride, "expected 1 to %zu, found %zu", inside, job->stride);
    if (info->position_biased_input && job->window > info->max_positions)
        option_wrong(job->options, &job->o->window, "%zu is longer than the model's position table, %zu", job->window,
                     info->max_positions);
    if (job->output.format == CORPUS_NPY)
        usage_wrong(job->options,
                    "an .npy file cannot say which rows are windows of which text: use .safetensors or .jsonl");
}

static void check_output(corpus_job *job)
{
    const char *path = options_out(job->options);
    if (!path) usage_wrong(job->options, "say where the results go: --out FILE");
    if (!corpus_format_of(path, &job->output.format))
        usage_wrong(job->options, "--out: expected a name that ends in .npy, .safetensors or .jsonl, found '%s'", path);
    job->pooling = (pooling)job->o->pool;
    if (job->pooling == POOL_NONE && job->output.format == CORPUS_NPY)
        usage_wrong(job->options,
                    "an .npy file cannot hold texts of different length: use .safetensors or .jsonl, or --pool mean");
    job->output.per_token = job->pooling == POOL_NONE;
    job->output.resumable = job->o->resume;
}

/* A folder of sentence-transformers says how its vectors are made. A given --pool takes the place of all of it, a given
 * --max-tokens or --window that of the length. */
static void follow_recipe(corpus_job *job)
{
    const encode_options *o = job->o;
    deberta_vector_recipe recipe;
    deberta_error error = {0};
    const char *folder = job->options->arguments[0];
    if (option_given(job->options, &o->pool) || strncmp(folder, "synthetic:", 10) == 0) return;
    must(job->options, deberta_vector_recipe_read(&recipe, folder, &error), &error);
    if (!recipe.given) return;
    if (*recipe.obstacle)
        end_with(job->options, EXIT_INPUT,
                 "%.200s: modules.json asks for %s, which is not followed: give --pool mean or --pool cls for vectors "
                 "without it",
                 folder, recipe.obstacle);
    job->pooling = recipe.cls ? POOL_CLS : POOL_MEAN;
    job->normalize = recipe.normalized;
    if (!job->batches.cut && !job->window && recipe.max_tokens)
        job->batches.cut = job->batches.longest = recipe.max_tokens;
    char *words = options_take(job->options, 80, 1);
    char length[40] = "";
    if (job->batches.cut) snprintf(length, sizeof length, ", at most %zu tokens", job->batches.cut);
    snprintf(words, 80, "%s%s%s", pooling_names[job->pooling], job->normalize ? ", length 1" : "", length);
    job->recipe = words;
    say_note(job->options, "note: vectors as modules.json of %.200s says: %s (--pool takes its place)", folder, words);
}

static void note_number(json_t *notes, const char *name, size_t number)
{
    if (number) json_object_set_new(notes, name, json_sprintf("%zu", number));
}

/* Describes how the vectors were made, for readers of the file. The instruction set is left out: no byte depends on
 * it. */
static json_t *describe_making(const corpus_job *job)
{
    const char *ablations = job->options->ablated.text;
    json_t *notes = json_pack("{s:o, s:s, s:s, s:s, s:s}", "model", json_clean_text(job->batches.info.name),
                              "reference", reference_name((int)job->batches.info.reference), "precision",
                              deberta_precision_name(job->batches.info.precision), "version", deberta_version(), "pool",
                              pooling_names[job->pooling]);
    if (ablations) json_object_set_new(notes, "ablate", json_string(ablations));
    note_number(notes, "window", job->window);
    note_number(notes, "stride", job->stride);
    note_number(notes, "max_tokens", job->batches.cut);
    if (job->recipe) json_object_set_new(notes, "recipe", json_string(job->recipe));
    return notes;
}

/* Describes the settings that a resumed run must share with the first. With safetensors they include the notes of the
 * header, which has a room of fixed size and describes all rows. */
static deberta_status describe_settings(const corpus_job *job, json_t **settings, deberta_error *err)
{
    char digest[65];
    const char *ablations = job->options->ablated.text;
    DEBERTA_TRY(deberta_model_digest(job->batches.model, digest, err));
    *settings = json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:b, s:s, s:s, s:s}", "version", build_name(), "model",
                          digest, "pool", pooling_names[job->pooling], "format", (int)job->output.format, "window",
                          (json_int_t)job->window, "stride", (json_int_t)job->stride, "max_tokens",
                          (json_int_t)job->batches.cut, "strict", job->batches.strict, "reference",
                          reference_name((int)job->batches.info.reference), "ablations", ablations ? ablations : "",
                          "precision", deberta_precision_name(job->batches.info.precision));
    if (!*settings) memory_short();
    if (job->recipe) json_object_set_new(*settings, "recipe", json_string(job->recipe));
    if (job->output.format == CORPUS_SAFETENSORS) json_object_set(*settings, "notes", job->output.notes);
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------- the work */

/* Passes over the texts that an interrupted run has finished, and makes sure that they are the same. */
static deberta_status skip_finished(corpus_job *job, deberta_error *err)
{
    DEBERTA_TRY(corpus_shard_skip(&job->stream, &job->output, &job->progress, err));
    if (job->progress.texts)
        say_note(job->options, "%zu %s done already", job->progress.texts,
                 job->progress.texts == 1 ? "text is" : "texts are");
    job->skipped_bytes = job->stream.done_bytes;
    return DEBERTA_OK;
}

/* Encodes to the end of the input, or until the program must stop. */
static deberta_status encode_chunks(corpus_job *job, bool *end, deberta_error *err)
{
    while (!*end && !stop_request_came()) {
        struct scope_piece *mark = options_mark(job->options);
        DEBERTA_TRY(corpus_chunk_read(job, end, err));
        DEBERTA_TRY(corpus_chunk_encode(job, err));
        DEBERTA_TRY(corpus_chunk_write(job, err));
        options_release(job->options, mark);
    }
    return DEBERTA_OK;
}

/* Opens the output of the rows at its present position: a shard's files, or --out itself. */
static deberta_status open_output(corpus_job *job, deberta_error *err)
{
    json_t *settings = NULL;
    if (corpus_shard_wanted(&job->stream)) {
        if (!(settings = corpus_shard_settings(job->options, job->batches.model, err))) return DEBERTA_E_MEMORY;
        if (job->recipe) json_object_set_new(settings, "recipe", json_string(job->recipe));
        return corpus_shard_open(&job->shard, &job->o->reading, &job->stream, settings, &job->output, &job->progress,
                                 &job->finished, err);
    }
    if (job->output.resumable) DEBERTA_TRY(describe_settings(job, &settings, err));
    const deberta_status status =
        corpus_output_open(&job->output, options_out(job->options), settings, &job->progress, err);
    json_decref(settings);
    return status;
}

static deberta_status finish_output(corpus_job *job, deberta_error *err)
{
    const deberta_isa isa = job->batches.session_options.isa;
    if (!job->shard.folder) return corpus_output_finish(&job->output, err);
    return corpus_shard_finish(&job->shard, &job->stream, &job->output, &job->progress,
                               isa == DEBERTA_ISA_AUTO ? deberta_isa_best() : isa, err);
}

static deberta_status encode_all(corpus_job *job, deberta_error *err)
{
    bool end = false;
    DEBERTA_TRY(skip_finished(job, err));
    job->bar = progress_begin(job->options, "encode",
                              (size_t)(job->stream.total_bytes ? job->stream.total_bytes - job->skipped_bytes : 0));
    job->began = clock_seconds();
    const deberta_status status = encode_chunks(job, &end, err);
    progress_end(&job->bar);
    text_stream_report_rest(&job->stream);
    DEBERTA_TRY(status);
    job->stopped = !end;
    if (job->stopped) return DEBERTA_OK;
    if (job->stream.read == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s has no lines", job->stream.path);
    DEBERTA_TRY(finish_output(job, err));
    const double seconds = clock_seconds() - job->began;
    say_note(job->options, "%s%zu text%s, %zu tokens in %.2f s: %.0f tokens/s, %.1f %% of the time in the encoder",
             job->shard.folder ? "a shard of " : "", job->stream.read, job->stream.read == 1 ? "" : "s",
             job->batches.tokens, seconds, (double)job->batches.tokens / seconds,
             100 * job->batches.encoder_seconds / seconds);
    return DEBERTA_OK;
}

static int write_rows(corpus_job *job)
{
    deberta_error error = {0};
    if (open_output(job, &error) != DEBERTA_OK) return say_error(job->options, &error);
    if (job->finished) {
        say_note(job->options, "%s is there: nothing is left to do", job->shard.manifest);
        return EXIT_OK;
    }
    if (encode_all(job, &error) != DEBERTA_OK) return say_error(job->options, &error);
    if (job->stopped) {
        say_note(job->options, "stopped after %zu items of the input; the same command goes on", job->progress.texts);
        return EXIT_AGAIN;
    }
    return job->progress.bad && !job->stream.choice.skip_bad ? EXIT_INPUT : EXIT_OK;
}

static int run_job(corpus_job *job)
{
    static const text_stream_names names = {.text = "text", .pair = "pair"};
    refuse_tensor_options(job->o);
    check_output(job);
    text_stream_open(&job->stream, &job->o->reading, &names);
    text_batches_open(&job->batches, &job->o->reading, 0);
    check_window(job);
    follow_recipe(job);
    job->output.width = job->batches.info.hidden_size;
    job->output.windows = job->window != 0;
    job->output.notes = describe_making(job);
    job->sums = options_take(job->options, job->output.width, sizeof *job->sums);
    if (!job->output.notes) memory_short();
    return write_rows(job);
}

int encode_corpus(const encode_options *o)
{
    corpus_job job = {.o = o, .options = &o->reading.common};
    if (items_are_shared(&o->reading)) stop_request_watch();
    job.texts = options_take(job.options, CHUNK_TEXTS, sizeof *job.texts);
    const int status = run_job(&job);
    for (size_t k = 0; k < CHUNK_TEXTS; k++) {
        text_record_free(&job.texts[k].record);
        deberta_tokens_free(&job.texts[k].tokens);
    }
    json_decref(job.output.notes);
    corpus_shard_close(&job.shard);
    corpus_output_close(&job.output);
    text_stream_close(&job.stream);
    text_batches_close(&job.batches);
    return status;
}
