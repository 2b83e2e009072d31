/* Reads windows of texts, encodes them in batches, answers them, and prints them in the order of the input.
 *
 * SPDX-License-Identifier: MIT */
#include "program/tasks/task_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/text.h"
#include "include/deberta_unstable.h"
#include "output/json_text.h"
#include "output/scope.h"
#include "program/frame/open_model.h"
#include "program/frame/progress.h"
#include "program/frame/unfinished.h"

enum {
    WINDOW_TEXTS = 512,
    WINDOW_BYTES = 1 << 20,
    SHARD_BATCHES = 4, /* of tokens in a window of a shard: what a job that is killed loses */
};

/* Describes the purpose of a head, and the training that makes one. */
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

void task_require(const common_options *options, const text_batches *batches, deberta_task task)
{
    char present[128] = "";
    if (deberta_task_width(batches->model, task)) return;
    for (int k = 0; k < DEBERTA_TASK_COUNT; k++) {
        const size_t used = strlen(present);
        if (batches->info.tasks_present & 1u << k)
            snprintf(present + used, sizeof present - used, "%s%s", used ? ", " : "",
                     deberta_task_name((deberta_task)k));
    }
    end_with(options, EXIT_INPUT, "%s does not hold the head '%s'%s; it has %s%s", batches->info.name,
             deberta_task_name(task), describe_head(task), *present ? "the heads: " : "no head at all", present);
}

const char *const mlm_decoder_names[] = {"emd", "plain", NULL};

deberta_task task_mlm_head(const common_options *options, const text_batches *batches, const int *decoder)
{
    const bool has_emd = batches->info.tasks_present & 1u << DEBERTA_TASK_MLM_EMD;
    const bool plain = *decoder == 1 || (!has_emd && !option_given(options, decoder));
    return plain ? DEBERTA_TASK_MLM : DEBERTA_TASK_MLM_EMD;
}

