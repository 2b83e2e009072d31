/* Draws errors of a verification over the layers, with a line for each quantity. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "core/base/status.h"
#include "program/verify/verify_output.h"
#include "viz/chart_columns.h"

static const char *const quantities[] = {"hidden", "c2c", "c2p", "p2c", "logits", "probs"};
static const char *const quantity_names[] = {"hidden states", "c2c", "c2p", "p2c", "logits", "probabilities"};
enum { QUANTITIES = sizeof quantities / sizeof *quantities, MOST_PANELS = 8 };

/* Statistic of a panel. One model has a panel for each, several models have one for the second. */
typedef enum statistic { MEDIAN, PERCENTILE, WORST, STATISTICS } statistic;
static const char *const statistic_names[STATISTICS] = {"median", "99.9th percentile", "worst"};

static double value_of(const verify_row *row, statistic what)
{
    return what == MEDIAN ? row->median : what == PERCENTILE ? row->percentile_999 : row->worst;
}

static bool is_of(const verify_row *row, const char *model, const char *quantity, deberta_isa tier)
{
    return row->has_error && row->tier == tier && strcmp(row->place.model, model) == 0 &&
           strcmp(row->place.quantity, quantity) == 0;
}

/* Adds a panel. Bits are the same on all tiers, so one tier is drawn; if they differ, the table shows it. A
 * logarithmic axis has no place for an error of 0. */
static void add_panel(chart_columns *c, const verify_report *report, const verify_row *example, statistic what,
                      const char *title)
{
    double last = 0;
    if (c->panel_count == MOST_PANELS) return;
    chart_add_panel(
        c, (chart_panel){.title = title,
                         .x = {.label = "layer (hidden states: its input)", .scale = CHART_WHOLE},
                         .y = {.label = what == PERCENTILE ? "p99.9 error (eps × largest)" : "error (eps × largest)",
                               .scale = CHART_LOG10}});
    for (size_t q = 0; q < QUANTITIES; q++) {
        chart_add_series(c, (chart_series){.name = quantity_names[q], .kind = CHART_LINE, .look = q + 1});
        for (size_t k = 0; k < report->count; k++) {
            const verify_row *row = &report->rows[k];
            const double value = value_of(row, what);
            if (!is_of(row, example->place.model, quantities[q], example->tier) || !(value > 0)) continue;
            chart_add_point(c, (double)row->place.layer, value);
            last = fmax(last, (double)row->place.layer);
        }
    }
    chart_panel *panel = chart_last_panel(c);
    if (!panel) return;
    panel->x.low = -0.2;
    panel->x.high = last + 0.2;
}

static bool is_first_of_model(const verify_report *report, size_t k)
{
    if (!*report->rows[k].place.quantity) return false;
    for (size_t j = 0; j < k; j++)
        if (*report->rows[j].place.quantity && strcmp(report->rows[j].place.model, report->rows[k].place.model) == 0)
            return false;
    return true;
}

deberta_status verify_figure_draw(const void *found, const figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err)
{
    const verify_report *report = found;
    chart_columns c = {0};
    const verify_row *only = NULL;
    size_t models = 0, panels;
    for (size_t k = 0; k < report->count; k++)
        if (is_first_of_model(report, k) && !models++) only = &report->rows[k];
    for (int what = 0; models == 1 && what < STATISTICS; what++)
        add_panel(&c, report, only, (statistic)what, statistic_names[what]);
    for (size_t k = 0; models > 1 && k < report->count; k++)
        if (is_first_of_model(report, k))
            add_panel(&c, report, &report->rows[k], PERCENTILE, report->rows[k].place.model);
    chart_columns_panels(&c, &panels);
    const deberta_status status =
        panels
            ? chart_columns_draw(&c, style, paths, path_count, err)
            : status_fail(err, DEBERTA_E_ARGUMENT, "nothing that was verified has layers: there is no chart to draw");
    chart_columns_free(&c);
    return status;
}
