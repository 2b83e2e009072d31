/* Reads windows of texts, encodes them in batches, answers them, and prints answers or writes rows in the order of the
 * input.
 *
 * SPDX-License-Identifier: MIT */
#include "program/tasks/task_run.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/io/json_file.h"
#include "include/deberta_unstable.h"
#include "output/json_text.h"
#include "output/scope.h"
#include "program/frame/input/input.h"
#include "program/frame/open_model.h"
#include "program/frame/unfinished.h"

enum {
    WINDOW_TEXTS = 512,
    WINDOW_BYTES = 1 << 20,
    ROW_TEXTS = 4096,  /* texts of a window of a command that writes rows, sorted by length together */
    ROW_BATCHES = 16,  /* batches of tokens in such a window, if fewer, because the results wait in memory */
    SHARD_BATCHES = 4, /* batches of a shard's window: a killed job loses them, and one asked to stop finishes them */
};

/* Describes the purpose of a head, and the training that produces one. */
static const char *describe_head(deberta_task task)
{
    switch (task) {
    case DEBERTA_TASK_SEQUENCE: return ", for classes of texts (`deberta finetune sequence --new-head` makes one)";
    case DEBERTA_TASK_TOKEN: return ", for labels of tokens (`deberta finetune token --new-head` makes one)";
    case DEBERTA_TASK_QA: return ", for answers to questions (`deberta finetune qa --new-head` makes one)";
    case DEBERTA_TASK_RTD: return ", for replaced tokens (a discriminator of `deberta train rtd` has it)";
    default: return "";
    }
}

void task_require(const common_options *options, const text_batches *batches, deberta_task task, const char *advice)
{
    char present[128] = "";
    if (deberta_task_width(batches->model, task)) return;
    for (int k = 0; k < DEBERTA_TASK_COUNT; k++) {
        const size_t used = strlen(present);
        if (batches->info.tasks_present & 1u << k)
            snprintf(present + used, sizeof present - used, "%s%s", used ? ", " : "",
                     deberta_task_name((deberta_task)k));
    }
    end_with(options, EXIT_INPUT, "%s does not hold the head '%s'%s; it has %s%s%s%s", batches->info.name,
             deberta_task_name(task), describe_head(task), *present ? "the heads: " : "no head at all", present,
             advice ? "; " : "", advice ? advice : "");
}

const char *const mlm_decoder_names[] = {"emd", "plain", NULL};

deberta_task task_mlm_head(const common_options *options, const text_batches *batches, const int *decoder)
{
    const bool has_emd = batches->info.tasks_present & 1u << DEBERTA_TASK_MLM_EMD;
    const bool plain = *decoder == 1 || (!has_emd && !option_given(options, decoder));
    return plain ? DEBERTA_TASK_MLM : DEBERTA_TASK_MLM_EMD;
}

/* Reads a folder's config.json, of a pair the discriminator's part; returns NULL where there is none. */
static json_t *read_config(const char *folder)
{
    static const json_limits limits = {.bytes = 64 << 20, .depth = 64, .values = 1 << 20};
    deberta_error unread = {0}; /* what a made-up model and packed weights alone have no file for */
    json_t *config = NULL;
    char *path = path_join(folder, "config.json");
    if (!path) memory_short();
    const deberta_status status = json_file_read(&config, path, &limits, &unread);
    free(path);
    if (status != DEBERTA_OK) return NULL;
    json_t *inner = json_object_get(config, "discriminator");
    if (!json_is_object(inner) || json_object_get(config, "hidden_size")) return config;
    json_incref(inner);
    json_decref(config);
    return inner;
}

/* Returns num_labels of a folder's config.json; 0 where it says none. */
static size_t labels_of_config(const char *folder)
{
    json_t *config = read_config(folder);
    const json_int_t count = json_integer_value(json_object_get(config, "num_labels"));
    json_decref(config);
    return count > 0 ? (size_t)count : 0;
}

