/* Measures the time to encode with a synthetic model: encode_times MODEL TOKENS PRECISION RUNS. Prints the median in
 * milliseconds and the SHA-256 of the hidden states, to compare with the native program's. Ids are 3, 4, 5 ...
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/sha256.h"
#include "include/deberta.h"

enum { MOST_TOKENS = 512, MOST_RUNS = 99, FIRST_ID = 3 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_digest(const deberta_outputs *outputs, size_t tokens, size_t columns)
{
    sha256 hash;
    char digest[65];
    sha256_begin(&hash, 0);
    for (size_t t = 0; t < tokens; t++)
        sha256_add(&hash, outputs->hidden + t * outputs->hidden_stride, columns * sizeof(float));
    sha256_finish(&hash, digest);
    puts(digest);
}

static deberta_status measure(deberta_session *session, size_t columns, size_t tokens, size_t runs, deberta_error *err)
{
    int32_t ids[MOST_TOKENS];
    double times[MOST_RUNS];
    const size_t starts[2] = {0, tokens};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    for (size_t t = 0; t < tokens; t++) ids[t] = FIRST_ID + (int32_t)t;
    const deberta_batch batch = {.struct_size = sizeof batch, .ids = ids, .sequence_starts = starts, .sequences = 1};
    for (size_t k = 0; k <= runs; k++) { /* the first run is not counted, because the engine is still compiling */
        const double begin = now();
        const deberta_status status = deberta_encode(session, &batch, &outputs, err);
        if (status != DEBERTA_OK) return status;
        if (k) times[k - 1] = now() - begin;
    }
    qsort(times, runs, sizeof *times, by_size);
    printf("%.3f ", times[runs / 2]);
    print_digest(&outputs, tokens, columns);
    return DEBERTA_OK;
}

int main(int argc, char **argv)
{
    const size_t tokens = argc == 5 ? strtoul(argv[2], NULL, 10) : 0, runs = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
    if (!tokens || tokens > MOST_TOKENS || !runs || runs > MOST_RUNS)
        return fputs("usage: encode_times MODEL TOKENS PRECISION RUNS\n", stderr), 2;
    deberta_error error = {0};
    deberta_model *model = NULL;
    deberta_session *session = NULL;
    deberta_model_options options = {.struct_size = sizeof options, .threads = 1};
    while (options.precision < DEBERTA_PRECISION_COUNT &&
           strcmp(deberta_precision_name(options.precision), argv[3]) != 0)
        options.precision++;
    deberta_status status = deberta_model_open(&model, argv[1], &options, &error);
    const deberta_session_options about = {.struct_size = sizeof about, .threads = 1, .max_tokens = tokens};
    if (status == DEBERTA_OK) status = deberta_session_create(&session, model, &about, &error);
    if (status == DEBERTA_OK)
        status = measure(session, deberta_model_describe(model)->hidden_size, tokens, runs, &error);
    if (status != DEBERTA_OK) fprintf(stderr, "%s\n", error.message);
    deberta_session_free(&session);
    deberta_model_free(&model);
    return status == DEBERTA_OK ? 0 : 1;
}
