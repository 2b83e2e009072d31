/* Opens a learner's configuration, parameters, model, session and memory, in this order.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/learner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/io/mapped_file.h"
#include "core/load/model.h"
#include "core/load/synthetic.h"
#include "train/state/new_tensors.h"
#include "train/state/ranks.h"
#include "train/state/step_state.h"

/* -------------------------------------------------------------------------------------------------- a made-up model */

/* This section finds the tensors of a made-up model by opening it and listing its requests. */

typedef struct made_tensor {
    char *name;
    weight_tensor at;
} made_tensor;

/* Lists every requested tensor that exists. */
typedef struct made_list {
    weight_source source;
    made_tensor *items;
    size_t count, capacity;
    bool out_of_memory;
} made_list;

static bool is_listed(const made_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) return true;
    return false;
}

static bool list_found(const void *context, const char *name, weight_tensor *found)
{
    made_list *list = (made_list *)context;
    if (!list->source.find(list->source.context, name, found)) return false;
    if (is_listed(list, name)) return true;
    made_tensor *items = grown(list->items, &list->capacity, list->count + 1, sizeof *items);
    char *copy = strdup(name);
    if (items) list->items = items;
    list->out_of_memory = list->out_of_memory || !items || !copy;
    if (items && copy)
        list->items[list->count++] = (made_tensor){.name = copy, .at = *found};
    else
        free(copy);
    return true;
}

static deberta_status read_values(const void *context, const weight_tensor *from, size_t first, size_t count,
                                  float *values, deberta_error *err)
{
    const weight_source *source = &((const made_list *)context)->source;
    return source->read(source->context, from, first, count, values, err);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const made_tensor *)left)->name, ((const made_tensor *)right)->name);
}

static deberta_status make_parameter(parameter *p, const made_list *list, const made_tensor *made, deberta_error *err)
{
    const weight_tensor *at = &made->at;
    *p = (parameter){.name = strdup(made->name), .stored_name = strdup(made->name), .rank = at->rank, .trained = true};
    memcpy(p->shape, at->shape, sizeof p->shape);
    p->count = 1;
    for (size_t axis = 0; axis < at->rank; axis++) p->count *= at->shape[axis];
    DEBERTA_TRY(parameter_allocate(p, err));
    return read_values(list, at, 0, p->count, p->values, err);
}

static deberta_status make_all(parameter_set *set, made_list *list, deberta_error *err)
{
    set->items = calloc(list->count + 1, sizeof *set->items);
    if (!set->items || list->out_of_memory)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a list of %s's tensors", set->name);
    qsort(list->items, list->count, sizeof *list->items, compare_names);
    for (size_t i = 0; i < list->count; i++)
        DEBERTA_TRY(make_parameter(&set->items[set->count++], list, &list->items[i], err));
    return DEBERTA_OK;
}

/* Makes the parameters of a made-up model (core/load/synthetic.h). On failure *set is empty. */
static deberta_status parameter_set_make(parameter_set *set, const char *path, deberta_error *err)
{
    model_config config = {0};
    synthetic_weights made;
    *set = (parameter_set){.name = strdup(path)};
    if (!set->name) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a model's name");
    deberta_status status = synthetic_parse(&config, &made, path, err);
    made_list list = {.source = weight_source_of_synthetic(&made, path)};
    const weight_source lister = {.context = &list, .name = path, .find = list_found, .read = read_values};
    const deberta_model_options options = {.struct_size = sizeof options, .describe_only = true};
    const model_internal_options internal = {.weights = &lister};
    deberta_model *model = NULL;
    if (status == DEBERTA_OK) status = model_open_internal(&model, path, &options, &internal, err);
    if (status == DEBERTA_OK) status = make_all(set, &list, err);
    deberta_model_free(&model);
    for (size_t i = 0; i < list.count; i++) free(list.items[i].name);
    free(list.items);
    config_free(&config);
    if (status != DEBERTA_OK) parameter_set_free(set);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static deberta_status open_session(learner *l, deberta_error *err)
{
    const deberta_session_options options = {
        .struct_size = sizeof options,
        .isa = l->options.asked.isa,
        .threads = l->options.asked.threads,
        .max_tokens = l->plan.capacity,
        .features = l->options.decodes ? DEBERTA_KEEP_DECODER_INPUT : 0,
    };
    const session_internal_options internal = {.record = &l->memory.forward};
    return session_create_internal(&l->session, l->model, &options, &internal, err);
}

static deberta_status check_model(const learner *l, deberta_error *err)
{
    if (l->model->config.talking_heads) {
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has talking heads, whose gradients are not computed",
                     l->model->name);
    }
    return DEBERTA_OK;
}

static deberta_status keep_config(learner *l, const char *folder, deberta_error *err)
{
    char path[4096];
    mapped_file file;
    snprintf(path, sizeof path, "%s/config.json", folder);
    DEBERTA_TRY(mapped_file_open(&file, path, err));
    l->config = strndup((const char *)file.bytes, file.size_bytes);
    DEBERTA_TRY(mapped_file_end(&file, DEBERTA_OK, err));
    if (!l->config) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a configuration");
    return DEBERTA_OK;
}

static deberta_status drop_parameters(learner *l, const char *folder, deberta_error *err)
{
    const learner_options *o = &l->options;
    for (size_t i = 0; i < o->asked.drop_count; i++)
        if (parameter_set_drop(&l->set, o->asked.drop[i]) == 0)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s has no tensor '%s' that could be left out", folder,
                         o->asked.drop[i]);
    return DEBERTA_OK;
}

