/* Memory: encoding asks for none, and every request that is refused ends in a clean error.
 *
 * First part: between the creation of a session and its end, deberta_encode and all heads make no request of any kind,
 * over many lengths, on several threads. Second part: a whole life - of a model, from opening over encoding to closing;
 * of a folder that is packed and opened; of a tokenizer; of a step of training - with the first, second, third ...
 * request refused in turn until none is left to refuse. Each run must end with DEBERTA_E_MEMORY (of a parser or the
 * system: any error) or, if the library can do without, with the right bits; nothing may be left behind, no memory, no
 * file, no thread.
 *
 *     allocations [--folder DIR]
 *
 * With DEBERTA_TEST_QUICK in the environment every fourth request is refused.
 *
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/deberta.h"
#include "include/deberta_training.h"
#include "tests/golden/counted_allocation.h"

enum { MAX_TOKENS = 300, MAX_WIDTH = 128 };

static const unsigned all_features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION | DEBERTA_KEEP_DECODER_INPUT;

/* One use of the library; static, so that the test itself asks for nothing. */
static int32_t ids[MAX_TOKENS];
static size_t positions[MAX_TOKENS];
static float logits[MAX_TOKENS * MAX_WIDTH];
static char line_buffer[4096];

static deberta_status ignore_hidden(void *context, const deberta_hidden_block *block)
{
    (void)context;
    (void)block;
    return DEBERTA_OK;
}

static deberta_status ignore_attention(void *context, const deberta_attention_block *block)
{
    (void)context;
    (void)block;
    return DEBERTA_OK;
}

/* Encodes n tokens as one and, from 4 tokens on, as two sequences, and asks every head. *sum: of the bits of the
 * results. */
static deberta_status encode(deberta_session *session, const deberta_model *model, size_t n, uint64_t *sum,
                             deberta_error *err)
{
    deberta_model_info info;
    deberta_observer observer = {
        .struct_size = sizeof observer, .on_hidden = ignore_hidden, .on_attention = ignore_attention};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    size_t starts[3] = {0, n < 4 ? n : n / 3, n};
    deberta_batch batch = {.struct_size = sizeof batch,
                           .ids = ids,
                           .sequence_starts = starts,
                           .sequences = n < 4 ? 1 : 2,
                           .observer = &observer};
    deberta_status status = deberta_encode(session, &batch, &outputs, err);
    info = *deberta_model_describe(model);
    for (size_t t = 0; status == DEBERTA_OK && t < n; t++) {
        for (size_t c = 0; c < info.hidden_size; c++) {
            uint32_t bits;
            memcpy(&bits, &outputs.hidden[t * outputs.hidden_stride + c], sizeof bits);
            *sum = *sum * 31 + bits;
        }
    }
    for (size_t head = 0; head < DEBERTA_TASK_COUNT && status == DEBERTA_OK; head++) {
        size_t count = head == DEBERTA_TASK_SEQUENCE ? batch.sequences : n;
        size_t width = deberta_task_width(model, (deberta_task)head);
        bool decodes = head != DEBERTA_TASK_MLM_EMD || n <= info.max_positions;
        if (width == 0 || width > MAX_WIDTH || !decodes) continue;
        status = deberta_task_logits(session, (deberta_task)head, positions, count, logits, width, err);
    }
    return status;
}

static deberta_session_options options_for(size_t threads)
{
    return (deberta_session_options){.struct_size = sizeof(deberta_session_options),
                                     .max_tokens = MAX_TOKENS,
                                     .threads = threads,
                                     .features = all_features};
}

/* ------------------------------------------------------------------------------------------------------ first part */

static bool check_no_requests(const char *path, size_t threads)
{
    deberta_model *model = NULL;
    deberta_session *session = NULL;
    deberta_error error = {0};
    deberta_session_options options = options_for(threads);
    uint64_t sum = 0;
    static const size_t lengths[] = {1, 2, 7, 16, 17, 33, 64, 129, 257, 300, 5};
    deberta_status status = deberta_model_open(&model, path, NULL, &error);
    if (status == DEBERTA_OK) status = deberta_session_create(&session, model, &options, &error);
    size_t before = allocation_requests();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths && status == DEBERTA_OK; i++)
        status = encode(session, model, lengths[i], &sum, &error);
    size_t requests = allocation_requests() - before;
    deberta_session_free(&session);
    deberta_model_free(&model);
    if (status == DEBERTA_OK && requests == 0) return true;
    printf("FAIL %s, %zu threads: %zu requests for memory while encoding. %s\n", path, threads, requests,
           error.message);
    return false;
}

