/* Draws models at random: any configuration that config.json can express and the engine takes, with weights for it. A
 * model is a function of the wish and of the state of the random numbers.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tests/drawn/drawn_configuration.h"

typedef struct drawn_tensor {
    char name[112];
    size_t rank, shape[3], count;
    float *values;
} drawn_tensor;

typedef struct drawn_model {
    char *json; /* the text of config.json */
    model_config config;
    drawn_tensor *tensors;
    size_t count, capacity;
} drawn_model;

deberta_status drawn_model_make(drawn_model *model, const drawn_wish *wish, uint64_t *state, deberta_error *err);
void drawn_model_free(drawn_model *model);

/* config.json and model.safetensors. */
deberta_status drawn_model_save(const drawn_model *model, const char *folder, deberta_error *err);
/* Opens the model from memory. */
deberta_status drawn_model_open(deberta_model **opened, const drawn_model *model, const deberta_model_options *options,
                                deberta_error *err);
