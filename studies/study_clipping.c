/* `deberta study clipping`: tiny models trained with different clipping distances, on texts longer than they were
 * trained on, and with their tables read in other buckets. SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "studies/studies.h"
#include "studies/study_losses.h"

/* As tools/train_grid.py trains and names them. */
enum {
    DISTANCES = 7,
    CONTEXTS = 4,
    READINGS = DISTANCES, /* clipped at distances[r], or with log buckets */
    LOG_READING = READINGS - 1,
    TRAINED_CONTEXT = 1,
    LAST_CONTEXT = 3
};
static const size_t distances[DISTANCES] = {2, 4, 8, 16, 32, 64, 128}, contexts[CONTEXTS] = {64, 128, 256, 512};

typedef struct clipping_study {
    loss_study losses;
    const loss_cell *cells[DISTANCES][CONTEXTS];        /* read as they were trained */
    bootstrap_interval to_longest[DISTANCES][CONTEXTS]; /* against the largest k */
    bootstrap_interval reread[DISTANCES][READINGS];     /* against the model's own reading, at the last context */
} clipping_study;

static deberta_status find(const clipping_study *s, size_t k, size_t context, const char *reading,
                           const loss_cell **cell, deberta_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "k%zu@%zu%s", distances[k], contexts[context], reading);
    return loss_study_find(&s->losses, name, cell, err);
}

/* ----------------------------------------------------------------------------------------------------------- tables */

/* One number into its table and the data. */
static void add(clipping_study *s, result_table *table, size_t k, size_t context, const char *what, bool is_difference,
                const bootstrap_interval *found)
{
    result_table *data = s->losses.study.data;
    loss_study_cell(table, found, is_difference);
    cell_integer(data, (int64_t)distances[k]);
    cell_integer(data, (int64_t)contexts[context]);
    cell_text(data, "%s", what);
    study_cell_interval(data, found);
    cell_integer(data, (int64_t)s->cells[DISTANCES - 1][CONTEXTS - 1]->seeds);
}

static void tabulate_contexts(clipping_study *s, const char *name, const char *title, bool differences)
{
    result_table *table = study_add_table(&s->losses.study, name, title, NULL);
    result_add_column(table, COLUMN_INTEGER, NULL, "k");
    for (size_t c = 0; c < CONTEXTS; c++) result_add_column(table, COLUMN_TEXT, NULL, "context %zu", contexts[c]);
    for (size_t k = 0; k < DISTANCES; k++) {
        cell_integer(table, (int64_t)distances[k]);
        for (size_t c = 0; c < CONTEXTS; c++) {
            const bootstrap_interval found =
                loss_study_mean(&s->losses, s->cells[k][c], differences ? s->cells[DISTANCES - 1][c] : NULL);
            add(s, table, k, c, differences ? "against k 128" : "loss", differences, &found);
            if (differences) s->to_longest[k][c] = found;
        }
    }
}

static deberta_status add_reading(clipping_study *s, result_table *table, size_t k, size_t r, deberta_error *err)
{
    const char *reading = "log buckets", *column = " log";
    if (r < LOG_READING) {
        reading = options_text(s->losses.study.options, "clipped at %zu", distances[r]);
        column = options_text(s->losses.study.options, " clipped %zu", distances[r]);
    }
    cell_integer(table, (int64_t)distances[k]);
    cell_text(table, "%s", reading);
    for (size_t where = 0; where < 2; where++) {
        const size_t context = where ? LAST_CONTEXT : TRAINED_CONTEXT;
        const loss_cell *other;
        DEBERTA_TRY(find(s, k, context, column, &other, err));
        s->reread[k][r] = loss_study_mean(&s->losses, other, s->cells[k][context]);
        add(s, table, k, context, reading, true, &s->reread[k][r]);
    }
    return DEBERTA_OK;
}