bool task_run_chooses(const task_run *run)
{
    json_t *config = read_config(run->batches.info.name);
    const char *name = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    const bool chooses = name && strstr(name, "ForMultipleChoice");
    json_decref(config);
    return chooses;
}

const char *task_labels_lack(const common_options *options, const deberta_model *model, size_t labels)
{
    size_t names = 0, unnamed = 0;
    for (size_t label = 0; label < labels; label++) names += deberta_model_label(model, label) != NULL;
    const bool too_many = deberta_model_label(model, labels) != NULL;
    const size_t said = names || too_many ? 0 : labels_of_config(deberta_model_describe(model)->name);
    if (said && said != labels)
        return options_text(options, "num_labels in config.json is %zu, but the classifier has %zu outputs", said,
                            labels);
    if (!too_many && (names == 0 || names == labels)) return NULL;
    while (!too_many && deberta_model_label(model, unnamed)) unnamed++;
    return options_text(options, "id2label in config.json %s the label %zu, but the classifier has the labels 0 to %zu",
                        too_many ? "names" : "does not name", too_many ? labels : unnamed, labels - 1);
}

void task_run_check_labels(const task_run *run, size_t labels)
{
    const char *lack = task_labels_lack(run->options, run->batches.model, labels);
    if (lack) end_with(run->options, EXIT_INPUT, "%s: %s", run->batches.info.name, lack);
}

const char *task_run_label(const task_run *run, size_t label)
{
    const char *name = deberta_model_label(run->batches.model, label);
    return name ? name : options_text(run->options, "LABEL_%zu", label);
}

void task_text_out(const task_run *run, task_text *text, FILE **out)
{
    *out = NULL;
    if (run->options->json) return;
    if (!text->out) text->out = open_memstream(&text->shown, &text->shown_bytes);
    if (!text->out) memory_short();
    *out = text->out;
}

deberta_status task_run_logits(const task_batch *batch, deberta_task task, const size_t *positions, size_t count,
                               float *logits, deberta_error *err)
{
    const size_t width = deberta_task_width(batch->model, task);
    deberta_model_info info;
    DEBERTA_TRY(deberta_task_logits(batch->session, task, positions, count, logits, width, err));
    for (size_t k = 0; k < count * width; k++) {
        if (isfinite(logits[k])) continue;
        info = *deberta_model_describe(batch->model);
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: the head '%s' gives %f: weights of the model are damaged or diverged in training", info.name,
                     deberta_task_name(task), (double)logits[k]);
    }
    return DEBERTA_OK;
}

size_t task_run_choose(const task_run *run, size_t top, const double *values, size_t count, size_t **chosen)
{
    if (top > count) top = count;
    *chosen = options_take(run->options, top ? top : count, sizeof **chosen);
    if (top) return deberta_rank(*chosen, top, values, count);
    for (size_t k = 0; k < count; k++) (*chosen)[k] = k;
    return count;
}

/* -------------------------------------------------------------------------------------------------- windows of texts */

static size_t most_texts(const task_run *run) { return run->command->write ? ROW_TEXTS : WINDOW_TEXTS; }

static bool window_is_full(const task_run *run, size_t bytes)
{
    const size_t batches = run->rows.of_shard ? SHARD_BATCHES : run->command->write ? ROW_BATCHES : 0;
    if (batches && run->tokens >= batches * run->batches.batch_tokens) return true;
    return run->count == most_texts(run) || (!run->command->write && bytes >= WINDOW_BYTES);
}

/* Tokenizes a text and calls `look`. */
static deberta_status prepare_text(task_run *run, task_text *text, deberta_error *err)
{
    text_record *record = &text->record;
    DEBERTA_TRY(text_batches_tokenize(&run->batches, record, &text->tokens, err));
    if (!record->problem && !run->any_length)
        DEBERTA_TRY(text_batches_check_length(&run->batches, record, text->tokens->count, run->batches.longest, err));
    if (!record->problem && run->command->look) DEBERTA_TRY(run->command->look(run, text, err));
    if (record->problem) return DEBERTA_OK;
    text_batches_note_empty(&run->batches, record, input_empty_text(text->tokens, record->pair != NULL));
    run->tokens += text->tokens->count;
    return DEBERTA_OK;
}

