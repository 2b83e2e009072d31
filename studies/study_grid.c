/* `deberta study grid`: terms of attention and ways of absolute positions, in tiny models trained alike.
 * SPDX-License-Identifier: MIT */
#include "studies/studies.h"
#include "studies/study_losses.h"

/* As tools/train_grid.py names them; in this order in tables and bars: two ways of absolute positions for each set of
 * terms, then BERT's; then controls, which a file may lack, in the table alone. */
static const struct {
    const char *cell, *terms, *positions;
} cells[] = {
    {"c2c/none@64", "c2c", "none"},
    {"c2c/emd@64", "c2c", "decoder"},
    {"c2c+c2p/none@64", "c2c c2p", "none"},
    {"c2c+c2p/emd@64", "c2c c2p", "decoder"},
    {"c2c+p2c/none@64", "c2c p2c", "none"},
    {"c2c+p2c/emd@64", "c2c p2c", "decoder"},
    {"full/none@64", "c2c c2p p2c", "none"},
    {"full/emd@64", "c2c c2p p2c", "decoder"},
    {"input/none@64", "c2c", "input"},
    {"full/input@64", "c2c c2p p2c", "input"},
    {"full/level@64", "c2c c2p p2c", "decoder without them"},
    {"full+p2p/none@64", "c2c c2p p2c p2p", "none"},
    {"full-ji/none@64", "c2c c2p p2c(j-i)", "none"},
};
enum { CELLS = sizeof cells / sizeof *cells, FULL_EMD = 7, BERT = 8, CONTROLS = BERT + 1 };

static const result_column columns[] = {STUDY_TEXT_COLUMN("terms"),
                                        STUDY_TEXT_COLUMN("absolute positions"),
                                        STUDY_TEXT_COLUMN("loss"),
                                        STUDY_TEXT_COLUMN("best-worst seed"),
                                        STUDY_TEXT_COLUMN("against full with decoder"),
                                        STUDY_TEXT_COLUMN("against positions at the input"),
                                        {.name = NULL}};
static const result_column data_columns[] = {STUDY_TEXT_COLUMN("terms"),   STUDY_TEXT_COLUMN("positions"),
                                             STUDY_TEXT_COLUMN("against"), STUDY_INTERVAL_COLUMNS,
                                             STUDY_COUNT_COLUMN("seeds"),  {.name = NULL}};

/* Three numbers of a cell into its row and the data; *loss: the first of them. */
static void add_cell(const loss_study *s, result_table *table, size_t k, const loss_cell *const found[CELLS],
                     bootstrap_interval *loss)
{
    static const char *const names[] = {"", "full with decoder", "positions at the input"};
    const loss_cell *const against[] = {NULL, found[FULL_EMD], found[BERT]};
    result_table *data = s->study.data;
    cell_text(table, "%s", cells[k].terms);
    cell_text(table, "%s", cells[k].positions);
    for (size_t a = 0; a < 3; a++) {
        const bootstrap_interval mean = loss_study_mean(s, found[k], against[a]);
        loss_study_cell(table, &mean, a > 0);
        if (a == 0) cell_text(table, "%.3f-%.3f", found[k]->lowest, found[k]->highest);
        if (a == 0) *loss = mean;
        cell_text(data, "%s", cells[k].terms);
        cell_text(data, "%s", cells[k].positions);
        study_cell_text(data, names[a]);
        study_cell_interval(data, &mean);
        cell_integer(data, (int64_t)found[k]->seeds);
    }
}

/* A bar for each set of terms, side by side those of the ways of absolute positions. */
static void fill_chart(study *s, const bootstrap_interval losses[CELLS])
{
    static const char *const ways[] = {"no absolute positions", "in the Enhanced Mask Decoder", "at the input"};
    chart_add_panel(&s->chart, (chart_panel){.x = {.label = "terms of the attention scores", .scale = CHART_CATEGORIES},
                                             .y = {.label = "held-out loss (nats)", .from_zero = true}});
    for (size_t k = 0; k < BERT; k += 2) chart_add_category(&s->chart, cells[k].terms);
    for (size_t way = 0; way < 3; way++) {
        chart_add_series(&s->chart, (chart_series){.name = ways[way], .kind = CHART_BARS});
        for (size_t k = way < 2 ? way : BERT; k < (way < 2 ? (size_t)BERT : (size_t)CONTROLS); k += 2)
            study_add_point(s, k == BERT ? 0 : (double)(k / 2), &losses[k]);
    }
    s->chart.panel_height = 55;
    s->style.width_mm = 120;
}

static deberta_status work(study *base, deberta_error *err)
{
    loss_study *s = (loss_study *)base;
    const loss_cell *found[CELLS];
    bootstrap_interval losses[CELLS];
    DEBERTA_TRY(loss_study_read(s, err));
    for (size_t k = 0; k < CONTROLS; k++) DEBERTA_TRY(loss_study_find(s, cells[k].cell, &found[k], err));
    for (size_t k = CONTROLS; k < CELLS; k++)
        if (loss_study_find(s, cells[k].cell, &found[k], NULL) != DEBERTA_OK) found[k] = NULL;
    result_table *table = study_add_table(base, "cells", "Held-out loss of masked characters (nats)", columns);
    study_set_data(base, data_columns);
    for (size_t k = 0; k < CELLS; k++)
        if (found[k]) add_cell(s, table, k, found, &losses[k]);
    loss_study_note(s, found[0]->seeds);
    fill_chart(base, losses);
    return DEBERTA_OK;
}

static const option options[] = {
    STUDY_OPTIONS,
    {.name = NULL},
};

const study_kind study_grid = {
    STUDY_COMMAND(
        "grid", "LOSSES", 1, 1, study_options,
        .summary =
            "each term of disentangled attention and each way of absolute positions, in tiny models trained alike",
        .example = "  deberta study grid docs/studies/data/grid.csv\n",
        .claims = "absolute positions before the softmax work much better than at the input; what each term is worth"),
    .size = sizeof(loss_study),
    .work = work,
    .close = loss_study_close,
};
