/* The readers of the libraries: what each does with a folder that has the input in it, or with a text.
 *
 * SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/kernel_problems.h"
#include "bench/range.h"
#include "bench/results.h"
#include "core/base/text.h"
#include "core/io/checkpoint.h"
#include "core/io/input_file.h"
#include "core/load/synthetic.h"
#include "tests/fuzz/fuzz_folder.h"
#include "tests/fuzz/vocabulary_paths.h"
#include "train/data/batch_file.h"
#include "train/data/corpus.h"
#include "train/pieces/piece_words.h"
#include "train/run/run_parts.h"

static deberta_error error;

/* ----------------------------------------------------------------------------------------------------------- actions */

static void tokenize(const deberta_tokenizer *tokenizer, const char *text, size_t bytes, const char *pair)
{
    deberta_tokens *tokens = NULL;
    char *back = NULL;
    size_t back_bytes;
    const deberta_text given = {
        .struct_size = sizeof given, .text = text, .text_bytes = bytes, .pair = pair, .max_tokens = 512};
    if (bytes > 0 && deberta_tokenize(&tokens, tokenizer, &given, &error) == DEBERTA_OK &&
        deberta_detokenize(&back, &back_bytes, tokenizer, tokens->ids, tokens->count, &error) == DEBERTA_OK)
        deberta_free(back);
    deberta_tokens_free(&tokens);
}

static void read_tokenizer(const char *folder, size_t bytes)
{
    static const char text[] = "A text, with 12 words & [MASK] \xc3\xa9\xe4\xb8\xad\xff  \n";
    deberta_tokenizer *tokenizer;
    (void)bytes;
    if (deberta_tokenizer_open(&tokenizer, folder, &error) != DEBERTA_OK) return;
    tokenize(tokenizer, text, sizeof text - 1, NULL);
    tokenize(tokenizer, text, sizeof text - 1, "b");
    deberta_tokenizer_free(&tokenizer);
}

static void read_rows(const char *folder, size_t bytes)
{
    char *path = path_join(folder, "tokenizer.json");
    bool taken;
    (void)bytes;
    if (path && !vocabulary_paths_agree(path, &taken)) abort();
    free(path);
}

/* Through one tokenizer of each kind. */
static void read_text(const char *text, size_t bytes)
{
    static const char *const kinds[] = {"spm-unigram", "spm-bpe", "bpe-v1", "metaspace"};
    static deberta_tokenizer *tokenizers[4];
    for (int k = 0; k < 4; k++) {
        char folder[4096];
        snprintf(folder, sizeof folder, "%s/golden/tokenizers/%s", TESTS_FOLDER, kinds[k]);
        if (!tokenizers[k] && deberta_tokenizer_open(&tokenizers[k], folder, &error) != DEBERTA_OK) abort();
        tokenize(tokenizers[k], text, bytes, NULL);
    }
}

void fuzz_read_heads(deberta_session *session, const deberta_model *model)
{
    const deberta_model_info *info = deberta_model_describe(model);
    for (int task = 0; task < DEBERTA_TASK_COUNT; task++) {
        const size_t width = deberta_task_width(model, (deberta_task)task);
        if (!(info->tasks_present & 1u << task) || width > 1 << 20) continue;
        float *logits = calloc(width, sizeof *logits);
        if (logits) deberta_task_logits(session, (deberta_task)task, (size_t[]){0}, 1, logits, width, &error);
        free(logits);
    }
}

/* The whole folder: opened and used. */
static void read_model(const char *folder, size_t bytes)
{
    deberta_model *model;
    deberta_session *session;
    (void)bytes;
    const deberta_model_options options = {
        .struct_size = sizeof options, .threads = 1, .memory_limit_bytes = (size_t)64 << 20};
    const deberta_session_options session_options = {
        .struct_size = sizeof session_options, .max_tokens = 3, .threads = 1, .memory_limit_bytes = (size_t)64 << 20};
    if (deberta_model_open(&model, folder, &options, &error) != DEBERTA_OK) return;
    if (deberta_session_create(&session, model, &session_options, &error) == DEBERTA_OK) {
        const deberta_batch batch = {.struct_size = sizeof batch,
                                     .ids = (int32_t[]){0, 1, 2},
                                     .sequence_starts = (size_t[]){0, 3},
                                     .sequences = 1};
        deberta_outputs outputs = {.struct_size = sizeof outputs};
        if (deberta_encode(session, &batch, &outputs, &error) == DEBERTA_OK) fuzz_read_heads(session, model);
        deberta_session_free(&session);
    }
    deberta_model_free(&model);
}