void task_run_check_labels(const task_run *run, size_t labels)
{
    const deberta_model *model = run->batches.model;
    size_t names = 0, unnamed = 0;
    for (size_t label = labels; label-- > 0;)
        if (deberta_model_label(model, label))
            names++;
        else
            unnamed = label;
    const bool too_many = deberta_model_label(model, labels) != NULL;
    if (!too_many && (names == 0 || names == labels)) return;
    end_with(run->options, EXIT_INPUT, "%s: id2label in config.json %s %zu, but the classifier has the labels 0 to %zu",
             run->batches.info.name, too_many ? "names the label" : "does not name the label",
             too_many ? labels : unnamed, labels - 1);
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
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the head '%s' gives %f: weights of the model are damaged", info.name,
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

/* Fills a window, tokenized and looked at. A person at the keyboard gets an answer after each line. */
static deberta_status read_window(task_run *run, bool *end, deberta_error *err)
{
    const bool typed = isatty(STDIN_FILENO);
    const size_t most_tokens = run->rows.of_shard ? SHARD_BATCHES * run->batches.batch_tokens : SIZE_MAX;
    size_t bytes = 0, tokens = 0;
    *end = false;
    run->count = 0;
    while (run->count < WINDOW_TEXTS && bytes < WINDOW_BYTES && tokens < most_tokens) {
        task_text *text = &run->texts[run->count];
        DEBERTA_TRY(text_stream_next(&run->stream, &text->record, end, err));
        if (*end) break;
        run->read++;
        text->skipped = false;
        if (run->command->split) DEBERTA_TRY(run->command->split(run, text, err));
        if (text->skipped) {
            text_record_free(&text->record);
            continue;
        }
        run->count++;
        bytes += text->record.text_bytes + text->record.pair_bytes;
        DEBERTA_TRY(text_batches_tokenize(&run->batches, &text->record, &text->tokens, err));
        if (!text->record.problem)
            DEBERTA_TRY(text_batches_check_length(&run->batches, &text->record, text->tokens->count,
                                                  run->batches.longest, err));
        if (!text->record.problem) tokens += text->tokens->count;
        if (!text->record.problem && run->command->look) DEBERTA_TRY(run->command->look(run, text, err));
        if (typed && run->stream.file == stdin) break;
    }
    if (run->read == 0 && run->stream.read == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s has no lines", run->stream.path);
    return DEBERTA_OK;
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

static deberta_status answer_batch(void *context, const text_piece *pieces, size_t count, const size_t *starts,
                                   const deberta_outputs *outputs, deberta_error *err)
{
    (void)outputs;
    task_run *run = context;
    struct scope_piece *mark = options_mark(run->options);
    task_batch batch = {.session = run->batches.session, .model = run->batches.model, .count = count, .starts = starts};
    batch.texts = options_take(run->options, count, sizeof *batch.texts);
    for (size_t k = 0; k < count; k++) batch.texts[k] = &run->texts[pieces[k].index];
    const deberta_status status = (run->command->describe ? describe_batch : run->command->answer)(run, &batch, err);
    options_release(run->options, mark);
    return status;
}

static deberta_status answer_window(task_run *run, deberta_error *err)
{
    size_t count = 0;
    struct scope_piece *mark = options_mark(run->options);
    text_piece *pieces = options_take(run->options, run->count, sizeof *pieces);
    for (size_t k = 0; k < run->count; k++) {
        const deberta_tokens *tokens = run->texts[k].tokens;
        if (run->texts[k].record.problem || run->command->answers_alone) continue;
        pieces[count++] =
            (text_piece){.ids = tokens->ids, .types = tokens->token_types, .tokens = tokens->count, .index = k};
    }
    const deberta_status status = text_batches_run(&run->batches, pieces, count, answer_batch, run, err);
    options_release(run->options, mark);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- printing */

/* The members of an object that is open already; after others if it is not the first. Releases. */
static bool put_members(FILE *out, json_t *members, bool first, size_t flags)
{
    if (!first && json_object_size(members)) fputs(", ", out);
    const bool whole = json_dumpf(members, out, flags | JSON_EMBED) == 0;
    json_decref(members);
    return whole;
}

/* Numbers of an answer have nine digits; an id is the user's, and keeps all that it has. */
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
    fputc('{', out);
    const bool fits = put_members(out, place, true, 0) && put_members(out, rest, false, JSON_REAL_PRECISION(9));
    if (!fits && !ferror(out)) memory_short();
    fputs("}\n", out);
}

/* The answer for a person, in the memory it was written to. */
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

static void print_text(task_run *run, task_text *text)
{
    const bool skipped = text->record.problem && run->stream.choice.skip_bad;
    if (text->record.problem) {
        stream_flush(run->output.file);
        text_stream_report(&run->stream, &text->record);
        run->bad++;
    }
    if (run->options->json && !run->command->silent && !skipped)
        print_json_line(run, text);
    else if (text->out && !text->record.problem)
        print_shown(run, text);
    forget_answer(text);
    text_record_free(&text->record);
}

/* The answer as a row of the shard. */
static void note_row(task_run *run, const task_text *text)
{
    char place[256];
    const text_record *record = &text->record;
    const bool skipped = record->problem && run->stream.choice.skip_bad;
    const corpus_row row = {
        .text = record->index, .tokens = record->problem ? 0 : text->tokens->count, .skipped = skipped};
    if (!run->rows.of_shard) return;
    corpus_output_row(&run->rows, row);
    if (!record->problem) return;
    run->progress.bad++;
    text_record_place(record, place);
    corpus_output_problem(&run->rows, place, record->problem);
}

static deberta_status print_window(task_run *run, deberta_error *err)
{
    for (size_t k = 0; k < run->count; k++) {
        note_row(run, &run->texts[k]);
        print_text(run, &run->texts[k]);
    }
    if (!run->rows.of_shard) return DEBERTA_OK;
    run->progress.texts = run->stream.read;
    run->progress.hash = run->stream.hash;
    return corpus_output_flush(&run->rows, &run->progress, err);
}

static int run_windows(task_run *run)
{
    deberta_error error = {0};
    progress_bar bar = progress_begin(run->options, "texts", (size_t)run->stream.total_bytes);
    bar.enabled = bar.enabled && (run->output.whole || run->rows.of_shard) && bar.total;
    for (bool end = false; !end && !run->stopped;) {
        deberta_status status = read_window(run, &end, &error);
        if (status == DEBERTA_OK) status = answer_window(run, &error);
        if (status == DEBERTA_OK) status = print_window(run, &error);
        if (status != DEBERTA_OK) {
            progress_end(&bar);
            return say_error(run->options, &error);
        }
        if (!stream_flush(run->output.file)) break; /* whoever closes it says so */
        progress_step(&bar, (size_t)run->stream.done_bytes, NULL);
        run->stopped = !end && stop_request_came();
    }
    progress_end(&bar);
    text_stream_report_rest(&run->stream);
    return EXIT_OK;
}

/* ----------------------------------------------------------------------------------------------------------- a shard */

static deberta_status open_rows(task_run *run, deberta_error *err)
{
    json_t *settings = corpus_shard_settings(run->options, run->batches.model, err);
    if (!settings) return DEBERTA_E_MEMORY;
    run->rows.format = CORPUS_JSONL;
    DEBERTA_TRY(corpus_shard_open(&run->shard, reading_of(run->options), &run->stream, settings, &run->rows,
                                  &run->progress, &run->finished, err));
    run->output = (text_output){.file = run->rows.file};
    if (run->finished) return DEBERTA_OK;
    DEBERTA_TRY(corpus_shard_skip(&run->stream, &run->rows, &run->progress, err));
    run->read = run->progress.texts;
    return DEBERTA_OK;
}

static void open_shard(task_run *run)
{
    deberta_error error = {0};
    if (!run->out || !path_has_suffix(run->out, ".jsonl") || !run->options->json)
        usage_wrong(run->options, "--shards needs --json and --out FILE.jsonl: one line an item can be joined again");
    must(run->options, open_rows(run, &error), &error);
    if (run->finished) say_note(run->options, "%s is there: nothing is left to do", run->shard.manifest);
}

static int finish_shard(task_run *run)
{
    deberta_error error = {0};
    const deberta_isa isa = run->batches.session_options.isa;
    if (run->stopped) {
        say_note(run->options, "stopped after %zu items of the input; the same command goes on", run->progress.texts);
        return EXIT_AGAIN;
    }
    if (corpus_shard_finish(&run->shard, &run->stream, &run->rows, &run->progress,
                            isa == DEBERTA_ISA_AUTO ? deberta_isa_best() : isa, &error) != DEBERTA_OK)
        return say_error(run->options, &error);
    return run->progress.bad && !run->stream.choice.skip_bad ? EXIT_INPUT : EXIT_OK;
}

/* -------------------------------------------------------------------------------------------------------------- a run */

static void open_run(task_run *run)
{
    const task_command *command = run->command;
    text_batches_open(&run->batches, reading_of(run->options), 0);
    if (command->describe) task_require(run->options, &run->batches, command->task);
    if (command->begin) command->begin(run);
    text_stream_open(&run->stream, reading_of(run->options), &command->names);
    if (corpus_shard_wanted(&run->stream))
        open_shard(run);
    else
        text_output_open(run->options, run->out, &run->output);
}

static int finish_run(task_run *run)
{
    deberta_error error = {0};
    if (run->rows.of_shard) return finish_shard(run);
    if (run->command->finish && run->command->finish(run, run->output.file, &error) != DEBERTA_OK)
        return say_error(run->options, &error);
    text_output_close(run->options, &run->output);
    return EXIT_OK;
}

static void close_run(task_run *run)
{
    for (size_t k = 0; k < WINDOW_TEXTS; k++) {
        text_record_free(&run->texts[k].record);
        deberta_tokens_free(&run->texts[k].tokens);
        forget_answer(&run->texts[k]);
    }
    text_output_discard(&run->output);
    corpus_shard_close(&run->shard);
    corpus_output_close(&run->rows);
    text_stream_close(&run->stream);
    text_batches_close(&run->batches);
}

int task_run_all(const common_options *options, const task_command *command, void *context)
{
    task_run run = {.options = options, .out = options_out(options), .command = command, .context = context};
    run.texts = options_take(options, WINDOW_TEXTS, sizeof *run.texts);
    if (items_are_shared(reading_of(options))) stop_request_watch();
    open_run(&run);
    int status = run.finished ? EXIT_OK : run_windows(&run);
    if (status == EXIT_OK && !run.finished) status = finish_run(&run);
    const bool bad = run.bad && !run.stream.choice.skip_bad;
    close_run(&run);
    return status == EXIT_OK && bad ? EXIT_INPUT : status;
}
