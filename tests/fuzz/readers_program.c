/* The readers of the program: logs, labelled examples, what shards leave. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "output/scope.h"
#include "program/frame/corpus/shard_files.h"
#include "program/frame/option_scan.h"
#include "program/train/finetune_lists.h"
#include "program/train/train_log.h"
#include "tests/fuzz/fuzz_folder.h"

static deberta_error error;

static void read_log(const char *folder, size_t bytes)
{
    train_log log = {0};
    char *path = path_join(folder, "log.jsonl");
    (void)bytes;
    if (path) train_log_read(&log, path, &error);
    scope_free(&log.memory); /* as callers do, also after a failure */
    free(path);
}

/* ---------------------------------------------------------------------------------------------------------- examples */

/* What text_stream_open refuses, which ends a program. */
static bool holds_no_texts(const char *path)
{
    char bytes[NO_TEXTS_BYTES];
    FILE *file = fopen(path, "rb");
    if (!file) abort();
    const size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return no_texts_reason(bytes, count) != NULL;
}

typedef deberta_status example_reader(finetune_reader *reader, text_stream *stream, example_list *list,
                                      deberta_error *err);

static void read_examples(const char *folder, const char *name, deberta_training_task task, example_reader *read,
                          const text_stream_names *names)
{
    static deberta_tokenizer *tokenizer;
    static const command fuzzed = {.name = "fuzz"};
    option_scan scan = {0};
    const common_options common = {.command = &fuzzed, .teller = &fuzzed, .quiet = true, .scan = &scan};
    finetune_reader reader = {
        .options = &common, .model = "m", .task = task, .most_tokens = 24, .cuts = true, .labels.options = &common};
    example_list list = {.options = &common};
    text_stream stream;
    char *path = path_join(folder, name);
    if (!path) abort();
    if (holds_no_texts(path)) {
        free(path);
        return;
    }
    const reading_options reading = {.common = common, .files = {(const char *const[]){path}, 1}};
    if (!tokenizer &&
        deberta_tokenizer_open(&tokenizer, TESTS_FOLDER "/golden/tokenizers/spm-unigram", &error) != DEBERTA_OK)
        abort();
    reader.tokenizer = tokenizer;
    reader.labels.collects = task == DEBERTA_TRAIN_SEQUENCE || task == DEBERTA_TRAIN_TOKEN;
    text_stream_open(&stream, &reading, names);
    if (read(&reader, &stream, &list, &error) == DEBERTA_OK && list.count)
        label_list_check(&reader.labels, task, &error);
    text_stream_close(&stream);
    deberta_tokens_free(&reader.tokens);
    scope_free(&scan.memory);
    free(path);
}

static const text_stream_names of_texts = {.text = "text", .pair = "pair", .keeps_object = true, .columns = true},
                               of_words = {.keeps_object = true, .columns = true},
                               of_answers = {
                                   .text = "question", .pair = "context", .pair_required = true, .keeps_object = true};

static void read_table(const char *folder, size_t bytes)
{
    (void)bytes;
    read_examples(folder, "x.tsv", DEBERTA_TRAIN_SEQUENCE, finetune_read_texts, &of_texts);
    read_examples(folder, "x.tsv", DEBERTA_TRAIN_CHOICE, finetune_read_choices, &of_texts);
    read_examples(folder, "x.tsv", DEBERTA_TRAIN_TOKEN, finetune_read_tags, &of_words);
}

static void read_objects(const char *folder, size_t bytes)
{
    (void)bytes;
    read_examples(folder, "x.jsonl", DEBERTA_TRAIN_SEQUENCE, finetune_read_texts, &of_texts);
    read_examples(folder, "x.jsonl", DEBERTA_TRAIN_CHOICE, finetune_read_choices, &of_texts);
    read_examples(folder, "x.jsonl", DEBERTA_TRAIN_TOKEN, finetune_read_tags, &of_words);
    read_examples(folder, "x.jsonl", DEBERTA_TRAIN_QA, finetune_read_answers, &of_answers);
}

/* ------------------------------------------------------------------------------------------------------------ shards */

/* Rows that are no more than the file may have. */
enum { MOST_ROWS = 4, MOST_WIDTH = 1 << 12, MOST_ROW_TOKENS = 8, PART_BYTES = 1 << 16 };

static void add_row(corpus_output *output, corpus_row row)
{
    static const float zeros[MOST_WIDTH * MOST_ROW_TOKENS];
    const size_t vectors = row.skipped ? 0 : output->per_token ? row.tokens : 1;
    if (output->format == CORPUS_JSONL) {
        if (!row.skipped) fputs("{}\n", output->file);
    } else if (corpus_output_values(output, zeros, vectors, &error) != DEBERTA_OK) {
        abort();
    }
    corpus_output_row(output, row);
}

/* What was written must be the file that fits so many rows and vectors, and no others. */
static void check_written(const corpus_output *layout, const char *path, size_t rows, size_t vectors)
{
    struct stat about;
    uint64_t begin, end;
    if (stat(path, &about) != 0) abort();
    FILE *file = fopen(path, "rb");
    char *bytes = malloc((size_t)about.st_size + 1);
    if (!file || !bytes || fread(bytes, 1, (size_t)about.st_size, file) != (size_t)about.st_size) abort();
    fclose(file);
    if (!corpus_output_fits(layout, rows, vectors, bytes, (uint64_t)about.st_size, &begin, &end) || begin > end ||
        end > (uint64_t)about.st_size)
        abort();
    if (layout->format != CORPUS_JSONL &&
        corpus_output_fits(layout, rows + 1, vectors + 1, bytes, (uint64_t)about.st_size, &begin, &end))
        abort();
    free(bytes);
}