/* ----------------------------------------------------------------------------------------------------- second part */

static size_t entries(const char *folder)
{
    size_t count = 0;
    DIR *directory = opendir(folder);
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count;
}

typedef struct remains {
    size_t bytes, files, threads;
} remains;

/* A thread that was joined may stay in the list for a moment: it ends on another processor. */
static size_t count_threads(void)
{
    const size_t alone = 3; /* with . and .. */
    size_t count = entries("/proc/self/task");
    for (int wait = 0; wait < 50000 && count > alone; wait++) {
        usleep(200);
        count = entries("/proc/self/task");
    }
    return count;
}

/* path: of a life that may leave files there. */
static remains look_around(const char *path)
{
    return (remains){allocation_live_bytes(), entries("/proc/self/fd") + entries(path), count_threads()};
}

/* A whole life of something in a folder. *sum: of what it gave. */
typedef deberta_status (*whole_life)(const char *path, uint64_t *sum, deberta_error *err);

static deberta_status live_as_model(const char *path, uint64_t *sum, deberta_error *err)
{
    deberta_model *model = NULL;
    deberta_session *session = NULL;
    deberta_session_options options = options_for(2);
    deberta_status status = deberta_model_open(&model, path, NULL, err);
    if (status == DEBERTA_OK) status = deberta_session_create(&session, model, &options, err);
    if (status == DEBERTA_OK) status = encode(session, model, 9, sum, err);
    deberta_session_free(&session);
    deberta_model_free(&model);
    return status;
}

/* The same with threads that the session does not own. */
static deberta_status live_as_sharer(const char *path, uint64_t *sum, deberta_error *err)
{
    deberta_model *model = NULL;
    deberta_session *session = NULL;
    deberta_threads *threads = NULL;
    deberta_session_options options = options_for(0);
    deberta_status status = deberta_model_open(&model, path, NULL, err);
    if (status == DEBERTA_OK) status = deberta_threads_create(&threads, 2, 0, err);
    options.shared_threads = threads;
    if (status == DEBERTA_OK) status = deberta_session_create(&session, model, &options, err);
    if (status == DEBERTA_OK) status = encode(session, model, 9, sum, err);
    deberta_session_free(&session);
    deberta_threads_free(&threads);
    deberta_model_free(&model);
    return status;
}

/* Leaves the folder without a packed file, unless one is there after packing failed. */
static deberta_status live_as_packed_model(const char *path, uint64_t *sum, deberta_error *err)
{
    char packed[600];
    snprintf(packed, sizeof packed, "%s/deberta.packed", path);
    deberta_status status = deberta_model_pack(path, NULL, err);
    if (status != DEBERTA_OK) return status;
    status = live_as_model(path, sum, err);
    unlink(packed);
    return status;
}

static const char text_of_life[] = "Na\u00efve caf\u00e9, [MASK] \u6771\u4eac and a new store.";

static deberta_status live_as_tokenizer(const char *path, uint64_t *sum, deberta_error *err)
{
    deberta_tokenizer *tokenizer = NULL;
    deberta_tokens *filled = NULL, *tokens = NULL;
    char *text = NULL;
    size_t bytes = 0;
    const deberta_text given = {.struct_size = sizeof given,
                                .text = text_of_life,
                                .text_bytes = sizeof text_of_life - 1,
                                .pair = text_of_life,
                                .pair_bytes = sizeof text_of_life - 1};
    deberta_status status = deberta_tokenizer_open(&tokenizer, path, err);
    if (status == DEBERTA_OK) status = deberta_tokenize(&filled, tokenizer, &given, err);
    if (status == DEBERTA_OK) status = deberta_tokens_copy(&tokens, filled, err);
    deberta_tokens_free(&filled);
    if (status == DEBERTA_OK) status = deberta_detokenize(&text, &bytes, tokenizer, tokens->ids, tokens->count, err);
    if (status == DEBERTA_OK) {
        for (size_t t = 0; t < tokens->count; t++)
            *sum = (*sum * 31 + (uint64_t)tokens->ids[t]) * 31 + tokens->byte_spans[t].end;
        for (size_t i = 0; i < bytes; i++) *sum = *sum * 31 + (unsigned char)text[i];
    }
    deberta_free(text);
    deberta_tokens_free(&tokens);
    deberta_tokenizer_free(&tokenizer);
    return status;
}

