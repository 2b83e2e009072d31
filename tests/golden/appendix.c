/* The tiny models of SPEC's Appendix A: weights that a generator makes from the tensor names, printed results to six
 * decimals. They check the reference against numbers that a reader of the specification can redo by hand, and the
 * worked bucket tables.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reference/reference.h"
#include "analysis/reference/reference_math.h"

/* ----------------------------------------------------------------------------------------------- generated weights */

/* Rank and shape of a tensor by the end of its name; the first match counts. Letters: SPEC's; 3 and 1 are numbers; R is
 * 2K. */
static const char *const shapes[][2] = {
    {"word_embeddings.weight", "VE"},
    {"position_embeddings.weight", "PE"},
    {"token_type_embeddings.weight", "TE"},
    {"rel_embeddings.weight", "Rh"},
    {"in_proj.weight", "3h"},
    {"head_logits_proj.weight", "AA"},
    {"head_weights_proj.weight", "AA"},
    {"conv.conv.weight", "hhk"},
    {"intermediate.dense.weight", "fh"},
    {"intermediate.dense.bias", "f"},
    {"attention.output.dense.weight", "hh"},
    {"mask_predictions.dense.weight", "hh"},
    {"lm_head.dense.weight", "hh"},
    {"output.dense.weight", "hf"},
    {"lm_head.bias", "V"},
    {"classifier.weight", "1h"},
    {"classifier.bias", "1"},
    {"LayerNorm.weight", "h"},
    {"_proj.weight", "hh"},
    {"_bias", "h"},
    {".bias", "h"},
};

static size_t letter_size(const model_config *config, char letter)
{
    switch (letter) {
    case 'V': return config->vocabulary_size;
    case 'E':
    case 'h': return config->hidden_size;
    case 'P': return config->max_positions;
    case 'T': return config->token_types;
    case 'R': return 2 * config->relative_span;
    case '3': return 3 * config->hidden_size;
    case 'A': return config->heads;
    case 'k': return config->convolution_width;
    case 'f': return config->intermediate_size;
    default: return 1;
    }
}

static bool generated_find(void *context, const char *name, size_t *rank, size_t shape[TENSOR_MAX_RANK])
{
    size_t length = strlen(name);
    /* Everything is there but the heads of classifiers and the legacy language model. */
    if (strncmp(name, "pooler", 6) == 0 || strncmp(name, "cls.", 4) == 0 || strncmp(name, "qa_", 3) == 0) return false;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t end = strlen(shapes[i][0]);
        if (length < end || strcmp(name + length - end, shapes[i][0]) != 0) continue;
        *rank = strlen(shapes[i][1]);
        for (size_t axis = 0; axis < *rank; axis++) shape[axis] = letter_size(context, shapes[i][1][axis]);
        return true;
    }
    return false;
}

static uint64_t hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash;
}

