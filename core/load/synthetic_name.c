/* Parses a name into a config.json text, so that made-up models pass the checks of stored ones.
 *
 * SPDX-License-Identifier: MIT */
#include "core/load/synthetic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char scheme[] = "synthetic:";

/* The choices of a shape and its keys. `terms` is an index of term_names. */
typedef struct recipe {
    size_t version, layers, vocab, hidden, embedding, heads, intermediate, buckets, convolution, positions, distance,
        types, biased, seed, outliers, outlier_size, terms, epsilon; /* epsilon: 7 means 1e-7 */
    size_t lm, rtd, sequence, token, qa;                             /* sequence and token: number of labels */
    bool all_tasks;
} recipe;

enum { LABELS_UNASKED = 3, LABELS_WITHOUT_CLASSIFIER = 2 /* default where config.json has no num_labels */ };

enum { TERMS_BOTH, TERMS_C2P, TERMS_P2C, TERMS_NONE, TERMS_COUNT };
static const char *const term_names[TERMS_COUNT] = {"both", "c2p", "p2c", "none"};
static const char *const term_config[TERMS_COUNT] = {"c2p|p2c", "c2p", "p2c", ""};

static const struct {
    const char *name;
    recipe recipe;
} shapes[] = {
/* clang-format off */
#define COMMON .positions = 512, .seed = 1, .outlier_size = 20, .epsilon = 7
#define V1 .version = 1, .vocab = 50265, COMMON
#define V3(words) .version = 2, .buckets = 256, .vocab = words, COMMON
    {"v1-base", {V1, .layers = 12, .hidden = 768, .heads = 12, .intermediate = 3072}},
    {"v1-large", {V1, .layers = 24, .hidden = 1024, .heads = 16, .intermediate = 4096}},
    {"v1-xlarge", {V1, .layers = 48, .hidden = 1024, .heads = 16, .intermediate = 4096}},
    {"v2-xlarge", {V3(128100), .layers = 24, .hidden = 1536, .heads = 24, .intermediate = 6144, .convolution = 3}},
    {"v2-xxlarge", {V3(128100), .layers = 48, .hidden = 1536, .heads = 24, .intermediate = 6144, .convolution = 3}},
    {"v3-xsmall", {V3(128100), .layers = 12, .hidden = 384, .heads = 6, .intermediate = 1536}},
    {"v3-small", {V3(128100), .layers = 6, .hidden = 768, .heads = 12, .intermediate = 3072}},
    {"v3-base", {V3(128100), .layers = 12, .hidden = 768, .heads = 12, .intermediate = 3072}},
    {"v3-large", {V3(128100), .layers = 24, .hidden = 1024, .heads = 16, .intermediate = 4096}},
    {"mdeberta-base", {V3(251000), .layers = 12, .hidden = 768, .heads = 12, .intermediate = 3072}},
#undef V1
#undef V3
#undef COMMON
};

static const struct {
    const char *name;
    size_t offset;
} keys[] = {
#define KEY(name) {#name, offsetof(recipe, name)}
    KEY(layers), KEY(vocab), KEY(seed), KEY(buckets), KEY(heads), KEY(hidden), KEY(embedding), KEY(intermediate),
    KEY(positions), KEY(distance), KEY(types), KEY(convolution), KEY(biased), KEY(lm), KEY(rtd), KEY(sequence),
    KEY(token), KEY(qa), KEY(outliers), KEY(outlier_size), KEY(epsilon),
#undef KEY
};
/* clang-format on */

bool synthetic_names(const char *path) { return strncmp(path, scheme, sizeof scheme - 1) == 0; }

static bool text_is(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(text, name, length) == 0;
}

static deberta_status parse_shape(recipe *chosen, const char *path, const char *text, size_t length, deberta_error *err)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (!text_is(text, length, shapes[i].name)) continue;
        *chosen = shapes[i].recipe;
        return DEBERTA_OK;
    }
    char known[256] = "";
    for (size_t i = 0, used = 0; i < sizeof shapes / sizeof *shapes; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", shapes[i].name);
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: unknown shape '%.*s'; known are %s", path, (int)length, text, known);
}

