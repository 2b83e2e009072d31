/* `deberta study grid`: terms of attention and ways of absolute positions, in tiny models trained alike.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "command/options.h"
#include "studies/studies.h"
#include "studies/study.h"
#include "studies/study_losses.h"
#include "core/base/status.h"

/* As tools/train_grid.py names them; in this order in tables and bars. */
static const struct {
    const char *cell, *terms, *positions;
} cells[] = {
    {"c2c/none@64", "c2c", "none"},          {"c2c/emd@64", "c2c", "decoder"},
    {"c2c+c2p/none@64", "c2c c2p", "none"},  {"c2c+c2p/emd@64", "c2c c2p", "decoder"},
    {"c2c+p2c/none@64", "c2c p2c", "none"},  {"c2c+p2c/emd@64", "c2c p2c", "decoder"},
    {"full/none@64", "c2c c2p p2c", "none"}, {"full/emd@64", "c2c c2p p2c", "decoder"},
    {"input/none@64", "c2c", "input"},
};
enum { CELLS = sizeof cells / sizeof *cells, FULL_EMD = 7, BERT = 8 };

typedef struct grid_study {
    study_losses losses;
    const loss_cell *cell[CELLS];
    bootstrap_interval mean[CELLS], to_full[CELLS], to_bert[CELLS];
    study_findings findings;
} grid_study;

static deberta_status compute(grid_study *study, deberta_error *err)
{
    for (size_t k = 0; k < CELLS; k++)
        DEBERTA_TRY(study_losses_find(&study->losses, cells[k].cell, &study->cell[k], err));
    for (size_t k = 0; k < CELLS; k++) {
        DEBERTA_TRY(study_losses_mean(&study->losses, study->cell[k], NULL, &study->mean[k], err));
        DEBERTA_TRY(study_losses_mean(&study->losses, study->cell[k], study->cell[FULL_EMD], &study->to_full[k], err));
        DEBERTA_TRY(study_losses_mean(&study->losses, study->cell[k], study->cell[BERT], &study->to_bert[k], err));
    }
    return DEBERTA_OK;
}

static void tabulate(grid_study *study)
{
    study_findings *findings = &study->findings;
    static const result_column columns[] = {STUDY_TEXT_COLUMN("terms"),
                                            STUDY_TEXT_COLUMN("absolute positions"),
                                            STUDY_TEXT_COLUMN("loss"),
                                            STUDY_TEXT_COLUMN("best-worst seed"),
                                            STUDY_TEXT_COLUMN("against full with decoder"),
                                            STUDY_TEXT_COLUMN("against positions at the input"),
                                            {.name = NULL}};
    static const result_column data_columns[] = {STUDY_TEXT_COLUMN("terms"),   STUDY_TEXT_COLUMN("positions"),
                                                 STUDY_TEXT_COLUMN("against"), STUDY_REAL_COLUMN("value"),
                                                 STUDY_REAL_COLUMN("low"),     STUDY_REAL_COLUMN("high"),
                                                 STUDY_COUNT_COLUMN("seeds"),  {.name = NULL}};
    result_table *table = study_add_table(findings, "cells", "Held-out loss of masked characters (nats)", columns);
    study_set_data(findings, data_columns);
    for (size_t k = 0; k < CELLS; k++) {
        cell_text(table, "%s", cells[k].terms);
        cell_text(table, "%s", cells[k].positions);
        study_losses_add(table, &study->mean[k], false);
        cell_text(table, "%.3f-%.3f", study->cell[k]->lowest, study->cell[k]->highest);
        study_losses_add(table, &study->to_full[k], true);
        study_losses_add(table, &study->to_bert[k], true);
        const bootstrap_interval *const found[] = {&study->mean[k], &study->to_full[k], &study->to_bert[k]};
        static const char *const against[] = {"", "full with decoder", "positions at the input"};
        for (size_t f = 0; f < 3; f++) {
            cell_text(findings->data, "%s", cells[k].terms);
            cell_text(findings->data, "%s", cells[k].positions);
            study_cell_text(findings->data, against[f]);
            study_losses_add_data(findings->data, found[f], study->cell[k]->seeds);
        }
    }
    study_losses_note(&study->losses, study->cell[0]->seeds, findings->note, sizeof findings->note);
}

#if HAVE_VIZ
enum { WAYS = 3, TERM_SETS = 4 }; /* series: ways of absolute positions; places: sets of terms */

typedef struct grid_figure {
    double x[WAYS][TERM_SETS], y[WAYS][TERM_SETS], low[WAYS][TERM_SETS], high[WAYS][TERM_SETS];
    figure_label labels[TERM_SETS];
    chart_series series[WAYS];
    chart_panel panel;
    chart_figure figure;
} grid_figure;

static void make_figure(grid_figure *f, const grid_study *study)
{
    static const char *const names[WAYS] = {"no absolute positions", "in the Enhanced Mask Decoder", "at the input"};
    *f = (grid_figure){0};
    for (size_t k = 0; k < CELLS; k++) {
        const size_t way = k == BERT ? 2 : k % 2, place = k == BERT ? 0 : k / 2;
        chart_series *series = &f->series[way];
        const size_t at = series->count++;
        f->x[way][at] = (double)place;
        f->y[way][at] = study->mean[k].value;
        f->low[way][at] = study->mean[k].low;
        f->high[way][at] = study->mean[k].high;
        f->labels[place].text = cells[place * 2].terms;
    }
    for (size_t way = 0; way < WAYS; way++) {
        f->series[way].name = names[way];
        f->series[way].kind = CHART_BARS;
        f->series[way].x = f->x[way];
        f->series[way].y = f->y[way];
        f->series[way].low = f->low[way];
        f->series[way].high = f->high[way];
    }
    f->panel = (chart_panel){.x = {.label = "terms of the attention scores",
                                   .scale = CHART_CATEGORIES,
                                   .categories = f->labels,
                                   .category_count = TERM_SETS},
                             .y = {.label = "held-out loss (nats)", .from_zero = true},
                             .series = f->series,
                             .series_count = WAYS};
    f->figure = (chart_figure){.panels = &f->panel, .panel_count = 1, .panel_height = 55, .style.width_mm = 120};
}
#endif

static int finish(const common_options *options, grid_study *study)
{
    tabulate(study);
#if HAVE_VIZ
    grid_figure figure;
    make_figure(&figure, study);
    study->findings.chart = &figure.figure;
#endif
    return study_finish(options, &study->findings);
}

static int run(const common_options *options)
{
    grid_study study = {0};
    deberta_error error = {0};
    int code = study_losses_open(&study.losses, options);
    if (code == EXIT_OK)
        code = compute(&study, &error) == DEBERTA_OK ? finish(options, &study) : say_error(options, &error);
    study_findings_free(&study.findings);
    study_losses_close(&study.losses);
    return code;
}

static const option options[] = {
    STUDY_OPTIONS,
    {.name = NULL},
};

const command study_grid = {
    .name = "study grid",
    .summary = "each term of disentangled attention and each way of absolute positions, in tiny models trained alike",
    .arguments = "LOSSES",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(study_options),
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example = "  deberta study grid docs/studies/data/grid.csv\n",
    .run = run,
    .claims = "absolute positions before the softmax work much better than at the input; what each term is worth",
};
