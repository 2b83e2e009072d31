/* Computes the weights of made-up models on demand. SPDX-License-Identifier: MIT */
#include "core/load/synthetic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"

/* ---------------------------------------------------------------------------------------------------------- finding */

/* The role of a tensor determines the size of its values. */
typedef enum made_role {
    ROLE_TABLE,     /* unit variance: the layer norm after it, or none for rel_embeddings, keeps it */
    ROLE_GAIN,      /* around 1 */
    ROLE_SMALL,     /* biases */
    ROLE_QUERY_KEY, /* logits of standard deviation 1.2 */
    ROLE_IN_PROJ,   /* v1: query, key and value rows in turn */
    ROLE_LINEAR,    /* 1 / sqrt(inputs): keeps variance */
} made_role;

/* Sizes by letter: V vocabulary, h hidden, E embedding, T 3 h, f intermediate, R 2K rows, P positions, t token types,
 * c convolution width, k labels, 1 one, 2 two. */
static const struct {
    const char *name; /* "*" stands for "encoder.layer.N." */
    char shape[4];
    made_role role;
    enum {
        ALWAYS,
        V1_ONLY,
        V2_ONLY,
        IF_NARROW,
        WITH_LM,
        WITH_RTD,
        WITH_SEQUENCE,
        WITH_CLASSIFIER,
        WITH_QA,
    } when;
} tensors[] = {
    {"embeddings.word_embeddings.weight", "VE", ROLE_TABLE, ALWAYS},
    {"embeddings.position_embeddings.weight", "PE", ROLE_TABLE, ALWAYS},
    {"embeddings.token_type_embeddings.weight", "tE", ROLE_TABLE, ALWAYS},
    {"embeddings.embed_proj.weight", "hE", ROLE_LINEAR, IF_NARROW},
    {"embeddings.LayerNorm.weight", "h", ROLE_GAIN, ALWAYS},
    {"embeddings.LayerNorm.bias", "h", ROLE_SMALL, ALWAYS},
    {"encoder.rel_embeddings.weight", "Rh", ROLE_TABLE, ALWAYS},
    {"encoder.LayerNorm.weight", "h", ROLE_GAIN, V2_ONLY},
    {"encoder.LayerNorm.bias", "h", ROLE_SMALL, V2_ONLY},
    {"encoder.conv.conv.weight", "hhc", ROLE_LINEAR, ALWAYS},
    {"encoder.conv.conv.bias", "h", ROLE_SMALL, ALWAYS},
    {"encoder.conv.LayerNorm.weight", "h", ROLE_GAIN, ALWAYS},
    {"encoder.conv.LayerNorm.bias", "h", ROLE_SMALL, ALWAYS},
    {"*attention.self.in_proj.weight", "Th", ROLE_IN_PROJ, V1_ONLY},
    {"*attention.self.q_bias", "h", ROLE_SMALL, V1_ONLY},
    {"*attention.self.v_bias", "h", ROLE_SMALL, V1_ONLY},
    {"*attention.self.pos_proj.weight", "hh", ROLE_QUERY_KEY, V1_ONLY},
    {"*attention.self.pos_q_proj.weight", "hh", ROLE_QUERY_KEY, V1_ONLY},
    {"*attention.self.pos_q_proj.bias", "h", ROLE_SMALL, V1_ONLY},
    {"*attention.self.query_proj.weight", "hh", ROLE_QUERY_KEY, V2_ONLY},
    {"*attention.self.query_proj.bias", "h", ROLE_SMALL, V2_ONLY},
    {"*attention.self.key_proj.weight", "hh", ROLE_QUERY_KEY, V2_ONLY},
    {"*attention.self.key_proj.bias", "h", ROLE_SMALL, V2_ONLY},
    {"*attention.self.value_proj.weight", "hh", ROLE_LINEAR, V2_ONLY},
    {"*attention.self.value_proj.bias", "h", ROLE_SMALL, V2_ONLY},
    {"*attention.output.dense.weight", "hh", ROLE_LINEAR, ALWAYS},
    {"*attention.output.dense.bias", "h", ROLE_SMALL, ALWAYS},
    {"*attention.output.LayerNorm.weight", "h", ROLE_GAIN, ALWAYS},
    {"*attention.output.LayerNorm.bias", "h", ROLE_SMALL, ALWAYS},
    {"*intermediate.dense.weight", "fh", ROLE_LINEAR, ALWAYS},
    {"*intermediate.dense.bias", "f", ROLE_SMALL, ALWAYS},
    {"*output.dense.weight", "hf", ROLE_LINEAR, ALWAYS},
    {"*output.dense.bias", "h", ROLE_SMALL, ALWAYS},
    {"*output.LayerNorm.weight", "h", ROLE_GAIN, ALWAYS},
    {"*output.LayerNorm.bias", "h", ROLE_SMALL, ALWAYS},
    {"lm_predictions.lm_head.dense.weight", "Eh", ROLE_LINEAR, WITH_LM},
    {"lm_predictions.lm_head.dense.bias", "E", ROLE_SMALL, WITH_LM},
    {"lm_predictions.lm_head.LayerNorm.weight", "E", ROLE_GAIN, WITH_LM},
    {"lm_predictions.lm_head.LayerNorm.bias", "E", ROLE_SMALL, WITH_LM},
    {"lm_predictions.lm_head.bias", "V", ROLE_SMALL, WITH_LM},
    {"mask_predictions.dense.weight", "hh", ROLE_LINEAR, WITH_RTD},
    {"mask_predictions.dense.bias", "h", ROLE_SMALL, WITH_RTD},
    {"mask_predictions.LayerNorm.weight", "h", ROLE_GAIN, WITH_RTD},
    {"mask_predictions.LayerNorm.bias", "h", ROLE_SMALL, WITH_RTD},
    {"mask_predictions.classifier.weight", "1h", ROLE_LINEAR, WITH_RTD},
    {"mask_predictions.classifier.bias", "1", ROLE_SMALL, WITH_RTD},
    {"pooler.dense.weight", "hh", ROLE_LINEAR, WITH_SEQUENCE},
    {"pooler.dense.bias", "h", ROLE_SMALL, WITH_SEQUENCE},
    {"classifier.weight", "kh", ROLE_LINEAR, WITH_CLASSIFIER},
    {"classifier.bias", "k", ROLE_SMALL, WITH_CLASSIFIER},
    {"qa_outputs.weight", "2h", ROLE_LINEAR, WITH_QA},
    {"qa_outputs.bias", "2", ROLE_SMALL, WITH_QA},
};

