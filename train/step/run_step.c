/* Runs, describes, skips or evaluates one step of a model or of a pair. SPDX-License-Identifier: MIT */
#include "train/step/run_step.h"

#include <math.h>

size_t run_parts_done(const run_parts *parts) { return parts->items[0].training->optimizer.done; }

static deberta_training_step run_step_describe(const run_parts *parts, const step_report *report)
{
    const bool is_rtd = parts->items[0].training->options.task == DEBERTA_TRAIN_RTD;
    return (deberta_training_step){
        .step = report->step,
        .steps = parts->items[0].training->optimizer.options.steps,
        .loss = report->result.loss,
        .loss_clean = report->result.head_loss,
        .loss_discriminator = is_rtd ? report->result.head_loss : 0,
        .gradient_norm = report->gradient_norm,
        .learning_rate = report->learning_rate,
        .epoch = report->epoch,
        .sequences = report->sequences,
        .tokens = report->result.tokens,
        .labelled = report->result.labelled,
    };
}

static deberta_training_step describe_pair(const run_parts *parts, const pair_report *report)
{
    deberta_training_step step = run_step_describe(parts, &report->generator);
    step.loss = report->loss;
    step.loss_generator = report->generator.result.head_loss;
    step.loss_discriminator = report->discriminator.result.head_loss;
    step.gradient_norm_generator = report->generator.gradient_norm;
    step.gradient_norm_discriminator = report->discriminator.gradient_norm;
    step.gradient_norm = sqrt(step.gradient_norm_generator * step.gradient_norm_generator +
                              step.gradient_norm_discriminator * step.gradient_norm_discriminator);
    return step;
}

deberta_status run_parts_step(const run_parts *parts, deberta_training_step *step, bool *is_bad, deberta_error *err)
{
    step_report report = {0};
    pair_report both = {0};
    const deberta_status status =
        parts->pair ? pair_step(parts->pair, &both, err) : training_step(parts->items[0].training, &report, err);
    if (is_bad) *is_bad = report.is_bad || both.generator.is_bad || both.discriminator.is_bad;
    *step = parts->pair ? describe_pair(parts, &both) : run_step_describe(parts, &report);
    return status;
}

/* A generator may have had its update before the discriminator's loss was bad. */
void run_parts_skip(const run_parts *parts, size_t step)
{
    for (size_t i = 0; i < parts->count; i++) {
        optimizer *o = &parts->items[i].training->optimizer;
        if (o->done < step) optimizer_skip(o);
    }
}

deberta_status run_parts_gradients(const run_parts *parts, deberta_training_step *step, deberta_error *err)
{
    step_report report;
    pair_report both;
    const size_t done = run_parts_done(parts);
    if (parts->pair) {
        DEBERTA_TRY(pair_gradients(parts->pair, done, &both, err));
        *step = describe_pair(parts, &both);
        return DEBERTA_OK;
    }
    DEBERTA_TRY(training_gradients(parts->items[0].training, done, &report, err));
    *step = run_step_describe(parts, &report);
    return DEBERTA_OK;
}

deberta_status run_parts_evaluate(const run_parts *parts, const batch_source *held_out, run_held_out *report,
                                  deberta_error *err)
{
    *report = (run_held_out){0};
    if (parts->pair) {
        pair_held_out both;
        DEBERTA_TRY(pair_evaluate(parts->pair, held_out, &both, err));
        report->all = both.generator;
        report->discriminator = both.discriminator;
        report->loss =
            both.generator.loss + (double)parts->pair->discriminator.options.rtd_weight * both.discriminator.loss;
        return DEBERTA_OK;
    }
    DEBERTA_TRY(training_evaluate(parts->items[0].training, held_out, &report->all, err));
    report->loss = report->all.loss;
    return DEBERTA_OK;
}
