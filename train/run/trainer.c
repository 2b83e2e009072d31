/* Implements deberta_trainer_*: models, data, recipe and run of a training, behind the public header.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/quote.h"
#include "core/io/rank_values.h"
#include "core/load/synthetic.h"
#include "core/model/config.h"
#include "include/deberta_unstable.h"
#include "train/run/run_folder.h"
#include "train/run/save.h"
#include "train/run/trainer.h"
#include "train/run/trainer_options.h"
#include "train/state/learner.h"
#include "train/state/new_tensors.h"

static training *main_training(deberta_trainer *t) { return &t->pair.discriminator; }

/* ---------------------------------------------------------------------------------------------------------- options */

/* Checks that texts are valid UTF-8, because they go into the recipe and the model's configuration, which are JSON. */
static deberta_status check_texts(const char *what, const char *const *items, size_t count, deberta_error *err)
{
    for (size_t i = 0; items && i < count; i++)
        if (!items[i] || !utf8_is_valid(items[i], strlen(items[i])))
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s[%zu] is no text in UTF-8", what, i);
    return DEBERTA_OK;
}

static deberta_status check_options(const deberta_trainer_options *o, deberta_error *err)
{
    const int sources = (o->batch != NULL) + (o->batches != NULL) + (o->text_count > 0) + (o->example_count > 0);
    DEBERTA_TRY(trainer_options_check(o, err));
    DEBERTA_TRY(check_texts("labels", o->labels, o->new_labels, err));
    DEBERTA_TRY(check_texts("freeze", o->freeze, o->freeze_count, err));
    DEBERTA_TRY(check_texts("drop", o->drop, o->drop_count, err));
    if (!o->model) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_trainer_options: no model");
    if (sources != 1)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a trainer needs one of batch, batches, texts and examples, found %d",
                     sources);
    if (o->choices == 0 || o->example_count % o->choices || o->held_out_example_count % o->choices)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu and %zu examples are no multiples of %zu choices", o->example_count,
                     o->held_out_example_count, o->choices);
    if (o->shards & (o->shards - 1))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu shards, expected a power of two", o->shards);
    if (o->warmup > 0 && o->warmup > o->steps)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu steps of warm-up, but %zu steps", o->warmup, o->steps);
    if (o->folder && o->model && synthetic_names(o->model))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: a made-up model has no files that a trained one could take over",
                     o->model);
    if (o->task == DEBERTA_TRAIN_RTD && o->text_count > 0 && !o->generator)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "texts need a generator, which replaces their tokens");
    if (o->generator && o->sharing == DEBERTA_SHARING_ES && !o->coupled)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "one table for both models (es) is coupled only: without it the "
                     "generator's update would leave out what the discriminator teaches");
    if (o->sift_weight > 0 && (o->task == DEBERTA_TRAIN_QA || o->task <= DEBERTA_TRAIN_RTD))
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                     "SiFT compares what a classifier or a regression says, not places in a text or pieces");
    if (o->ranks && (o->ranks->rank >= o->ranks->count || !o->ranks->trade || !o->ranks->gather || !o->ranks->join))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "rank %zu of %zu, or a function of the ranks is missing", o->ranks->rank,
                     o->ranks->count);
    if (o->ranks && o->ranks->count > o->shards)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu ranks, but a step has %zu shards: a rank computes one at least",
                     o->ranks->count, o->shards);
    if (o->audit && (!o->folder || o->resume || o->ranks || o->steps == 0))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "an audit needs the folder of a run and its steps; it resumes nothing and "
                     "has no ranks");
    if (o->resume && !o->folder) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "resume needs the folder of the run");
    return DEBERTA_OK;
}

int deberta_training_is_built(void) { return 1; }

void deberta_trainer_set_defaults(deberta_trainer_options *options)
{
    *options = (deberta_trainer_options)DEBERTA_TRAINER_DEFAULTS;
}