/* Tensors that write or read hidden states, some of whose channels may be outliers: LayerNorms write them, products
 * read them. */
typedef enum hidden_use { NO_HIDDEN, READS_HIDDEN, GIVES_HIDDEN } hidden_use;
static const struct {
    const char *name;
    hidden_use use;
} meetings[] = {
    {"*attention.self.in_proj.weight", READS_HIDDEN},
    {"*attention.self.query_proj.weight", READS_HIDDEN},
    {"*attention.self.key_proj.weight", READS_HIDDEN},
    {"*attention.self.value_proj.weight", READS_HIDDEN},
    {"*attention.output.LayerNorm.weight", GIVES_HIDDEN},
    {"*attention.output.LayerNorm.bias", GIVES_HIDDEN},
    {"*intermediate.dense.weight", READS_HIDDEN},
    {"*output.LayerNorm.weight", GIVES_HIDDEN},
    {"*output.LayerNorm.bias", GIVES_HIDDEN},
    {"encoder.conv.LayerNorm.weight", GIVES_HIDDEN},
    {"encoder.conv.LayerNorm.bias", GIVES_HIDDEN},
};

/* Returns how a tensor of that name in that layer uses hidden states. The embeddings' output to the first layer has no
 * outliers. */
static hidden_use use_of(const char *name, size_t layer)
{
    if (layer == 0 && strncmp(name, "*attention.self.", 16) == 0) return NO_HIDDEN;
    for (size_t i = 0; i < sizeof meetings / sizeof *meetings; i++)
        if (strcmp(name, meetings[i].name) == 0) return meetings[i].use;
    return NO_HIDDEN;
}

