/* The recipe is put together from options and digests; two runs with equal recipes give equal bits.
 *
 * SPDX-License-Identifier: MIT */
#include "train/run/trainer_recipe.h"

#include <stdio.h>

#include "core/io/checkpoint.h"
#include "core/io/file_digest.h"

static const char *const task_names[] = {"mlm", "rtd", "sequence", "choice", "token", "qa"},
                         *const optimizer_names[] = {"adamw", "xadam"},
                         *const schedule_names[] = {"linear", "microsoft", "constant"},
                         *const sharing_names[] = {"gdes", "es", "none"}, *const masking_names[] = {"ngram", "uniform"},
                         *const reference_names[] = {"microsoft", "hf"};

static json_t *count(size_t value) { return json_integer((json_int_t)value); }

/* The digest of a folder without weights. */
static deberta_status digest_config(char digest[65], const char *folder, deberta_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", folder);
    return file_digest(path, digest, err);
}

static deberta_status digest_model(char digest[65], const char *folder, deberta_error *err)
{
    checkpoint *files = NULL;
    DEBERTA_TRY(checkpoint_open(&files, folder, err));
    const deberta_status status = checkpoint_digest(files, digest, err);
    checkpoint_close(&files);
    return status;
}

static void add_optimizer(json_t *recipe, const deberta_trainer_options *o)
{
    json_object_set_new(recipe, "steps", count(o->steps));
    json_object_set_new(recipe, "optimizer", json_string(optimizer_names[o->optimizer]));
    json_object_set_new(recipe, "schedule", json_string(schedule_names[o->schedule]));
    json_object_set_new(recipe, "warmup", count(o->warmup));
    json_object_set_new(recipe, "learning-rate", json_real(o->learning_rate));
    json_object_set_new(recipe, "weight-decay", json_real(o->weight_decay));
    json_object_set_new(recipe, "beta1", json_real(o->beta1));
    json_object_set_new(recipe, "beta2", json_real(o->beta2));
    json_object_set_new(recipe, "epsilon", json_real(o->epsilon));
    json_object_set_new(recipe, "clip", json_real(o->clip));
    json_object_set_new(recipe, "layer-decay", json_real(o->layer_decay));
}

/* Hidden rows, probabilities, before the pooler, before the classifier. */
static json_t *describe_dropout(const dropout_rates *rates)
{
    return json_pack("[f, f, f, f]", rates->hidden, rates->attention, rates->pooler, rates->classifier);
}

static void add_step(json_t *recipe, const deberta_trainer_options *o, const step_options *step)
{
    json_object_set_new(recipe, "task", json_string(task_names[o->task]));
    json_object_set_new(recipe, "decodes", json_boolean(step->decodes));
    json_object_set_new(recipe, "reference", json_string(reference_names[o->reference]));
    json_object_set_new(recipe, "rtd-weight", json_real(o->rtd_weight));
    json_object_set_new(recipe, "sift", json_real(o->sift_weight));
    json_object_set_new(recipe, "perturb", json_string(o->perturb_raw ? "raw" : "normalized"));
    json_object_set_new(recipe, "sharing", json_string(o->generator ? sharing_names[o->sharing] : ""));
    json_object_set_new(recipe, "coupled", json_boolean(o->coupled));
    json_object_set_new(recipe, "shards", count(o->shards));
}

static json_t *texts(const char *const *items, size_t count_of_items)
{
    json_t *list = json_array();
    for (size_t i = 0; items && i < count_of_items; i++) json_array_append_new(list, json_string(items[i]));
    return list;
}

static void add_tensors(json_t *recipe, const deberta_trainer_options *o)
{
    json_object_set_new(recipe, "begin", json_boolean(o->begin));
    json_object_set_new(recipe, "new-labels", count(o->new_labels));
    json_object_set_new(recipe, "labels", texts(o->labels, o->new_labels));
    json_object_set_new(recipe, "freeze", texts(o->freeze, o->freeze_count));
}

static void add_drawing(json_t *recipe, const deberta_trainer_options *o)
{
    json_object_set_new(recipe, "seed", count(o->seed));
    json_object_set_new(recipe, "masking", json_string(masking_names[o->masking]));
    json_object_set_new(recipe, "mask-probability", json_real(o->mask_probability));
    json_object_set_new(recipe, "max-ngram", count(o->max_ngram));
    json_object_set_new(recipe, "batch-sequences", count(trainer_batch_sequences(o)));
    json_object_set_new(recipe, "batch-tokens", count(o->batch_tokens));
}

deberta_status trainer_recipe_describe(json_t **result, const deberta_trainer_options *o, const trainer_data *data,
                                       const step_options *step, const step_options *generator_step, deberta_error *err)
{
    char data_digest[65], model[65], generator[65] = "";
    json_t *recipe = json_object();
    *result = recipe;
    if (!recipe) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a recipe");
    DEBERTA_TRY(o->begin ? digest_config(model, o->model, err) : digest_model(model, o->model, err));
    if (o->generator) DEBERTA_TRY(digest_model(generator, o->generator, err));
    trainer_data_digest(data, data_digest);
    add_step(recipe, o, step);
    add_optimizer(recipe, o);
    add_drawing(recipe, o);
    add_tensors(recipe, o);
    json_object_set_new(recipe, "dropout", describe_dropout(&step->dropout));
    if (generator_step) json_object_set_new(recipe, "generator-dropout", describe_dropout(&generator_step->dropout));
    json_object_set_new(recipe, "data", json_string(data_digest));
    json_object_set_new(recipe, "model", json_string(model));
    json_object_set_new(recipe, "generator", json_string(generator));
    return DEBERTA_OK;
}

optimizer_options trainer_optimizer(const deberta_trainer_options *o)
{
    return (optimizer_options){
        .kind = (optimizer_kind)o->optimizer,
        .schedule = (schedule_kind)o->schedule,
        .learning_rate = o->learning_rate,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .epsilon = o->epsilon,
        .weight_decay = o->weight_decay,
        .clip = o->clip,
        .layer_decay = o->layer_decay,
        .steps = o->steps,
        .warmup = o->warmup,
    };
}