/* Where a reading clips more than the model was trained to. */
static deberta_status tabulate_readings(clipping_study *s, deberta_error *err)
{
    result_table *table = study_add_table(&s->losses.study, "readings",
                                          "Change of the loss when the trained table is read in other buckets", NULL);
    result_add_column(table, COLUMN_INTEGER, NULL, "trained k");
    result_add_column(table, COLUMN_TEXT, NULL, "read as");
    result_add_column(table, COLUMN_TEXT, NULL, "context %zu", contexts[TRAINED_CONTEXT]);
    result_add_column(table, COLUMN_TEXT, NULL, "context %zu", contexts[LAST_CONTEXT]);
    for (size_t k = 1; k < DISTANCES; k++)
        for (size_t r = 0; r < READINGS; r++)
            if (r < k || r == LOG_READING) DEBERTA_TRY(add_reading(s, table, k, r, err));
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- figure */

static void fill_chart(clipping_study *s)
{
    study *base = &s->losses.study;
    chart_columns *chart = &base->chart;
    chart_add_panel(chart, (chart_panel){.title = "trained with k",
                                         .x = {.label = "clipping distance k", .scale = CHART_LOG2},
                                         .y = {.label = "loss against k 128 (nats)", .from_zero = true}});
    for (size_t c = 0; c < CONTEXTS; c++) {
        chart_add_series(chart,
                         (chart_series){.name = chart_text(chart, "context %zu", contexts[c]), .kind = CHART_LINE});
        for (size_t k = 0; k < DISTANCES; k++) study_add_point(base, (double)distances[k], &s->to_longest[k][c]);
    }
    /* At the longest context, from the strongest clip to the model's own, where the change is 0. */
    chart_add_panel(chart, (chart_panel){.title = "read with a smaller k, context 512",
                                         .x = {.label = "clipping distance at inference", .scale = CHART_LOG2},
                                         .y = {.label = "change of the loss (nats)", .from_zero = true}});
    for (size_t k = 1; k < DISTANCES; k++) {
        chart_add_series(chart, (chart_series){.name = chart_text(chart, "trained with k %zu", distances[k]),
                                               .kind = CHART_LINE,
                                               .look = CONTEXTS + k});
        for (size_t r = 0; r < k; r++) study_add_point(base, (double)distances[r], &s->reread[k][r]);
        study_add_point(base, (double)distances[k], &(bootstrap_interval){0});
    }
}

static deberta_status work(study *base, deberta_error *err)
{
    static const result_column columns[] = {STUDY_COUNT_COLUMN("k"),     STUDY_COUNT_COLUMN("context"),
                                            STUDY_TEXT_COLUMN("what"),   STUDY_INTERVAL_COLUMNS,
                                            STUDY_COUNT_COLUMN("seeds"), {.name = NULL}};
    clipping_study *s = (clipping_study *)base;
    DEBERTA_TRY(loss_study_read(&s->losses, err));
    for (size_t k = 0; k < DISTANCES; k++)
        for (size_t c = 0; c < CONTEXTS; c++) DEBERTA_TRY(find(s, k, c, "", &s->cells[k][c], err));
    study_set_data(base, columns);
    tabulate_contexts(s, "losses", "Held-out loss of masked characters (nats); trained on contexts of 128", false);
    tabulate_contexts(s, "differences", "Against k 128", true);
    DEBERTA_TRY(tabulate_readings(s, err));
    loss_study_note(&s->losses, s->cells[DISTANCES - 1][CONTEXTS - 1]->seeds);
    fill_chart(s);
    return DEBERTA_OK;
}

static const option options[] = {
    STUDY_OPTIONS,
    {.name = NULL},
};

const study_kind study_clipping = {
    STUDY_COMMAND("clipping", "LOSSES", 1, 1, study_options,
                  .summary =
                      "the clipping distance k: trained with it, beyond the training length, and read in other buckets",
                  .example = "  deberta study clipping docs/studies/data/clipping.csv\n",
                  .claims = "there is an optimal clipping distance; relative distances generalise across lengths"),
    .size = sizeof(clipping_study),
    .work = work,
    .close = loss_study_close,
};