static size_t size_of_letter(const model_config *config, char letter)
{
    switch (letter) {
    case 'V': return config->vocabulary_size;
    case 'h': return config->hidden_size;
    case 'E': return config->embedding_size;
    case 'T': return 3 * config->hidden_size;
    case 'f': return config->intermediate_size;
    case 'R': return 2 * config->relative_span;
    case 'P': return config->max_positions;
    case 't': return config->token_types;
    case 'c': return config->convolution_width;
    case 'k': return config->labels;
    case '2': return 2;
    default: return 1;
    }
}

static bool is_present(const synthetic_weights *made, size_t index)
{
    switch (tensors[index].when) {
    case V1_ONLY: return made->config.version == 1;
    case V2_ONLY: return made->config.version == 2;
    case IF_NARROW: return made->config.embedding_size != made->config.hidden_size;
    case WITH_LM: return made->heads & (1u << DEBERTA_TASK_MLM);
    case WITH_RTD: return made->heads & (1u << DEBERTA_TASK_RTD);
    case WITH_SEQUENCE: return made->heads & (1u << DEBERTA_TASK_SEQUENCE);
    case WITH_CLASSIFIER: return made->heads & (1u << DEBERTA_TASK_SEQUENCE | 1u << DEBERTA_TASK_TOKEN);
    case WITH_QA: return made->heads & (1u << DEBERTA_TASK_QA);
    default: return true;
    }
}

/* Hashes a name; the hash only has to distinguish names. */
static uint64_t hash_name(const char *name, uint64_t seed)
{
    return hash_bytes(hash_of_nothing ^ seed * 0x9e3779b97f4a7c15u, name, strlen(name));
}

static double standard_deviation(const model_config *config, made_role role, double inputs)
{
    switch (role) {
    case ROLE_TABLE: return 1;
    case ROLE_GAIN: return 0.1;
    case ROLE_SMALL: return 0.05;
    case ROLE_LINEAR: return 1 / sqrt(inputs);
    default: break;
    }
    /* The sum q.k of d terms of variance s^4 each, divided by sqrt(d (1 + terms)), shall have standard deviation 1.2.
     */
    return sqrt(1.2 * sqrt(1 + (double)config->position_terms) / inputs);
}

/* A uniform variable has 1 / sqrt(12) of its width as standard deviation. */
static void set_scale(const synthetic_weights *made, weight_tensor *found, made_role role)
{
    double inputs = 1;
    for (size_t i = 1; i < found->rank; i++) inputs *= (double)found->shape[i];
    found->made.mean = role == ROLE_GAIN ? 1 : 0;
    found->made.deviation = (float)(standard_deviation(&made->config, role, inputs) * sqrt(12));
    found->made.value_deviation = (float)(standard_deviation(&made->config, ROLE_LINEAR, inputs) * sqrt(12));
    found->made.period = role == ROLE_IN_PROJ ? 3 * made->config.head_size : 0;
}

static bool find_made(const void *context, const char *name, weight_tensor *found)
{
    static const char layer_prefix[] = "encoder.layer.";
    const synthetic_weights *made = context;
    const char *rest = NULL;
    unsigned long layer = 0;
    if (strncmp(name, layer_prefix, sizeof layer_prefix - 1) == 0) {
        char *dot = NULL;
        layer = strtoul(name + sizeof layer_prefix - 1, &dot, 10);
        if (*dot != '.' || layer >= made->config.layers) return false;
        rest = dot + 1;
    }
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        bool in_layer = tensors[i].name[0] == '*';
        if (in_layer != (rest != NULL) || strcmp(rest ? rest : name, tensors[i].name + in_layer) != 0) continue;
        if (!is_present(made, i)) return false;
        *found =
            (weight_tensor){.place = "synthetic weights", .dtype = DTYPE_F32, .made.key = hash_name(name, made->seed)};
        for (const char *letter = tensors[i].shape; *letter; letter++) {
            found->shape[found->rank++] = size_of_letter(&made->config, *letter);
        }
        set_scale(made, found, tensors[i].role);
        found->made.use = made->outliers > 0 ? use_of(tensors[i].name, layer) : NO_HIDDEN;
        return true;
    }
    return false;
}

/* Returns whether the model has the tensor. Parts that it lacks, such as the relative table or the convolution, have
 * size 0 in the config. */
