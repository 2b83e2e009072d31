/* SPDX-License-Identifier: MIT */
#include "analysis/bootstrap.h"
#include "studies/study_positions_output.h"

enum { SHOWN_AMOUNT = 1 }; /* of position_amounts, in tables by layer */

static const char *const change_names[POSITION_CHANGES] = {"ids later", "before", "after"};

/* ----------------------------------------------------------------------------------------------------------- tables */

static size_t most_layers(const positions_study *study)
{
    size_t most = 0;
    for (size_t k = 0; k < study->model_count; k++)
        if (study->models[k].info.layers > most) most = study->models[k].info.layers;
    return most;
}

static void add_point(result_table *table, const layer_curve *curve, size_t layer)
{
    cell_text(table, "%.3f (%.3f-%.3f)", curve->value[layer], curve->low[layer], curve->high[layer]);
}

static void add_variant_titles(const positions_study *study, result_table *table, const char *first)
{
    result_add_column(table, COLUMN_INTEGER, NULL, "%s", first);
    for (size_t k = 0; k < study->model_count; k++)
        for (size_t c = 0; c < POSITION_CHANGES; c++)
            result_add_column(table, COLUMN_TEXT, NULL, "%s: %s", study->models[k].name, change_names[c]);
}

/* Hidden states have one layer more than attention: H[0]. */
static void tabulate_by_layer(positions_study *study, const char *name, const char *title, bool attention)
{
    result_table *table = study_add_table(&study->findings, name, title, NULL);
    add_variant_titles(study, table, "layer");
    for (size_t layer = 0; layer < most_layers(study) + !attention; layer++) {
        if (attention)
            cell_integer(table, (int64_t)layer);
        else
            cell_text(table, "H[%zu]", layer);
        for (size_t k = 0; k < study->model_count; k++) {
            const studied_model *model = &study->models[k];
            for (size_t c = 0; c < POSITION_CHANGES; c++) {
                const size_t variant = c * POSITION_AMOUNTS + SHOWN_AMOUNT;
                if (layer < model->info.layers + !attention)
                    add_point(table, attention ? &model->attention[variant] : &model->moved[variant], layer);
                else
                    cell_text(table, "-");
            }
        }
    }
}

static void tabulate_by_amount(positions_study *study)
{
    result_table *table =
        study_add_table(&study->findings, "amounts", "The last layer, by how many positions or tokens", NULL);
    add_variant_titles(study, table, "amount");
    for (size_t a = 0; a < POSITION_AMOUNTS; a++) {
        cell_integer(table, (int64_t)position_amounts[a]);
        for (size_t k = 0; k < study->model_count; k++)
            for (size_t c = 0; c < POSITION_CHANGES; c++)
                add_point(table, &study->models[k].moved[c * POSITION_AMOUNTS + a], study->models[k].info.layers);
    }
}

static void tabulate_probes(positions_study *study)
{
    result_table *table =
        study_add_table(&study->findings, "probes", "R2 of the token's position from its row, held-out windows", NULL);
    result_add_column(table, COLUMN_TEXT, NULL, "layer");
    for (size_t k = 0; k < study->model_count; k++)
        result_add_column(table, COLUMN_TEXT, NULL, "%s", study->models[k].name);
    for (size_t layer = 0; layer <= most_layers(study); layer++) {
        cell_text(table, "H[%zu]", layer);
        for (size_t k = 0; k < study->model_count; k++) {
            if (layer <= study->models[k].info.layers)
                add_point(table, &study->models[k].r2, layer);
            else
                cell_text(table, "-");
        }
    }
}

static void add_data(result_table *data, const studied_model *model, const char *what, const char *change,
                     size_t amount, const layer_curve *curve, size_t layers)
{
    for (size_t layer = 0; layer < layers; layer++) {
        cell_text(data, "%s", model->name);
        cell_text(data, "%s", what);
        study_cell_text(data, change);
        cell_integer(data, (int64_t)amount);
        cell_integer(data, (int64_t)layer);
        cell_real(data, curve->value[layer]);
        cell_real(data, curve->low[layer]);
        cell_real(data, curve->high[layer]);
    }
}

