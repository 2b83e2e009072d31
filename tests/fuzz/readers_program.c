/* The readers of the program: logs, labelled examples, what shards leave. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/no_texts.h"
#include "core/base/path.h"
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

static void read_manifest_at(const char *path)
{
    shard_manifest manifest;
    corpus_output layout = {0};
    if (shard_manifest_read(&manifest, path, &error) != DEBERTA_OK) return;
    shard_layout_read(manifest.layout, &layout);
    shard_manifest_close(&manifest);
}

/* As it is, and with a digest that fits, which no damage would get past. */
static void read_manifest(const char *folder, size_t bytes)
{
    char *path = path_join(folder, "x.json");
    (void)bytes;
    if (!path) abort();
    read_manifest_at(path);
    json_t *root = json_load_file(path, 0, NULL);
    if (json_is_object(root) && json_object_del(root, "digest") == 0 &&
        shard_manifest_write(path, json_incref(root), &error) == DEBERTA_OK)
        read_manifest_at(path);
    json_decref(root);
    free(path);
}

static void read_items(const char *text, size_t bytes)
{
    corpus_row row;
    bool damaged = false;
    for (const char *at = text; shard_items_next(&at, text + bytes, &row, &damaged);)
        if (at > text + bytes) abort();
}

const fuzz_target fuzz_program_targets[] = {
    {"log", "", "log.jsonl", read_log},       {"table", "", "x.tsv", read_table},
    {"objects", "", "x.jsonl", read_objects}, {"manifest", "", "x.json", read_manifest},
    {"items", "", NULL, read_items},          {NULL, NULL, NULL, NULL},
};
