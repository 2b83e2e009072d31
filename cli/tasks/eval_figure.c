/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "cli/tasks/eval_output.h"
#include "core/base/status.h"
#include "viz/chart.h"

enum { MEASURES = 3, LABEL_BYTES = 120 };

deberta_status eval_figure_draw(const eval_findings *findings, const figure_style *style, const char *const *paths,
                                size_t path_count, deberta_error *err)
{
    static const char *const names[MEASURES] = {"precision", "recall", "F1"};
    const confusion *c = &findings->confusion;
    const classification_score score = confusion_score(c);
    double *values = calloc(MEASURES * c->labels, sizeof *values);
    figure_label *labels = calloc(c->labels, sizeof *labels);
    char(*numbered)[LABEL_BYTES] = calloc(c->labels, sizeof *numbered); /* cut names may look alike */
    deberta_status status =
        values && labels && numbered ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    for (size_t k = 0; status == DEBERTA_OK && k < c->labels; k++) {
        const class_score one = confusion_class(c, k);
        snprintf(numbered[k], sizeof numbered[k], "%zu %s", k, findings->names[k]);
        labels[k] = (figure_label){.text = numbered[k]};
        values[k] = one.precision;
        values[c->labels + k] = one.recall;
        values[2 * c->labels + k] = one.f1;
    }
    chart_series series[MEASURES];
    for (size_t m = 0; m < MEASURES; m++)
        series[m] = (chart_series){
            .name = names[m], .kind = CHART_BARS, .y = values ? values + m * c->labels : NULL, .count = c->labels};
    const chart_rule rules[] = {{.at = score.accuracy, .name = "accuracy"}};
    const chart_panel panel = {
        .x = {.label = "label", .scale = CHART_CATEGORIES, .categories = labels, .category_count = c->labels},
        .y = {.label = "precision, recall, F1", .low = 0, .high = 1},
        .series = series,
        .series_count = MEASURES,
        .rules = rules,
        .rule_count = 1};
    const chart_figure figure = {.style = *style, .panels = &panel, .panel_count = 1, .panel_height = 50};
    if (status == DEBERTA_OK) status = figure_chart(&figure, paths, path_count, NULL, err);
    free(values);
    free(labels);
    free(numbered);
    return status;
}
