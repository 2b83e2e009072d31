/* Checksums of results are computed, and bits.tsv is read and written. SPDX-License-Identifier: MIT */
#include "tests/golden/golden_bits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* ------------------------------------------------------------------------------------------------------------- sums */

word_sum word_sum_begin(size_t damaged) { return (word_sum){.sum = 0xcbf29ce484222325, .damaged = damaged}; }

static void add_values(word_sum *sum, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, &values[i], sizeof word);
        if (++sum->words == sum->damaged) word ^= 1;
        sum->sum = (sum->sum ^ word) * 0x100000001b3;
    }
}

void word_sum_hidden(word_sum *sum, const collected *result, const ragged_batch *batch)
{
    const size_t h = result->info.hidden_size;
    for (size_t l = 0; l <= result->info.layers; l++) {
        for (size_t t = 0; t < result->tokens; t++) {
            if (batch->mask[t]) add_values(sum, result->hidden + (l * result->tokens + t) * h, h);
        }
    }
}

/* Real queries and keys of one sequence; probabilities at holes are 0, and say so. */
static void add_matrix(word_sum *sum, const float *values, const uint8_t *mask, size_t n, size_t heads, bool all_keys)
{
    for (size_t row = 0; row < heads * n; row++) {
        for (size_t j = 0; j < n && mask[row % n]; j++) {
            if (mask[j] || all_keys) add_values(sum, values + row * n + j, 1);
        }
    }
}

void word_sum_component(word_sum *sum, const collected *result, const ragged_batch *batch, deberta_component component)
{
    for (size_t l = 0; l < result->info.layers; l++) {
        for (size_t s = 0; s < result->sequences; s++) {
            const float *values = collected_attention(result, l, component, s);
            if (values)
                add_matrix(sum, values, batch->mask + batch->starts[s], batch->starts[s + 1] - batch->starts[s],
                           result->info.heads, component == DEBERTA_PROBABILITIES);
        }
    }
}

void word_sum_task(word_sum *sum, const collected *result, const ragged_batch *batch, deberta_task task)
{
    const bool per_sequence = task == DEBERTA_TASK_SEQUENCE;
    const size_t width = result->width[task];
    for (size_t i = 0; result->logits[task] && i < (per_sequence ? result->sequences : result->tokens); i++) {
        if (per_sequence || batch->mask[i]) add_values(sum, result->logits[task] + i * width, width);
    }
}

/* ------------------------------------------------------------------------------------------------------------ lines */

static const char heading[] = "name\tquantity\tbits\n";

bits_line *bits_file_find(const bits_file *file, const char *name, const char *quantity)
{
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->lines[i].name, name) == 0 && strcmp(file->lines[i].quantity, quantity) == 0)
            return &file->lines[i];
    }
    return NULL;
}

bits_line *bits_file_add(bits_file *file, const char *name, const char *quantity)
{
    bits_line *lines = grown(file->lines, &file->capacity, file->count + 1, sizeof *lines);
    if (!lines) return NULL;
    file->lines = lines;
    bits_line *line = &lines[file->count++];
    *line = (bits_line){0};
    snprintf(line->name, sizeof line->name, "%s", name);
    snprintf(line->quantity, sizeof line->quantity, "%s", quantity);
    return line;
}

static deberta_status read_line(bits_file *file, const char *text, const char *path, deberta_error *err)
{
    char name[64], quantity[32];
    uint64_t sum;
    int end = 0;
    if (sscanf(text, "%63[^\t]\t%31[^\t]\t%16" SCNx64 "%n", name, quantity, &sum, &end) != 3 || text[end] != '\n')
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: not a line of name, quantity and bits: %s", path, text);
    if (bits_file_find(file, name, quantity))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: two lines for %s %s", path, name, quantity);
    bits_line *line = bits_file_add(file, name, quantity);
    if (!line) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory", path);
    line->sum = sum;
    return DEBERTA_OK;
}

deberta_status bits_file_read(bits_file *file, const char *path, deberta_error *err)
{
    char text[256];
    deberta_status status = DEBERTA_OK;
    FILE *stream = fopen(path, "r");
    if (!stream) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", path, strerror(errno));
    for (bool first = true; status == DEBERTA_OK && fgets(text, sizeof text, stream); first = false) {
        if (!first || strcmp(text, heading) != 0) status = read_line(file, text, path, err);
    }
    fclose(stream);
    return status;
}

static int by_name(const void *a, const void *b)
{
    const bits_line *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->quantity, y->quantity);
}

deberta_status bits_file_write(bits_file *file, const char *path, bool keep_unseen, deberta_error *err)
{
    char beside[700];
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *stream = fopen(beside, "w");
    if (!stream) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", beside, strerror(errno));
    qsort(file->lines, file->count, sizeof *file->lines, by_name);
    fputs(heading, stream);
    for (size_t i = 0; i < file->count; i++) {
        const bits_line *line = &file->lines[i];
        if (line->seen || keep_unseen || strcmp(line->name, GOLDEN_LARGE_CASE) == 0)
            fprintf(stream, "%s\t%s\t%016" PRIx64 "\n", line->name, line->quantity, line->sum);
    }
    const bool whole = !ferror(stream);
    if (fclose(stream) != 0 || !whole || rename(beside, path) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", path, strerror(errno));
    return DEBERTA_OK;
}

void bits_file_free(bits_file *file)
{
    free(file->lines);
    *file = (bits_file){0};
}