static deberta_status generated_read(void *context, const char *name, size_t first, size_t count, double *values,
                                     deberta_error *err)
{
    (void)context;
    (void)err;
    const char *gain = "LayerNorm.weight";
    size_t length = strlen(name), end = strlen(gain);
    double centre = length >= end && strcmp(name + length - end, gain) == 0 ? 1.0 : 0.0;
    for (size_t i = 0; i < count; i++) {
        uint64_t z = hash_name(name) + (first + i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        values[i] = ((double)(z >> 48) / 65536.0 - 0.5) * 0.5 + centre;
    }
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- models */

enum { TOKENS = 7 };
static const int64_t ids[TOKENS] = {1, 7, 3, 11, 5, 2, 0};
static const int64_t types[TOKENS] = {0, 0, 0, 1, 1, 1, 0};
static const unsigned char mask[TOKENS] = {1, 1, 1, 1, 1, 1, 0};

/* The configurations A, A2 (v1), B, C, D (v2), E (v1 with talking heads). */
static model_config config_of(const char *key)
{
    model_config config = {
        .version = 2,
        .vocabulary_size = 13,
        .hidden_size = 8,
        .embedding_size = 8,
        .layers = 2,
        .heads = 2,
        .head_size = 4,
        .intermediate_size = 12,
        .max_positions = 16,
        .relative_attention = true,
        .c2p = true,
        .p2c = true,
        .position_terms = 2,
        .max_relative_positions = 16,
        .position_buckets = 4,
        .relative_span = 4,
        .layer_norm_eps = 1e-7f,
        .hidden_activation = ACTIVATION_GELU,
        .convolution_groups = 1,
        .convolution_activation = ACTIVATION_GELU,
    };
    config.share_att_key = config.norm_relative = *key == 'B' || *key == 'C';
    config.convolution_width = *key == 'B' ? 3 : 0;
    if (*key == 'A' || *key == 'E') {
        config.version = 1;
        config.position_buckets = 0;
        config.max_relative_positions = 4;
        config.talking_heads = *key == 'E';
    }
    if (strcmp(key, "A2") == 0) {
        config.position_biased_input = true;
        config.token_types = 2;
    }
    return config;
}

/* A line of appendix.tsv. quantity: hidden, decoded, or a task whose logits are meant. */
typedef struct expectation {
    char model[4], padding[8], quantity[8];
    size_t layer, row;
    const char *values; /* from column 0 of the row on */
} expectation;

static deberta_status compute(const expectation *e, double *values, size_t *width, deberta_error *err)
{
    model_config config = config_of(e->model);
    reference_source source = {&config, generated_find, generated_read};
    reference_model *model = NULL;
    reference_input input = {.tokens = TOKENS, .ids = ids, .token_types = types};
    input.mask = *e->model == 'E' ? NULL : mask;
    input.padding = strcmp(e->padding, "zero") == 0 ? REFERENCE_PADDING_ZERO : REFERENCE_PADDING_UNIFORM;
    double hidden[3 * TOKENS * 8], passes[2 * TOKENS * 8];
    deberta_status status = reference_create(&model, &config, source, DEBERTA_REFERENCE_MICROSOFT, err);
    if (status == DEBERTA_OK) status = reference_encode(model, &input, hidden, NULL, err);
    *width = 8;
    if (status == DEBERTA_OK && strcmp(e->quantity, "hidden") == 0) {
        memcpy(values, hidden + e->layer * TOKENS * 8, TOKENS * 8 * sizeof *values);
    } else if (status == DEBERTA_OK && strcmp(e->quantity, "decoded") == 0) {
        status = reference_decode(model, &input, hidden, passes, err);
        memcpy(values, passes + TOKENS * 8, TOKENS * 8 * sizeof *values);
    } else if (status == DEBERTA_OK) {
        size_t head = 0;
        while (head < DEBERTA_TASK_COUNT && strcmp(deberta_task_name((deberta_task)head), e->quantity) != 0) head++;
        *width = reference_head_width(model, (deberta_task)head);
        status = reference_head_logits(model, (deberta_task)head, &input, hidden, values, err);
    }
    reference_free(&model);
    return status;
}

static bool check_expectation(const expectation *e)
{
    double values[TOKENS * 13];
    size_t width, column = 0;
    deberta_error error = {0};
    bool good = true;
    if (compute(e, values, &width, &error) != DEBERTA_OK) {
        printf("FAIL model %s: %s\n", e->model, error.message);
        return false;
    }
    char *rest;
    for (const char *text = e->values; *text; text = rest, column++) {
        double printed = strtod(text, &rest), found = values[e->row * width + column];
        if (fabs(found - printed) <= 0.5000001e-6) continue;
        printf("FAIL model %s, %s of layer %zu, row %zu, column %zu: %.8f, printed %.6f\n", e->model, e->quantity,
               e->layer, e->row, column, found, printed);
        good = false;
    }
    return good && column > 0;
}

/* ---------------------------------------------------------------------------------------------------------- buckets */

static bool check_bucket(const long *w)
{
    long hf = reference_bucket(w[2], (size_t)w[0], (size_t)w[1], DEBERTA_REFERENCE_HF);
    long microsoft = reference_bucket(w[2], (size_t)w[0], (size_t)w[1], DEBERTA_REFERENCE_MICROSOFT);
    if (hf == w[3] && microsoft == w[4]) return true;
    printf(
        "FAIL bucket of distance %ld with %ld buckets over %ld: transformers %ld, Microsoft %ld; expected %ld, %ld\n",
        w[2], w[0], w[1], hf, microsoft, w[3], w[4]);
    return false;
}

/* The table rows printed in SPEC 3.3 (v1, K = 4) and 4.3 (4 buckets over 16), by distance -5 ... 5. */
static bool check_rows(void)
{
    static const size_t v1_rows[11] = {0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7},
                        v2_rows[11] = {1, 1, 1, 2, 3, 4, 5, 6, 7, 7, 7};
    model_config v1 = config_of("A"), v2 = config_of("C");
    bool good = true;
    for (long r = -5; r <= 5; r++) {
        good = good && reference_table_row(&v1, DEBERTA_REFERENCE_MICROSOFT, r) == v1_rows[r + 5] &&
               reference_table_row(&v2, DEBERTA_REFERENCE_HF, r) == v2_rows[r + 5];
    }
    /* Beyond M the two references part: row 0 or row 1. */
    good = good && reference_table_row(&v2, DEBERTA_REFERENCE_HF, -16) == 0 &&
           reference_table_row(&v2, DEBERTA_REFERENCE_MICROSOFT, -16) == 1;
    if (!good) puts("FAIL table rows of SPEC 3.3 or 4.3");
    return good;
}

/* SPEC 4.3's worked values of buckets, and rows of the tiny models. */
static bool check_line(char *line)
{
    long w[5];
    int values = 0;
    expectation e;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "bucket\t%ld\t%ld\t%ld\t%ld\t%ld", &w[0], &w[1], &w[2], &w[3], &w[4]) == 5) return check_bucket(w);
    if (sscanf(line, "%3s %7s %7s %zu %zu %n", e.model, e.padding, e.quantity, &e.layer, &e.row, &values) < 5 ||
        !values)
        return printf("FAIL no line of this table: %s\n", line), false;
    e.values = line + values;
    return check_expectation(&e);
}

int main(int argc, char **argv)
{
    size_t passed = 0, failed = 0;
    double probe[4];
    char line[512];
    generated_read(NULL, "embeddings.word_embeddings.weight", 0, 4, probe, NULL);
    bool generator = hash_name("embeddings.word_embeddings.weight") == 0x030867d9a1e48770u &&
                     fabs(probe[0] + 0.16761017) < 1e-8 && fabs(probe[3] + 0.00241089) < 1e-8;
    if (!generator) puts("FAIL the weight generator");
    generator ? passed++ : failed++;
    FILE *table = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!table || !fgets(line, sizeof line, table)) return fprintf(stderr, "give appendix.tsv\n"), 2;
    while (fgets(line, sizeof line, table)) check_line(line) ? passed++ : failed++;
    fclose(table);
    check_rows() ? passed++ : failed++;
    printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
