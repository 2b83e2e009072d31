/* Configuration, parameters, model, session and memory of a learner are opened in this order.
 *
 * SPDX-License-Identifier: MIT */
#include "train/engine/learner_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/mapped_file.h"
#include "core/model/synthetic_name.h"
#include "train/engine/learner_memory.h"
#include "train/engine/learner_transposed.h"
#include "train/engine/new_tensors.h"
#include "train/engine/parameters_made.h"
#include "train/engine/ranks.h"

static deberta_status open_session(learner *l, deberta_error *err)
{
    const deberta_session_options options = {
        .struct_size = sizeof options,
        .isa = l->options.isa,
        .threads = l->options.threads,
        .max_tokens = l->plan.capacity,
        .features = l->options.decodes ? DEBERTA_KEEP_DECODER_INPUT : 0,
    };
    const session_internal_options internal = {.record = &l->memory.forward};
    return session_create_internal(&l->session, l->model, &options, &internal, err);
}

static deberta_status check_model(const learner *l, deberta_error *err)
{
    if (l->model->config.talking_heads) {
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has talking heads, which are not trained", l->model->name);
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

static deberta_status open_parameters(learner *l, const char *folder, deberta_error *err)
{
    const learner_options *o = &l->options;
    if (synthetic_names(folder)) return parameter_set_make(&l->set, folder, err);
    DEBERTA_TRY(o->begins ? new_model_begin(&l->set, folder, o->seed, err) : parameter_set_read(&l->set, folder, err));
    return o->head ? new_head_add(&l->set, folder, o->head, o->seed, &l->config, err) : keep_config(l, folder, err);
}

static deberta_status open_model(learner *l, const char *folder, deberta_error *err)
{
    const deberta_model_options options = {
        .struct_size = sizeof options, .threads = l->options.threads, .reference = l->options.reference};
    const weight_source source = parameter_set_source(&l->set);
    const load_listener listener = bindings_listener(&l->bindings);
    const model_internal_options internal = {.keep_position_projections = true,
                                             .pass_over_packed = true,
                                             .weights = &source,
                                             .config = l->config,
                                             .listener = &listener};
    l->bindings.set = &l->set;
    DEBERTA_TRY(model_open_internal(&l->model, folder, &options, &internal, err));
    if (l->bindings.out_of_memory) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a list of %s's weights", folder);
    return check_model(l, err);
}

deberta_status learner_take_parameters(learner *l, deberta_error *err)
{
    const bool folds = !l->options.drops; /* else the step does: with its dropout, or without for held-out data */
    executor_begin(l->session->executor);
    const deberta_status status = model_read_again(l->model, folds, learner_kernels(l), l->session->executor, err);
    l->memory.folded.state = folds ? FOLDED_PLAIN : NOT_FOLDED;
    if (status == DEBERTA_OK) learner_transposed_fill(l);
    executor_end(l->session->executor);
    return status;
}

deberta_status learner_open(learner **result, const char *folder, const learner_options *options, deberta_error *err)
{
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
    l->plan = shard_plan_make(options->parts, options->max_tokens, options->longest, options->micro_tokens);
    if (options->ranks)
        l->plan =
            shard_plan_of(&l->plan, rank_shards(options->ranks, options->parts), options->max_tokens, options->longest);
    l->options.pairs_up = options->pairs_up && !options->recomputes && shard_plan_is_whole(&l->plan);
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

void learner_free(learner **learner_place)
{
    if (!learner_place || !*learner_place) return;
    learner *l = *learner_place;
    deberta_session_free(&l->session);
    deberta_model_free(&l->model);
    learner_memory_free(l);
    bindings_free(&l->bindings);
    parameter_set_free(&l->set);
    free(l->config);
    free(l);
    *learner_place = NULL;
}
