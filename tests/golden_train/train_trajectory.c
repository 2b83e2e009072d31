/* SPDX-License-Identifier: MIT */
#include "tests/golden_train/train_trajectory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/training.h"

static double number_option(const json_t *entry, const char *option, double otherwise)
{
    const char *text = train_case_option(entry, option);
    return text ? strtod(text, NULL) : otherwise;
}

static optimizer_options recipe_of(const json_t *entry)
{
    const char *optimizer = train_case_option(entry, "--optimizer"), *schedule = train_case_option(entry, "--schedule");
    return (optimizer_options){
        .kind = strcmp(optimizer, "xadam") == 0 ? OPTIMIZER_XADAM : OPTIMIZER_ADAMW,
        .schedule = strcmp(schedule, "microsoft") == 0 ? SCHEDULE_MICROSOFT : SCHEDULE_LINEAR,
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

static void compare_step(const train_case *c, const json_t *entry, const step_report *report,
                         trajectory_outcome *outcome)
{
    const size_t step = report->step - 1;
    const double *loss, *rate;
    const json_t *errors = json_object_get(json_object_get(entry, "f32"), "loss");
    if (train_case_expected(c, "loss", &loss) <= step || train_case_expected(c, "learning_rate", &rate) <= step) {
        outcome->worst_loss = INFINITY;
        return;
    }
    const double unit = fmax(json_number_value(json_array_get(errors, step)), 5e-7 * fabs(loss[step]));
    outcome->worst_loss = fmax(outcome->worst_loss, fabs(report->result.loss - loss[step]) / unit);
    outcome->worst_rate = fmax(outcome->worst_rate, fabs(report->learning_rate - rate[step]) / fmax(rate[step], 1e-12));
}

static void compare_weights(const train_case *c, const json_t *entry, const parameter_set *set,
                            trajectory_outcome *outcome)
{
    for (size_t i = 0; i < set->count; i++) {
        const parameter *p = &set->items[i];
        char name[256];
        const double *want;
        double worst = 0;
        snprintf(name, sizeof name, "final.%s", p->stored_name);
        const double unit =
            fmax(json_number_value(json_object_get(json_object_get(entry, "f32_final"), p->stored_name)),
                 json_number_value(json_object_get(json_object_get(entry, "floor_final"), p->stored_name)));
        if (train_case_expected(c, name, &want) != p->count || !(unit > 0)) worst = INFINITY;
        for (size_t e = 0; worst < INFINITY && e < p->count; e++)
            worst = fmax(worst, fabs((double)p->values[e] - want[e]) / unit);
        outcome->tensors++;
        if (worst <= outcome->worst_final) continue;
        outcome->worst_final = worst;
        snprintf(outcome->where, sizeof outcome->where, "%s", p->stored_name);
    }
}

static deberta_status run_steps(const train_case *c, const json_t *entry, training *run, trajectory_outcome *outcome,
                                deberta_error *err)
{
    const optimizer_options recipe = recipe_of(entry);
    learner *l = run->learner;
    DEBERTA_TRY(optimizer_open(&run->optimizer, &l->set, l->model->config.layers, &recipe, err));
    for (; outcome->steps < recipe.steps; outcome->steps++) {
        step_report report;
        DEBERTA_TRY(training_step(run, &report, err));
        compare_step(c, entry, &report, outcome);
    }
    compare_weights(c, entry, &l->set, outcome);
    return DEBERTA_OK;
}

deberta_status trajectory_run(const train_case *c, const json_t *entry, size_t threads, trajectory_outcome *outcome,
                              deberta_error *err)
{
    training run = {.options = c->options};
    batch_file *file = NULL;
    *outcome = (trajectory_outcome){0};
    deberta_status status = batch_file_open(&file, c->batch, true, c->options.task, err);
    run.batches = batch_file_source(file);
    if (status == DEBERTA_OK) status = train_case_learner(c, file, DEBERTA_ISA_AUTO, threads, &run.learner, err);
    if (status == DEBERTA_OK) status = run_steps(c, entry, &run, outcome, err);
    optimizer_free(&run.optimizer);
    learner_free(&run.learner);
    batch_file_close(&file);
    return status;
}