/* The joined file of such shards, with a few rows. */
static void write_joined(const corpus_output *layout, const shard_manifest *manifest, const char *path)
{
    corpus_output output = {.format = layout->format,
                            .width = layout->width,
                            .per_token = layout->per_token,
                            .windows = layout->windows,
                            .notes = layout->notes};
    corpus_progress progress;
    size_t rows = 0, vectors = 0;
    if (output.width > MOST_WIDTH) return;
    if (corpus_output_open(&output, path, NULL, &progress, &error) == DEBERTA_OK) {
        for (size_t k = 0; k < MOST_ROWS; k++) {
            const corpus_row row = {
                .text = k, .tokens = (manifest->tokens + k) % MOST_ROW_TOKENS, .skipped = k % 3 == 1};
            add_row(&output, row);
            rows += !row.skipped;
            vectors += row.skipped ? 0 : output.per_token ? row.tokens : 1;
        }
        if (corpus_output_finish(&output, &error) != DEBERTA_OK) abort();
        check_written(layout, path, rows, vectors);
        unlink(path);
    }
    corpus_output_close(&output);
}

/* As `merge` goes on with it. */
static void read_manifest_at(const char *path, const char *joined)
{
    static const char nothing[1 << 13];
    shard_manifest manifest;
    corpus_output layout = {0};
    uint64_t begin, end;
    if (shard_manifest_read(&manifest, path, &error) != DEBERTA_OK) return;
    if (shard_layout_read(manifest.layout, &layout)) {
        const uint64_t bytes = manifest.file_bytes < sizeof nothing ? manifest.file_bytes : sizeof nothing;
        if (corpus_output_fits(&layout, manifest.rows, manifest.vectors, nothing, bytes, &begin, &end) &&
            (begin > end || end > bytes))
            abort();
        write_joined(&layout, &manifest, joined);
    }
    shard_manifest_close(&manifest);
}

/* As it is, and with a digest that fits, which no damage would get past. */
static void read_manifest(const char *folder, size_t bytes)
{
    char *path = path_join(folder, "x.json"), *rows = path_join(folder, "joined");
    (void)bytes;
    if (!path || !rows) abort();
    read_manifest_at(path, rows);
    json_t *root = json_load_file(path, 0, NULL);
    if (json_is_object(root) && json_object_del(root, "digest") == 0 &&
        shard_manifest_write(path, json_incref(root), &error) == DEBERTA_OK)
        read_manifest_at(path, rows);
    json_decref(root);
    free(path);
    free(rows);
}

/* A run goes on from a journal whose first line are its own settings: the door is open for any. */
static void go_on(const char *path, const json_t *settings, corpus_output output)
{
    const corpus_output layout = output;
    corpus_progress progress;
    if (output.of_shard && !(output.problems = json_array())) abort();
    if (corpus_output_open(&output, path, settings, &progress, &error) == DEBERTA_OK) {
        const corpus_row row = {.text = progress.texts, .tokens = 3};
        add_row(&output, row);
        corpus_output_problem(&output, "x.txt, line 1", "nothing");
        progress.texts++;
        if (corpus_output_flush(&output, &progress, &error) != DEBERTA_OK) abort();
        const size_t rows = output.row_count - output.skipped_rows, vectors = output.vectors;
        if (corpus_output_finish(&output, &error) != DEBERTA_OK) abort();
        check_written(&layout, path, rows, vectors);
    }
    corpus_output_close(&output);
    unlink(path);
}

static void put(const char *path, const char *text, size_t bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(text, 1, bytes, file) != bytes || fflush(file) != 0 ||
        ftruncate(fileno(file), (off_t)length) != 0)
        abort();
    fclose(file);
}

static void read_journal(const char *folder, size_t size)
{
    static const corpus_output layouts[] = {
        {.format = CORPUS_NPY, .width = 4},
        {.format = CORPUS_NPY, .width = 4, .of_shard = true},
        {.format = CORPUS_JSONL, .of_shard = true},
        {.format = CORPUS_SAFETENSORS, .width = 3},
        {.format = CORPUS_SAFETENSORS, .width = 3, .per_token = true, .windows = true, .of_shard = true},
    };
    char *input = path_join(folder, "x.journal"), *path = path_join(folder, "rows"),
         *part = path_join(folder, "rows.part"), *journal = path_join(folder, "rows.part.journal"),
         *text = malloc(size + 1);
    FILE *file = input ? fopen(input, "rb") : NULL;
    if (!file || !path || !part || !journal || !text || fread(text, 1, size, file) != size) abort();
    fclose(file);
    text[size] = '\0';
    json_t *settings = json_loadb(text, strcspn(text, "\n"), 0, NULL);
    if (!settings) settings = json_object();
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        corpus_output output = layouts[k];
        output.resumable = true;
        put(part, "", 0, PART_BYTES);
        put(journal, text, size, size);
        go_on(path, settings, output);
        unlink(part);
        unlink(journal);
    }
    json_decref(settings);
    free(text);
    free(input);
    free(path);
    free(part);
    free(journal);
}

static void read_items(const char *text, size_t bytes)
{
    corpus_row row;
    bool damaged = false;
    for (const char *at = text; shard_items_next(&at, text + bytes, &row, &damaged);)
        if (at > text + bytes) abort();
}

const fuzz_target fuzz_program_targets[] = {
    {"log", "", "log.jsonl", read_log},
    {"table", "", "x.tsv", read_table},
    {"objects", "", "x.jsonl", read_objects},
    {"manifest", "", "x.json", read_manifest},
    {"journal", "", "x.journal", read_journal},
    {"items", "", NULL, read_items},
    {NULL, NULL, NULL, NULL},
};