/* Returns true if the writer of a pipe, or who types, has nothing more for us at this moment. */
static bool input_pauses(const text_stream *stream)
{
    return stream->file && poll(&(struct pollfd){.fd = fileno(stream->file), .events = POLLIN}, 1, 0) == 0;
}

/* Fills a window. Where answers are printed one by one, it ends when the input pauses: a writer that waits for an
 * answer gets it. */
static deberta_status read_window(task_run *run, bool *end, deberta_error *err)
{
    const bool answers_at_once = !run->to_rows && !run->command->silent;
    size_t bytes = 0;
    *end = false;
    run->count = run->tokens = 0;
    run->window_begin_bytes = run->stream.done_bytes;
    while (!window_is_full(run, bytes)) {
        task_text *text = &run->texts[run->count];
        DEBERTA_TRY(text_stream_next(&run->stream, &text->record, end, err));
        if (*end) break;
        text->skipped = false;
        if (run->command->split) DEBERTA_TRY(run->command->split(run, text, err));
        if (text->skipped) {
            text_record_free(&text->record);
            continue;
        }
        run->count++;
        bytes += text->record.text_bytes + text->record.pair_bytes;
        DEBERTA_TRY(prepare_text(run, text, err));
        if (answers_at_once && input_pauses(&run->stream)) break;
    }
    return DEBERTA_OK;
}

/* Advances the bar inside a window as its pieces are encoded. */
static void show_progress(task_run *run, size_t pieces)
{
    char detail[64];
    run->encoded += pieces;
    const double share = run->pieces ? (double)run->encoded / (double)run->pieces : 1;
    const double window = (double)(run->stream.done_bytes - run->window_begin_bytes);
    const double done = (double)(run->window_begin_bytes - run->skipped_bytes) + share * window;
    snprintf(detail, sizeof detail, "%.0f tokens/s", (double)run->batches.tokens / (clock_seconds() - run->began));
    progress_step(&run->bar, (size_t)done, detail);
}

static deberta_status describe_batch(task_run *run, const task_batch *batch, deberta_error *err)
{
    const deberta_task task = run->command->task;
    const bool whole = task == DEBERTA_TASK_SEQUENCE;
    const size_t width = deberta_task_width(batch->model, task),
                 rows = whole ? batch->count : batch->starts[batch->count];
    size_t *positions = options_take(run->options, rows, sizeof *positions);
    float *logits = options_take(run->options, rows, width * sizeof *logits);
    for (size_t k = 0; k < rows; k++) positions[k] = k;
    DEBERTA_TRY(task_run_logits(batch, task, positions, rows, logits, err));
    for (size_t k = 0; k < batch->count; k++) {
        const float *rows_of_text = logits + (whole ? k : batch->starts[k]) * width;
        FILE *out = NULL;
        if (!run->command->silent) task_text_out(run, batch->texts[k], &out);
        DEBERTA_TRY(run->command->describe(run, batch->texts[k], rows_of_text, out, err));
    }
    return DEBERTA_OK;
}

static deberta_status answer_batch(task_run *run, const text_piece *pieces, size_t count, const size_t *starts,
                                   deberta_error *err)
{
    struct scope_piece *mark = options_mark(run->options);
    task_batch batch = {.session = run->batches.session, .model = run->batches.model, .count = count, .starts = starts};
    batch.texts = options_take(run->options, count, sizeof *batch.texts);
    for (size_t k = 0; k < count; k++) batch.texts[k] = &run->texts[pieces[k].index];
    const deberta_status status = (run->command->describe ? describe_batch : run->command->answer)(run, &batch, err);
    options_release(run->options, mark);
    return status;
}

