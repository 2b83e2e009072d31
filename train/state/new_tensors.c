/* Adds heads and whole models to a set of parameters, with drawn values and a changed config.json.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/new_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/json_file.h"
#include "core/load/synthetic.h"
#include "train/state/counters.h"

#define DEFAULT_RANGE 0.02 /* transformers' initializer_range */

typedef enum new_values { VALUES_NORMAL, VALUES_ONES, VALUES_ZEROS } new_values;

/* The tensors under construction. */
typedef struct new_tensors {
    parameter_set *set;
    json_t *config;
    uint32_t seed;
    double range;
    bool failed; /* whether memory was short */
} new_tensors;

static deberta_status read_config(new_tensors *n, const char *folder, deberta_error *err)
{
    static const json_limits limits = {.bytes = 16 << 20, .depth = 32, .values = 3000000};
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", folder);
    DEBERTA_TRY(json_file_read(&n->config, path, &limits, err));
    const json_t *range = json_object_get(n->config, "initializer_range");
    n->range = json_is_number(range) ? json_number_value(range) : DEFAULT_RANGE;
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

static uint32_t name_hash(const char *name)
{
    uint32_t hash = 0x811c9dc5u; /* FNV-1a */
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x01000193u;
    return hash;
}

static void new_tensors_fill(const new_tensors *n, parameter *p, new_values values)
{
    const counter_key key = {n->seed, name_hash(p->name)};
    uint32_t words[COUNTER_WORDS] = {0};
    for (size_t i = 0; i < p->count; i++) {
        const uint32_t counter[COUNTER_WORDS] = {(uint32_t)(i / 2), (uint32_t)((uint64_t)i / 2 >> 32), 0,
                                                 (uint32_t)SITE_WEIGHTS << COUNTER_SITE_SHIFT};
        if (values == VALUES_NORMAL && i % 2 == 0) philox4x32(counter, key, words);
        p->values[i] = values == VALUES_NORMAL ? (float)(n->range * counter_normal(words[2 * (i % 2)]))
                                               : (values == VALUES_ONES ? 1.0f : 0.0f);
    }
}

static void new_tensors_add(new_tensors *n, const char *name, const char *prefix, size_t rank, const size_t *shape,
                            new_values values)
{
    parameter *p = n->failed ? NULL : parameter_set_append(n->set, name, prefix, rank, shape);
    n->failed = !p;
    if (p) new_tensors_fill(n, p, values);
}

static deberta_status new_tensors_finish(const new_tensors *n, deberta_error *err)
{
    if (n->failed) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for new tensors");
    parameter_set_sort(n->set);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------------- heads */

static void add_linear(new_tensors *n, const char *weight, const char *bias, size_t outputs, size_t inputs)
{
    parameter_set_remove(n->set, weight);
    parameter_set_remove(n->set, bias);
    new_tensors_add(n, weight, "", 2, (size_t[]){outputs, inputs}, VALUES_NORMAL);
    new_tensors_add(n, bias, "", 1, (size_t[]){outputs}, VALUES_ZEROS);
}

static void add_norm(new_tensors *n, const char *weight, const char *bias, size_t width)
{
    parameter_set_remove(n->set, weight);
    parameter_set_remove(n->set, bias);
    new_tensors_add(n, weight, "", 1, (size_t[]){width}, VALUES_ONES);
    new_tensors_add(n, bias, "", 1, (size_t[]){width}, VALUES_ZEROS);
}

/* Adds the head's tensors under Microsoft's names, which transformers reads with "legacy": false in config.json. */
static void add_language_head(new_tensors *n, const new_head *head, const model_config *config)
{
    static const char positions[] = "embeddings.position_embeddings.weight", bias[] = "lm_predictions.lm_head.bias";
    static const char *const legacy[] = {"cls.predictions.transform.dense.weight",
                                         "cls.predictions.transform.dense.bias",
                                         "cls.predictions.transform.LayerNorm.bias",
                                         "cls.predictions.transform.LayerNorm.weight",
                                         "cls.predictions.decoder.weight",
                                         "cls.predictions.decoder.bias",
                                         "cls.predictions.bias"};
    const size_t width = config->embedding_size;
    for (size_t i = 0; i < sizeof legacy / sizeof *legacy; i++) parameter_set_remove(n->set, legacy[i]);
    add_linear(n, "lm_predictions.lm_head.dense.weight", "lm_predictions.lm_head.dense.bias", width,
               config->hidden_size);
    add_norm(n, "lm_predictions.lm_head.LayerNorm.weight", "lm_predictions.lm_head.LayerNorm.bias", width);
    parameter_set_remove(n->set, bias);
    new_tensors_add(n, bias, "", 1, (size_t[]){config->vocabulary_size}, VALUES_ZEROS);
    parameter_set_sort(n->set);
    if (head->decodes && !n->failed && !parameter_find(n->set, positions))
        new_tensors_add(n, positions, "deberta.", 2, (size_t[]){config->max_positions, config->hidden_size},
                        VALUES_NORMAL);
    json_add_member(n->config, "legacy", json_false(), &n->failed);
}

static void add_replaced_head(new_tensors *n, size_t width)
{
    add_linear(n, "mask_predictions.dense.weight", "mask_predictions.dense.bias", width, width);
    add_norm(n, "mask_predictions.LayerNorm.weight", "mask_predictions.LayerNorm.bias", width);
    add_linear(n, "mask_predictions.classifier.weight", "mask_predictions.classifier.bias", 1, width);
}

/* Only a head of sequences has a pooler, which distinguishes it from a head of tokens; Microsoft's `proj` marks a third
 * kind (load_tasks.c). */
static void add_classifier(new_tensors *n, const new_head *head, size_t width)
{
    static const char pooler[] = "pooler.dense.weight", pooler_bias[] = "pooler.dense.bias";
    parameter_set_remove(n->set, "proj.weight");
    parameter_set_remove(n->set, "proj.bias");
    if (head->task == DEBERTA_TRAIN_QA) {
        add_linear(n, "qa_outputs.weight", "qa_outputs.bias", 2, width);
        return;
    }
    if (head->task == DEBERTA_TRAIN_TOKEN) {
        parameter_set_remove(n->set, pooler);
        parameter_set_remove(n->set, pooler_bias);
    } else if (!parameter_find(n->set, pooler)) {
        add_linear(n, pooler, pooler_bias, width, width);
    }
    add_linear(n, "classifier.weight", "classifier.bias", head->labels, width);
}

static void add_head(new_tensors *n, const new_head *head, const model_config *config)
{
    if (head->task == DEBERTA_TRAIN_MLM)
        add_language_head(n, head, config);
    else if (head->task == DEBERTA_TRAIN_RTD)
        add_replaced_head(n, config->hidden_size);
    else
        add_classifier(n, head, config->hidden_size);
}

/* ----------------------------------------------------------------------------------------------------- configuration */

/* Returns the name of transformers' class for a head, or NULL if it has none. */
static const char *class_of(deberta_training_task task)
{
    switch (task) {
    case DEBERTA_TRAIN_MLM: return "ForMaskedLM";
    case DEBERTA_TRAIN_RTD: return NULL;
    case DEBERTA_TRAIN_CHOICE: return "ForMultipleChoice";
    case DEBERTA_TRAIN_TOKEN: return "ForTokenClassification";
    case DEBERTA_TRAIN_QA: return "ForQuestionAnswering";
    default: return "ForSequenceClassification";
    }
}

static bool has_labels(deberta_training_task task)
{
    return task == DEBERTA_TRAIN_SEQUENCE || task == DEBERTA_TRAIN_CHOICE || task == DEBERTA_TRAIN_TOKEN;
}

static void name_labels(json_t *config, const new_head *head, bool *lost)
{
    json_t *names = json_object(), *numbers = json_object();
    for (size_t k = 0; k < head->labels; k++) {
        char number[32], made_up[32];
        snprintf(number, sizeof number, "%zu", k);
        snprintf(made_up, sizeof made_up, "LABEL_%zu", k);
        const char *name = head->names ? head->names[k] : made_up;
        json_add_member(names, number, json_string(name), lost);
        json_add_member(numbers, name, json_integer((json_int_t)k), lost);
    }
    json_add_member(config, "id2label", names, lost);
    json_add_member(config, "label2id", numbers, lost);
    json_object_del(config, "num_labels");
}

/* Removes the labels, which name the outputs of a classifier: a model without one must not keep those of another. */
static void forget_labels(json_t *config)
{
    static const char *const keys[] = {"id2label", "label2id", "num_labels"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) json_object_del(config, keys[i]);
}

static deberta_status edit_config(new_tensors *n, const new_head *head, char **text, deberta_error *err)
{
    char class[64];
    const char *type = json_string_value(json_object_get(n->config, "model_type")), *suffix = class_of(head->task);
    const bool first = type && strcmp(type, "deberta") == 0, regression = head->labels == 1;
    snprintf(class, sizeof class, "%s%s", first ? "Deberta" : "DebertaV2", suffix ? suffix : "Model");
    json_add_member(n->config, "architectures", json_pack("[s]", class), &n->failed);
    json_add_member(n->config, "dtype", json_string("float32"), &n->failed);
    json_object_del(n->config, "torch_dtype");
    json_object_del(n->config, "problem_type");
    if (has_labels(head->task))
        name_labels(n->config, head, &n->failed);
    else if (!parameter_find(n->set, "classifier.weight"))
        forget_labels(n->config);
    if (head->task == DEBERTA_TRAIN_SEQUENCE)
        json_add_member(n->config, "problem_type",
                        json_string(regression ? "regression" : "single_label_classification"), &n->failed);
    *text = n->failed ? NULL : json_print(n->config, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    if (!*text) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a configuration");
    return DEBERTA_OK;
}

deberta_status new_head_add(parameter_set *set, const char *folder, const new_head *head, uint32_t seed, char **config,
                            deberta_error *err)
{
    new_tensors n = {.set = set, .seed = seed};
    model_config shapes = {0};
    *config = NULL;
    DEBERTA_TRY(read_config(&n, folder, err));
    deberta_status status = config_read(&shapes, folder, err);
    if (status == DEBERTA_OK) {
        add_head(&n, head, &shapes);
        status = new_tensors_finish(&n, err);
    }
    if (status == DEBERTA_OK) status = edit_config(&n, head, config, err);
    config_free(&shapes);
    json_decref(n.config);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ whole models */

static void add_made(void *context, const char *name, const weight_tensor *made)
{
    new_tensors *n = context;
    const size_t length = strlen(name);
    const bool bias = length > 4 && strcmp(name + length - 4, "bias") == 0,
               gain = strstr(name, "LayerNorm.weight") != NULL,
               inside = strncmp(name, "embeddings.", 11) == 0 || strncmp(name, "encoder.", 8) == 0;
    new_tensors_add(n, name, inside ? "deberta." : "", made->rank, made->shape,
                    bias   ? VALUES_ZEROS
                    : gain ? VALUES_ONES
                           : VALUES_NORMAL);
}

/* nn.Embedding's padding_idx begins with zeros, and learns nothing from look-ups. */
static void clear_padding(const parameter_set *set, const model_config *config)
{
    parameter *words = parameter_find(set, "embeddings.word_embeddings.weight");
    if (words)
        memset(words->values + (size_t)config->pad_token_id * words->shape[1], 0,
               words->shape[1] * sizeof *words->values);
}

deberta_status new_model_begin(parameter_set *set, const char *folder, uint32_t seed, deberta_error *err)
{
    new_tensors n = {.set = set, .seed = seed};
    synthetic_weights shapes = {.heads = 1u << DEBERTA_TASK_MLM};
    *set = (parameter_set){.name = strdup(folder)};
    if (!set->name) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a model's name");
    deberta_status status = read_config(&n, folder, err);
    if (status == DEBERTA_OK) status = config_read(&shapes.config, folder, err);
    if (status == DEBERTA_OK) {
        if (shapes.config.version == 0) shapes.config.version = 2;
        synthetic_visit(&shapes, add_made, &n);
        status = new_tensors_finish(&n, err);
    }
    if (status == DEBERTA_OK) clear_padding(set, &shapes.config);
    config_free(&shapes.config);
    json_decref(n.config);
    if (status != DEBERTA_OK) parameter_set_free(set);
    return status;
}
