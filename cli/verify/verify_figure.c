/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verify/verify_output.h"
#include "core/base/status.h"
#include "viz/chart.h"

static const char *const quantities[] = {"hidden", "c2c", "c2p", "p2c", "logits", "probs"};
static const char *const quantity_names[] = {"hidden states", "c2c", "c2p", "p2c", "logits", "probabilities"};
enum { QUANTITIES = sizeof quantities / sizeof *quantities, MOST_PANELS = 8 };

/* What a panel shows of every row. One model has a panel of each, several have one of the second. */
typedef enum statistic { MEDIAN, PERCENTILE, WORST, STATISTICS } statistic;
static const char *const statistic_names[STATISTICS] = {"median", "99.9th percentile", "worst"};

static double value_of(const verify_row *row, statistic what)
{
    return what == MEDIAN ? row->median : what == PERCENTILE ? row->percentile_999 : row->worst;
}

typedef struct verify_drawing {
    const verify_report *report;
    double *numbers, *next; /* x and y of every series; rows are few */
    chart_series series[MOST_PANELS][QUANTITIES];
    chart_panel panels[MOST_PANELS];
    size_t panel_count;
} verify_drawing;

static bool is_of(const verify_row *row, const char *model, const char *quantity, deberta_isa tier)
{
    return row->has_error && row->tier == tier && strcmp(row->place.model, model) == 0 &&
           strcmp(row->place.quantity, quantity) == 0;
}

/* Bits are the same on all tiers, so one of them stands for all; where they are not, the table says so. A logarithmic
 * axis has no place for an error of 0. */
static bool add_series(verify_drawing *d, chart_series *series, size_t quantity, const verify_row *example,
                       statistic what)
{
    const verify_report *report = d->report;
    double *x = d->next, *y = x + report->count;
    size_t count = 0;
    for (size_t k = 0; k < report->count; k++) {
        const verify_row *row = &report->rows[k];
        if (!is_of(row, example->place.model, quantities[quantity], example->tier) || !(value_of(row, what) > 0))
            continue;
        x[count] = (double)row->place.layer;
        y[count++] = value_of(row, what);
    }
    if (!count) return false;
    d->next += 2 * report->count;
    *series = (chart_series){
        .name = quantity_names[quantity], .kind = CHART_LINE, .x = x, .y = y, .count = count, .look = quantity + 1};
    return true;
}

static void add_panel(verify_drawing *d, const verify_row *example, statistic what, const char *title)
{
    if (d->panel_count == MOST_PANELS) return;
    chart_series *series = d->series[d->panel_count];
    size_t count = 0;
    double last = 0;
    for (size_t q = 0; q < QUANTITIES; q++) count += add_series(d, &series[count], q, example, what);
    if (!count) return;
    for (size_t s = 0; s < count; s++) last = fmax(last, series[s].x[series[s].count - 1]);
    d->panels[d->panel_count++] = (chart_panel){
        .title = title,
        .x = {.label = "layer (hidden states: its input)", .scale = CHART_WHOLE, .low = -0.2, .high = last + 0.2},
        .y = {.label = what == PERCENTILE ? "p99.9 error (eps × largest)" : "error (eps × largest)",
              .scale = CHART_LOG10},
        .series = series,
        .series_count = count};
}

static bool is_first_of_model(const verify_report *report, size_t k)
{
    if (!*report->rows[k].place.quantity) return false;
    for (size_t j = 0; j < k; j++)
        if (*report->rows[j].place.quantity && strcmp(report->rows[j].place.model, report->rows[k].place.model) == 0)
            return false;
    return true;
}

deberta_status verify_figure_draw(const verify_report *report, const figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err)
{
    verify_drawing drawing = {.report = report};
    drawing.next = drawing.numbers =
        calloc(MOST_PANELS * QUANTITIES * 2 * (report->count + 1), sizeof *drawing.numbers);
    if (!drawing.numbers) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    const verify_row *only = NULL;
    size_t models = 0;
    for (size_t k = 0; k < report->count; k++)
        if (is_first_of_model(report, k) && !models++) only = &report->rows[k];
    for (int what = 0; models == 1 && what < STATISTICS; what++)
        add_panel(&drawing, only, (statistic)what, statistic_names[what]);
    for (size_t k = 0; models > 1 && k < report->count; k++)
        if (is_first_of_model(report, k))
            add_panel(&drawing, &report->rows[k], PERCENTILE, report->rows[k].place.model);
    const chart_figure figure = {.style = *style,
                                 .panels = drawing.panels,
                                 .panel_count = drawing.panel_count,
                                 .panel_letters = drawing.panel_count > 1};
    const deberta_status status =
        drawing.panel_count
            ? figure_chart(&figure, paths, path_count, NULL, err)
            : status_fail(err, DEBERTA_E_ARGUMENT, "nothing that was verified has layers: there is no chart to draw");
    free(drawing.numbers);
    return status;
}
