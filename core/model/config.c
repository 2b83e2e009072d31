/* Reads config.json in transformers' two dialects and Microsoft's, and checks every value (SPEC 1).
 *
 * Every number has a range. The limits are far above any DeBERTa, and low enough that no product of sizes that the
 * program forms (bytes of all weights, of all position tables) leaves 64 bits. Where sizes have 32 bits, their sum is
 * compared with the address space before any product is formed.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/config.h"

#include <ctype.h>
#include <float.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/folder_kind.h"
#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "core/model/config_keys.h"

/* Limits of a config.json, whose largest part is its list of labels. */
static const json_limits config_limits = {.bytes = 16 << 20, .depth = 32, .values = 1 << 20};

typedef enum dialect { DIALECT_V1, DIALECT_V2, DIALECT_MICROSOFT, DIALECT_COUNT } dialect;

typedef struct config_source {
    const json_t *object;
    const char *where;
    dialect dialect;
    deberta_error *err;
} config_source;

/* Returns the value of a key, or NULL for a key that is absent or null, where the default applies. */
static const json_t *present(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value) ? value : NULL;
}

/* Refuses a value, and states what is expected. */
static deberta_status config_refuse(const config_source *source, const char *key, const json_t *found,
                                    const char *expected)
{
    DEBERTA_FAIL(source->err, DEBERTA_E_FORMAT, "%s: %s is %s, expected %s", source->where, key,
                 json_describe(found).text, expected);
}

/* Reads an integer; *number stays unchanged when the key is absent. 8.0 is refused, because no program writes configs
 * so. */
static deberta_status read_integer(const config_source *source, const char *key, json_int_t minimum, json_int_t maximum,
                                   json_int_t *number)
{
    const json_t *value = present(source->object, key);
    if (!value) return DEBERTA_OK;
    if (!json_is_integer(value) || json_integer_value(value) < minimum || json_integer_value(value) > maximum)
        DEBERTA_FAIL(source->err, DEBERTA_E_FORMAT, "%s: %s is %s, expected an integer from %lld to %lld",
                     source->where, key, json_describe(value).text, (long long)minimum, (long long)maximum);
    *number = json_integer_value(value);
    return DEBERTA_OK;
}