static deberta_status parse_number(size_t *number, const char *path, const char *text, const char *end, const char *nor,
                                   deberta_error *err)
{
    char *stop = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &stop, 10);
    if (stop != end || text == end || *text < '0' || *text > '9' || errno != 0 || value > INT32_MAX) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: '%.*s' is not a number from 0 to %d%s", path, (int)(end - text),
                     text, INT32_MAX, nor);
    }
    *number = (size_t)value;
    return DEBERTA_OK;
}

static deberta_status parse_pair(recipe *chosen, const char *path, const char *text, const char *end,
                                 deberta_error *err)
{
    const char *equals = memchr(text, '=', (size_t)(end - text));
    if (!equals) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: '%.*s' is not key=value", path, (int)(end - text), text);
    size_t length = (size_t)(equals - text);
    const size_t value_length = (size_t)(end - equals - 1);
    const bool is_heads = text_is(text, length, "heads");
    if (is_heads && text_is(equals + 1, value_length, "all")) {
        chosen->all_tasks = true;
        return DEBERTA_OK;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!text_is(text, length, keys[i].name)) continue;
        return parse_number((size_t *)((char *)chosen + keys[i].offset), path, equals + 1, end,
                            is_heads ? ", nor all" : "", err);
    }
    for (size_t i = 0; i < TERMS_COUNT && text_is(text, length, "terms"); i++) {
        if (!text_is(equals + 1, value_length, term_names[i])) continue;
        chosen->terms = i;
        return DEBERTA_OK;
    }
    if (text_is(text, length, "terms"))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: unknown terms in '%.*s', expected both, c2p, p2c or none", path,
                     (int)(end - text), text);
    char known[256] = "terms";
    for (size_t i = 0, used = 5; i < sizeof keys / sizeof *keys; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, ", %s", keys[i].name);
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: unknown key in '%.*s'; known are %s", path, (int)(end - text), text,
                 known);
}

/* A config.json, so that made-up models pass the same checks as stored ones. */
static deberta_status make_config(model_config *config, const recipe *r, const char *path, deberta_error *err)
{
    char text[1024];
    bool relative = r->terms != TERMS_NONE;
    const size_t labels = r->sequence ? r->sequence : r->token ? r->token : LABELS_WITHOUT_CLASSIFIER;
    int length = snprintf(
        text, sizeof text,
        "{\"model_type\": \"%s\", \"vocab_size\": %zu, \"hidden_size\": %zu, \"num_hidden_layers\": %zu, "
        "\"num_attention_heads\": %zu, \"intermediate_size\": %zu, \"hidden_act\": \"gelu\", "
        "\"max_position_embeddings\": %zu, "
        "\"type_vocab_size\": %zu, \"layer_norm_eps\": 1e-%zu, \"relative_attention\": %s, \"pos_att_type\": \"%s\", "
        "\"max_relative_positions\": %ld, \"position_buckets\": %ld, \"share_att_key\": %s, \"norm_rel_ebd\": \"%s\", "
        "\"position_biased_input\": %s, \"conv_kernel_size\": %zu, \"conv_act\": \"gelu\", "
        "\"embedding_size\": %zu, \"num_labels\": %zu}",
        r->version == 1 ? "deberta" : "deberta-v2", r->vocab, r->hidden, r->layers, r->heads, r->intermediate,
        r->positions, r->types, r->epsilon, relative ? "true" : "false", term_config[r->terms],
        r->distance ? (long)r->distance : -1L, r->buckets ? (long)r->buckets : -1L, r->version == 2 ? "true" : "false",
        r->version == 2 ? "layer_norm" : "none", r->biased ? "true" : "false", r->convolution,
        r->embedding ? r->embedding : r->hidden, labels);
    DEBERTA_TRY(config_parse(config, text, (size_t)length, path, err));
    /* No library wrote this config, and the published digests depend on this rule. */
    config->reference = DEBERTA_REFERENCE_MICROSOFT;
    return DEBERTA_OK;
}