static deberta_status open_parameters(learner *l, const char *folder, deberta_error *err)
{
    const learner_options *o = &l->options;
    if (synthetic_names(folder)) {
        DEBERTA_TRY(parameter_set_make(&l->set, folder, err));
        return drop_parameters(l, folder, err);
    }
    DEBERTA_TRY(o->asked.begin ? new_model_begin(&l->set, folder, (uint32_t)o->asked.seed, err)
                               : parameter_set_read(&l->set, folder, err));
    DEBERTA_TRY(drop_parameters(l, folder, err));
    return o->head ? new_head_add(&l->set, folder, o->head, (uint32_t)o->asked.seed, &l->config, err)
                   : keep_config(l, folder, err);
}

static deberta_status open_model(learner *l, const char *folder, deberta_error *err)
{
    const deberta_model_options options = {
        .struct_size = sizeof options, .threads = l->options.asked.threads, .reference = l->options.asked.reference};
    const weight_source source = parameter_set_source(&l->set);
    const load_listener listener = bindings_listener(&l->bindings);
    const model_internal_options internal = {.keep_position_projections = true,
                                             .pass_over_packed = true,
                                             .weights = &source,
                                             .config = l->config,
                                             .listener = &listener};
    l->bindings.set = &l->set;
    DEBERTA_TRY(model_open_internal(&l->own_model, folder, &options, &internal, err));
    l->model = l->own_model;
    if (l->bindings.out_of_memory) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a list of %s's weights", folder);
    return check_model(l, err);
}

deberta_status learner_take_parameters(learner *l, deberta_error *err)
{
    /* Without dropout, packs the tables here; otherwise the step packs them, with its dropout, or without for held-out
     * data. */
    const bool folds = !l->options.drops;
    executor_begin(l->session->executor);
    const deberta_status status = model_read_again(l->own_model, folds, learner_kernels(l), l->session->executor, err);
    l->memory.folded.state = folds ? FOLDED_PLAIN : NOT_FOLDED;
    if (status == DEBERTA_OK) learner_transposed_fill(l);
    executor_end(l->session->executor);
    return status;
}

deberta_status learner_open(learner **result, const char *folder, const learner_options *options, deberta_error *err)
{
    const deberta_trainer_options *asked = &options->asked;
    deberta_status status;
    *result = NULL;
    learner *l = calloc(1, sizeof *l);
    if (!l) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for training");
    l->options = *options;
    DEBERTA_TRY_OR_FAIL(status, open_parameters(l, folder, err));
    for (size_t i = 0; options->differs && i < SHARED_TABLES; i++)
        DEBERTA_TRY_OR_FAIL(status, parameter_set_add(&l->set, shared_differences[i], shared_tables[i], err));
    DEBERTA_TRY_OR_FAIL(status, open_model(l, folder, err));
    l->options.decodes = options->decodes && !l->model->config.position_biased_input;
    l->plan = shard_plan_make(asked->shards, options->max_tokens, options->longest, asked->micro_tokens);
    if (asked->ranks)
        l->plan =
            shard_plan_of(&l->plan, rank_shards(asked->ranks, asked->shards), options->max_tokens, options->longest);
    l->options.pairs_up = options->pairs_up && !asked->recompute && shard_plan_is_whole(&l->plan);
    DEBERTA_TRY_OR_FAIL(status, open_session(l, err));
    DEBERTA_TRY_OR_FAIL(status, learner_memory_open(l, err));
    executor_begin(l->session->executor);
    learner_transposed_fill(l);
    executor_end(l->session->executor);
    *result = l;
    return DEBERTA_OK;
fail:
    learner_free(&l);
    return status;
}

static deberta_status open_lent(learner *l, deberta_error *err)
{
    const learner_options *o = &l->options;
    DEBERTA_TRY(check_model(l, err));
    if (l->model->described_only)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s was opened to be described, without its weights", l->model->name);
    if (l->model->digits)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s is open as %s, but gradients need float32", l->model->name,
                     deberta_precision_name(l->model->precision));
    l->options.decodes = o->decodes && !l->model->config.position_biased_input;
    l->plan = shard_plan_make(o->asked.shards, o->max_tokens, o->longest, 0);
    DEBERTA_TRY(open_session(l, err));
    DEBERTA_TRY(learner_memory_open(l, err));
    executor_begin(l->session->executor);
    learner_transposed_fill(l);
    executor_end(l->session->executor);
    return DEBERTA_OK;
}

deberta_status learner_open_lent(learner **result, const deberta_model *model, const learner_options *options,
                                 deberta_error *err)
{
    *result = NULL;
    learner *l = calloc(1, sizeof *l);
    if (!l) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for gradients");
    l->options = *options;
    l->model = model;
    l->set.name = strdup(model->name);
    l->bindings.set = &l->set;
    const deberta_status status =
        l->set.name ? open_lent(l, err) : status_fail(err, DEBERTA_E_MEMORY, "no memory for a model's name");
    if (status != DEBERTA_OK) learner_free(&l);
    *result = l;
    return status;
}

void learner_free(learner **learner_place)
{
    if (!learner_place || !*learner_place) return;
    learner *l = *learner_place;
    deberta_session_free(&l->session);
    deberta_model_free(&l->own_model);
    learner_memory_free(l);
    bindings_free(&l->bindings);
    parameter_set_free(&l->set);
    free(l->config);
    free(l);
    *learner_place = NULL;
}