static deberta_status use_batch(void *context, const text_piece *pieces, size_t count, const size_t *starts,
                                const deberta_outputs *outputs, deberta_error *err)
{
    task_run *run = context;
    if (run->command->keep)
        DEBERTA_TRY(run->command->keep(run, pieces, count, starts, outputs, err));
    else
        DEBERTA_TRY(answer_batch(run, pieces, count, starts, err));
    show_progress(run, count);
    return DEBERTA_OK;
}

/* Arranges one piece for each text, with the index of the text in the window. */
static size_t arrange_texts(const task_run *run, text_piece **pieces)
{
    size_t count = 0;
    *pieces = options_take(run->options, run->count, sizeof **pieces);
    for (size_t k = 0; k < run->count; k++) {
        const deberta_tokens *tokens = run->texts[k].tokens;
        const bool answered = run->command->answers_alone || run->texts[k].answer || run->texts[k].out;
        if (run->texts[k].record.problem || answered) continue;
        (*pieces)[count++] =
            (text_piece){.ids = tokens->ids, .types = tokens->token_types, .tokens = tokens->count, .index = k};
    }
    return count;
}

static deberta_status answer_window(task_run *run, deberta_error *err)
{
    text_piece *pieces;
    run->pieces = run->command->arrange ? run->command->arrange(run, &pieces) : arrange_texts(run, &pieces);
    run->encoded = 0;
    return text_batches_run(&run->batches, pieces, run->pieces, use_batch, run, err);
}

/* --------------------------------------------------------------------------------------------------------- printing */

/* Prints members into an open JSON object, after a comma unless `first`, and releases them. */
static bool put_members(FILE *out, json_t *members, bool first, size_t flags)
{
    if (!first && json_object_size(members)) fputs(", ", out);
    const bool whole = json_dumpf(members, out, flags | JSON_EMBED) == 0;
    json_decref(members);
    return whole;
}

/* Prints an answer as JSON. Its numbers have nine digits; an id is the user's, and keeps all its digits. */
static void print_json_line(task_run *run, const task_text *text)
{
    const text_record *record = &text->record;
    FILE *out = run->output.file;
    json_t *place = json_pack("{s:I}", "line", (json_int_t)record->line), *rest = json_object();
    if (record->source) json_put(place, "file", json_clean_text(record->source));
    if (record->id) json_put(place, "id", json_incref(record->id));
    if (record->problem) json_put(rest, "error", json_clean_text(record->problem));
    if (text->answer && json_object_update(rest, text->answer) != 0) memory_short();
    const char *precision = low_precision_name(run->options);
    if (text->answer && precision) json_put(rest, "precision", json_string(precision));
    if (text->answer && run->options->ablated.text) json_put(rest, "ablate", json_string(run->options->ablated.text));
    fputc('{', out);
    const bool fits = put_members(out, place, true, 0) && put_members(out, rest, false, JSON_REAL_PRECISION(9));
    if (!fits && !ferror(out)) memory_short();
    fputs("}\n", out);
    run->printed++;
}

/* Prints the text form of an answer from the memory it was written to. */
static void print_shown(task_run *run, task_text *text)
{
    if (!stream_close(text->out)) memory_short();
    text->out = NULL;
    if (run->printed++) fputc('\n', run->output.file);
    fwrite(text->shown, 1, text->shown_bytes, run->output.file);
}

static void forget_answer(task_text *text)
{
    stream_discard(text->out);
    free(text->shown);
    json_decref(text->answer);
    text->answer = NULL, text->out = NULL, text->shown = NULL;
}

/* Reports why a text cannot be used, after the output of the texts before it is printed. */
static void report_problem(task_run *run, const text_record *record)
{
    char place[256];
    progress_end(&run->bar);
    if (run->output.file == stdout) stream_flush(stdout);
    text_stream_report(&run->stream, record);
    run->progress.bad++;
    text_record_place(record, place);
    corpus_output_problem(&run->rows, place, record->problem);
}

