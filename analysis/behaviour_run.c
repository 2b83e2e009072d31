/* Runs the tests of behaviour one after the other, on one model and one text; behaviour_places.c and behaviour_window.c
 * define the tests.
 *
 * SPDX-License-Identifier: MIT */

#include <stdlib.h>

#include "analysis/behaviour_work.h"
#include "core/base/status.h"
#include "core/load/model.h"
#include "output/scope.h"

static deberta_status run_tests(behaviour_work *w, deberta_error *err)
{
    DEBERTA_TRY(receptive_field_make(&w->field, &w->rule, 0, false, err));
    /* Ordinary distances, near and on both sides, which every model must distinguish. */
    DEBERTA_TRY(behaviour_test_distinct(w, "neighbours", (distance_pair){1, 2}, err));
    DEBERTA_TRY(behaviour_test_distinct(w, "sides", (distance_pair){1, -1}, err));
    DEBERTA_TRY(behaviour_test_side(w, true, err));
    DEBERTA_TRY(behaviour_test_side(w, false, err));
    for (size_t layers = 1; layers <= w->info.layers; layers *= 2) {
        DEBERTA_TRY(behaviour_test_window(w, true, layers, err));
        const bool same = w->field.unique_count == w->field.run_left + w->field.run_right + 1;
        if (!same) DEBERTA_TRY(behaviour_test_window(w, false, layers, err));
    }
    return DEBERTA_OK;
}

/* Estimates the number of tests, for the progress only. */
static size_t estimate_tests(const behaviour_options *options)
{
    size_t levels = 0;
    for (size_t layers = 1; layers <= options->most_layers; layers *= 2) levels++;
    return 8 + 2 * levels + 2 * 4 * levels;
}

/* Keeps the ablations of open layers; the model was opened with its lowest layers only. */
static void keep_ablations(behaviour_work *w)
{
    const behaviour_options *options = w->options;
    w->ablations = scope_take(&w->report->memory, options->of.ablation_count, sizeof *w->ablations);
    for (size_t k = 0; k < options->of.ablation_count; k++)
        if (options->of.ablations[k].layer == DEBERTA_EVERY || options->of.ablations[k].layer < w->info.layers)
            w->ablations[w->ablation_count++] = options->of.ablations[k];
}

deberta_status behaviour_run(behaviour_report *report, const behaviour_options *options, deberta_error *err)
{
    behaviour_work w = {.options = options, .report = report, .total = estimate_tests(options)};
    const deberta_model_options model_options = {.struct_size = sizeof model_options,
                                                 .reference = options->of.reference,
                                                 .threads = options->of.threads,
                                                 .memory_limit_bytes = options->of.memory_limit_bytes,
                                                 .layers = options->most_layers};
    const model_internal_options internal = {.decorate = options->decorate};
    deberta_status status = model_open_internal(&w.model, options->of.model, &model_options, &internal, err);
    if (status == DEBERTA_OK) {
        w.info = *deberta_model_describe(w.model);
        w.rule = position_rule_of(&w.info, options->of.reference);
        keep_ablations(&w);
        status = run_tests(&w, err);
    }
    scope_free(&w.field.memory);
    free(w.ids);
    free(w.positions);
    deberta_model_free(&w.model);
    return status;
}
