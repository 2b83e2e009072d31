/* A service's day, compressed: many encodes of random lengths, models opened and closed again and again, callers with a
 * session each at the same time. Memory and descriptors must stay what they are after the first part, and a fixed text
 * must keep its bits.
 *
 *     long_run MODEL encodes COUNT | opens COUNT | callers COUNT      (callers: eight, each encodes so often)
 *     long_run MODEL guard COUNT      so many pairs of processes: what deberta_guard_files costs opening and encoding
 *
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/numbers.h"
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
static uint64_t encode_checksum(deberta_session *session, const deberta_model *model, size_t tokens, uint64_t seed)
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
    const uint64_t fixed = encode_checksum(session, model, FIXED_TOKENS, 1);
    measure first = {0};
    uint64_t state = 7;
    for (size_t k = 1; k <= count; k++) {
        encode_checksum(session, model, 1 + random_below(&state, MOST_TOKENS), k);
        if (k % 100 == 0)
            demand(encode_checksum(session, model, FIXED_TOKENS, 1) == fixed, "bits of a fixed text change");
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
        const uint64_t found = encode_checksum(session, model, FIXED_TOKENS, 1);
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
    c->sum = encode_checksum(session, c->model, FIXED_TOKENS, 1);
    uint64_t state = c->number;
    for (size_t k = 0; k < c->count; k++) {
        encode_checksum(session, c->model, 1 + random_below(&state, MOST_TOKENS), k);
        if (k % 10 == 0)
            demand(encode_checksum(session, c->model, FIXED_TOKENS, 1) == c->sum, "bits of a fixed text change");
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

/* ---------------------------------------------------------------------------------------------- the guard of files */

enum { SAMPLES = 31, MOST_PAIRS = 1000 };

typedef struct guard_times {
    double open, encode; /* ms; of encodes the median */
    uint64_t sum;
} guard_times;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static guard_times time_here(const char *folder, bool guarded)
{
    double samples[SAMPLES];
    guard_times found;
    demand(!guarded || deberta_guard_files(&error) == DEBERTA_OK, "files cannot be guarded");
    const double begin = now();
    deberta_model *model = open_model(folder);
    found.open = now() - begin;
    deberta_session *session = open_session(model, 1);
    found.sum = encode_checksum(session, model, FIXED_TOKENS, 1);
    for (size_t k = 0; k < SAMPLES; k++) {
        const double before = now();
        demand(encode_checksum(session, model, FIXED_TOKENS, 1) == found.sum, "bits of a fixed text change");
        samples[k] = now() - before;
    }
    deberta_session_free(&session);
    deberta_model_free(&model);
    qsort(samples, SAMPLES, sizeof *samples, by_size);
    found.encode = samples[SAMPLES / 2];
    return found;
}

/* A guard stays for the life of a process, so each has its own. */
static guard_times time_in_a_process(const char *folder, bool guarded)
{
    int ends[2], status;
    guard_times found;
    demand(pipe(ends) == 0, "a pipe cannot be made");
    const pid_t child = fork();
    demand(child >= 0, "a process cannot be made");
    if (child == 0) {
        found = time_here(folder, guarded);
        _exit(write(ends[1], &found, sizeof found) != (ssize_t)sizeof found);
    }
    close(ends[1]);
    demand(read(ends[0], &found, sizeof found) == (ssize_t)sizeof found, "a process gave no times");
    close(ends[0]);
    demand(waitpid(child, &status, 0) == child && status == 0, "a process failed");
    return found;
}

/* The median, and the two values between which it is with 95 % (of ranks, so that no shape is assumed). */
static void report_ratios(const char *what, double *ratios, double *plain, size_t count)
{
    const double reach = 0.98 * sqrt((double)count), middle = (double)count / 2;
    const size_t low = middle > reach ? (size_t)(middle - reach) : 0;
    qsort(ratios, count, sizeof *ratios, by_size);
    qsort(plain, count, sizeof *plain, by_size);
    printf("%s: %.3f ms without the guard; with it %.4f times that (%.4f to %.4f), %zu pairs\n", what, plain[count / 2],
           ratios[count / 2], ratios[low], ratios[count - 1 - low], count);
}

static void run_guard(const char *folder, size_t count)
{
    static double opens[MOST_PAIRS], encodes[MOST_PAIRS], plain[2][MOST_PAIRS];
    demand(count <= MOST_PAIRS, "too many pairs");
    for (size_t k = 0; k < count; k++) {
        guard_times times[2]; /* without and with */
        for (size_t turn = 0; turn < 2; turn++) times[(k + turn) % 2] = time_in_a_process(folder, (k + turn) % 2);
        demand(times[0].sum == times[1].sum, "a guard changes bits");
        opens[k] = times[1].open / times[0].open;
        encodes[k] = times[1].encode / times[0].encode;
        plain[0][k] = times[0].open;
        plain[1][k] = times[0].encode;
    }
    report_ratios("opening", opens, plain[0], count);
    report_ratios("encoding 97 tokens", encodes, plain[1], count);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(const char *folder, size_t count);
    } runs[] = {{"encodes", run_encodes}, {"opens", run_opens}, {"callers", run_callers}, {"guard", run_guard}};
    const size_t times = count == 4 ? strtoul(arguments[3], NULL, 10) : 0;
    for (size_t k = 0; times >= 10 && k < sizeof runs / sizeof *runs; k++)
        if (strcmp(arguments[2], runs[k].name) == 0) {
            runs[k].run(arguments[1], times);
            return 0;
        }
    fprintf(stderr, "usage: long_run MODEL encodes|opens|callers|guard COUNT    (at least 10)\n");
    return 2;
}
