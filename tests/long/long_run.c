/* A service's day, compressed: many encodes of random lengths, models opened and closed again and again, callers with a
 * session each at the same time. Memory and descriptors must stay what they are after the first part, and a fixed text
 * must keep its bits.
 *
 *     long_run MODEL encodes COUNT | opens COUNT | callers COUNT      (callers: eight, each encodes so often)
 *
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/random.h"
#include "include/deberta.h"

enum { MOST_TOKENS = 300, FIXED_TOKENS = 97, CALLERS = 8 };

static deberta_error error;

static _Noreturn void end_with(const char *what)
{
    fprintf(stderr, "long_run: %s%s%s\n", what, *error.message ? ": " : "", error.message);
    exit(1);
}

static void demand(bool right, const char *what)
{
    if (!right) end_with(what);
}

/* ----------------------------------------------------------------------------------------------------------- measures */

static size_t resident_bytes(void)
{
    size_t total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    demand(file && fscanf(file, "%zu %zu", &total, &resident) == 2, "/proc/self/statm cannot be read");
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    demand(folder != NULL, "/proc/self/fd cannot be read");
    while (readdir(folder)) count++;
    closedir(folder);
    return count - 3; /* . and .. and the folder itself */
}

typedef struct measure {
    size_t bytes, files;
} measure;

static measure measure_now(void) { return (measure){resident_bytes(), descriptors()}; }

/* 5 %, or what the allocator may keep of the largest texts. */
static void report(const char *what, size_t count, measure first, measure last)
{
    printf("%zu %s: %zu kB resident after the first tenth, %zu kB at the end, %zu descriptors, the same bits\n", count,
           what, first.bytes >> 10, last.bytes >> 10, last.files);
    demand(last.bytes <= first.bytes + first.bytes / 20 + (256 << 10), "memory grows");
    demand(last.files == first.files, "descriptors are left open");
}

/* ------------------------------------------------------------------------------------------------------------- models */

static deberta_model *open_model(const char *folder)
{
    deberta_model *model;
    const deberta_model_options options = {.struct_size = sizeof options, .threads = 1};
    demand(deberta_model_open(&model, folder, &options, &error) == DEBERTA_OK, "a model cannot be opened");
    return model;
}

static deberta_session *open_session(const deberta_model *model, size_t threads)
{
    deberta_session *session;
    const deberta_session_options options = {
        .struct_size = sizeof options, .max_tokens = MOST_TOKENS, .threads = threads};
    demand(deberta_session_create(&session, model, &options, &error) == DEBERTA_OK, "a session cannot be made");
    return session;
}

/* One to three sequences, `tokens` in all; a sum over the bits of all hidden states. */
static uint64_t encode(deberta_session *session, const deberta_model *model, size_t tokens, uint64_t seed)
{
    int32_t ids[MOST_TOKENS];
    const deberta_model_info *info = deberta_model_describe(model);
    const size_t sequences = tokens < 3 ? 1 : 1 + seed % 3;
    size_t starts[4] = {0};
    uint64_t state = seed, sum = 0;
    deberta_error own = {0};
    for (size_t t = 0; t < tokens; t++) ids[t] = (int32_t)random_below(&state, info->vocabulary_size);
    for (size_t k = 1; k <= sequences; k++) starts[k] = tokens * k / sequences;
    const deberta_batch batch = {
        .struct_size = sizeof batch, .ids = ids, .sequence_starts = starts, .sequences = sequences};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    demand(deberta_encode(session, &batch, &outputs, &own) == DEBERTA_OK, "an encode fails");
    for (size_t t = 0; t < tokens; t++)
        for (size_t e = 0; e < info->hidden_size; e++) {
            uint32_t bits;
            memcpy(&bits, outputs.hidden + t * outputs.hidden_stride + e, sizeof bits);
            sum = sum * 31 + bits;
        }
    return sum;
}

/* --------------------------------------------------------------------------------------------------------------- runs */

static void run_encodes(const char *folder, size_t count)
{
    deberta_model *model = open_model(folder);
    deberta_session *session = open_session(model, 1);
    const uint64_t fixed = encode(session, model, FIXED_TOKENS, 1);
    measure first = {0};
    uint64_t state = 7;
    for (size_t k = 1; k <= count; k++) {
        encode(session, model, 1 + random_below(&state, MOST_TOKENS), k);
        if (k % 100 == 0) demand(encode(session, model, FIXED_TOKENS, 1) == fixed, "bits of a fixed text change");
        if (k == count / 10) first = measure_now();
    }
    report("encodes of 1 to 300 tokens", count, first, measure_now());
    deberta_session_free(&session);
    deberta_model_free(&model);
}

static void run_opens(const char *folder, size_t count)
{
    measure first = {0};
    uint64_t fixed = 0;
    for (size_t k = 1; k <= count; k++) {
        deberta_model *model = open_model(folder);
        deberta_session *session = open_session(model, 1 + k % 2);
        deberta_tokenizer *tokenizer;
        const uint64_t found = encode(session, model, FIXED_TOKENS, 1);
        demand(deberta_tokenizer_open(&tokenizer, folder, &error) == DEBERTA_OK, "a tokenizer cannot be opened");
        demand(k == 1 || found == fixed, "bits of a fixed text change");
        fixed = found;
        deberta_tokenizer_free(&tokenizer);
        deberta_session_free(&session);
        deberta_model_free(&model);
        if (k == count / 10) first = measure_now();
    }
    report("times opened and closed, with session and tokenizer", count, first, measure_now());
}

typedef struct caller {
    const deberta_model *model;
    size_t number, count;
    uint64_t sum;
} caller;

static void *call(void *context)
{
    caller *c = context;
    deberta_session *session = open_session(c->model, 1 + c->number % 2);
    c->sum = encode(session, c->model, FIXED_TOKENS, 1);
    uint64_t state = c->number;
    for (size_t k = 0; k < c->count; k++) {
        encode(session, c->model, 1 + random_below(&state, MOST_TOKENS), k);
        if (k % 10 == 0) demand(encode(session, c->model, FIXED_TOKENS, 1) == c->sum, "bits of a fixed text change");
    }
    deberta_session_free(&session);
    return NULL;
}

static void run_callers(const char *folder, size_t count)
{
    deberta_model *model = open_model(folder);
    caller callers[CALLERS];
    pthread_t threads[CALLERS];
    for (size_t k = 0; k < CALLERS; k++) {
        callers[k] = (caller){.model = model, .number = k, .count = count};
        demand(pthread_create(&threads[k], NULL, call, &callers[k]) == 0, "a thread cannot be made");
    }
    for (size_t k = 0; k < CALLERS; k++) {
        pthread_join(threads[k], NULL);
        demand(callers[k].sum == callers[0].sum, "two callers have other bits");
    }
    deberta_model_free(&model);
    printf("%d callers with a session each, %zu encodes each: the same bits\n", CALLERS, count);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(const char *folder, size_t count);
    } runs[] = {{"encodes", run_encodes}, {"opens", run_opens}, {"callers", run_callers}};
    const size_t times = count == 4 ? strtoul(arguments[3], NULL, 10) : 0;
    for (size_t k = 0; times >= 10 && k < sizeof runs / sizeof *runs; k++)
        if (strcmp(arguments[2], runs[k].name) == 0) {
            runs[k].run(arguments[1], times);
            return 0;
        }
    fprintf(stderr, "usage: long_run MODEL encodes|opens|callers COUNT    (at least 10)\n");
    return 2;
}