static bool copy_text(char **copy, const char **text)
{
    if (!*text) return true;
    *copy = strdup(*text);
    *text = *copy;
    return *copy != NULL;
}

/* Copies the strings of the options. Lists of files are read while opening and not kept. */
static deberta_status keep_options(deberta_trainer *t, deberta_error *err)
{
    deberta_trainer_options *o = &t->options;
    o->batch_sequences = trainer_batch_sequences(o); /* The recipe has the same value. */
    if (o->ranks && o->ranks->count == 1) o->ranks = NULL;
    if (copy_text(&t->model, &o->model) && copy_text(&t->generator, &o->generator) && copy_text(&t->folder, &o->folder))
        return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a trainer");
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static deberta_status choose_dropout(const deberta_trainer *t, const model_config *config, const char *folder,
                                     dropout_rates *rates, deberta_error *err)
{
    const double all = t->options.dropout;
    *rates = (dropout_rates){all, all, all, all};
    if (all < 0)
        *rates = (dropout_rates){config->hidden_dropout, config->attention_dropout, config->pooler_dropout,
                                 config->classifier_dropout};
    if (rates->hidden >= 0 && rates->attention >= 0 && rates->pooler >= 0 && rates->classifier >= 0) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: a dropout of its config.json is no number from 0 to below 1", folder);
}

/* Describes a folder without weights, whose model will have both heads. */
static deberta_status describe_config(const deberta_trainer *t, training *run, trainer_target *target,
                                      deberta_error *err)
{
    model_config config;
    DEBERTA_TRY(config_read(&config, target->folder, err));
    /* Positions are added to hidden states, so the decoder needs embeddings as wide as they are. */
    const bool decodes = t->options.head == DEBERTA_TRAIN_HEAD_AUTO ? config.embedding_size == config.hidden_size
                                                                    : t->options.head != DEBERTA_TRAIN_HEAD_MLM;
    run->options.decodes = run->options.task == DEBERTA_TRAIN_MLM && decodes;
    target->vocabulary = config.vocabulary_size;
    target->places = config.position_biased_input || run->options.decodes ? config.max_positions : 0;
    run->options.seed = (uint32_t)t->options.seed;
    const deberta_status status = choose_dropout(t, &config, target->folder, &run->options.dropout, err);
    config_free(&config);
    return status;
}

/* A new head includes the decoder where the model has the table of positions that it needs. */
static bool decodes_by_default(const deberta_trainer *t, const training *run, const deberta_model *model)
{
    weight_tensor positions;
    if (!t->options.new_labels || run != &t->pair.discriminator)
        return deberta_task_width(model, DEBERTA_TASK_MLM_EMD) > 0;
    return model->config.embedding_size == model->config.hidden_size &&
           model->source.find(model->source.context, "embeddings.position_embeddings.weight", &positions);
}

/* Tells that a new head takes the place of one that the model has. A run that goes on has told so when it began. */
static void tell_replaced(const deberta_trainer *t, const training *run, const deberta_model *model)
{
    const deberta_trainer_options *o = &t->options;
    if (!o->note || o->resume || o->audit || step_check_head(model, &run->options, "", NULL) != DEBERTA_OK) return;
    o->note(o->note_context, "the model's head for this task is replaced by a new one, drawn at random");
}

/* Tells that modules.json of a folder of sentence-transformers is not copied: other vectors would come out unnoticed.
 */
static void tell_vectors(const deberta_trainer *t, const training *run)
{
    const deberta_trainer_options *o = &t->options;
    deberta_vector_recipe recipe;
    deberta_error ignored = {0};
    if (!o->note || o->resume || o->audit || run != &t->pair.discriminator) return;
    if (deberta_vector_recipe_read(&recipe, t->model, &ignored) != DEBERTA_OK || !recipe.given) return;
    o->note(o->note_context, "modules.json of the model says how vectors are made, and is not copied: vectors of what "
                             "is trained are the mean over all tokens, unless they are asked for otherwise");
}

/* Refuses a model without the head before a run makes its folder. A pair makes no new head of its generator. */
static deberta_status require_head(const deberta_trainer *t, const training *run, const deberta_model *model,
                                   deberta_error *err)
{
    const bool is_main = run == &t->pair.discriminator;
    if (t->options.new_labels && is_main) {
        tell_replaced(t, run, model);
        return DEBERTA_OK;
    }
    return step_check_head(
        model, &run->options,
        is_main ? ": a new head makes one (--new-head, or for labelled data --labels; in C new_labels)" : "", err);
}

/* Describes the model that the data must fit, and sets mlm_emd where the model has it, unless it was given. */
static deberta_status describe_model(const deberta_trainer *t, training *run, trainer_target *target,
                                     deberta_error *err)
{
    if (t->options.begin) return describe_config(t, run, target, err);
    const deberta_model_options options = {.struct_size = sizeof options, .describe_only = 1};
    deberta_model *model = NULL;
    DEBERTA_TRY(deberta_model_open(&model, target->folder, &options, err));
    tell_vectors(t, run);
    if (run->options.task == DEBERTA_TRAIN_MLM)
        run->options.decodes = t->options.head == DEBERTA_TRAIN_HEAD_AUTO
                                   ? decodes_by_default(t, run, model)
                                   : t->options.head == DEBERTA_TRAIN_HEAD_MLM_EMD;
    const bool reads_positions = model->config.position_biased_input || run->options.decodes;
    target->vocabulary = model->config.vocabulary_size;
    target->places = reads_positions ? model->config.max_positions : 0;
    run->options.seed = (uint32_t)t->options.seed;
    deberta_status status = require_head(t, run, model, err);
    if (status == DEBERTA_OK) status = choose_dropout(t, &model->config, target->folder, &run->options.dropout, err);
    target->labels = t->options.new_labels ? t->options.new_labels : model->tasks.labels;
    deberta_model_free(&model);
    return status;
}

/* Returns the rest of the memory limit: the second model of a pair may use what the first has left. */
static size_t left_of_limit(const deberta_trainer *t)
{
    const size_t limit = t->options.memory_limit_bytes, used = deberta_trainer_memory_bytes(t);
    return limit == 0 ? 0 : limit > used ? limit - used : 1;
}

/* Freezes the tensors that stay unchanged. A pattern that matches none, for a pair in neither model, is an error. */
static deberta_status freeze(deberta_trainer *t, deberta_error *err)
{
    const deberta_trainer_options *o = &t->options;
    for (size_t i = 0; i < o->freeze_count; i++) {
        size_t count = parameter_set_freeze(&t->pair.discriminator.learner->set, o->freeze[i]);
        if (t->generator) count += parameter_set_freeze(&t->pair.generator.learner->set, o->freeze[i]);
        if (count == 0)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s has no tensor '%s' that could be frozen", t->model, o->freeze[i]);
    }
    const bool is_left = parameter_set_is_trained(&t->pair.discriminator.learner->set) ||
                         (t->generator && parameter_set_is_trained(&t->pair.generator.learner->set));
    if (o->steps > 0 && !is_left)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%s: freeze leaves nothing to train; expected patterns that leave a tensor out", t->model);
    return DEBERTA_OK;
}

static deberta_status open_training(const deberta_trainer *t, training *run, const char *folder, const char *part,
                                    deberta_error *err)
{
    const deberta_trainer_options *o = &t->options;
    const size_t passes = o->sift_weight > 0 ? 2 : 1;
    const dropout_rates *rates = &run->options.dropout;
    const bool goes_on = t->checkpoint.step > 0;
    const new_head head = {
        .task = o->task, .names = o->labels, .labels = o->new_labels, .decodes = run->options.decodes};
    run->batches = t->data.source;
    const bool is_main = run == &t->pair.discriminator;
    deberta_trainer_options asked = *o;
    if (goes_on) asked.begin = 0;
    if (goes_on || !is_main) asked.drop_count = 0;
    const learner_options options = {
        .asked = asked,
        .max_tokens = passes * t->data.most_tokens,
        .memory_limit_bytes = left_of_limit(t),
        .decodes = run->options.decodes,
        .differs = t->generator && is_main && o->sharing == DEBERTA_SHARING_GDES,
        .longest = passes * t->data.longest,
        .predicts_words = run->options.task == DEBERTA_TRAIN_MLM,
        .pairs_up = o->sift_weight > 0,
        .drops = rates->hidden > 0 || rates->attention > 0 || rates->pooler > 0 || rates->classifier > 0,
        .head = o->new_labels && !goes_on && is_main ? &head : NULL,
    };
    char resumed[RUN_PATH_BYTES];
    run_checkpoint_part(&t->checkpoint, part, resumed);
    DEBERTA_TRY(learner_open(&run->learner, goes_on ? resumed : folder, &options, err));
    if (o->steps == 0) return DEBERTA_OK;
    return optimizer_open(&run->optimizer, &run->learner->set, run->learner->model->config.layers, o, err);
}

/* Checks that all ranks have the same recipe, and continue from the same step. */
static deberta_status compare_ranks(const deberta_trainer *t, deberta_error *err)
{
    if (!t->options.ranks) return DEBERTA_OK;
    deberta_status status = DEBERTA_E_MEMORY;
    json_t *values = json_copy(t->recipe);
    if (values && json_object_set_new(values, "checkpoint", json_integer((json_int_t)t->checkpoint.step)) == 0)
        status = rank_values_check(t->options.ranks, values, trainer_option_of_key, err);
    else
        status_fail(err, status, "no memory to compare the recipes of ranks");
    json_decref(values);
    return status;
}

/* Composes the record of a run, and finds the checkpoint from which it resumes. */
static deberta_status open_run(deberta_trainer *t, deberta_error *err)
{
    const deberta_trainer_options *o = &t->options;
    if (o->steps == 0 && !o->ranks) return DEBERTA_OK;
    DEBERTA_TRY(trainer_recipe_describe(&t->recipe, o, &t->data, &main_training(t)->options,
                                        t->generator ? &t->pair.generator.options : NULL, err));
    t->record.recipe = t->recipe;
    trainer_data_digest_held_out(&t->data, t->record.held_out);
    if (o->resume) DEBERTA_TRY(run_checkpoint_find(&t->checkpoint, o->folder, &t->record, err));
    if (o->audit) DEBERTA_TRY(run_checkpoint_find_step(&t->checkpoint, o->folder, o->audit_from, t->recipe, err));
    return compare_ranks(t, err);
}

static deberta_status open_pair(deberta_trainer *t, const trainer_target *target, deberta_error *err)
{
    DEBERTA_TRY(open_training(t, &t->pair.discriminator, target->folder, "discriminator", err));
    DEBERTA_TRY(open_training(t, &t->pair.generator, t->generator, "generator", err));
    t->pair.options = (pair_options){.sharing = t->options.sharing, .coupled = t->options.coupled != 0};
    return pair_open(&t->pair, err);
}

static run_parts parts_of(deberta_trainer *t)
{
    const deberta_dtype dtype = t->options.save_dtype;
    if (!t->generator) return (run_parts){.items = {{"", t->model, main_training(t)}}, .count = 1, .save_dtype = dtype};
    return (run_parts){
        .items = {{"generator", t->generator, &t->pair.generator}, {"discriminator", t->model, &t->pair.discriminator}},
        .count = 2,
        .save_dtype = dtype,
        .pair = &t->pair};
}

/* Joins the requirements of both models. The discriminator must be able to read every id that the generator draws. */
static deberta_status join_targets(trainer_target *target, const trainer_target *generator, deberta_error *err)
{
    if (generator->vocabulary > target->vocabulary)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "the word table of %s has %zu rows, but that of %s, which reads what it draws, %zu",
                     generator->folder, generator->vocabulary, target->folder, target->vocabulary);
    target->vocabulary = generator->vocabulary;
    target->vocabulary_folder = generator->folder;
    target->generator_folder = generator->folder;
    if (generator->places && (!target->places || generator->places < target->places)) {
        target->places = generator->places;
        target->places_folder = generator->folder;
    }
    return DEBERTA_OK;
}

