/* SPDX-License-Identifier: MIT */
#include "train/training.h"

#include <math.h>

#include "train/sift.h"
#include "train/step_check.h"

static deberta_status run_batch(const training *t, size_t number, const step_batch *batch, step_result *result,
                                deberta_error *err)
{
    step_options options = t->options;
    options.number = number;
    DEBERTA_TRY(step_check(t->learner, batch, &options, err));
    return options.sift_weight > 0 ? sift_step_run(t->learner, batch, &options, result, err)
                                   : step_run(t->learner, batch, &options, result, err);
}

deberta_status training_gradients(const training *t, size_t step, step_report *report, deberta_error *err)
{
    step_batch batch;
    learner *l = t->learner;
    *report = (step_report){.step = step + 1};
    stage_begin(l->clock);
    DEBERTA_TRY(t->batches.read(t->batches.context, step, l->options.parts, l->model->config.hidden_size, &batch, err));
    report->sequences = batch.sequences;
    report->epoch = batch.epoch;
    deberta_status status = run_batch(t, step, &batch, &report->result, err);
    step_batch_free(&batch);
    DEBERTA_TRY(status);
    if (t->on_gradients) t->on_gradients(t->context);
    report->gradient_norm = parameter_set_norm(&l->set, l->session->executor);
    stage_lap(l->clock, TRAINING_NORM);
    if (isfinite(report->result.loss) && isfinite(report->gradient_norm)) return DEBERTA_OK;
    const parameter *wrong = parameter_set_not_finite(&l->set);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "step %zu: the loss is %g, the norm of the gradients %g%s%s%s", step + 1,
                 report->result.loss, report->gradient_norm, wrong ? "; '" : "", wrong ? wrong->stored_name : "",
                 wrong ? "' is the first tensor with a gradient that is not finite" : "");
}

deberta_status training_evaluate(const training *t, const batch_source *held_out, held_out_report *report,
                                 deberta_error *err)
{
    learner *l = t->learner;
    step_options options = t->options;
    double sum = 0;
    bool ended = false;
    options.loss_only = true;
    *report = (held_out_report){0};
    for (size_t step = 0; !ended; step++) {
        step_batch batch;
        step_result result = {0};
        DEBERTA_TRY(
            held_out->read(held_out->context, step, l->options.parts, l->model->config.hidden_size, &batch, err));
        ended = batch.epoch >= 1;
        report->sequences += batch.sequences;
        deberta_status status = step_check(l, &batch, &options, err);
        if (status == DEBERTA_OK) status = step_run(l, &batch, &options, &result, err);
        step_batch_free(&batch);
        DEBERTA_TRY(status);
        sum += result.loss * (double)result.labelled;
        report->tokens += result.tokens;
        report->labelled += result.labelled;
    }
    report->loss = sum / (double)report->labelled;
    return DEBERTA_OK;
}

deberta_status training_step(training *t, step_report *report, deberta_error *err)
{
    learner *l = t->learner;
    const double rate = t->optimizer.options.learning_rate * schedule_factor(&t->optimizer.options, t->optimizer.done);
    DEBERTA_TRY(training_gradients(t, t->optimizer.done, report, err));
    report->learning_rate = rate;
    optimizer_step(&t->optimizer, &l->set, report->gradient_norm, learner_kernels(l), l->session->executor);
    stage_lap(l->clock, TRAINING_UPDATE);
    const deberta_status status = learner_take_parameters(l, err);
    stage_lap(l->clock, TRAINING_PACK);
    return status;
}
