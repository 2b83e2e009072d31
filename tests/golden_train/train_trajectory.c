/* Golden runs are repeated step by step, and losses, norms and weights are compared. SPDX-License-Identifier: MIT */
#include "tests/golden_train/train_trajectory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/deberta_training.h"
#include "train/step/training.h"

static double number_option(const json_t *entry, const char *option, double otherwise)
{
    const char *text = train_case_option(entry, option);
    return text ? strtod(text, NULL) : otherwise;
}

static deberta_trainer_options recipe_of(const json_t *entry)
{
    const char *optimizer = train_case_option(entry, "--optimizer"), *schedule = train_case_option(entry, "--schedule");
    return (deberta_trainer_options){
        .optimizer = strcmp(optimizer, "xadam") == 0 ? DEBERTA_XADAM : DEBERTA_ADAMW,
        .schedule = strcmp(schedule, "microsoft") == 0 ? DEBERTA_SCHEDULE_MICROSOFT : DEBERTA_SCHEDULE_LINEAR,
        .learning_rate = number_option(entry, "--learning-rate", 0),
        .beta1 = number_option(entry, "--beta1", 0),
        .beta2 = number_option(entry, "--beta2", 0),
        .epsilon = number_option(entry, "--epsilon", 0),
        .weight_decay = number_option(entry, "--weight-decay", 0),
        .clip = number_option(entry, "--clip", 0),
        .layer_decay = number_option(entry, "--layer-decay", 1),
        .steps = (size_t)number_option(entry, "--steps", 0),
        .warmup = (size_t)number_option(entry, "--warmup", 0),
    };
}

/* One loss and its learning rate; kind: "loss", "loss.generator" ... */
static void compare_step(const train_case *c, const json_t *entry, const char *kind, const step_report *report,
                         double got, trajectory_outcome *outcome)
{
    const size_t step = report->step - 1;
    const double *loss, *rate;
    const json_t *errors = json_object_get(json_object_get(entry, "f32"), kind);
    if (train_case_expected(c, kind, &loss) <= step || train_case_expected(c, "learning_rate", &rate) <= step) {
        outcome->worst_loss = INFINITY;
        return;
    }
    const double unit = fmax(json_number_value(json_array_get(errors, step)), 5e-7 * fabs(loss[step]));
    outcome->worst_loss = fmax(outcome->worst_loss, fabs(got - loss[step]) / unit);
    outcome->worst_rate = fmax(outcome->worst_rate, fabs(report->learning_rate - rate[step]) / fmax(rate[step], 1e-12));
}

static void compare_weights(const train_case *c, const json_t *entry, const parameter_set *set, const char *prefix,
                            trajectory_outcome *outcome)
{
    for (size_t i = 0; i < set->count; i++) {
        const parameter *p = &set->items[i];
        char name[256];
        const double *want;
        double worst = 0;
        snprintf(name, sizeof name, "final.%s%s", prefix, p->stored_name);
        const char *key = name + strlen("final.");
        const double unit = fmax(json_number_value(json_object_get(json_object_get(entry, "f32_final"), key)),
                                 json_number_value(json_object_get(json_object_get(entry, "floor_final"), key)));
        if (!p->trained) continue;
        if (train_case_expected(c, name, &want) != p->count || !(unit > 0)) worst = INFINITY;
        for (size_t e = 0; worst < INFINITY && e < p->count; e++)
            worst = fmax(worst, fabs((double)p->values[e] - want[e]) / unit);
        outcome->tensors++;
        if (worst <= outcome->worst_final) continue;
        outcome->worst_final = worst;
        snprintf(outcome->where, sizeof outcome->where, "%s", key);
    }
}

static deberta_status run_model(const train_case *c, const json_t *entry, training *model, trajectory_outcome *outcome,
                                deberta_error *err)
{
    for (; outcome->steps < model->optimizer.options.steps; outcome->steps++) {
        step_report report;
        DEBERTA_TRY(training_step(model, &report, err));
        compare_step(c, entry, "loss", &report, report.result.loss, outcome);
    }
    compare_weights(c, entry, &model->learner->set, "", outcome);
    return DEBERTA_OK;
}

static deberta_status run_pair(const train_case *c, const json_t *entry, training_pair *pair,
                               trajectory_outcome *outcome, deberta_error *err)
{
    for (; outcome->steps < pair->generator.optimizer.options.steps; outcome->steps++) {
        pair_report report;
        DEBERTA_TRY(pair_step(pair, &report, err));
        compare_step(c, entry, "loss.generator", &report.generator, report.generator.result.head_loss, outcome);
        compare_step(c, entry, "loss.discriminator", &report.discriminator, report.discriminator.result.head_loss,
                     outcome);
    }
    compare_weights(c, entry, &pair->generator.learner->set, "generator.", outcome);
    compare_weights(c, entry, &pair->discriminator.learner->set, "discriminator.", outcome);
    return DEBERTA_OK;
}

static deberta_status open_optimizer(training *model, const deberta_trainer_options *recipe, deberta_error *err)
{
    learner *l = model->learner;
    return optimizer_open(&model->optimizer, &l->set, l->model->config.layers, recipe, err);
}

deberta_status trajectory_run(const train_case *c, const json_t *entry, size_t threads, trajectory_outcome *outcome,
                              deberta_error *err)
{
    case_models models;
    const deberta_trainer_options recipe = recipe_of(entry);
    *outcome = (trajectory_outcome){0};
    deberta_status status = train_case_models(c, DEBERTA_ISA_AUTO, threads, &models, err);
    if (status == DEBERTA_OK) status = open_optimizer(models.model, &recipe, err);
    if (status == DEBERTA_OK && c->has_pair) status = open_optimizer(&models.pair.generator, &recipe, err);
    if (status == DEBERTA_OK)
        status = c->has_pair ? run_pair(c, entry, &models.pair, outcome, err)
                             : run_model(c, entry, models.model, outcome, err);
    train_case_close_models(&models);
    return status;
}
