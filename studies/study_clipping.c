/* `deberta study clipping`: tiny models trained with different clipping distances, on texts longer than they were
 * trained on, and with their tables read in other buckets. SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "command/options.h"
#include "studies/studies.h"
#include "studies/study.h"
#include "studies/study_losses.h"
#include "core/base/status.h"

/* As tools/train_grid.py trains and names them. */
enum {
    DISTANCES = 4,
    CONTEXTS = 4,
    READINGS = DISTANCES,
    LOG_READING = READINGS - 1,
    TRAINED_CONTEXT = 1,
    LAST_CONTEXT = 3
};
static const size_t distances[DISTANCES] = {2, 8, 32, 128}, contexts[CONTEXTS] = {64, 128, 256, 512};

typedef struct clipping_study {
    study_losses losses;
    bootstrap_interval mean[DISTANCES][CONTEXTS];
    bootstrap_interval to_longest[DISTANCES][CONTEXTS]; /* against the largest k */
    /* Against the model's own reading: clipped at distances[r] for r < LOG_READING, or with log buckets; at the
     * trained context and the longest one. Not there where r does not clip more than the model was trained to. */
    bootstrap_interval reread[DISTANCES][READINGS][2];
    bool has_reading[DISTANCES][READINGS];
    size_t seeds;
    study_findings findings;
} clipping_study;

static deberta_status find(const clipping_study *study, size_t k, size_t context, const char *reading,
                           const loss_cell **cell, deberta_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "k%zu@%zu%s", distances[k], contexts[context], reading);
    return study_losses_find(&study->losses, name, cell, err);
}

static deberta_status compute_readings(clipping_study *study, size_t k, deberta_error *err)
{
    for (size_t r = 0; r < READINGS; r++) {
        char reading[32] = " log";
        if (r < LOG_READING) snprintf(reading, sizeof reading, " clipped %zu", distances[r]);
        study->has_reading[k][r] = r < LOG_READING ? distances[r] < distances[k] : k > 0;
        if (!study->has_reading[k][r]) continue;
        for (size_t where = 0; where < 2; where++) {
            const size_t context = where ? LAST_CONTEXT : TRAINED_CONTEXT;
            const loss_cell *own, *other;
            DEBERTA_TRY(find(study, k, context, "", &own, err));
            DEBERTA_TRY(find(study, k, context, reading, &other, err));
            DEBERTA_TRY(study_losses_mean(&study->losses, other, own, &study->reread[k][r][where], err));
        }
    }
    return DEBERTA_OK;
}