/* What the next two train, besides their folder. */
static deberta_trainer_options training;

static void add_step(uint64_t *sum, const deberta_training_step *step)
{
    uint64_t bits[2];
    memcpy(&bits[0], &step->loss, sizeof *bits);
    memcpy(&bits[1], &step->gradient_norm, sizeof *bits);
    *sum = (*sum * 31 + bits[0]) * 31 + bits[1];
}

/* Opens models and data, takes one step and forgets everything. */
static deberta_status train_a_step(const deberta_trainer_options *options, uint64_t *sum, deberta_error *err)
{
    deberta_trainer *trainer = NULL;
    deberta_training_step step;
    deberta_status status = deberta_trainer_open(&trainer, options, err);
    if (status == DEBERTA_OK && options->batch) status = deberta_trainer_gradients(trainer, NULL, &step, err);
    if (status == DEBERTA_OK && !options->batch) status = deberta_trainer_step(trainer, &step, err);
    if (status == DEBERTA_OK) add_step(sum, &step);
    deberta_trainer_free(&trainer);
    return status;
}

/* A golden case of training: of its batch. */
static deberta_status live_as_learner(const char *path, uint64_t *sum, deberta_error *err)
{
    char batch[600], pair[2][600];
    deberta_trainer_options options = training;
    snprintf(batch, sizeof batch, "%s/batch.safetensors", path);
    snprintf(pair[0], sizeof *pair, "%s/discriminator", path);
    snprintf(pair[1], sizeof *pair, "%s/generator", path);
    options.batch = batch;
    options.model = options.generator ? pair[0] : path;
    options.generator = options.generator ? pair[1] : NULL;
    return train_a_step(&options, sum, err);
}

/* A folder with configuration, tokenizer and texts: one update from scratch. */
static deberta_status live_as_beginner(const char *path, uint64_t *sum, deberta_error *err)
{
    char texts[600];
    const char *const files[] = {texts};
    deberta_trainer_options options = training;
    snprintf(texts, sizeof texts, "%s/texts.txt", path);
    options.model = path;
    options.begin = 1;
    options.texts = options.held_out = files;
    options.text_count = options.held_out_count = 1;
    options.steps = 1;
    return train_a_step(&options, sum, err);
}

/* A folder with texts, which gets a tokenizer of them: of its files each is whole or not there. */
static deberta_status live_as_maker(const char *path, uint64_t *sum, deberta_error *err)
{
    static const char *const written[] = {"spm.model", "tokenizer_config.json", "added_tokens.json"};
    char texts[600], name[600];
    const char *const files[] = {texts};
    double bits = 0;
    const deberta_tokenizer_training wish = {
        .struct_size = sizeof wish, .texts = files, .text_count = 1, .pieces = 25, .folder = path};
    snprintf(texts, sizeof texts, "%s/texts.txt", path);
    const deberta_status status = deberta_tokenizer_train(&wish, &bits, err);
    memcpy(sum, &bits, sizeof *sum);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        snprintf(name, sizeof name, "%s/%s", path, written[i]);
        unlink(name);
    }
    return status;
}

/* The refused request is number k of it; 0: none. */
static deberta_status live_once(const char *path, whole_life live, size_t k, uint64_t *sum, refusal *what,
                                deberta_error *err)
{
    *sum = 0;
    allocation_fail(k);
    deberta_status status = live(path, sum, err);
    *what = allocation_refused();
    allocation_fail(0);
    return status;
}

static bool good_end(deberta_status status, refusal what, const deberta_error *error, bool same_bits)
{
    if (status == DEBERTA_OK) return same_bits; /* it could do without */
    if (!*error->message || error->code != status) return false;
    return status == DEBERTA_E_MEMORY || what != REFUSED_LIBRARY;
}

