/* Composes the recipe from options and digests; two runs with equal recipes give equal bits.
 *
 * SPDX-License-Identifier: MIT */
#include "train/run/trainer_recipe.h"

#include <stdio.h>

#include "core/io/checkpoint.h"
#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "train/run/trainer_options.h"

static json_t *count(size_t value) { return json_integer((json_int_t)value); }

/* Returns the digest of a folder without weights. */
static deberta_status digest_config(char digest[65], const char *folder, deberta_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", folder);
    return file_digest(path, digest, err);
}

/* Dropout: of hidden rows, of probabilities, before the pooler, before the classifier. */
static json_t *describe_dropout(const dropout_rates *rates)
{
    return json_pack("[f, f, f, f]", rates->hidden, rates->attention, rates->pooler, rates->classifier);
}

static json_t *texts(const char *const *items, size_t count_of_items, bool *lost)
{
    json_t *list = json_array();
    for (size_t i = 0; items && i < count_of_items; i++) json_add_item(list, json_string(items[i]), lost);
    return list;
}

static void add_tensors(json_t *recipe, const deberta_trainer_options *o, bool *lost)
{
    json_add_member(recipe, "begin", json_boolean(o->begin), lost);
    json_add_member(recipe, "new-labels", count(o->new_labels), lost);
    json_add_member(recipe, "labels", texts(o->labels, o->new_labels, lost), lost);
    json_add_member(recipe, "freeze", texts(o->freeze, o->freeze_count, lost), lost);
    json_add_member(recipe, "drop", texts(o->drop, o->drop_count, lost), lost);
}

deberta_status trainer_recipe_describe(json_t **result, const deberta_trainer_options *o, const trainer_data *data,
                                       const step_options *step, const step_options *generator_step, deberta_error *err)
{
    char data_digest[65], model[65], generator[65] = "";
    json_t *recipe = json_pack("{s:n, s:b}", "task", "decodes", (int)step->decodes); /* keys keep their order */
    bool lost = false;
    *result = recipe;
    if (!recipe) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a recipe");
    DEBERTA_TRY(o->begin ? digest_config(model, o->model, err) : checkpoint_digest_folder(o->model, model, err));
    if (o->generator) DEBERTA_TRY(checkpoint_digest_folder(o->generator, generator, err));
    trainer_data_digest(data, data_digest);
    trainer_options_describe(recipe, o, &lost);
    if (!o->generator) json_add_member(recipe, "sharing", json_string(""), &lost);
    add_tensors(recipe, o, &lost);
    json_add_member(recipe, "dropout", describe_dropout(&step->dropout), &lost);
    if (generator_step) json_add_member(recipe, "generator-dropout", describe_dropout(&generator_step->dropout), &lost);
    json_add_member(recipe, "data", json_string(data_digest), &lost);
    json_add_member(recipe, "model", json_string(model), &lost);
    json_add_member(recipe, "generator", json_string(generator), &lost);
    if (lost) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a recipe");
    return DEBERTA_OK;
}