static void read_checkpoint(const char *folder, size_t bytes)
{
    checkpoint *c;
    float values[8];
    char stamp[65];
    (void)bytes;
    if (checkpoint_open(&c, folder, &error) != DEBERTA_OK) return;
    for (size_t i = 0; i < checkpoint_count(c); i++) {
        const tensor *t = checkpoint_at(c, i);
        if (t->elements >= 8) checkpoint_read_f32(c, t, t->elements - 8, 8, values, &error);
        checkpoint_forget(c, t);
    }
    checkpoint_stamp(c, stamp, &error);
    checkpoint_close(&c);
}

static void read_input(const char *folder, const char *name)
{
    input_file input;
    char *path = path_join(folder, name);
    if (path && input_file_read(&input, path, &error) == DEBERTA_OK) input_file_free(&input);
    free(path);
}

static void read_input_json(const char *folder, size_t bytes) { (void)bytes, read_input(folder, "x.json"); }
static void read_input_tensors(const char *folder, size_t bytes) { (void)bytes, read_input(folder, "x.safetensors"); }

static void read_batch(const char *folder, size_t bytes)
{
    char *path = path_join(folder, "x.safetensors");
    (void)bytes;
    for (int task = DEBERTA_TRAIN_MLM; path && task <= DEBERTA_TRAIN_QA; task++) {
        batch_file *file;
        step_batch batch = {0};
        if (batch_file_open(&file, path, false, (deberta_training_task)task, &error) != DEBERTA_OK) continue;
        const batch_source source = batch_file_source(file);
        if (source.read(source.context, 0, 2, 8, &batch, &error) == DEBERTA_OK) step_batch_free(&batch);
        batch_file_close(&file);
    }
    free(path);
}

static void read_state(const char *folder, size_t bytes)
{
    run_checkpoint found;
    char path[4096];
    (void)bytes;
    json_t *recipe = json_pack("{s:i}", "steps", 3);
    const run_record record = {.recipe = recipe, .held_out = "0"};
    snprintf(path, sizeof path, "%s/..", folder);
    run_checkpoint_find(&found, path, &record, &error);
    run_checkpoint_find(&found, folder, &record, &error);
    json_decref(recipe);
}

/* A chain that is read holds what its header promises. */
static void read_chain(const char *folder, size_t bytes)
{
    deberta_chain *chain = NULL;
    (void)bytes;
    if (deberta_chain_open(&chain, folder, &error) != DEBERTA_OK) return;
    const deberta_chain_info *info = deberta_chain_describe(chain);
    if (strlen(info->recipe) != 64 || strlen(info->head) != 64 || info->every == 0) abort();
    for (size_t k = 0; k < info->count; k++) {
        const deberta_chain_record *record = deberta_chain_record_at(chain, k);
        if (strlen(record->digest) != 64 || strlen(record->link) != 64 || (record->of && strstr(record->of, "..")))
            abort();
    }
    if (deberta_chain_record_at(chain, info->count)) abort();
    deberta_chain_free(&chain);
}

static void read_results(const char *text, size_t bytes)
{
    bench_results results = {0};
    FILE *stream = bytes > 0 ? fmemopen((void *)text, bytes, "r") : NULL;
    if (!stream) return;
    bench_results_read_json(&results, stream, "file", &error);
    scope_free(&results.memory);
    fclose(stream);
}

static void read_words(const char *folder, size_t bytes)
{
    text_counts words = {0}, characters = {0};
    char *path = path_join(folder, "x.txt");
    (void)bytes;
    if (path) piece_words_add_file(&words, &characters, path, (note_listener){0}, &error);
    text_counts_free(&words);
    text_counts_free(&characters);
    free(path);
}

static void read_kernel_lines(const char *text, size_t bytes)
{
    problem_lines list = {0};
    FILE *stream = bytes > 0 ? fmemopen((void *)text, bytes, "r") : NULL;
    if (!stream) return;
    problem_lines_read(&list, stream, "file", &error);
    scope_free(&list.memory);
    fclose(stream);
}