static bool is_wanted(const synthetic_weights *made, size_t index, const weight_tensor *found)
{
    const char *name = tensors[index].name;
    for (size_t i = 0; i < found->rank; i++)
        if (found->shape[i] == 0) return false;
    if (strncmp(name, "encoder.conv.", 13) == 0) return made->config.convolution_width > 0;
    if (strcmp(name, "encoder.rel_embeddings.weight") == 0) return made->config.relative_attention;
    if (strncmp(name, "encoder.LayerNorm.", 18) == 0)
        return made->config.norm_relative && made->config.relative_span > 0;
    return true;
}

void synthetic_visit(const synthetic_weights *made,
                     void (*visit)(void *context, const char *name, const weight_tensor *tensor), void *context)
{
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const bool in_layer = tensors[i].name[0] == '*';
        for (size_t layer = 0; layer < (in_layer ? made->config.layers : 1); layer++) {
            char name[128];
            weight_tensor found;
            if (in_layer)
                snprintf(name, sizeof name, "encoder.layer.%zu.%s", layer, tensors[i].name + 1);
            else
                snprintf(name, sizeof name, "%s", tensors[i].name);
            if (find_made(made, name, &found) && is_wanted(made, i, &found)) visit(context, name, &found);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------- making */

/* Mixes a counter to 64 bits (Steele, Lea, Flood: SplitMix64), which give two uniform numbers in [-1/2, 1/2) of 24 bits
 * each. */
static inline uint64_t mixed_bits(uint64_t key, uint64_t counter)
{
    uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline float low_uniform(uint64_t bits) { return (float)((int32_t)(uint32_t)bits >> 8) * 0x1p-24f; }

static inline float made_value(uint64_t key, size_t element, float mean, float deviation)
{
    uint64_t bits = mixed_bits(key, element / 2);
    return mean + deviation * low_uniform(element % 2 ? bits >> 32 : bits);
}

static void make_values(uint64_t key, size_t first, size_t count, float mean, float deviation, float *values)
{
    size_t i = 0;
    if (count > 0 && first % 2 == 1) values[i++] = made_value(key, first, mean, deviation);
    for (; i + 2 <= count; i += 2) {
        uint64_t bits = mixed_bits(key, (first + i) / 2);
        values[i] = mean + deviation * low_uniform(bits);
        values[i + 1] = mean + deviation * low_uniform(bits >> 32);
    }
    if (i < count) values[i] = made_value(key, first + i, mean, deviation);
}

bool synthetic_is_outlier(const synthetic_weights *made, size_t channel)
{
    for (size_t k = 0; k < made->outliers; k++)
        if (channel == (2 * k + 1) * made->config.hidden_size / (2 * made->outliers)) return true;
    return false;
}

/* Scales outlier channels: a LayerNorm enlarges a channel, and the weights that multiply it shrink it again. */
static void apply_outliers(const synthetic_weights *made, const weight_tensor *from, size_t first, size_t count,
                           float *values)
{
    const size_t columns = from->rank > 1 ? from->shape[1] : from->shape[0];
    for (size_t i = 0; i < count; i++) {
        if (!synthetic_is_outlier(made, (first + i) % columns)) continue;
        values[i] = from->made.use == GIVES_HIDDEN ? values[i] * made->outlier_size : values[i] / made->outlier_size;
    }
}

static deberta_status read_made(const void *context, const weight_tensor *from, size_t first, size_t count,
                                float *values, deberta_error *err)
{
    (void)err;
    size_t columns = from->rank > 1 ? from->shape[1] : 1;
    while (count > 0) {
        /* Only the scale of in_proj differs from row to row. */
        size_t row = first / columns, run = from->made.period ? minimum(count, (row + 1) * columns - first) : count;
        bool value_row = from->made.period && row % from->made.period >= from->made.period / 3 * 2;
        make_values(from->made.key, first, run, from->made.mean,
                    value_row ? from->made.value_deviation : from->made.deviation, values);
        if (from->made.use) apply_outliers(context, from, first, run, values);
        first += run;
        values += run;
        count -= run;
    }
    return DEBERTA_OK;
}

weight_source weight_source_of_synthetic(const synthetic_weights *weights, const char *name)
{
    return (weight_source){.context = weights, .name = name, .find = find_made, .read = read_made};
}
