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

typedef enum quantity { HIDDEN, DECODED, LOGITS_EMD, LOGITS_MLM, LOGITS_RTD } quantity;
enum { ZERO = REFERENCE_PADDING_ZERO, UNIFORM = REFERENCE_PADDING_UNIFORM };

typedef struct expectation {
    const char *model;
    int padding;
    quantity quantity;
    size_t layer, row;
    const char *values; /* from column 0 of the row on */
} expectation;

static const expectation expectations[] = {
    {"A", ZERO, HIDDEN, 0, 0, "0.351929 0.323273 0.539035 0.447875 0.483009 -1.147870 -2.842920 0.403413"},
    {"A", ZERO, HIDDEN, 0, 1, "0.430007 -0.206896 -1.693341 -0.557360 1.205196 -0.704928 -1.244743 1.037063"},
    {"A", ZERO, HIDDEN, 0, 2, "0.526565 0.455382 0.781804 0.496881 -0.888049 -1.383352 0.859056 -0.976049"},
    {"A", ZERO, HIDDEN, 0, 3, "-0.714717 0.381115 -0.637304 0.005373 1.452598 -1.692483 0.983274 -0.470269"},
    {"A", ZERO, HIDDEN, 0, 4, "-1.123321 -0.600285 -1.484529 -0.514314 1.146100 1.092487 0.668034 0.062243"},
    {"A", ZERO, HIDDEN, 0, 5, "-1.214464 0.947762 -1.664113 0.722237 0.903631 -0.373388 -0.809452 0.385195"},
    {"A", ZERO, HIDDEN, 0, 6, "0 0 0 0 0 0 0 0"},
    {"A", ZERO, HIDDEN, 1, 0, "0.062092 0.262259 0.309874 0.830343 0.444241 -0.763545 -2.490782 0.863047"},
    {"A", ZERO, HIDDEN, 1, 1, "0.285576 -0.163833 -1.708266 0.070105 1.330005 -0.444650 -1.325085 1.538832"},
    {"A", ZERO, HIDDEN, 1, 2, "0.251968 0.154619 0.815174 1.072276 -1.030376 -1.923316 0.535291 -0.541987"},
    {"A", ZERO, HIDDEN, 1, 3, "-1.010477 0.207208 -0.899357 0.496890 1.653067 -1.667735 0.506573 0.202590"},
    {"A", ZERO, HIDDEN, 1, 4, "-1.168019 -0.871801 -1.845191 -0.133298 1.185048 1.022868 0.240804 0.570145"},
    {"A", ZERO, HIDDEN, 1, 5, "-1.058027 1.002852 -1.775575 1.117297 0.816126 -0.169149 -1.261303 0.844514"},
    {"A", ZERO, HIDDEN, 1, 6, "1.692878 -1.211885 -1.222445 0.773222 1.000380 0.014507 -1.550880 -0.099316"},
    {"A", ZERO, HIDDEN, 2, 0, "0.285800 0.345166 0.482308 0.404489 0.998275 -0.359603 -2.257352 1.219964"},
    {"A", ZERO, HIDDEN, 2, 1, "0.293730 0.062839 -0.968787 -0.041371 1.697426 -0.080151 -1.317235 1.924016"},
    {"A", ZERO, HIDDEN, 2, 2, "0.638711 0.355033 1.187497 0.736738 -0.960773 -2.058290 0.386421 -0.511698"},
    {"A", ZERO, HIDDEN, 2, 3, "-0.690002 0.446618 -0.615609 0.148952 2.310899 -1.314460 0.064200 0.882518"},
    {"A", ZERO, HIDDEN, 2, 4, "-0.668040 -0.425404 -1.048835 -0.160886 1.656446 1.039100 -0.185096 1.490411"},
    {"A", ZERO, HIDDEN, 2, 5, "-0.479793 1.039655 -1.013399 0.494501 1.265649 0.070493 -1.223511 1.385161"},
    {"A", ZERO, HIDDEN, 2, 6, "1.186308 -0.607294 -0.605500 0.407597 1.539789 0.307849 -1.501629 0.266333"},
    {"A", UNIFORM, HIDDEN, 2, 6, "0.566219 -0.830546 -0.771579 0.677489 1.666392 -0.232346"},
    {"A2", ZERO, HIDDEN, 2, 0, "0.552461 -0.674455 1.769505 -0.074322 1.048069 -0.427360"},
    {"A2", ZERO, HIDDEN, 2, 1, "0.089227 -0.566296 -1.389260 0.671256 0.268278 0.936276"},
    {"B", ZERO, HIDDEN, 1, 0, "-0.407560 0.380115 0.363912 0.683923 0.928070 -1.135754 -1.911984 0.900831"},
    {"B", ZERO, HIDDEN, 1, 1, "-0.245619 -0.116401 -2.318843 -0.019793 1.307193 0.316039 -0.716505 1.313671"},
    {"B", ZERO, HIDDEN, 1, 6, "0 0 0 0 0 0 0 0"},
    {"B", ZERO, HIDDEN, 2, 0, "-0.044847 0.449858 0.664373 0.211835 1.367395 -0.696728 -2.072370 1.275281"},
    {"B", ZERO, HIDDEN, 2, 1, "-0.018836 0.135409 -1.186031 -0.122699 1.643148 0.472287 -1.057612 1.816031"},
    {"B", ZERO, HIDDEN, 2, 2, "0.475264 0.504198 1.080748 0.925861 -1.562560 -1.534423 0.403638 -0.480558"},
    {"B", ZERO, HIDDEN, 2, 3, "-0.433971 0.431621 -0.472333 -0.228908 2.527435 -1.483897 0.340394 0.339744"},
    {"B", ZERO, HIDDEN, 2, 4, "-0.523175 -0.183106 -1.151932 -0.342309 1.470069 1.384305 -0.346420 1.397358"},
    {"B", ZERO, HIDDEN, 2, 5, "-0.649844 1.143301 -0.909090 0.544644 1.055657 0.290896 -1.240978 1.300633"},
    {"B", ZERO, HIDDEN, 2, 6, "0.738889 -0.606135 -0.436478 -0.680558 1.595527 1.252049 -1.476801 0.980954"},
    {"B", UNIFORM, HIDDEN, 2, 6, "0.834946 -0.654647 0.621722 -0.584783 0.986830 1.328051"},
    {"B", ZERO, LOGITS_EMD, 0, 2,
     "0.605097 0.154860 0.456278 -0.219776 0.132208 0.533350 0.413201 0.361962 "
     "0.120409 0.462560 0.227027 0.698933 0.656735"},
    {"B", ZERO, LOGITS_EMD, 0, 4,
     "-0.251405 -0.256710 0.132832 0.312631 0.690872 0.350283 -0.264605 -0.285291 "
     "0.055476 -0.227286 0.228592 0.081808 -0.481702"},
    {"B", ZERO, LOGITS_RTD, 0, 0, "0.051343 0.057519 0.010927 0.018824 0.064858 0.048371 0.082576"},
    {"C", ZERO, HIDDEN, 1, 0, "0.062892 0.474611 0.329254 0.771160 0.370820 -0.580090 -2.579008 0.671598"},
    {"C", ZERO, HIDDEN, 1, 1, "0.283084 0.072505 -1.809663 -0.028049 1.330285 -0.235851 -1.375388 1.360882"},
    {"C", ZERO, HIDDEN, 2, 0, "0.298346 0.477718 0.654842 0.298995 0.868147 -0.143798 -2.338781 0.923779"},
    {"C", ZERO, HIDDEN, 2, 1, "0.342332 0.239868 -0.896387 -0.134702 1.674464 0.120992 -1.528099 1.731220"},
    {"C", ZERO, HIDDEN, 2, 2, "0.597568 0.643019 1.507375 0.529641 -1.186531 -1.376003 0.122848 -1.176604"},
    {"C", ZERO, HIDDEN, 2, 3, "-0.775611 0.821895 -0.500432 0.052445 2.418231 -1.150186 -0.110314 0.420225"},
    {"C", ZERO, HIDDEN, 2, 4, "-0.691025 -0.256978 -0.969561 -0.269067 1.622948 1.402459 -0.402077 1.266133"},
    {"C", ZERO, HIDDEN, 2, 5, "-0.447839 1.248881 -0.872453 0.422546 1.144324 0.308614 -1.443111 1.125033"},
    {"C", ZERO, HIDDEN, 2, 6, "1.186308 -0.607294 -0.605500 0.407597 1.539789 0.307849 -1.501629 0.266333"},
    {"C", UNIFORM, HIDDEN, 2, 6, "0.879632 0.246520 -0.854290 0.442255 1.293387 1.031080"},
    {"C", ZERO, DECODED, 0, 2, "0.612577 0.626828 1.878334 -0.010631 -1.219448 -0.785622"},
    {"C", ZERO, DECODED, 0, 4, "-0.588112 -0.107973 -0.594980 -0.512931 1.566968 1.189595"},
    {"C", ZERO, LOGITS_EMD, 0, 2,
     "0.619385 0.067765 0.624898 -0.297575 0.244850 0.660252 0.470961 0.569733 "
     "0.082339 0.319264 0.320697 0.702262 0.767415"},
    {"C", ZERO, LOGITS_EMD, 0, 4,
     "-0.258802 -0.309346 0.139387 0.326016 0.745334 0.367988 -0.293619 -0.270698 "
     "0.033449 -0.253941 0.223668 0.100240 -0.471140"},
    {"C", ZERO, LOGITS_MLM, 0, 2, "0.589454 0.258436 0.655176 0.106081 0.025947 0.252557"},
    {"C", ZERO, LOGITS_MLM, 0, 4, "-0.544127 -0.209256 0.007302 0.431656 1.013051 0.127168"},
    {"C", ZERO, LOGITS_RTD, 0, 0, "0.082548 0.077330 0.047640 0.025496 0.069799 0.070804 0.058704"},
    {"D", ZERO, HIDDEN, 2, 0, "0.298847 0.476447 0.671765 0.305902 0.847281 -0.133926 -2.340779 0.904956"},
    {"D", ZERO, HIDDEN, 2, 1, "0.344812 0.234952 -0.894446 -0.132218 1.668670 0.128326 -1.532343 1.731862"},
    {"D", ZERO, HIDDEN, 2, 2, "0.601568 0.632541 1.513007 0.523961 -1.183466 -1.366766 0.125162 -1.187388"},
    {"D", ZERO, HIDDEN, 2, 3, "-0.771448 0.807766 -0.506599 0.046619 2.425258 -1.146892 -0.102320 0.426240"},
    {"D", ZERO, HIDDEN, 2, 4, "-0.683882 -0.265349 -0.973186 -0.272148 1.625017 1.401656 -0.396070 1.265559"},
    {"D", ZERO, HIDDEN, 2, 5, "-0.448696 1.245905 -0.876793 0.420277 1.147470 0.307705 -1.438318 1.130486"},
    {"D", ZERO, HIDDEN, 2, 6, "1.186308 -0.607294 -0.605500 0.407597 1.539789 0.307849 -1.501629 0.266333"},
    {"E", ZERO, HIDDEN, 2, 0, "0.330457 0.401017 0.533412 0.309922 0.986467 -0.249700 -2.306302 1.084430"},
    {"E", ZERO, HIDDEN, 2, 1, "0.365979 0.139378 -0.937045 -0.124972 1.716757 0.001575 -1.418952 1.805931"},
};

