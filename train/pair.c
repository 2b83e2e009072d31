/* SPDX-License-Identifier: MIT */
#include "train/pair.h"

#include <string.h>

static const char *const table_names[PAIR_TABLES][2] = {
    {"embeddings.word_embeddings.weight", "embeddings.word_embeddings._weight"},
    {"embeddings.position_embeddings.weight", "embeddings.position_embeddings._weight"},
};

/* One addition an element. */
void pair_share_tables(training_pair *pair)
{
    for (size_t i = 0; i < pair->table_count; i++) {
        const shared_table *table = &pair->tables[i];
        for (size_t e = 0; e < table->discriminator->count; e++)
            table->discriminator->values[e] = table->generator->values[e] + table->difference->values[e];
    }
}

/* The table's gradient is that of the difference; the generator gets nothing. */
static void hand_to_differences(void *context)
{
    const training_pair *pair = context;
    for (size_t i = 0; i < pair->table_count; i++) {
        const shared_table *table = &pair->tables[i];
        memcpy(table->difference->gradient, table->discriminator->gradient,
               table->difference->count * sizeof *table->difference->gradient);
    }
}

static deberta_status check_table(const training_pair *pair, const shared_table *table, size_t which,
                                  deberta_error *err)
{
    const char *generator = pair->generator.learner->set.name, *discriminator = pair->discriminator.learner->set.name;
    const char *name = table_names[which][0];
    if (!table->generator) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' is missing", generator, name);
    if (!table->discriminator || !table->difference)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: a table shared by difference needs '%s' and '%s'", discriminator, name,
                     table_names[which][1]);
    const bool same = table->generator->count == table->discriminator->count &&
                      table->difference->count == table->discriminator->count;
    if (same) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "'%s' has shape %s in %s and %s in %s: they cannot be shared", name,
                 shape_describe(table->generator->shape, table->generator->rank).text, generator,
                 shape_describe(table->discriminator->shape, table->discriminator->rank).text, discriminator);
}

static deberta_status find_table(training_pair *pair, size_t which, deberta_error *err)
{
    const parameter_set *generator = &pair->generator.learner->set, *own = &pair->discriminator.learner->set;
    const shared_table table = {
        .generator = parameter_find(generator, table_names[which][0]),
        .discriminator = parameter_find(own, table_names[which][0]),
        .difference = parameter_find(own, table_names[which][1]),
    };
    if (which > 0 && !table.discriminator && !table.difference) return DEBERTA_OK; /* positions: not in every model */
    DEBERTA_TRY(check_table(pair, &table, which, err));
    table.discriminator->trained = false;
    pair->tables[pair->table_count++] = table;
    return DEBERTA_OK;
}

deberta_status pair_open(training_pair *pair, deberta_error *err)
{
    pair->table_count = 0;
    for (size_t which = 0; which < PAIR_TABLES; which++) DEBERTA_TRY(find_table(pair, which, err));
    pair->discriminator.options.reads_sampled = true;
    pair->discriminator.on_gradients = hand_to_differences;
    pair->discriminator.context = pair;
    pair_share_tables(pair);
    return learner_take_parameters(pair->discriminator.learner, err);
}

deberta_status pair_gradients(training_pair *pair, size_t step, pair_report *report, deberta_error *err)
{
    DEBERTA_TRY(training_gradients(&pair->generator, step, &report->generator, err));
    DEBERTA_TRY(training_gradients(&pair->discriminator, step, &report->discriminator, err));
    report->loss = report->generator.result.loss + report->discriminator.result.loss;
    return DEBERTA_OK;
}

deberta_status pair_step(training_pair *pair, pair_report *report, deberta_error *err)
{
    DEBERTA_TRY(training_step(&pair->generator, &report->generator, err));
    pair_share_tables(pair);
    DEBERTA_TRY(learner_take_parameters(pair->discriminator.learner, err));
    DEBERTA_TRY(training_step(&pair->discriminator, &report->discriminator, err));
    report->loss = report->generator.result.loss + report->discriminator.result.loss;
    return DEBERTA_OK;
}