static deberta_status print_text(task_run *run, task_text *text, deberta_error *err)
{
    const text_record *record = &text->record;
    const task_command *command = run->command;
    const bool skipped = record->problem && run->stream.choice.skip_bad;
    if (record->problem) report_problem(run, record);
    if (run->to_rows && (skipped || !command->write))
        corpus_output_row(&run->rows, (corpus_row){.text = record->index,
                                                   .tokens = record->problem ? 0 : text->tokens->count,
                                                   .skipped = skipped});
    if (command->write && !skipped) DEBERTA_TRY(command->write(run, text, err));
    if (run->options->json && !command->silent && !skipped)
        print_json_line(run, text);
    else if (text->out && !record->problem)
        print_shown(run, text);
    forget_answer(text);
    text_record_free(&text->record);
    return DEBERTA_OK;
}

static deberta_status print_window(task_run *run, deberta_error *err)
{
    for (size_t k = 0; k < run->count; k++) DEBERTA_TRY(print_text(run, &run->texts[k], err));
    if (!run->to_rows) return DEBERTA_OK;
    run->progress.texts = run->stream.read;
    run->progress.hash = run->stream.hash;
    return corpus_output_flush(&run->rows, &run->progress, err);
}

static deberta_status run_window(task_run *run, bool *end, deberta_error *err)
{
    DEBERTA_TRY(read_window(run, end, err));
    struct scope_piece *mark = options_mark(run->options);
    DEBERTA_TRY(answer_window(run, err));
    DEBERTA_TRY(print_window(run, err));
    options_release(run->options, mark);
    return DEBERTA_OK;
}

