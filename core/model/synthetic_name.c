/* A name is parsed into a config.json text, so that made-up models pass the checks of stored ones.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/synthetic_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char scheme[] = "synthetic:";

/* What a shape and its keys choose. `terms` is an index of term_names. */
typedef struct recipe {
    size_t version, layers, vocab, hidden, heads, intermediate, buckets, convolution, positions, distance, types,
        biased, seed, lm, rtd, outliers, outlier_size, terms, epsilon; /* epsilon: 7 means 1e-7 */
} recipe;

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
    {"v2-xlarge", {V3(128100), .layers = 24, .hidden = 1536, .heads = 24, .intermediate = 6144, .convolution = 3}},
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
    KEY(layers), KEY(vocab), KEY(seed), KEY(buckets), KEY(heads), KEY(hidden), KEY(intermediate), KEY(positions),
    KEY(distance), KEY(types), KEY(convolution), KEY(biased), KEY(lm), KEY(rtd), KEY(outliers), KEY(outlier_size), KEY(epsilon),
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
    DEBERTA_FAIL(
        err, DEBERTA_E_ARGUMENT,
        "%s: unknown shape '%.*s'; known are v1-base, v1-large, v2-xlarge, v3-xsmall, v3-small, v3-base, v3-large and "
        "mdeberta-base",
        path, (int)length, text);
}

static deberta_status parse_number(size_t *number, const char *path, const char *text, const char *end,
                                   deberta_error *err)
{
    char *stop = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &stop, 10);
    if (stop != end || text == end || *text < '0' || *text > '9' || errno != 0 || value > INT32_MAX) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: '%.*s' is not a number from 0 to %d", path, (int)(end - text), text,
                     INT32_MAX);
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
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!text_is(text, length, keys[i].name)) continue;
        return parse_number((size_t *)((char *)chosen + keys[i].offset), path, equals + 1, end, err);
    }
    for (size_t i = 0; i < TERMS_COUNT && text_is(text, length, "terms"); i++) {
        if (!text_is(equals + 1, (size_t)(end - equals - 1), term_names[i])) continue;
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
    int length = snprintf(
        text, sizeof text,
        "{\"model_type\": \"%s\", \"vocab_size\": %zu, \"hidden_size\": %zu, \"num_hidden_layers\": %zu, "
        "\"num_attention_heads\": %zu, \"intermediate_size\": %zu, \"hidden_act\": \"gelu\", "
        "\"max_position_embeddings\": %zu, "
        "\"type_vocab_size\": %zu, \"layer_norm_eps\": 1e-%zu, \"relative_attention\": %s, \"pos_att_type\": \"%s\", "
        "\"max_relative_positions\": %ld, \"position_buckets\": %ld, \"share_att_key\": %s, \"norm_rel_ebd\": \"%s\", "
        "\"position_biased_input\": %s, \"conv_kernel_size\": %zu, \"conv_act\": \"gelu\"}",
        r->version == 1 ? "deberta" : "deberta-v2", r->vocab, r->hidden, r->layers, r->heads, r->intermediate,
        r->positions, r->types, r->epsilon, relative ? "true" : "false", term_config[r->terms],
        r->distance ? (long)r->distance : -1L, r->buckets ? (long)r->buckets : -1L, r->version == 2 ? "true" : "false",
        r->version == 2 ? "layer_norm" : "none", r->biased ? "true" : "false", r->convolution);
    return config_parse(config, text, (size_t)length, path, err);
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

deberta_status synthetic_parse(model_config *config, synthetic_weights *weights, const char *path, deberta_error *err)
{
    recipe chosen;
    const char *text = path + sizeof scheme - 1;
    size_t length = strcspn(text, ",");
    DEBERTA_TRY(parse_shape(&chosen, path, text, length, err));
    for (text += length; *text == ','; text += length) {
        length = strcspn(++text, ",");
        DEBERTA_TRY(parse_pair(&chosen, path, text, text + length, err));
    }
    DEBERTA_TRY(check_outliers(&chosen, path, err));
    DEBERTA_TRY(make_config(config, &chosen, path, err));
    *weights = (synthetic_weights){.config = *config,
                                   .seed = chosen.seed,
                                   .outliers = (uint16_t)chosen.outliers,
                                   .outlier_size = (float)chosen.outlier_size,
                                   .lm_head = chosen.lm != 0,
                                   .rtd_head = chosen.rtd != 0};
    return DEBERTA_OK;
}
