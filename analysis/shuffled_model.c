/* Weights are read, the matrices of layers are shuffled, and the model is opened from memory.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/shuffled_model.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/io/checkpoint.h"
#include "core/io/json_file.h"
#include "core/model/synthetic_name.h"

struct shuffled_weights {
    checkpoint *checkpoint;
    char *config;            /* the text of config.json */
    deberta_tensor *tensors; /* [count] of the checkpoint's floating ones */
    float **owned;           /* [count] values that the mapped file does not have as they are; else NULL */
    size_t count;
};

static deberta_status read_config(shuffled_weights *weights, deberta_error *err)
{
    static const json_limits limits = {.bytes = 16 << 20, .depth = 32, .values = 1 << 20};
    char *path = NULL;
    json_t *config = NULL;
    DEBERTA_TRY(checkpoint_path(weights->checkpoint, "config.json", &path, err));
    const deberta_status status = json_file_read(&config, path, &limits, err);
    free(path);
    DEBERTA_TRY(status);
    weights->config = json_dumps(config, JSON_REAL_PRECISION(17));
    json_decref(config);
    if (!weights->config) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the text of a configuration");
    return DEBERTA_OK;
}

static bool is_shuffled(const tensor *tensor) { return tensor->rank == 2 && strstr(tensor->name, "encoder.layer."); }

/* Every order is equally probable (Fisher and Yates). */
static void shuffle(float *values, size_t count, uint64_t *random)
{
    for (size_t left = count; left > 1; left--) {
        const size_t other = random_below(random, left);
        const float value = values[left - 1];
        values[left - 1] = values[other];
        values[other] = value;
    }
}

static deberta_status take_tensor(shuffled_weights *weights, const tensor *tensor, uint64_t *random, deberta_error *err)
{
    const size_t k = weights->count++;
    const float *values = is_shuffled(tensor) ? NULL : checkpoint_view_f32(weights->checkpoint, tensor);
    if (!values) {
        float *own = weights->owned[k] = malloc((tensor->elements + 1) * sizeof *own);
        if (!own) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the %zu values of a tensor", tensor->elements);
        DEBERTA_TRY(checkpoint_read_f32(weights->checkpoint, tensor, 0, tensor->elements, own, err));
        if (is_shuffled(tensor)) shuffle(own, tensor->elements, random);
        checkpoint_forget(weights->checkpoint, tensor);
        values = own;
    }
    weights->tensors[k] = (deberta_tensor){.name = checkpoint_stored_name(tensor),
                                           .values = values,
                                           .dtype = DEBERTA_FLOAT32,
                                           .rank = tensor->rank,
                                           .shape = tensor->shape};
    return DEBERTA_OK;
}

static deberta_status take_weights(shuffled_weights *weights, const char *folder, uint64_t seed, deberta_error *err)
{
    DEBERTA_TRY(checkpoint_open(&weights->checkpoint, folder, err));
    DEBERTA_TRY(read_config(weights, err));
    const size_t count = checkpoint_count(weights->checkpoint);
    weights->tensors = calloc(count, sizeof *weights->tensors);
    weights->owned = calloc(count, sizeof *weights->owned);
    if (!weights->tensors || !weights->owned)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a list of %zu tensors", count);
    for (size_t k = 0; k < count; k++) {
        const tensor *tensor = checkpoint_at(weights->checkpoint, k);
        if (dtype_is_floating(tensor->dtype)) DEBERTA_TRY(take_tensor(weights, tensor, &seed, err));
    }
    return DEBERTA_OK;
}

deberta_status shuffled_model_open(shuffled_model *shuffled, const char *folder, const char *name,
                                   const deberta_model_options *options, uint64_t seed, deberta_error *err)
{
    *shuffled = (shuffled_model){0};
    if (synthetic_names(folder))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: a made-up model has learned nothing that shuffling could take away",
                     QUOTE(folder));
    shuffled_weights *weights = shuffled->weights = calloc(1, sizeof *weights);
    if (!weights) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a list of tensors");
    deberta_status status = take_weights(weights, folder, seed, err);
    if (status == DEBERTA_OK)
        status = deberta_model_open_memory(&shuffled->model, name, weights->config, weights->tensors, weights->count,
                                           options, err);
    if (status != DEBERTA_OK) shuffled_model_close(shuffled);
    return status;
}

void shuffled_model_close(shuffled_model *shuffled)
{
    shuffled_weights *weights = shuffled->weights;
    deberta_model_free(&shuffled->model);
    if (weights) {
        for (size_t k = 0; weights->owned && k < weights->count; k++) free(weights->owned[k]);
        free(weights->owned);
        free(weights->tensors);
        free(weights->config);
        checkpoint_close(&weights->checkpoint);
        free(weights);
    }
    *shuffled = (shuffled_model){0};
}