static deberta_status read_flag(const config_source *source, const char *key, bool *flag)
{
    const json_t *value = present(source->object, key);
    if (!value) return DEBERTA_OK;
    if (!json_is_boolean(value)) return config_refuse(source, key, value, "true or false");
    *flag = json_is_true(value);
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- sizes */

/* Sizes, which are at least 1 (token types: 0), with the defaults of each dialect. A default of -1 means that the key
 * is required. */
static const struct size_field {
    const char *key;
    size_t member;
    json_int_t minimum, maximum, defaults[DIALECT_COUNT];
} size_fields[] = {
    {"vocab_size", offsetof(model_config, vocabulary_size), 1, INT32_MAX, {50265, 128100, -1}},
    {"hidden_size", offsetof(model_config, hidden_size), 1, 1 << 20, {768, 1536, 768}},
    {"num_hidden_layers", offsetof(model_config, layers), 1, 4096, {12, 24, 12}},
    {"num_attention_heads", offsetof(model_config, heads), 1, 1 << 16, {12, 24, 12}},
    {"intermediate_size", offsetof(model_config, intermediate_size), 1, 1 << 22, {3072, 6144, 3072}},
    {"max_position_embeddings", offsetof(model_config, max_positions), 1, 1 << 24, {512, 512, 512}},
    {"type_vocab_size", offsetof(model_config, token_types), 0, 1 << 20, {0, 0, 0}},
};

static deberta_status read_sizes(model_config *config, const config_source *source)
{
    for (size_t i = 0; i < sizeof size_fields / sizeof *size_fields; i++) {
        const struct size_field *field = &size_fields[i];
        json_int_t number = field->defaults[source->dialect];
        DEBERTA_TRY(read_integer(source, field->key, field->minimum, field->maximum, &number));
        if (number < 0) DEBERTA_FAIL(source->err, DEBERTA_E_FORMAT, "%s: %s is missing", source->where, field->key);
        *(size_t *)((char *)config + field->member) = (size_t)number;
    }
    json_int_t embedding_size = (json_int_t)config->hidden_size;
    DEBERTA_TRY(read_integer(source, "embedding_size", 1, 1 << 20, &embedding_size));
    config->embedding_size = (size_t)embedding_size;
    return DEBERTA_OK;
}

/* Checks heads x head size = hidden size, which transformers relies on. v1 has no attention_head_size; a value in a
 * config of v1 is ignored (SPEC 1.1). */
static deberta_status read_head_size(model_config *config, const config_source *source)
{
    if (config->hidden_size % config->heads != 0)
        DEBERTA_FAIL(source->err, DEBERTA_E_FORMAT, "%s: hidden_size %zu is not a multiple of num_attention_heads %zu",
                     source->where, config->hidden_size, config->heads);
    config->head_size = config->hidden_size / config->heads;
    if (source->dialect == DIALECT_V1) return DEBERTA_OK;
    json_int_t stated = (json_int_t)config->head_size;
    DEBERTA_TRY(read_integer(source, "attention_head_size", 1, 1 << 20, &stated));
    if ((size_t)stated != config->head_size)
        DEBERTA_FAIL(source->err, DEBERTA_E_FORMAT,
                     "%s: attention_head_size is %lld, expected hidden_size / num_attention_heads = %zu / %zu = %zu",
                     source->where, (long long)stated, config->hidden_size, config->heads, config->head_size);
    return DEBERTA_OK;
}

static deberta_status read_epsilon(model_config *config, const config_source *source)
{
    const json_t *value = present(source->object, "layer_norm_eps");
    config->layer_norm_eps = 1e-7f;
    if (!value) return DEBERTA_OK;
    double epsilon = json_number_value(value);
    /* A smaller epsilon could round to zero, and a constant row would divide by it; subnormals are refused too. */
    if (!json_is_number(value) || !(epsilon >= FLT_MIN && epsilon <= 1))
        return config_refuse(source, "layer_norm_eps", value, "a number from 1.2e-38 to 1");
    config->layer_norm_eps = (float)epsilon;
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------- activations */

enum { MOST_SPELLINGS = 5 }; /* room for the spellings of one activation and the NULL behind them */

static const char *const activation_spellings[ACTIVATION_COUNT][MOST_SPELLINGS] = {
    [ACTIVATION_NONE] = {ACTIVATION_NONE_SPELLED},
#define SPELLED(NAME, function, ...) [ACTIVATION_##NAME] = {__VA_ARGS__},
    ACTIVATIONS(SPELLED)
#undef SPELLED
};

/* Writes "gelu, gelu_python, ... or linear". */
static void list_activations(char *text, size_t size)
{
    size_t length = 0;
    for (activation each = ACTIVATION_NONE + 1; each < ACTIVATION_COUNT; each++)
        for (const char *const *name = activation_spellings[each]; *name && length < size; name++)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", *name);
    if (length < size) snprintf(text + length, size - length, " or %s", ACTIVATION_NONE_SPELLED);
}

/* Reads an activation; *out stays unchanged when the key is absent. */
static deberta_status read_activation(const config_source *source, const char *key, activation *out)
{
    const json_t *value = present(source->object, key);
    if (!value) return DEBERTA_OK;
    for (activation each = 0; json_is_string(value) && each < ACTIVATION_COUNT; each++)
        for (const char *const *name = activation_spellings[each]; *name; name++)
            if (strcmp(json_string_value(value), *name) == 0) {
                *out = each;
                return DEBERTA_OK;
            }
    char expected[256];
    list_activations(expected, sizeof expected);
    return config_refuse(source, key, value, expected);
}

/* Reads the pooler's activation. transformers has pooler_hidden_act, gelu by default; Microsoft has an object
 * `pooling`, and without it uses the encoder's activation. */
static deberta_status read_pooler(model_config *config, const config_source *source)
{
    config->pooler_activation = source->dialect == DIALECT_MICROSOFT ? config->hidden_activation : ACTIVATION_GELU;
    const json_t *pooling = present(source->object, "pooling");
    if (pooling && !json_is_object(pooling)) return config_refuse(source, "pooling", pooling, "an object");
    if (pooling) {
        config_source inner = *source;
        inner.object = pooling;
        config->pooler_activation = ACTIVATION_GELU;
        DEBERTA_TRY(config_keys_check(pooling, source->where, "pooling.", &config->notes, source->err));
        DEBERTA_TRY(read_activation(&inner, "hidden_act", &config->pooler_activation));
    }
    return read_activation(source, "pooler_hidden_act", &config->pooler_activation);
}

/* ---------------------------------------------------------------------------------------------------------- dropout */

/* Reads a dropout probability. Inference does not need it, so an invalid value becomes -1, which training refuses. */
static double read_dropout(const config_source *source, const char *key, double otherwise)
{
    const json_t *value = present(source->object, key);
    if (!value) return otherwise;
    const double probability = json_number_value(value);
    return json_is_number(value) && probability >= 0 && probability < 1 ? probability : -1;
}

static void read_dropouts(model_config *config, const config_source *source)
{
    const json_t *pooling = present(source->object, "pooling");
    config_source inner = *source;
    inner.object = pooling;
    config->hidden_dropout = read_dropout(source, "hidden_dropout_prob", 0.1);
    config->attention_dropout = read_dropout(source, "attention_probs_dropout_prob", 0.1);
    config->pooler_dropout = pooling ? read_dropout(&inner, "dropout", 0) : 0;
    config->pooler_dropout = read_dropout(source, "pooler_dropout", config->pooler_dropout);
    config->classifier_dropout = read_dropout(source, "cls_dropout", config->hidden_dropout);
}

/* ------------------------------------------------------------------------------------------------ relative position */

/* Returns whether the piece of text, without blanks around it and in any case, is this word. */
static bool piece_is(const char *piece, size_t length, const char *word)
{
    while (length > 0 && isspace((unsigned char)*piece)) piece++, length--;
    while (length > 0 && isspace((unsigned char)piece[length - 1])) length--;
    if (length != strlen(word)) return false;
    for (size_t i = 0; i < length; i++)
        if (tolower((unsigned char)piece[i]) != word[i]) return false;
    return true;
}

/* No library supports p2p any more, and Microsoft counts it in the scale: it is refused, not ignored (SPEC 4.5). */
static deberta_status read_term(model_config *config, const config_source *source, const char *piece, size_t length)
{
    bool nothing = piece_is(piece, length, "none") || piece_is(piece, length, "");
    config->c2p |= piece_is(piece, length, "c2p");
    config->p2c |= piece_is(piece, length, "p2c");
    if (!nothing && !piece_is(piece, length, "c2p") && !piece_is(piece, length, "p2c"))
        DEBERTA_FAIL(source->err, DEBERTA_E_UNSUPPORTED, "%s: pos_att_type contains '%s', expected c2p, p2c or none",
                     source->where, QUOTE_N(piece, length));
    return DEBERTA_OK;
}

/* "c2p|p2c" */
static deberta_status read_terms_text(model_config *config, const config_source *source, const char *text,
                                      size_t *entries)
{
    for (const char *piece = text;; *entries += 1) {
        size_t length = strcspn(piece, "|");
        DEBERTA_TRY(read_term(config, source, piece, length));
        if (piece[length] == 0) break;
        piece += length + 1;
    }
    *entries += 1;
    return DEBERTA_OK;
}

/* Reads c2p, p2c and their number in the scale. */
static deberta_status read_terms(model_config *config, const config_source *source)
{
    const json_t *value = present(source->object, "pos_att_type");
    size_t entries = 0;
    if (json_is_string(value)) {
        DEBERTA_TRY(read_terms_text(config, source, json_string_value(value), &entries));
    } else if (json_is_array(value)) {
        entries = json_array_size(value);
        for (size_t i = 0; i < entries; i++) {
            const json_t *entry = json_array_get(value, i);
            if (!json_is_string(entry)) return config_refuse(source, "an entry of pos_att_type", entry, "c2p or p2c");
            DEBERTA_TRY(read_term(config, source, json_string_value(entry), json_string_length(entry)));
        }
    } else if (value) {
        return config_refuse(source, "pos_att_type", value, "a text like \"c2p|p2c\" or a list");
    } else if (source->dialect == DIALECT_MICROSOFT && !json_object_get(source->object, "pos_att_type")) {
        config->c2p = true; /* Microsoft's default, SPEC 1.1 */
    }
    /* transformers' v1 class counts the entries of the list, whatever they say; the others count the terms. */
    config->position_terms = source->dialect == DIALECT_V1 ? entries : (size_t)config->c2p + config->p2c;
    /* Without relative attention the terms still count in the scale (SPEC 1.2), but are not computed. */
    config->c2p &= config->relative_attention;
    config->p2c &= config->relative_attention;
    return DEBERTA_OK;
}

/* Reads "layer_norm|...", in which only that word has a meaning. */
static deberta_status read_norm_relative(model_config *config, const config_source *source)
{
    static const char expected[] = "a text like \"layer_norm\" or \"none\"";
    const json_t *value = json_object_get(source->object, "norm_rel_ebd");
    if (!value) return DEBERTA_OK;
    /* null is not "none": transformers ends in an error there. */
    if (!json_is_string(value)) return config_refuse(source, "norm_rel_ebd", value, expected);
    for (const char *piece = json_string_value(value);; piece++) {
        size_t length = strcspn(piece, "|");
        config->norm_relative |= piece_is(piece, length, "layer_norm");
        piece += length;
        if (*piece == 0) return DEBERTA_OK;
    }
}

/* Reads M and B, and sets K = B or else M: the table has 2K rows (SPEC 4.4). */
static deberta_status read_relative_span(model_config *config, const config_source *source)
{
    json_int_t distance = -1, buckets = -1;
    DEBERTA_TRY(read_integer(source, "max_relative_positions", INT32_MIN, 1 << 24, &distance));
    config->max_relative_positions = distance >= 1 ? (size_t)distance : config->max_positions;
    /* v1 has no buckets, and its class does not read the key. */
    if (source->dialect != DIALECT_V1)
        DEBERTA_TRY(read_integer(source, "position_buckets", INT32_MIN, 1 << 24, &buckets));
    if (buckets == 1)
        DEBERTA_FAIL(source->err, DEBERTA_E_FORMAT,
                     "%s: position_buckets is 1, expected at least 2, or -1 for none (half of it divides distances)",
                     source->where);
    config->position_buckets = buckets > 1 ? (size_t)buckets : 0;
    config->relative_span = config->position_buckets ? config->position_buckets : config->max_relative_positions;
    return DEBERTA_OK;
}

/* Reads which positions, terms, shared projections and talking heads attention has. */
static deberta_status read_positions(model_config *config, const config_source *source)
{
    config->position_biased_input = true;
    DEBERTA_TRY(read_flag(source, "relative_attention", &config->relative_attention));
    DEBERTA_TRY(read_flag(source, "position_biased_input", &config->position_biased_input));
    DEBERTA_TRY(read_terms(config, source));
    DEBERTA_TRY(read_relative_span(config, source));
    if (source->dialect != DIALECT_V2) DEBERTA_TRY(read_flag(source, "talking_head", &config->talking_heads));
    if (source->dialect == DIALECT_V1) return DEBERTA_OK;
    DEBERTA_TRY(read_flag(source, "share_att_key", &config->share_att_key));
    return read_norm_relative(config, source);
}

/* ------------------------------------------------------------------------------------------------------ convolution */

/* Reads the convolution, which only transformers' v2 class and Microsoft's code have; in v1 files its keys have no
 * effect. */
static deberta_status read_convolution(model_config *config, const config_source *source)
{
    json_int_t width = 0, groups = 1;
    config->convolution_activation = ACTIVATION_TANH;
    config->convolution_groups = 1;
    if (source->dialect == DIALECT_V1) return DEBERTA_OK;
    DEBERTA_TRY(read_integer(source, "conv_kernel_size", 0, 1023, &width));
    DEBERTA_TRY(read_integer(source, "conv_groups", 1, 1 << 20, &groups));
    DEBERTA_TRY(read_activation(source, "conv_act", &config->convolution_activation));
    if (width > 0 && width % 2 == 0)
        DEBERTA_FAIL(source->err, DEBERTA_E_FORMAT,
                     "%s: conv_kernel_size is %lld, expected an odd number (an even one changes the length)",
                     source->where, (long long)width);
    if (width > 0 && config->hidden_size % (size_t)groups != 0)
        DEBERTA_FAIL(source->err, DEBERTA_E_FORMAT, "%s: hidden_size %zu is not a multiple of conv_groups %lld",
                     source->where, config->hidden_size, (long long)groups);
    config->convolution_width = (size_t)width;
    config->convolution_groups = (size_t)groups;
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- labels */

enum { MOST_LABELS = 1 << 20 };

/* Parses decimal digits without leading zeros, so that no two keys are the same number. */
static bool parse_label_key(const char *key, unsigned long *number)
{
    size_t length = strlen(key);
    if (length == 0 || length > 9 || strspn(key, "0123456789") != length || (key[0] == '0' && length > 1)) return false;
    *number = strtoul(key, NULL, 10);
    return *number < MOST_LABELS;
}

static deberta_status copy_label(model_config *config, const config_source *source, size_t label, const json_t *name)
{
    if (json_is_null(name)) return DEBERTA_OK;
    if (!json_is_string(name) && !json_is_integer(name))
        return config_refuse(source, "a value of id2label", name, "a text");
    quoted number = {""};
    if (!json_is_string(name)) number = json_describe(name);
    config->label_names[label] = strdup(json_is_string(name) ? json_string_value(name) : number.text);
    if (!config->label_names[label])
        DEBERTA_FAIL(source->err, DEBERTA_E_MEMORY, "%s: no memory for labels", source->where);
    return DEBERTA_OK;
}

/* Sets *labels to one more than the largest key. */
static deberta_status count_labels(const config_source *source, json_t *map, size_t *labels)
{
    const char *key;
    json_t *name;
    *labels = 0;
    json_object_foreach(map, key, name)
    {
        unsigned long number;
        if (!parse_label_key(key, &number))
            DEBERTA_FAIL(source->err, DEBERTA_E_FORMAT, "%s: id2label has the key '%s', expected integers from 0 to %d",
                         source->where, QUOTE(key), MOST_LABELS - 1);
        if (number >= *labels) *labels = number + 1;
    }
    return DEBERTA_OK;
}

/* Reads the labels from id2label, each name at the number of its key; num_labels counts only without id2label. */
static deberta_status read_labels(model_config *config, const config_source *source)
{
    json_int_t count = 2;
    DEBERTA_TRY(read_integer(source, "num_labels", 0, MOST_LABELS, &count));
    config->labels = (size_t)count;
    json_t *map = (json_t *)present(source->object, "id2label");
    if (map && !json_is_object(map)) return config_refuse(source, "id2label", map, "an object");
    if (map) DEBERTA_TRY(count_labels(source, map, &config->labels));
    config->label_names = calloc(config->labels + 1, sizeof *config->label_names);
    if (!config->label_names) DEBERTA_FAIL(source->err, DEBERTA_E_MEMORY, "%s: no memory for labels", source->where);
    const char *key;
    json_t *name;
    json_object_foreach(map, key, name) DEBERTA_TRY(copy_label(config, source, strtoul(key, NULL, 10), name));
    return DEBERTA_OK;
}

/* Interpretations of a sequence head's outputs, by their names in transformers' pipeline for text classification. */
static const char *const problems[DEBERTA_PROBLEM_COUNT] = {
    [DEBERTA_PROBLEM_SINGLE_LABEL] = "single_label_classification",
    [DEBERTA_PROBLEM_MULTI_LABEL] = "multi_label_classification",
    [DEBERTA_PROBLEM_REGRESSION] = "regression",
};

static deberta_status read_problem(model_config *config, const config_source *source)
{
    const json_t *value = present(source->object, "problem_type");
    if (!value) return DEBERTA_OK;
    for (deberta_problem problem = 1; json_is_string(value) && problem < DEBERTA_PROBLEM_COUNT; problem++)
        if (strcmp(json_string_value(value), problems[problem]) == 0) {
            config->problem = problem;
            return DEBERTA_OK;
        }
    return config_refuse(source, "problem_type", value,
                         "regression, single_label_classification or multi_label_classification");
}

/* Reads the class that wrote the file, which distinguishes a token head from a sequence head. */
static deberta_status read_architecture(model_config *config, const config_source *source)
{
    const json_t *value = present(source->object, "architectures");
    if (!value) return DEBERTA_OK;
    const json_t *first = json_array_get(value, 0);
    if (!json_is_array(value) || (first && !json_is_string(first)))
        return config_refuse(source, "architectures", value, "a list of names");
    if (!first) return DEBERTA_OK;
    config->architecture = strdup(json_string_value(first));
    if (!config->architecture) DEBERTA_FAIL(source->err, DEBERTA_E_MEMORY, "%s: no memory for a name", source->where);
    return DEBERTA_OK;
}

/* Reads the padding id: transformers writes pad_token_id, Microsoft padding_idx; -1 means none, for which both use 0.
 */
static deberta_status read_padding(model_config *config, const config_source *source)
{
    json_int_t id = 0;
    const char *key = present(source->object, "pad_token_id") ? "pad_token_id" : "padding_idx";
    DEBERTA_TRY(read_integer(source, key, -1, (json_int_t)config->vocabulary_size - 1, &id));
    config->pad_token_id = id < 0 ? 0 : (int)id;
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------- the whole */

/* Determines the class of transformers that wrote the config. Without model_type the config is Microsoft's, and the
 * tensors decide between v1 and v2. */
static deberta_status read_dialect(model_config *config, config_source *source)
{
    const json_t *value = present(source->object, "model_type");
    source->dialect = DIALECT_MICROSOFT;
    config->reference = value ? DEBERTA_REFERENCE_HF : DEBERTA_REFERENCE_MICROSOFT;
    if (!value) return DEBERTA_OK;
    const char *type = json_is_string(value) ? json_string_value(value) : "";
    if (strcmp(type, "deberta") != 0 && strcmp(type, "deberta-v2") != 0)
        DEBERTA_FAIL(source->err, DEBERTA_E_UNSUPPORTED, "%s: model_type is %s, expected 'deberta' or 'deberta-v2'",
                     source->where, json_describe(value).text);
    source->dialect = strcmp(type, "deberta") == 0 ? DIALECT_V1 : DIALECT_V2;
    config->version = source->dialect == DIALECT_V1 ? 1 : 2;
    return DEBERTA_OK;
}

/* Returns an upper bound of the bytes of all weights and of the tables derived from them, as a double, which does not
 * wrap. */
static double bytes_at_most(const model_config *c)
{
    const double h = (double)c->hidden_size, e = (double)c->embedding_size, wide = (double)c->intermediate_size;
    const double rows = (double)c->vocabulary_size + (double)c->max_positions + (double)c->token_types;
    const double layer = 8 * h * h + 2 * h * wide + 6 * (double)c->relative_span * h + 16 * (h + wide);
    const double labels = (double)c->labels * h, convolution = (double)c->convolution_width * h * h;
    return sizeof(float) * (rows * (e > h ? e : h) + (double)c->layers * layer + labels + convolution);
}

static deberta_status check_addressable(const model_config *config, const config_source *source)
{
    if (sizeof(size_t) >= 8 || bytes_at_most(config) < 0.75 * (double)SIZE_MAX) return DEBERTA_OK;
    DEBERTA_FAIL(source->err, DEBERTA_E_MEMORY,
                 "%s: a model of these sizes takes up to %.1f GB, more than can be addressed here", source->where,
                 bytes_at_most(config) / 1e9);
}

static deberta_status config_read_all(model_config *config, config_source *source)
{
    /* Configs of Microsoft's replaced-token-detection training wrap two models: {"discriminator": {...}, "generator":
     * {...}}. The discriminator is the model that is used, so its object is read where the outer one describes no
     * model. */
    const json_t *inner = json_object_get(source->object, "discriminator");
    config->of_pair = json_is_object(inner) && !json_object_get(source->object, "hidden_size");
    if (config->of_pair) {
        DEBERTA_TRY(config_keys_check(source->object, source->where, NULL, &config->notes, source->err));
        source->object = inner;
    }
    config->hidden_activation = ACTIVATION_GELU;
    DEBERTA_TRY(wrapper_check_config(source->object, source->where, source->err));
    DEBERTA_TRY(read_dialect(config, source));
    DEBERTA_TRY(config_keys_check(source->object, source->where, config->of_pair ? "discriminator." : "",
                                  &config->notes, source->err));
    DEBERTA_TRY(read_sizes(config, source));
    DEBERTA_TRY(read_head_size(config, source));
    DEBERTA_TRY(read_epsilon(config, source));
    DEBERTA_TRY(read_activation(source, "hidden_act", &config->hidden_activation));
    DEBERTA_TRY(read_pooler(config, source));
    read_dropouts(config, source);
    DEBERTA_TRY(read_positions(config, source));
    DEBERTA_TRY(read_convolution(config, source));
    DEBERTA_TRY(read_padding(config, source));
    DEBERTA_TRY(read_architecture(config, source));
    DEBERTA_TRY(read_labels(config, source));
    DEBERTA_TRY(read_problem(config, source));
    return check_addressable(config, source);
}

static deberta_status config_from_json(model_config *config, const json_t *root, const char *where, deberta_error *err)
{
    config_source source = {.object = root, .where = where, .err = err};
    deberta_status status = config_read_all(config, &source);
    if (status != DEBERTA_OK) config_free(config);
    return status;
}

deberta_status config_parse(model_config *config, const char *text, size_t length_bytes, const char *where,
                            deberta_error *err)
{
    *config = (model_config){0};
    json_t *root;
    DEBERTA_TRY(json_file_parse(&root, text, length_bytes, &config_limits, where, err));
    deberta_status status = config_from_json(config, root, where, err);
    json_decref(root);
    return status;
}

deberta_status config_read(model_config *config, const char *folder, deberta_error *err)
{
    *config = (model_config){0};
    DEBERTA_TRY(folder_check_model(folder, err));
    char *path = path_join(folder, "config.json");
    if (!path) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(folder));
    json_t *root;
    deberta_status status = json_file_read(&root, path, &config_limits, err);
    if (status == DEBERTA_OK) status = config_from_json(config, root, QUOTE(path), err);
    json_decref(root);
    free(path);
    return status;
}

void config_free(model_config *config)
{
    for (size_t i = 0; config->label_names && i < config->labels; i++) free(config->label_names[i]);
    free(config->label_names);
    free(config->architecture);
    notes_free(&config->notes);
    *config = (model_config){0};
}
