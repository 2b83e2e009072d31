/* Draws precision, recall and F1 of the classes as bars. SPDX-License-Identifier: MIT */
#include "program/tasks/eval_output.h"
#include "viz/chart_columns.h"

deberta_status eval_figure_draw(const void *what, const figure_style *style, const char *const *paths,
                                size_t path_count, deberta_error *err)
{
    static const char *const names[] = {"precision", "recall", "F1"};
    const eval_findings *findings = what;
    const confusion *counts = &findings->confusion;
    chart_columns c = {.panel_height = 50};
    chart_add_panel(&c, (chart_panel){.x = {.label = "label", .scale = CHART_CATEGORIES},
                                      .y = {.label = "precision, recall, F1", .low = 0, .high = 1}});
    for (size_t k = 0; k < counts->labels; k++) /* numbers distinguish names that look alike when cut */
        chart_add_category(&c, chart_text(&c, "%zu %s", k, findings->names[k]));
    chart_add_rule(&c, (chart_rule){.at = confusion_score(counts).accuracy, .name = "accuracy"});
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        chart_add_series(&c, (chart_series){.name = names[m], .kind = CHART_BARS});
        for (size_t k = 0; k < counts->labels; k++) {
            const class_score one = confusion_class(counts, k);
            chart_add_point(&c, (double)k, m == 0 ? one.precision : m == 1 ? one.recall : one.f1);
        }
    }
    const deberta_status status = chart_columns_draw(&c, style, paths, path_count, err);
    chart_columns_free(&c);
    return status;
}