static void read_sequences(const char *folder, size_t bytes)
{
    static deberta_tokenizer *tokenizer;
    char *path = path_join(folder, "x.txt");
    (void)bytes;
    if (!tokenizer &&
        deberta_tokenizer_open(&tokenizer, TESTS_FOLDER "/golden/tokenizers/spm-unigram", &error) != DEBERTA_OK)
        abort();
    for (int by_line = 0; path && by_line < 2; by_line++) {
        corpus sequences = {0};
        corpus_add_file(&sequences, path, tokenizer, (corpus_cut){.most_tokens = 8, .by_line = by_line},
                        (note_listener){0}, &error);
        corpus_free(&sequences);
    }
    free(path);
}

static void read_ablation(const char *text, size_t bytes)
{
    size_t count = 1;
    (void)bytes;
    for (const char *c = text; *c; c++) count += *c == ',';
    deberta_ablation *ablations = malloc(count * sizeof *ablations); /* what the header asks for, and no more */
    if (!ablations) abort();
    deberta_ablations_parse(ablations, &count, text, &error);
    free(ablations);
}

static void read_range(const char *text, size_t bytes)
{
    scope memory = {0};
    size_list list;
    (void)bytes;
    range_parse(&memory, &list, text, "--x", 1, 100000, false, &error);
    range_parse(&memory, &list, text, "--x", 0, SIZE_MAX, true, &error);
    scope_free(&memory);
}

static void read_name(const char *text, size_t bytes)
{
    model_config config;
    synthetic_weights weights;
    char path[1024];
    if (bytes > 900) return;
    snprintf(path, sizeof path, "synthetic:%s", text);
    if (synthetic_parse(&config, &weights, path, &error) == DEBERTA_OK) config_free(&config);
}

/* ------------------------------------------------------------------------------------------------------------- table */

#define SMALL    "33-v3-mlm-emd/"
#define SENTENCE "tokenizers/spm-flags/"
#define BYTES    "tokenizers/bad/12-bpe-base/"
#define SHARDED  "formats/f06-sharded-safetensors/"

const fuzz_target fuzz_library_targets[] = {
    {"model_config", SMALL "model.safetensors", "config.json", read_model},
    {"weights", SMALL "config.json", "model.safetensors", read_model},
    {"torch_weights", SMALL "config.json", "pytorch_model.bin", read_model},
    {"torch_file", "", "pytorch_model.bin", read_checkpoint},
    {"index", SHARDED "model-00001-of-00003.safetensors " SHARDED "config.json", "model.safetensors.index.json",
     read_checkpoint},
    {"packed", SMALL "config.json " SMALL "model.safetensors", "deberta.packed", read_model},
    {"tokenizer_json", "", "tokenizer.json", read_tokenizer},
    {"spm", "", "spm.model", read_tokenizer},
    {"vocabulary", BYTES "merges.txt", "vocab.json", read_tokenizer},
    {"merges", BYTES "vocab.json", "merges.txt", read_tokenizer},
    {"bpe_encoder", "", "bpe_encoder.bin", read_tokenizer},
    {"tokenizer_config", SENTENCE "spm.model", "tokenizer_config.json", read_tokenizer},
    {"tokenizer_beside", SENTENCE "spm.model", "tokenizer.json", read_tokenizer},
    {"vocabulary_rows", "", "tokenizer.json", read_rows},
    {"special_tokens", SENTENCE "spm.model", "special_tokens_map.json", read_tokenizer},
    {"added_tokens", SENTENCE "spm.model", "added_tokens.json", read_tokenizer},
    {"text", "", NULL, read_text},
    {"input_json", "", "x.json", read_input_json},
    {"input_tensors", "", "x.safetensors", read_input_tensors},
    {"batch", "", "x.safetensors", read_batch},
    {"run_state", "", "training.json", read_state},
    {"chain", "", "chain.jsonl", read_chain},
    {"words", "", "x.txt", read_words},
    {"bench_results", "", NULL, read_results},
    {"kernel_lines", "", NULL, read_kernel_lines},
    {"sequences", "", "x.txt", read_sequences},
    {"ablation", "", NULL, read_ablation},
    {"range", "", NULL, read_range},
    {"made_up_name", "", NULL, read_name},
    {NULL, NULL, NULL, NULL},
};
