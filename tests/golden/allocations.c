/* Memory: encoding asks for none, and every request that is refused ends in a clean error.
 *
 * First part: between the creation of a session and its end, deberta_encode and all heads make no request of any kind,
 * over many lengths, on several threads. Second part: a whole life - of a model, from opening over encoding to closing;
 * of a folder that is packed and opened; of a tokenizer - with the first, second, third ... request refused in turn
 * until none is left to refuse. Each run must end with DEBERTA_E_MEMORY (of a parser or the system: any error) or, if
 * the library can do without, with the right bits; nothing may be left behind, no memory, no file, no thread.
 *
 *     allocations [--folder DIR]
 *
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/deberta.h"
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
    for (size_t k = 1;; k++) {
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
    static const char *const tokenizers[] = {"spm-flags", "spm-bpe", "spm-bytefallback", "bad/12-bpe-base"};
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
    printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