static deberta_status open_trainer(deberta_trainer *t, deberta_error *err)
{
    training *run = main_training(t);
    DEBERTA_TRY(check_options(&t->options, err));
    DEBERTA_TRY(keep_options(t, err));
    if (t->folder && !t->options.audit && ranks_lead(t->options.ranks)) /* This check comes before the long work. */
        DEBERTA_TRY(t->options.resume ? run_claim_join(&t->claim, t->folder, err) : run_folder_check(t->folder, err));
    run->options = (step_options){.task = t->options.task,
                                  .rtd_weight = (float)t->options.rtd_weight,
                                  .sift_weight = (float)t->options.sift_weight,
                                  .perturbs_raw = t->options.perturb_raw != 0,
                                  .sift_step = (float)t->options.sift_step,
                                  .sift_start = t->options.sift_start};
    trainer_target target = {.folder = t->model,
                             .vocabulary_folder = t->model,
                             .places_folder = t->model,
                             .task = run->options.task},
                   generator = {.folder = t->generator};
    DEBERTA_TRY(describe_model(t, run, &target, err));
    t->pair.generator.options = (step_options){.task = DEBERTA_TRAIN_MLM, .is_generator = true};
    if (t->generator) {
        DEBERTA_TRY(describe_model(t, &t->pair.generator, &generator, err));
        DEBERTA_TRY(join_targets(&target, &generator, err));
    }
    DEBERTA_TRY(trainer_data_open(&t->data, &t->options, &target, err));
    DEBERTA_TRY(open_run(t, err));
    DEBERTA_TRY(t->generator ? open_pair(t, &target, err) : open_training(t, run, t->model, "", err));
    DEBERTA_TRY(freeze(t, err));
    t->parts = parts_of(t);
    return t->checkpoint.step ? run_checkpoint_read(&t->checkpoint, &t->parts, err) : DEBERTA_OK;
}