static bool check_refusals(const char *path, whole_life live)
{
    static const char *const names[] = {"nothing", "memory of the library", "memory of libzip", "a mapping",
                                        "a thread"};
    uint64_t right, sum;
    refusal what;
    deberta_error error = {0};
    bool good = true;
    size_t refusals = 0, survived = 0;
    /* Twice: the first use fills caches of the C library and of hwloc, which stay. */
    for (size_t i = 0; i < 2; i++) {
        if (live_once(path, live, 0, &right, &what, &error) == DEBERTA_OK) continue;
        printf("FAIL %s: %s\n", path, error.message);
        return false;
    }
    remains before = look_around(path);
    const size_t apart = getenv("DEBERTA_TEST_QUICK") ? 4 : 1;
    for (size_t k = 1;; k += apart) {
        error = (deberta_error){0};
        deberta_status status = live_once(path, live, k, &sum, &what, &error);
        if (what == REFUSED_NONE) break; /* fewer than k requests */
        remains after = look_around(path);
        refusals++;
        survived += status == DEBERTA_OK;
        /* libzip 1.7 loses a few bytes of its own when it is refused memory. */
        bool clean = (after.bytes == before.bytes || what == REFUSED_ZIP) && after.files == before.files &&
                     after.threads == before.threads;
        if (clean && good_end(status, what, &error, sum == right)) {
            before = after;
            continue;
        }
        printf(
            "FAIL %s, request %zu (%s): status %d, '%s', %s bits; left behind %+ld bytes, %+ld files, %+ld threads\n",
            path, k, names[what], status, error.message, sum == right ? "right" : "other",
            (long)(after.bytes - before.bytes), (long)(after.files - before.files),
            (long)(after.threads - before.threads));
        good = false;
        before = after;
    }
    printf("%s: %zu requests refused in turn, %zu of them the library could do without\n", path, refusals, survived);
    return good && refusals > 0;
}

/* A folder of the test's own, with links to the files of a golden case: packing writes beside them. */
static bool check_packing(const char *folder, const char *name)
{
    static const char *const files[] = {"config.json", "model.safetensors"};
    char own[] = "/tmp/deberta-allocations-XXXXXX", from[600], link[600];
    bool good = mkdtemp(own) != NULL;
    for (size_t i = 0; i < 2 && good; i++) {
        snprintf(from, sizeof from, "%s/%s/%s", folder, name, files[i]);
        snprintf(link, sizeof link, "%s/%s", own, files[i]);
        char *absolute = realpath(from, NULL);
        good = absolute && symlink(absolute, link) == 0;
        free(absolute);
    }
    if (!good) printf("FAIL %s: no folder with links to %s\n", own, name);
    good = good && check_refusals(own, live_as_packed_model);
    for (size_t i = 0; i < 2; i++) {
        snprintf(link, sizeof link, "%s/%s", own, files[i]);
        unlink(link);
    }
    rmdir(own);
    return good;
}

static bool write_text(const char *folder, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    return file && (fputs(text, file) != EOF) + (fclose(file) == 0) == 2;
}

/* From scratch: a model, and a tokenizer. */
static bool check_beginning(const char *folder)
{
    static const char *const written[] = {"config.json", "texts.txt", "spm.model"};
    static const char config[] =
        "{\"model_type\": \"deberta-v2\", \"vocab_size\": 3001, \"hidden_size\": 32, \"num_attention_heads\": 2, "
        "\"num_hidden_layers\": 1, \"intermediate_size\": 48, \"max_position_embeddings\": 64, \"position_buckets\": "
        "8, "
        "\"relative_attention\": true, \"pos_att_type\": \"c2p|p2c\", \"share_att_key\": true, "
        "\"norm_rel_ebd\": \"layer_norm\", \"position_biased_input\": false, \"type_vocab_size\": 0}";
    char own[] = "/tmp/deberta-allocations-XXXXXX", from[600], path[600];
    snprintf(from, sizeof from, "%s/tokenizers/spm-unigram/spm.model", folder);
    bool good =
        mkdtemp(own) != NULL && write_text(own, "config.json", config) &&
        write_text(own, "texts.txt", "A new store. The new store is old.\nThe old one is gone.\n\nNobody knows why.\n");
    char *absolute = realpath(from, NULL);
    snprintf(path, sizeof path, "%s/spm.model", own);
    good = good && absolute && symlink(absolute, path) == 0;
    free(absolute);
    if (!good) printf("FAIL %s: no folder to train in\n", own);
    training.task = DEBERTA_TRAIN_MLM;
    training.sift_weight = 0;
    good = good && check_refusals(own, live_as_beginner);
    unlink(path);
    good = good && check_refusals(own, live_as_maker);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        snprintf(path, sizeof path, "%s/%s", own, written[i]);
        unlink(path);
    }
    rmdir(own);
    return good;
}

