/* Runs a step of a pair: the generator fills, the discriminator learns, and tables and gradients are handed over.
 *
 * SPDX-License-Identifier: MIT */
#include "train/step/pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/state/learner.h"

/* ------------------------------------------------------------------------------------------------------------ tables */

/* Computes the discriminator's tables by one addition per element. */
void pair_share_tables(training_pair *pair)
{
    for (size_t i = 0; i < pair->table_count; i++) {
        const shared_table *table = &pair->tables[i];
        float *to = table->discriminator->values;
        memcpy(to, table->generator->values, table->discriminator->count * sizeof *to);
        for (size_t e = 0; table->difference && e < table->discriminator->count; e++)
            to[e] += table->difference->values[e];
    }
}

/* Hands over the gradients of shared tables: to the difference if there is one, so that the generator gets nothing,
 * else to the generator's table. */
static void hand_over_gradients(void *context)
{
    const training_pair *pair = context;
    for (size_t i = 0; i < pair->table_count; i++) {
        const shared_table *table = &pair->tables[i];
        const float *from = table->discriminator->gradient;
        if (table->difference) {
            memcpy(table->difference->gradient, from, table->difference->count * sizeof *from);
            continue;
        }
        for (size_t e = 0; e < table->generator->count; e++) table->generator->gradient[e] += from[e];
    }
}

static deberta_status check_table(const training_pair *pair, const shared_table *table, size_t which,
                                  deberta_error *err)
{
    const char *generator = pair->generator.learner->set.name, *discriminator = pair->discriminator.learner->set.name;
    const char *name = shared_tables[which];
    if (!table->generator) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' is missing", generator, name);
    if (!table->discriminator) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' is missing", discriminator, name);
    if (table->generator->count == table->discriminator->count &&
        table->generator->shape[0] == table->discriminator->shape[0] &&
        (!table->difference || table->difference->count == table->discriminator->count))
        return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "'%s' has shape %s in %s and %s in %s: they cannot be shared", name,
                 shape_describe(table->generator->shape, table->generator->rank).text, generator,
                 shape_describe(table->discriminator->shape, table->discriminator->rank).text, discriminator);
}

/* Sets a difference tensor that is in no file to the table of the discriminator minus that of the generator. */
static void begin_difference(const shared_table *table)
{
    for (size_t e = 0; table->difference->made && e < table->difference->count; e++)
        table->difference->values[e] = table->discriminator->values[e] - table->generator->values[e];
}

static deberta_status find_table(training_pair *pair, size_t which, deberta_error *err)
{
    const parameter_set *generator = &pair->generator.learner->set, *own = &pair->discriminator.learner->set;
    shared_table table = {
        .generator = parameter_find(generator, shared_tables[which]),
        .discriminator = parameter_find(own, shared_tables[which]),
        .difference = parameter_find(own, shared_differences[which]),
    };
    const bool differs = pair->options.sharing == DEBERTA_SHARING_GDES;
    if (!differs && table.difference) table.difference->trained = false;
    if (!differs) table.difference = NULL;
    if (pair->options.sharing == DEBERTA_SHARING_NONE) return DEBERTA_OK;
    if (which > 0 && !table.discriminator && !table.difference) return DEBERTA_OK; /* Not every model has positions. */
    DEBERTA_TRY(check_table(pair, &table, which, err));
    if (differs) begin_difference(&table);
    table.discriminator->trained = false;
    pair->tables[pair->table_count++] = table;
    return DEBERTA_OK;
}

/* Packs the tables as they are now. */
static deberta_status renew_discriminator(training_pair *pair, deberta_error *err)
{
    pair_share_tables(pair);
    return learner_take_parameters(pair->discriminator.learner, err);
}

deberta_status pair_open(training_pair *pair, deberta_error *err)
{
    pair->table_count = 0;
    for (size_t which = 0; which < SHARED_TABLES; which++) DEBERTA_TRY(find_table(pair, which, err));
    pair->discriminator.options.reads_sampled = true;
    pair->discriminator.on_gradients = hand_over_gradients;
    pair->discriminator.context = pair;
    return renew_discriminator(pair, err);
}

/* ------------------------------------------------------------------------------------------------------------- batches */

/* Keeps ids that are sampled already; else the generator draws them, at labelled places, by its seed and the number of
 * the step. */
static deberta_status begin_drawing(training_pair *pair, step_batch *batch, deberta_error *err)
{
    pair->generator.options.drawn_ids = NULL;
    if (batch->sampled_ids) return DEBERTA_OK;
    batch->sampled_ids = malloc(batch->tokens * sizeof *batch->sampled_ids);
    if (!batch->sampled_ids) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for what a generator draws");
    memcpy(batch->sampled_ids, batch->ids, batch->tokens * sizeof *batch->sampled_ids);
    pair->generator.options.drawn_ids = batch->sampled_ids;
    return DEBERTA_OK;
}