deberta_status deberta_trainer_open(deberta_trainer **result, const deberta_trainer_options *options,
                                    deberta_error *err)
{
    if (!result || !options)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_trainer_open needs a place for the trainer, and options");
    *result = NULL;
    deberta_trainer *t = calloc(1, sizeof *t);
    if (!t) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a trainer");
    deberta_status status = copy_struct(&t->options, options, sizeof t->options, "deberta_trainer_options", err);
    if (status == DEBERTA_OK) status = open_trainer(t, err);
    if (status == DEBERTA_OK)
        *result = t;
    else
        deberta_trainer_free(&t);
    return status;
}

void deberta_trainer_free(deberta_trainer **place)
{
    if (!place || !*place) return;
    deberta_trainer *t = *place;
    training *const both[] = {&t->pair.generator, &t->pair.discriminator};
    for (size_t i = 0; i < 2; i++) {
        optimizer_free(&both[i]->optimizer);
        learner_free(&both[i]->learner);
    }
    trainer_data_close(&t->data);
    json_decref(t->recipe);
    run_claim_release(&t->claim);
    free(t->model);
    free(t->generator);
    free(t->folder);
    free(t);
    *place = NULL;
}

/* ------------------------------------------------------------------------------------------------------------ steps */

size_t deberta_trainer_memory_bytes(const deberta_trainer *t)
{
    const learner *generator = t->pair.generator.learner, *own = t->pair.discriminator.learner;
    return (generator ? learner_bytes(generator) : 0) + (own ? learner_bytes(own) : 0);
}

