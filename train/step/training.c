/* Runs an update: reads its batch, computes and checks gradients, and applies the optimiser.
 *
 * SPDX-License-Identifier: MIT */
#include "train/step/training.h"

#include <math.h>
#include <stdio.h>

#include "core/base/numbers.h"
#include "train/state/learner.h"
#include "train/step/step.h"

static deberta_status run_batch(const training *t, size_t number, const step_batch *batch, step_result *result,
                                deberta_error *err)
{
    step_options options = t->options;
    options.number = number;
    DEBERTA_TRY(step_check(t->learner, batch, &options, err));
    return options.sift_weight > 0 ? sift_step_run(t->learner, batch, &options, result, err)
                                   : step_run(t->learner, batch, &options, result, err);
}

deberta_status training_read(const training *t, size_t step, step_batch *batch, deberta_error *err)
{
    const learner *l = t->learner;
    return t->batches.read(t->batches.context, step, l->options.asked.shards, l->model->config.hidden_size, batch, err);
}

/* Lists the numbers of sequences in the data: "3, 0, 17 and 5 more". A batch of one step has none. */
static void name_sequences(char *text, size_t capacity, const step_batch *batch)
{
    enum { NAMED = 8 };
    const size_t named = minimum(batch->sequences, NAMED);
    size_t length = 0;
    for (size_t i = 0; i < named; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%zu", i ? ", " : "",
                                   batch->members ? batch->members[i] : batch->origin[i]);
    if (batch->sequences > named) snprintf(text + length, capacity - length, " and %zu more", batch->sequences - named);
}

/* Removes the sign of a NaN, which has no meaning and differs between processors. */
static double without_sign(double value) { return isnan(value) ? fabs(value) : value; }

static deberta_status say_not_finite(const training *t, const step_batch *batch, const step_report *report,
                                     deberta_error *err)
{
    char sequences[256];
    const parameter *wrong = parameter_set_not_finite(&t->learner->set);
    name_sequences(sequences, sizeof sequences, batch);
    DEBERTA_FAIL(err, DEBERTA_E_NOT_FINITE,
                 "step %zu: the loss is %g, the norm of the gradients %g%s%s%s; sequences %s", report->step,
                 without_sign(report->result.loss), without_sign(report->gradient_norm), wrong ? "; '" : "",
                 wrong ? wrong->stored_name : "",
                 wrong ? "' is the first tensor with a gradient that is not finite" : "", sequences);
}

deberta_status training_gradients_of(const training *t, size_t step, const step_batch *batch, step_report *report,
                                     deberta_error *err)
{
    learner *l = t->learner;
    *report = (step_report){.step = step + 1, .sequences = batch->sequences, .epoch = batch->epoch};
    DEBERTA_TRY(run_batch(t, step, batch, &report->result, err));
    if (t->on_gradients) t->on_gradients(t->context);
    report->gradient_norm = parameter_set_norm(&l->set, l->session->executor);
    stage_lap(l->clock, TRAINING_NORM);
    if (isfinite(report->result.loss) && isfinite(report->gradient_norm)) return DEBERTA_OK;
    report->is_bad = true;
    return say_not_finite(t, batch, report, err);
}

deberta_status training_gradients(const training *t, size_t step, step_report *report, deberta_error *err)
{
    step_batch batch;
    *report = (step_report){0};
    stage_begin(t->learner->clock);
    DEBERTA_TRY(training_read(t, step, &batch, err));
    const deberta_status status = training_gradients_of(t, step, &batch, report, err);
    step_batch_free(&batch);
    return status;
}

deberta_status training_evaluate_batch(const training *t, const step_batch *batch, size_t number,
                                       held_out_report *report, deberta_error *err)
{
    step_options options = t->options;
    step_result result = {0};
    options.loss_only = true;
    options.number = number;
    DEBERTA_TRY(step_check(t->learner, batch, &options, err));
    DEBERTA_TRY(step_run(t->learner, batch, &options, &result, err));
    report->loss += result.head_loss * (double)result.labelled;
    report->sequences += batch->sequences;
    report->tokens += result.tokens;
    report->labelled += result.labelled;
    return DEBERTA_OK;
}

deberta_status training_evaluate(const training *t, const batch_source *held_out, held_out_report *report,
                                 deberta_error *err)
{
    const learner *l = t->learner;
    const size_t width = l->model->config.hidden_size;
    bool ended = false;
    *report = (held_out_report){0};
    for (size_t step = 0; !ended; step++) {
        step_batch batch;
        DEBERTA_TRY(held_out->read(held_out->context, step, l->options.asked.shards, width, &batch, err));
        ended = batch.epoch >= 1;
        const deberta_status status = training_evaluate_batch(t, &batch, step, report, err);
        step_batch_free(&batch);
        DEBERTA_TRY(status);
    }
    report->loss /= (double)report->labelled;
    return DEBERTA_OK;
}

void training_update(training *t, step_report *report, double norm)
{
    optimizer *o = &t->optimizer;
    learner *l = t->learner;
    report->learning_rate = o->options.learning_rate * schedule_factor(&o->options, o->done);
    optimizer_step(o, &l->set, norm, learner_kernels(l), l->session->executor);
    stage_lap(l->clock, TRAINING_UPDATE);
}

deberta_status training_step(training *t, step_report *report, deberta_error *err)
{
    DEBERTA_TRY(training_gradients(t, t->optimizer.done, report, err));
    training_update(t, report, report->gradient_norm);
    const deberta_status status = learner_take_parameters(t->learner, err);
    stage_lap(t->learner->clock, TRAINING_PACK);
    return status;
}