static deberta_status compute(clipping_study *study, deberta_error *err)
{
    for (size_t k = 0; k < DISTANCES; k++) {
        for (size_t c = 0; c < CONTEXTS; c++) {
            const loss_cell *cell, *longest;
            DEBERTA_TRY(find(study, k, c, "", &cell, err));
            DEBERTA_TRY(find(study, DISTANCES - 1, c, "", &longest, err));
            DEBERTA_TRY(study_losses_mean(&study->losses, cell, NULL, &study->mean[k][c], err));
            DEBERTA_TRY(study_losses_mean(&study->losses, cell, longest, &study->to_longest[k][c], err));
            study->seeds = cell->seeds;
        }
        DEBERTA_TRY(compute_readings(study, k, err));
    }
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- tables */

static void add_data(clipping_study *study, size_t k, size_t context, const char *what, const bootstrap_interval *found)
{
    result_table *data = study->findings.data;
    cell_integer(data, (int64_t)distances[k]);
    cell_integer(data, (int64_t)contexts[context]);
    cell_text(data, "%s", what);
    study_losses_add_data(data, found, study->seeds);
}

static void tabulate_contexts(clipping_study *study, const char *name, const char *title, bool differences)
{
    result_table *table = study_add_table(&study->findings, name, title, NULL);
    result_add_column(table, COLUMN_INTEGER, NULL, "k");
    for (size_t c = 0; c < CONTEXTS; c++) result_add_column(table, COLUMN_TEXT, NULL, "context %zu", contexts[c]);
    for (size_t k = 0; k < DISTANCES; k++) {
        cell_integer(table, (int64_t)distances[k]);
        for (size_t c = 0; c < CONTEXTS; c++) {
            const bootstrap_interval *found = differences ? &study->to_longest[k][c] : &study->mean[k][c];
            study_losses_add(table, found, differences);
            add_data(study, k, c, differences ? "against k 128" : "loss", found);
        }
    }
}

static void tabulate_readings(clipping_study *study)
{
    result_table *table = study_add_table(&study->findings, "readings",
                                          "Change of the loss when the trained table is read in other buckets", NULL);
    result_add_column(table, COLUMN_INTEGER, NULL, "trained k");
    result_add_column(table, COLUMN_TEXT, NULL, "read as");
    result_add_column(table, COLUMN_TEXT, NULL, "context %zu", contexts[TRAINED_CONTEXT]);
    result_add_column(table, COLUMN_TEXT, NULL, "context %zu", contexts[LAST_CONTEXT]);
    for (size_t k = 0; k < DISTANCES; k++) {
        for (size_t r = 0; r < READINGS; r++) {
            if (!study->has_reading[k][r]) continue;
            char reading[32] = "log buckets";
            if (r < LOG_READING) snprintf(reading, sizeof reading, "clipped at %zu", distances[r]);
            cell_integer(table, (int64_t)distances[k]);
            cell_text(table, "%s", reading);
            for (size_t where = 0; where < 2; where++) {
                study_losses_add(table, &study->reread[k][r][where], true);
                add_data(study, k, where ? LAST_CONTEXT : TRAINED_CONTEXT, reading, &study->reread[k][r][where]);
            }
        }
    }
}

static void tabulate(clipping_study *study)
{
    static const result_column columns[] = {STUDY_COUNT_COLUMN("k"),     STUDY_COUNT_COLUMN("context"),
                                            STUDY_TEXT_COLUMN("what"),   STUDY_REAL_COLUMN("value"),
                                            STUDY_REAL_COLUMN("low"),    STUDY_REAL_COLUMN("high"),
                                            STUDY_COUNT_COLUMN("seeds"), {.name = NULL}};
    study_set_data(&study->findings, columns);
    tabulate_contexts(study, "losses", "Held-out loss of masked characters (nats); trained on contexts of 128", false);
    tabulate_contexts(study, "differences", "Against k 128", true);
    tabulate_readings(study);
    study_losses_note(&study->losses, study->seeds, study->findings.note, sizeof study->findings.note);
}

/* ----------------------------------------------------------------------------------------------------------- figure */

#if HAVE_VIZ
typedef struct clipping_figure {
    double k[DISTANCES], y[CONTEXTS][DISTANCES], low[CONTEXTS][DISTANCES], high[CONTEXTS][DISTANCES];
    double read_k[DISTANCES][DISTANCES], change[DISTANCES][DISTANCES], change_low[DISTANCES][DISTANCES],
        change_high[DISTANCES][DISTANCES];
    char names[CONTEXTS][32], trained[DISTANCES][32];
    chart_series losses[CONTEXTS], readings[DISTANCES];
    chart_panel panels[2];
    chart_figure figure;
} clipping_figure;

static void fill_losses(clipping_figure *f, const clipping_study *study)
{
    for (size_t c = 0; c < CONTEXTS; c++) {
        snprintf(f->names[c], sizeof f->names[c], "context %zu", contexts[c]);
        for (size_t k = 0; k < DISTANCES; k++) {
            f->k[k] = (double)distances[k];
            f->y[c][k] = study->to_longest[k][c].value;
            f->low[c][k] = study->to_longest[k][c].low;
            f->high[c][k] = study->to_longest[k][c].high;
        }
        f->losses[c] = (chart_series){.name = f->names[c],
                                      .kind = CHART_LINE,
                                      .x = f->k,
                                      .y = f->y[c],
                                      .low = f->low[c],
                                      .high = f->high[c],
                                      .count = DISTANCES};
    }
}

/* At the longest context, from the strongest clip to the model's own, where the change is 0. */
static void fill_readings(clipping_figure *f, const clipping_study *study)
{
    for (size_t k = 1; k < DISTANCES; k++) {
        snprintf(f->trained[k], sizeof f->trained[k], "trained with k %zu", distances[k]);
        for (size_t r = 0; r <= k; r++) {
            const bootstrap_interval own = {0}, *found = r < k ? &study->reread[k][r][1] : &own;
            f->read_k[k][r] = (double)distances[r];
            f->change[k][r] = found->value;
            f->change_low[k][r] = found->low;
            f->change_high[k][r] = found->high;
        }
        f->readings[k - 1] = (chart_series){.name = f->trained[k],
                                            .kind = CHART_LINE,
                                            .x = f->read_k[k],
                                            .y = f->change[k],
                                            .low = f->change_low[k],
                                            .high = f->change_high[k],
                                            .count = k + 1,
                                            .look = CONTEXTS + k};
    }
}

static void make_figure(clipping_figure *f, const clipping_study *study)
{
    *f = (clipping_figure){0};
    fill_losses(f, study);
    fill_readings(f, study);
    f->panels[0] = (chart_panel){.title = "trained with k",
                                 .x = {.label = "clipping distance k", .scale = CHART_LOG2},
                                 .y = {.label = "loss against k 128 (nats)", .from_zero = true},
                                 .series = f->losses,
                                 .series_count = CONTEXTS};
    f->panels[1] = (chart_panel){.title = "read with a smaller k, context 512",
                                 .x = {.label = "clipping distance at inference", .scale = CHART_LOG2},
                                 .y = {.label = "change of the loss (nats)", .from_zero = true},
                                 .series = f->readings,
                                 .series_count = DISTANCES - 1};
    f->figure = (chart_figure){.panels = f->panels, .panel_count = 2, .panel_letters = true};
}
#endif

static int finish(const common_options *options, clipping_study *study)
{
    tabulate(study);
#if HAVE_VIZ
    clipping_figure figure;
    make_figure(&figure, study);
    study->findings.chart = &figure.figure;
#endif
    return study_finish(options, &study->findings);
}

static int run(const common_options *options)
{
    clipping_study study = {0};
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

const command study_clipping = {
    .name = "study clipping",
    .summary = "the clipping distance k: trained with it, beyond the training length, and read in other buckets",
    .arguments = "LOSSES",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(study_options),
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example = "  deberta study clipping docs/studies/data/clipping.csv\n",
    .run = run,
    .claims = "there is an optimal clipping distance; relative distances generalise across lengths",
};