static deberta_status compute(const expectation *e, double *values, size_t *width, deberta_error *err)
{
    model_config config = config_of(e->model);
    reference_source source = {&config, generated_find, generated_read};
    reference_model *model = NULL;
    reference_input input = {.tokens = TOKENS,
                             .ids = ids,
                             .token_types = types,
                             .mask = *e->model == 'E' ? NULL : mask,
                             .padding = (reference_padding)e->padding};
    double hidden[3 * TOKENS * 8], passes[2 * TOKENS * 8];
    deberta_status status = reference_create(&model, &config, source, DEBERTA_REFERENCE_MICROSOFT, err);
    if (status == DEBERTA_OK) status = reference_encode(model, &input, hidden, NULL, err);
    *width = 8;
    if (status == DEBERTA_OK && e->quantity == HIDDEN) {
        memcpy(values, hidden + e->layer * TOKENS * 8, TOKENS * 8 * sizeof *values);
    } else if (status == DEBERTA_OK && e->quantity == DECODED) {
        status = reference_decode(model, &input, hidden, passes, err);
        memcpy(values, passes + TOKENS * 8, TOKENS * 8 * sizeof *values);
    } else if (status == DEBERTA_OK) {
        deberta_task head = e->quantity == LOGITS_EMD   ? DEBERTA_TASK_MLM_EMD
                            : e->quantity == LOGITS_MLM ? DEBERTA_TASK_MLM
                                                        : DEBERTA_TASK_RTD;
        *width = reference_head_width(model, head);
        status = reference_head_logits(model, head, &input, hidden, values, err);
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
        printf("FAIL model %s, quantity %d of layer %zu, row %zu, column %zu: %.8f, printed %.6f\n", e->model,
               (int)e->quantity, e->layer, e->row, column, found, printed);
        good = false;
    }
    return good && column > 0;
}