static void check_training(const char *folder, size_t *passed, size_t *failed)
{
    static const struct {
        const char *name;
        deberta_training_task task;
        double sift;
        bool pair;
    } cases[] = {{"03-v3-mlm-emd", DEBERTA_TRAIN_MLM, 0, false},
                 {"08-v2-conv-token", DEBERTA_TRAIN_TOKEN, 0, false},
                 {"12-v3-rtd-gdes", DEBERTA_TRAIN_RTD, 0, true},
                 {"13-v3-sift-sequence", DEBERTA_TRAIN_SEQUENCE, 5, false},
                 {"18-v3-choice", DEBERTA_TRAIN_CHOICE, 0, false}};
    char path[600];
    training = (deberta_trainer_options)DEBERTA_TRAINER_DEFAULTS;
    training.threads = 2;
    training.shards = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        training.task = cases[i].task;
        training.sift_weight = cases[i].sift;
        training.generator = cases[i].pair ? "" : NULL;
        snprintf(path, sizeof path, "%s/../golden_train/%s", folder, cases[i].name);
        check_refusals(path, live_as_learner) ? ++*passed : ++*failed;
    }
    training.generator = NULL;
    check_beginning(folder) ? ++*passed : ++*failed;
}

int main(int argc, char **argv)
{
    static const char *const folders[] = {"33-v3-mlm-emd",
                                          "10-v1-mlm-emd",
                                          "20-v2-conv-gelu-b3",
                                          "formats/f04-zip-f16-v3",
                                          "formats/f09-zip-strided",
                                          "formats/f06-sharded-safetensors",
                                          "formats/f08-ms-v1-bert-prefix-legacy"};
    static const char *const made_up[] = {
        "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=96,vocab=61,buckets=32,rtd=1",
        "synthetic:v2-xlarge,layers=2,hidden=64,heads=2,intermediate=96,vocab=61,buckets=8",
        "synthetic:v1-base,layers=1,hidden=48,heads=3,intermediate=64,vocab=61,lm=1",
    };
    static const char *const tokenizers[] = {"spm-flags", "spm-bpe",     "spm-bytefallback",
                                             "metaspace", "spm-unigram", "bad/12-bpe-base"};
    const char *folder = argc > 2 && strcmp(argv[1], "--folder") == 0 ? argv[2] : "tests/golden";
    size_t passed = 0, failed = 0;
    char path[600];
    allocation_setup();
    /* Plugins of hwloc (a dependency of Slurm) are opened at every start; the loader keeps bytes for them. */
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    setvbuf(stdout, line_buffer, _IOLBF, sizeof line_buffer); /* or its buffer would count as left behind */
    for (size_t t = 0; t < MAX_TOKENS; t++) {
        ids[t] = (int32_t)(t * 7 % 61);
        positions[t] = t;
    }
    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        for (size_t threads = 1; threads <= 3; threads++) check_no_requests(made_up[i], threads) ? passed++ : failed++;
        check_refusals(made_up[i], live_as_model) ? passed++ : failed++;
        if (i == 0) check_refusals(made_up[i], live_as_sharer) ? passed++ : failed++;
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        check_no_requests(path, 2) ? passed++ : failed++;
        check_refusals(path, live_as_model) ? passed++ : failed++;
    }
    check_packing(folder, "33-v3-mlm-emd") ? passed++ : failed++;
    for (size_t i = 0; i < sizeof tokenizers / sizeof *tokenizers; i++) {
        snprintf(path, sizeof path, "%s/tokenizers/%s", folder, tokenizers[i]);
        check_refusals(path, live_as_tokenizer) ? passed++ : failed++;
    }
    check_training(folder, &passed, &failed);
    printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