static deberta_status generator_gradients(training_pair *pair, size_t step, step_batch *batch, step_report *report,
                                          deberta_error *err)
{
    deberta_status status = begin_drawing(pair, batch, err);
    if (status == DEBERTA_OK) status = training_gradients_of(&pair->generator, step, batch, report, err);
    pair->generator.options.drawn_ids = NULL;
    return status;
}

/* -------------------------------------------------------------------------------------------------------------- steps */

/* Both gradients are taken at the same weights. The discriminator hands its gradients of shared tables over, so the
 * generator's norm is taken after that. */
static deberta_status both_gradients(training_pair *pair, size_t step, step_batch *batch, pair_report *report,
                                     deberta_error *err)
{
    DEBERTA_TRY(generator_gradients(pair, step, batch, &report->generator, err));
    DEBERTA_TRY(training_gradients_of(&pair->discriminator, step, batch, &report->discriminator, err));
    if (pair->options.sharing == DEBERTA_SHARING_ES)
        report->generator.gradient_norm =
            parameter_set_norm(&pair->generator.learner->set, pair->generator.learner->session->executor);
    return DEBERTA_OK;
}

static deberta_status coupled_step(training_pair *pair, size_t step, step_batch *batch, pair_report *report,
                                   deberta_error *err)
{
    DEBERTA_TRY(both_gradients(pair, step, batch, report, err));
    const double generator = report->generator.gradient_norm, discriminator = report->discriminator.gradient_norm;
    const double norm = sqrt(generator * generator + discriminator * discriminator);
    training_update(&pair->generator, &report->generator, norm);
    training_update(&pair->discriminator, &report->discriminator, norm);
    return learner_take_parameters(pair->generator.learner, err);
}

static deberta_status one_after_the_other(training_pair *pair, size_t step, step_batch *batch, pair_report *report,
                                          deberta_error *err)
{
    DEBERTA_TRY(generator_gradients(pair, step, batch, &report->generator, err));
    training_update(&pair->generator, &report->generator, report->generator.gradient_norm);
    DEBERTA_TRY(learner_take_parameters(pair->generator.learner, err));
    DEBERTA_TRY(renew_discriminator(pair, err));
    DEBERTA_TRY(training_gradients_of(&pair->discriminator, step, batch, &report->discriminator, err));
    training_update(&pair->discriminator, &report->discriminator, report->discriminator.gradient_norm);
    return DEBERTA_OK;
}

deberta_status pair_gradients(training_pair *pair, size_t step, pair_report *report, deberta_error *err)
{
    step_batch batch;
    *report = (pair_report){0};
    DEBERTA_TRY(renew_discriminator(pair, err));
    DEBERTA_TRY(training_read(&pair->generator, step, &batch, err));
    const deberta_status status = both_gradients(pair, step, &batch, report, err);
    step_batch_free(&batch);
    report->loss = report->generator.result.loss + report->discriminator.result.loss;
    return status;
}

deberta_status pair_step(training_pair *pair, pair_report *report, deberta_error *err)
{
    step_batch batch;
    const size_t step = pair->generator.optimizer.done;
    *report = (pair_report){0};
    if (pair->options.coupled) DEBERTA_TRY(renew_discriminator(pair, err));
    DEBERTA_TRY(training_read(&pair->generator, step, &batch, err));
    const deberta_status status = pair->options.coupled ? coupled_step(pair, step, &batch, report, err)
                                                        : one_after_the_other(pair, step, &batch, report, err);
    step_batch_free(&batch);
    report->loss = report->generator.result.loss + report->discriminator.result.loss;
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- held out */

static deberta_status evaluate_batch(training_pair *pair, step_batch *batch, size_t number, pair_held_out *report,
                                     deberta_error *err)
{
    deberta_status status = begin_drawing(pair, batch, err);
    if (status == DEBERTA_OK)
        status = training_evaluate_batch(&pair->generator, batch, number, &report->generator, err);
    pair->generator.options.drawn_ids = NULL;
    DEBERTA_TRY(status);
    return training_evaluate_batch(&pair->discriminator, batch, number, &report->discriminator, err);
}

deberta_status pair_evaluate(training_pair *pair, const batch_source *held_out, pair_held_out *report,
                             deberta_error *err)
{
    const learner *l = pair->generator.learner;
    bool ended = false;
    *report = (pair_held_out){0};
    DEBERTA_TRY(renew_discriminator(pair, err));
    for (size_t number = 0; !ended; number++) {
        step_batch batch;
        DEBERTA_TRY(held_out->read(held_out->context, number, l->options.asked.shards, l->model->config.hidden_size,
                                   &batch, err));
        ended = batch.epoch >= 1;
        const deberta_status status = evaluate_batch(pair, &batch, number, report, err);
        step_batch_free(&batch);
        DEBERTA_TRY(status);
    }
    report->generator.loss /= (double)report->generator.labelled;
    report->discriminator.loss /= (double)report->discriminator.labelled;
    return DEBERTA_OK;
}