size_t deberta_trainer_steps_done(const deberta_trainer *t) { return run_parts_done(&t->parts); }

static deberta_status write_gradients(const deberta_trainer *t, const char *path, const deberta_training_step *step,
                                      deberta_error *err)
{
    if (t->generator) {
        const named_loss losses[] = {{"loss", step->loss},
                                     {"loss.generator", step->loss_generator},
                                     {"loss.discriminator", step->loss_discriminator}};
        const named_set sets[] = {{"grad.generator.", &t->pair.generator.learner->set},
                                  {"grad.discriminator.", &t->pair.discriminator.learner->set}};
        return save_gradients(path, losses, 3, sets, 2, err);
    }
    const bool is_rtd = t->options.task == DEBERTA_TRAIN_RTD, has_part = is_rtd || t->options.sift_weight > 0;
    const named_loss losses[] = {{"loss", step->loss},
                                 is_rtd ? (named_loss){"loss.discriminator", step->loss_discriminator}
                                        : (named_loss){"loss.clean", step->loss_clean}};
    const named_set set = {"grad.", &t->pair.discriminator.learner->set};
    return save_gradients(path, losses, has_part ? 2 : 1, &set, 1, err);
}

deberta_status deberta_trainer_gradients(deberta_trainer *t, const char *path, deberta_training_step *step,
                                         deberta_error *err)
{
    if (!t || !step) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_trainer_gradients needs a trainer and a step");
    DEBERTA_TRY(run_parts_gradients(&t->parts, step, err));
    return path ? write_gradients(t, path, step, err) : DEBERTA_OK;
}