static void collect_data(positions_study *study)
{
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("model"),   STUDY_TEXT_COLUMN("what"),   STUDY_TEXT_COLUMN("change"),
        STUDY_COUNT_COLUMN("amount"), STUDY_COUNT_COLUMN("layer"), STUDY_REAL_COLUMN("value"),
        STUDY_REAL_COLUMN("low"),     STUDY_REAL_COLUMN("high"),   {.name = NULL}};
    study_set_data(&study->findings, columns);
    result_table *data = study->findings.data;
    for (size_t k = 0; k < study->model_count; k++) {
        const studied_model *model = &study->models[k];
        for (size_t v = 0; v < POSITION_VARIANTS; v++) {
            const char *change = change_names[v / POSITION_AMOUNTS];
            const size_t amount = position_amounts[v % POSITION_AMOUNTS];
            add_data(data, model, "hidden", change, amount, &model->moved[v], model->info.layers + 1);
            add_data(data, model, "attention", change, amount, &model->attention[v], model->info.layers);
        }
        add_data(data, model, "probe", "", 0, &model->r2, model->info.layers + 1);
    }
}

static void tabulate(positions_study *study)
{
    snprintf(study->hidden_title, sizeof study->hidden_title,
             "Movement of hidden states, %zu positions or tokens (1: as far as two tokens are apart)",
             position_amounts[SHOWN_AMOUNT]);
    tabulate_by_layer(study, "hidden", study->hidden_title, false);
    tabulate_by_amount(study);
    tabulate_by_layer(study, "attention",
                      "Movement of attention inside the phrase, same amount (total variation, 0 to 1)", true);
    tabulate_probes(study);
    collect_data(study);
    snprintf(study->findings.note, sizeof study->findings.note,
             "%zu phrases, %zu windows of %d tokens (%zu held out); 95 %% intervals over phrases and windows "
             "(%d resamples, seed %llu).",
             study->phrases, study->window_count, POSITIONS_PROBE_TOKENS, study->models[0].probe.tested,
             BOOTSTRAP_RESAMPLES, (unsigned long long)study->seed);
}

/* ----------------------------------------------------------------------------------------------------------- figure */

#if HAVE_VIZ
enum { PANELS = 1 + POSITION_CHANGES };

typedef struct positions_figure {
    chart_series series[PANELS][POSITIONS_MOST_MODELS];
    chart_panel panels[PANELS];
    chart_figure figure;
} positions_figure;

static void add_panel(positions_figure *f, const char *title, const char *label)
{
    const size_t at = f->figure.panel_count++;
    f->panels[at] = (chart_panel){.title = title,
                                  .x = {.label = "layer", .scale = CHART_WHOLE},
                                  .y = {.label = label, .from_zero = true},
                                  .series = f->series[at]};
}

static void add_series(positions_figure *f, const studied_model *model, const layer_curve *curve)
{
    const size_t at = f->figure.panel_count - 1;
    f->series[at][f->panels[at].series_count++] = (chart_series){.name = model->name,
                                                                 .kind = CHART_LINE,
                                                                 .y = curve->value,
                                                                 .low = curve->low,
                                                                 .high = curve->high,
                                                                 .count = model->info.layers + 1};
}

/* Every panel shows the same models, so one legend serves all. */
static void make_figure(positions_figure *f, const positions_study *study)
{
    static const char *const titles[POSITION_CHANGES] = {"position ids 16 later", "16 tokens before",
                                                         "16 tokens after"};
    *f = (positions_figure){.figure = {.panels = f->panels, .columns = 2, .panel_height = 32, .panel_letters = true}};
    for (size_t c = 0; c < POSITION_CHANGES; c++) {
        add_panel(f, titles[c], "movement");
        for (size_t k = 0; k < study->model_count; k++)
            add_series(f, &study->models[k], &study->models[k].moved[c * POSITION_AMOUNTS + SHOWN_AMOUNT]);
    }
    add_panel(f, "position read back", "held-out R²");
    for (size_t k = 0; k < study->model_count; k++) add_series(f, &study->models[k], &study->models[k].r2);
}
#endif

int positions_finish(positions_study *study)
{
    tabulate(study);
#if HAVE_VIZ
    positions_figure figure;
    make_figure(&figure, study);
    study->findings.chart = &figure.figure;
#endif
    return study_finish(study->options, &study->findings);
}