static deberta_status check_outliers(const recipe *r, const char *path, deberta_error *err)
{
    const size_t most = minimum(SYNTHETIC_MOST_OUTLIERS, r->hidden);
    if (r->outliers > most)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: expected outliers=0 to outliers=%zu, found outliers=%zu", path, most,
                     r->outliers);
    if (r->outlier_size == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: expected outlier_size=1 or more, found outlier_size=0", path);
    return DEBERTA_OK;
}

/* A model has one classifier, of sequences or of tokens (load_tasks.c). */
static deberta_status settle_tasks(recipe *r, unsigned *heads, const char *path, deberta_error *err)
{
    if (r->sequence && r->token)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: expected sequence=%zu or token=%zu, found both", path, r->sequence,
                     r->token);
    if (r->all_tasks) {
        r->lm = r->rtd = r->qa = 1;
        if (!r->token && !r->sequence) r->sequence = LABELS_UNASKED;
    }
    *heads = (r->lm ? 1u << DEBERTA_TASK_MLM : 0) | (r->rtd ? 1u << DEBERTA_TASK_RTD : 0) |
             (r->sequence ? 1u << DEBERTA_TASK_SEQUENCE : 0) | (r->token ? 1u << DEBERTA_TASK_TOKEN : 0) |
             (r->qa ? 1u << DEBERTA_TASK_QA : 0);
    return DEBERTA_OK;
}

/* Parses a name. *shape receives the values of the shape, *chosen these with the keys applied. */
static deberta_status parse_name(recipe *chosen, recipe *shape, unsigned *heads, const char *path, deberta_error *err)
{
    const char *text = path + sizeof scheme - 1;
    size_t length = strcspn(text, ",");
    DEBERTA_TRY(parse_shape(shape, path, text, length, err));
    *chosen = *shape;
    for (text += length; *text == ','; text += length) {
        length = strcspn(++text, ",");
        DEBERTA_TRY(parse_pair(chosen, path, text, text + length, err));
    }
    DEBERTA_TRY(check_outliers(chosen, path, err));
    return settle_tasks(chosen, heads, path, err);
}

/* Replaces values that mean the same by one of them. */
static void settle_values(recipe *r, const recipe *shape)
{
    r->lm = r->lm > 0, r->rtd = r->rtd > 0, r->qa = r->qa > 0;
    if (r->embedding == r->hidden) r->embedding = 0;
    if (r->outliers == 0) r->outlier_size = shape->outlier_size;
}

bool synthetic_canonical(char *name, size_t capacity_bytes, const char *path)
{
    recipe chosen, shape;
    unsigned heads = 0;
    if (parse_name(&chosen, &shape, &heads, path, NULL) != DEBERTA_OK) return false;
    settle_values(&chosen, &shape);
    const int shape_length = (int)strcspn(path, ",");
    size_t used = (size_t)snprintf(name, capacity_bytes, "%.*s", shape_length, path);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && used < capacity_bytes; i++) {
        size_t value, given;
        memcpy(&value, (const char *)&chosen + keys[i].offset, sizeof value);
        memcpy(&given, (const char *)&shape + keys[i].offset, sizeof given);
        if (value != given)
            used += (size_t)snprintf(name + used, capacity_bytes - used, ",%s=%zu", keys[i].name, value);
    }
    if (chosen.terms != shape.terms && used < capacity_bytes)
        used += (size_t)snprintf(name + used, capacity_bytes - used, ",terms=%s", term_names[chosen.terms]);
    return used < capacity_bytes;
}

deberta_status synthetic_parse(model_config *config, synthetic_weights *weights, const char *path, deberta_error *err)
{
    recipe chosen, shape;
    unsigned heads = 0;
    DEBERTA_TRY(parse_name(&chosen, &shape, &heads, path, err));
    DEBERTA_TRY(make_config(config, &chosen, path, err));
    *weights = (synthetic_weights){.config = *config,
                                   .seed = chosen.seed,
                                   .outliers = (uint16_t)chosen.outliers,
                                   .outlier_size = (float)chosen.outlier_size,
                                   .heads = heads};
    return DEBERTA_OK;
}