deberta_status deberta_trainer_step(deberta_trainer *t, deberta_training_step *step, deberta_error *err)
{
    if (!t || !step) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_trainer_step needs a trainer and a step");
    if (run_parts_done(&t->parts) >= t->options.steps)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "all %zu steps of the run are behind", t->options.steps);
    return run_parts_step(&t->parts, step, NULL, err);
}

static deberta_status take_folder(deberta_trainer *t, const training_run *run, deberta_error *err)
{
    if (!t->options.resume) DEBERTA_TRY(run_folder_prepare(run->folder, err));
    DEBERTA_TRY(run_claim_take(&t->claim, run->folder, t->recipe, err));
    if (!t->options.resume && !t->claim.is_new)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: another run has just begun in this folder", QUOTE(run->folder));
    return DEBERTA_OK;
}

deberta_status deberta_trainer_run(deberta_trainer *t, int (*on_step)(void *context, const deberta_training_step *step),
                                   void *context, int *finished, deberta_error *err)
{
    bool ended = false;
    if (!t || !finished || !t->folder || t->options.audit || t->options.steps == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "deberta_trainer_run needs a trainer with steps and a folder, not one for an audit");
    const deberta_trainer_options *o = &t->options;
    const training_run run = {
        .parts = t->parts,
        .folder = t->folder,
        .claim = &t->claim,
        .record = &t->record,
        .is_written = t->checkpoint.is_finished,
        .checkpoint_every = o->checkpoint_every,
        .checkpoint_minutes = o->checkpoint_minutes,
        .keep = o->keep,
        .keep_every = o->keep_every,
        .chain_every = o->chain_every,
        .stop_at = o->stop_at,
        .ranks = o->ranks,
        .held_out = t->data.has_held_out && ranks_lead(o->ranks) ? &t->data.held_out_source : NULL,
        .eval_every = o->eval_every,
        .skip_bad = o->skip_bad,
        .scorer = o->held_out_example_count ? o->scorer : NULL,
        .patience = o->patience,
        .on_step = on_step,
        .context = context,
        .note = o->note,
        .note_context = o->note_context,
    };
    if (ranks_lead(o->ranks)) DEBERTA_TRY(take_folder(t, &run, err));
    const deberta_status status = run_folder_train(&run, &ended, err);
    *finished = ended;
    return status;
}

deberta_status deberta_trainer_save(const deberta_trainer *t, const char *folder, deberta_error *err)
{
    if (!t || !folder) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_trainer_save needs a trainer and a folder");
    return run_parts_save(&t->parts, folder, t->options.save_dtype, err);
}
