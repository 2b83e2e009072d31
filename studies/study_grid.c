/* `deberta study grid`: terms of attention and ways of absolute positions, in tiny models trained alike.
 * SPDX-License-Identifier: MIT */
#include "studies/studies.h"
#include "studies/study_losses.h"

/* Terms of the scores, and ways of absolute positions: as tables have them, and legends. */
enum { C2C, C2P, P2C, FULL, P2P, JI, SETS };
static const char *const terms[SETS] = {"c2c",         "c2c c2p",         "c2c p2c",
                                        "c2c c2p p2c", "c2c c2p p2c p2p", "c2c c2p p2c(j-i)"};
enum { NONE, DECODER, INPUT, LEVEL, WAYS };
static const char *const positions[WAYS] = {"none", "decoder", "input", "decoder without them"};
static const char *const legends[WAYS] = {"no absolute positions", "in the Enhanced Mask Decoder", "at the input",
                                          "the decoder without positions"};

/* As tools/train_grid.py names them, in the order of the table. Controls, the last ones, may be missing in a file. */
static const struct {
    const char *cell;
    int set, way;
} cells[] = {
    {"c2c/none@64", C2C, NONE},       {"c2c/emd@64", C2C, DECODER},   {"c2c+c2p/none@64", C2P, NONE},
    {"c2c+c2p/emd@64", C2P, DECODER}, {"c2c+p2c/none@64", P2C, NONE}, {"c2c+p2c/emd@64", P2C, DECODER},
    {"full/none@64", FULL, NONE},     {"full/emd@64", FULL, DECODER}, {"input/none@64", C2C, INPUT},
    {"full/input@64", FULL, INPUT},   {"full/level@64", FULL, LEVEL}, {"full+p2p/none@64", P2P, NONE},
    {"full-ji/none@64", JI, NONE},
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
static void add_cell(loss_study *s, result_table *table, size_t k, const loss_cell *const found[CELLS],
                     bootstrap_interval *loss)
{
    static const char *const names[] = {"", "full with decoder", "positions at the input"};
    const loss_cell *const against[] = {NULL, found[FULL_EMD], found[BERT]};
    result_table *data = s->study.data;
    cell_text(table, "%s", terms[cells[k].set]);
    cell_text(table, "%s", positions[cells[k].way]);
    for (size_t a = 0; a < 3; a++) {
        const bootstrap_interval mean = loss_study_mean(s, found[k], against[a]);
        loss_study_cell(table, &mean, a > 0);
        if (a == 0) cell_text(table, "%.3f-%.3f", found[k]->lowest, found[k]->highest);
        if (a == 0) *loss = mean;
        cell_text(data, "%s", terms[cells[k].set]);
        cell_text(data, "%s", positions[cells[k].way]);
        study_cell_text(data, names[a]);
        study_cell_interval(data, &mean);
        cell_integer(data, (int64_t)found[k]->seeds);
    }
}

/* Side by side the ways of absolute positions of each set of terms; sets and ways that the file lacks are left out. */
static void fill_chart(study *s, const loss_cell *const found[CELLS], const bootstrap_interval losses[CELLS])
{
    size_t category[SETS] = {0}, categories = 0;
    chart_add_panel(&s->chart, (chart_panel){.x = {.label = "terms of the attention scores", .scale = CHART_CATEGORIES},
                                             .y = {.label = "held-out loss (nats)", .from_zero = true}});
    for (int set = 0; set < SETS; set++) {
        bool is_known = false;
        for (size_t k = 0; k < CELLS; k++) is_known |= found[k] && cells[k].set == set;
        if (!is_known) continue;
        category[set] = categories++;
        chart_add_category(&s->chart, terms[set]);
    }
    for (int way = 0; way < WAYS; way++) {
        chart_add_series(&s->chart, (chart_series){.name = legends[way], .kind = CHART_BARS});
        for (size_t k = 0; k < CELLS; k++)
            if (found[k] && cells[k].way == way) study_add_point(s, (double)category[cells[k].set], &losses[k]);
        const chart_series *series = chart_last_series(&s->chart);
        if (series && !series->count) chart_drop_series(&s->chart);
    }
    s->chart.panel_height = 55;
    s->style.width_mm = 174;
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
    fill_chart(base, found, losses);
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