/* ---------------------------------------------------------------------------------------------------------- buckets */

/* SPEC 4.3's worked values: buckets, max distance, distance, bucket by transformers, bucket by Microsoft. */
static const long worked_buckets[][5] = {
    {256, 512, 0, 0, 0},
    {256, 512, 1, 1, 1},
    {256, 512, -5, -5, -5},
    {256, 512, 127, 127, 127},
    {256, 512, 128, 128, 128},
    {256, 512, -128, -128, -128},
    {256, 512, 129, 129, 129},
    {256, 512, 130, 130, 130},
    {256, 512, 131, 131, 131},
    {256, 512, 132, 131, 131},
    {256, 512, 133, 132, 132},
    {256, 512, 140, 137, 137},
    {256, 512, 150, 143, 143},
    {256, 512, 160, 149, 149},
    {256, 512, 200, 169, 169},
    {256, 512, 256, 192, 192},
    {256, 512, -256, -192, -192},
    {256, 512, 300, 207, 207},
    {256, 512, 383, 229, 229},
    {256, 512, 384, 229, 229},
    {256, 512, 400, 233, 233},
    {256, 512, 450, 244, 244},
    {256, 512, 500, 254, 254},
    {256, 512, 505, 254, 254},
    {256, 512, 509, 255, 255},
    {256, 512, 511, 255, 255},
    {256, 512, -511, -255, -255},
    {256, 512, 512, 256, 255},
    {256, 512, -512, -256, -255},
    {256, 512, 600, 270, 255},
    {256, 512, 1000, 317, 255},
    {4, 16, 2, 2, 2},
    {4, 16, 3, 3, 3},
    {4, 16, 15, 3, 3},
    {4, 16, 16, 4, 3},
    {4, 4, 4, 4, 3},
    {4, 4, 5, 5, 3},
    {4, 4, -6, -5, -3},
    {2, 8, 1, 1, 1},
    {2, 8, -7, -1, -1},
};

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

int main(void)
{
    size_t passed = 0, failed = 0;
    double probe[4];
    generated_read(NULL, "embeddings.word_embeddings.weight", 0, 4, probe, NULL);
    bool generator = hash_name("embeddings.word_embeddings.weight") == 0x030867d9a1e48770u &&
                     fabs(probe[0] + 0.16761017) < 1e-8 && fabs(probe[3] + 0.00241089) < 1e-8;
    if (!generator) puts("FAIL the weight generator");
    generator ? passed++ : failed++;
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++)
        check_expectation(&expectations[i]) ? passed++ : failed++;
    for (size_t i = 0; i < sizeof worked_buckets / sizeof *worked_buckets; i++)
        check_bucket(worked_buckets[i]) ? passed++ : failed++;
    check_rows() ? passed++ : failed++;
    printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
