/* SPDX-License-Identifier: MIT */
#include "cli/train/train_recipe.h"

#include "core/io/checkpoint.h"

static json_t *count(size_t value) { return json_integer((json_int_t)value); }

static deberta_status digest_model(char digest[65], const char *folder, deberta_error *err)
{
    checkpoint *files = NULL;
    DEBERTA_TRY(checkpoint_open(&files, folder, err));
    const deberta_status status = checkpoint_digest(files, digest, err);
    checkpoint_close(&files);
    return status;
}

static void add_optimizer(json_t *recipe, const train_options *o)
{
    json_object_set_new(recipe, "steps", count(o->steps));
    json_object_set_new(recipe, "optimizer", json_integer(o->optimizer));
    json_object_set_new(recipe, "schedule", json_integer(o->schedule));
    json_object_set_new(recipe, "warmup", count(o->warmup));
    json_object_set_new(recipe, "learning-rate", json_real(o->learning_rate));
    json_object_set_new(recipe, "weight-decay", json_real(o->weight_decay));
    json_object_set_new(recipe, "beta1", json_real(o->beta1));
    json_object_set_new(recipe, "beta2", json_real(o->beta2));
    json_object_set_new(recipe, "epsilon", json_real(o->epsilon));
    json_object_set_new(recipe, "clip", json_real(o->clip));
    json_object_set_new(recipe, "layer-decay", json_real(o->layer_decay));
}

static void add_step(json_t *recipe, const train_options *o, const step_options *step)
{
    json_object_set_new(recipe, "command", json_string(o->common.command->name));
    json_object_set_new(recipe, "decodes", json_boolean(step->decodes));
    json_object_set_new(recipe, "reference", json_integer(o->common.reference));
    json_object_set_new(recipe, "rtd-weight", json_real(o->rtd_weight));
    json_object_set_new(recipe, "sift", json_real(o->sift));
    json_object_set_new(recipe, "shards", count(o->shards));
}

static void add_drawing(json_t *recipe, const train_options *o)
{
    json_object_set_new(recipe, "seed", count(o->seed));
    json_object_set_new(recipe, "masking", json_integer(o->masking));
    json_object_set_new(recipe, "max-ngram", count(o->max_ngram));
    json_object_set_new(recipe, "batch-sequences", count(train_batch_sequences(o)));
    json_object_set_new(recipe, "batch-tokens", count(o->batch_tokens));
}

deberta_status train_recipe_describe(json_t **result, const train_options *o, const train_data *data,
                                     const step_options *step, deberta_error *err)
{
    char texts[65], model[65], generator[65] = "";
    json_t *recipe = json_object();
    *result = recipe;
    if (!recipe) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a recipe");
    DEBERTA_TRY(digest_model(model, o->common.arguments[0], err));
    if (o->generator) DEBERTA_TRY(digest_model(generator, o->generator, err));
    train_data_digest(data, texts);
    add_step(recipe, o, step);
    add_optimizer(recipe, o);
    add_drawing(recipe, o);
    json_object_set_new(recipe, "data", json_string(texts));
    json_object_set_new(recipe, "model", json_string(model));
    json_object_set_new(recipe, "generator", json_string(generator));
    return DEBERTA_OK;
}