/* Answers texts to the end of the input, or until the program must stop. */
static deberta_status run_windows(task_run *run, deberta_error *err)
{
    deberta_status status = DEBERTA_OK;
    const uint64_t total = run->stream.total_bytes;
    run->bar =
        progress_begin(run->options, run->options->command->name, total ? (size_t)(total - run->skipped_bytes) : 0);
    run->bar.enabled = run->bar.enabled && (run->to_rows || (run->output.whole && total));
    run->began = clock_seconds();
    for (bool end = false; status == DEBERTA_OK && !end;) {
        if ((run->stopped = stop_request_came())) break;
        status = run_window(run, &end, err);
        if (status == DEBERTA_OK && !stream_flush(run->output.file)) break; /* closing the output reports the error */
    }
    progress_end(&run->bar);
    text_stream_report_rest(&run->stream);
    DEBERTA_TRY(status);
    if (run->stream.read == 0 && !run->stopped)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s has no lines", run->stream.path);
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------- rows of a corpus */

/* Opens rows at their current position, and skips the texts that an interrupted run has finished. */
static deberta_status open_rows(task_run *run, deberta_error *err)
{
    const common_options *options = run->options;
    json_t *settings = NULL;
    if (run->command->settle)
        DEBERTA_TRY(run->command->settle(run, &settings, err));
    else if (!(settings = corpus_shard_settings(options, run->batches.model, err)))
        return DEBERTA_E_MEMORY;
    deberta_status status;
    if (corpus_shard_wanted(&run->stream)) {
        status = corpus_shard_open(&run->shard, reading_of(options), &run->stream, settings, &run->rows, &run->progress,
                                   &run->finished, err);
    } else {
        status = corpus_output_open(&run->rows, run->out, settings, &run->progress, err);
        json_decref(settings);
    }
    DEBERTA_TRY(status);
    if (run->finished) {
        say_note(options, "%s is there: nothing is left to do", run->shard.manifest);
        return DEBERTA_OK;
    }
    run->output = (text_output){.file = run->rows.file};
    DEBERTA_TRY(corpus_shard_skip(&run->stream, &run->rows, &run->progress, err));
    run->skipped_bytes = run->stream.done_bytes;
    if (run->progress.texts)
        say_note(options, "%zu %s done already", run->progress.texts,
                 run->progress.texts == 1 ? "text is" : "texts are");
    return DEBERTA_OK;
}

static deberta_status finish_rows(task_run *run, deberta_error *err)
{
    const deberta_isa isa = run->batches.session_options.isa;
    if (!run->shard.folder) return corpus_output_finish(&run->rows, err);
    return corpus_shard_finish(&run->shard, &run->stream, &run->rows, &run->progress,
                               isa == DEBERTA_ISA_AUTO ? deberta_isa_best() : isa, err);
}

/* -------------------------------------------------------------------------------------------------------------- a run */

static deberta_status open_run(task_run *run, deberta_error *err)
{
    const task_command *command = run->command;
    text_stream_open(&run->stream, reading_of(run->options), &command->names);
    text_batches_open(&run->batches, reading_of(run->options), 0);
    if (command->describe) task_require(run->options, &run->batches, command->task, command->without_head);
    if (command->describe && command->task == DEBERTA_TASK_SEQUENCE)
        run->batches.session_options.features |= DEBERTA_ONLY_HEADS;
    if (command->begin) command->begin(run);
    run->to_rows = command->write || corpus_shard_wanted(&run->stream);
    if (!run->to_rows) {
        text_output_open(run->options, run->out, &run->output);
        return DEBERTA_OK;
    }
    if (!command->write) {
        if (!run->out || !path_has_suffix(run->out, ".jsonl") || !run->options->json)
            usage_wrong(run->options, "--shards needs --out FILE.jsonl: an object a line can be joined again");
        run->rows.format = CORPUS_JSONL;
    }
    return open_rows(run, err);
}

/* Notes that a file which is named as one JSON value has a line for each of several texts. */
static void note_lines(const task_run *run)
{
    if (run->options->json && run->out && run->printed > 1 && path_has_suffix(run->out, ".json"))
        say_note(run->options, "note: %s has an object a line, as .jsonl names it: no JSON reader takes it whole",
                 run->out);
}

static deberta_status finish_run(task_run *run, deberta_error *err)
{
    note_lines(run);
    if (run->to_rows) {
        DEBERTA_TRY(finish_rows(run, err));
        run->output = (text_output){0};
    }
    if (run->command->finish) DEBERTA_TRY(run->command->finish(run, run->output.file, err));
    if (!run->to_rows) text_output_close(run->options, &run->output);
    return DEBERTA_OK;
}

static int work_through(task_run *run)
{
    deberta_error error = {0};
    deberta_status status = open_run(run, &error);
    if (status == DEBERTA_OK && !run->finished) status = run_windows(run, &error);
    if (status == DEBERTA_OK && run->stopped) {
        say_note(run->options, "stopped after %zu items of the input; the same command goes on", run->progress.texts);
        return EXIT_AGAIN;
    }
    if (status == DEBERTA_OK && !run->finished) status = finish_run(run, &error);
    if (status != DEBERTA_OK) return say_error(run->options, &error);
    return run->progress.bad && !run->stream.choice.skip_bad ? EXIT_INPUT : EXIT_OK;
}

static void close_run(task_run *run)
{
    for (size_t k = 0; k < most_texts(run); k++) {
        text_record_free(&run->texts[k].record);
        deberta_tokens_free(&run->texts[k].tokens);
        forget_answer(&run->texts[k]);
    }
    text_output_discard(&run->output);
    corpus_shard_close(&run->shard);
    json_decref(run->rows.notes);
    corpus_output_close(&run->rows);
    text_stream_close(&run->stream);
    text_batches_close(&run->batches);
}

int task_run_all(const common_options *options, const task_command *command, void *context)
{
    task_run run = {.options = options, .out = options_out(options), .command = command, .context = context};
    run.texts = options_take(options, most_texts(&run), sizeof *run.texts);
    if (items_are_shared(reading_of(options))) stop_request_watch();
    const int status = work_through(&run);
    close_run(&run);
    return status;
}
