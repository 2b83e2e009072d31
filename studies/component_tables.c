/* SPDX-License-Identifier: MIT */
#include "studies/component_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap.h"
#include "studies/token_class.h"
#include "core/base/status.h"

static const char *const term_names[SHARE_TERMS] = {"c2c", "c2p", "p2c", "p2p"};
enum { EVERY_LAYER = -1 };

/* What a row of a table is about: some heads, a bin or a class, in one layer or all of them. */
typedef struct share_place {
    share_group group;
    size_t first, end; /* indices of the group */
    long layer;        /* or EVERY_LAYER */
} share_place;

/* ---------------------------------------------------------------------------------------------------------- numbers */

static void add_squares(const components_study *study, size_t sentence, const share_place *place,
                        double squares[SHARE_TERMS])
{
    memset(squares, 0, SHARE_TERMS * sizeof *squares);
    for (size_t layer = 0; layer < study->share.layers; layer++) {
        if (place->layer != EVERY_LAYER && (size_t)place->layer != layer) continue;
        for (size_t index = place->first; index < place->end; index++) {
            const double *found = component_share_at(&study->share, sentence, layer, place->group, index);
            for (int t = 0; t < SHARE_TERMS; t++) squares[t] += found[t];
        }
    }
}

/* Of the model's three terms; of p2p among four. */
static deberta_status find_share(components_study *study, const share_place *place, int term,
                                 bootstrap_interval *interval, deberta_error *err)
{
    for (size_t k = 0; k < study->texts.count; k++) {
        double squares[SHARE_TERMS];
        add_squares(study, k, place, squares);
        study->parts[k] = squares[term];
        study->wholes[k] = squares[DEBERTA_C2C] + squares[DEBERTA_C2P] + squares[DEBERTA_P2C] +
                           (term == SHARE_P2P ? squares[SHARE_P2P] : 0);
    }
    return bootstrap_ratio(interval, study->parts, study->wholes, study->texts.count, study->seed, err);
}

static bool is_empty(const components_study *study, const share_place *place)
{
    double squares[SHARE_TERMS];
    for (size_t k = 0; k < study->texts.count; k++) {
        add_squares(study, k, place, squares);
        if (squares[DEBERTA_C2C] + squares[DEBERTA_C2P] + squares[DEBERTA_P2C] > 0) return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- tables */

/* The terms of one place into a table and the data. name: of a place that is no head. */
static deberta_status add_terms(components_study *study, result_table *table, const share_place *place,
                                const char *group, const char *name, deberta_error *err)
{
    result_table *data = study->findings.data;
    for (int term = 0; term < SHARE_TERMS; term++) {
        bootstrap_interval share;
        if (term == SHARE_P2P && !study->has_p2p) continue;
        DEBERTA_TRY(find_share(study, place, term, &share, err));
        cell_text(table, "%.1f %% (%.1f-%.1f)", 100 * share.value, 100 * share.low, 100 * share.high);
        cell_text(data, "%s", group);
        study_cell_index(data, place->layer);
        if (place->group == SHARE_BY_HEAD)
            study_cell_index(data, place->end - place->first > 1 ? -1 : (long)place->first);
        else
            cell_text(data, "%s", name);
        cell_text(data, "%s", term_names[term]);
        study_cell_interval(data, &share);
    }
    return DEBERTA_OK;
}

static result_table *add_table(components_study *study, const char *name, const char *title, const char *first,
                               const char *second)
{
    result_table *table = study_add_table(&study->findings, name, title, NULL);
    result_add_column(table, second ? COLUMN_INTEGER : COLUMN_TEXT, NULL, "%s", first);
    if (second) result_add_column(table, COLUMN_INTEGER, NULL, "%s", second);
    for (int term = 0; term < ATTENTION_TERMS; term++)
        result_add_column(table, COLUMN_TEXT, NULL, "%s", term_names[term]);
    if (study->has_p2p) result_add_column(table, COLUMN_TEXT, NULL, "p2p, if added");
    return table;
}

static deberta_status tabulate_heads(components_study *study, deberta_error *err)
{
    result_table *table = add_table(study, "shares", "Share of the variance of the scores", "layer", "head");
    for (size_t layer = 0; layer < study->share.layers; layer++) {
        for (size_t head = 0; head <= study->share.heads; head++) {
            const bool all = head == study->share.heads;
            const share_place place = {SHARE_BY_HEAD, all ? 0 : head, all ? study->share.heads : head + 1, (long)layer};
            if (all && study->share.heads == 1) continue;
            cell_integer(table, (int64_t)layer);
            study_cell_index(table, all ? -1 : (long)head);
            DEBERTA_TRY(add_terms(study, table, &place, "head", NULL, err));
        }
    }
    return DEBERTA_OK;
}

static void name_place(share_group group, size_t index, char name[SHARE_NAME_BYTES])
{
    if (group == SHARE_BY_DISTANCE)
        share_distance_name(index, name);
    else
        snprintf(name, SHARE_NAME_BYTES, "%s", token_class_name((token_class)index));
}

/* Over all layers into the table, by layer into the data as well. */
static deberta_status tabulate_group(components_study *study, share_group group, size_t count, const char *title,
                                     const char *name, deberta_error *err)
{
    result_table *table = add_table(study, group == SHARE_BY_DISTANCE ? "distances" : "classes", title,
                                    group == SHARE_BY_DISTANCE ? "key" : "token", NULL);
    deberta_status status = DEBERTA_OK;
    for (size_t index = 0; index < count && status == DEBERTA_OK; index++) {
        share_place place = {group, index, index + 1, EVERY_LAYER};
        char text[SHARE_NAME_BYTES];
        if (is_empty(study, &place)) continue;
        name_place(group, index, text);
        cell_text(table, "%s", text);
        status = add_terms(study, table, &place, name, text, err);
        for (size_t layer = 0; layer < study->share.layers && status == DEBERTA_OK; layer++) {
            place.layer = (long)layer;
            status = add_terms(study, NULL, &place, name, text, err);
        }
    }
    return status;
}

static deberta_status tabulate_losses(components_study *study, deberta_error *err)
{
    static const char *const names[COMPONENT_LOSSES] = {"as it is", "with p2p, row(r) on both sides",
                                                        "with p2p, row(r) and row(-r)"};
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("model"), STUDY_TEXT_COLUMN("loss (nats)"), STUDY_TEXT_COLUMN("change"), {.name = NULL}};
    result_table *table =
        study_add_table(&study->findings, "losses", "Masked-LM loss with the position-to-position term", columns);
    for (size_t k = 0; k < COMPONENT_LOSSES; k++) {
        bootstrap_interval loss, change;
        for (size_t s = 0; s < study->texts.count; s++) study->parts[s] = study->losses[k][s] - study->losses[0][s];
        DEBERTA_TRY(bootstrap_ratio(&loss, study->losses[k], study->masks, study->texts.count, study->seed, err));
        DEBERTA_TRY(bootstrap_ratio(&change, study->parts, study->masks, study->texts.count, study->seed, err));
        cell_text(table, "%s", names[k]);
        cell_text(table, "%.4f (%.4f, %.4f)", loss.value, loss.low, loss.high);
        if (k)
            cell_text(table, "%+.4f (%+.4f, %+.4f)", change.value, change.low, change.high);
        else
            cell_none(table);
    }
    return DEBERTA_OK;
}

deberta_status component_tables_make(components_study *study, deberta_error *err)
{
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("group"), STUDY_COUNT_COLUMN("layer"), STUDY_TEXT_COLUMN("name"), STUDY_TEXT_COLUMN("term"),
        STUDY_REAL_COLUMN("share"), STUDY_REAL_COLUMN("low"),    STUDY_REAL_COLUMN("high"), {.name = NULL}};
    study_findings *findings = &study->findings;
    study_set_data(findings, columns);
    DEBERTA_TRY(tabulate_heads(study, err));
    DEBERTA_TRY(tabulate_group(study, SHARE_BY_DISTANCE, SHARE_DISTANCES, "By the place of the key", "distance", err));
    DEBERTA_TRY(
        tabulate_group(study, SHARE_BY_CLASS, SHARE_CLASSES, "By the kind of the token that asks", "token", err));
    if (study->has_losses) DEBERTA_TRY(tabulate_losses(study, err));
    snprintf(findings->note, sizeof findings->note,
             "%zu sentences, %zu tokens; 95 %% intervals over sentences (%d resamples, seed %llu).", study->texts.count,
             study->texts.starts[study->texts.count], BOOTSTRAP_RESAMPLES, (unsigned long long)study->seed);
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- figure */

enum { MOST_PLACES = 64 };

/* Stacked shares of the places that occur, in per cent. */
typedef struct share_panel {
    char names[MOST_PLACES][SHARE_NAME_BYTES];
    figure_label labels[MOST_PLACES];
    double values[ATTENTION_TERMS][MOST_PLACES];
    chart_series series[ATTENTION_TERMS];
    size_t count;
} share_panel;

static void add_place(const components_study *study, share_panel *panel, const share_place *place, const char *name)
{
    double sums[SHARE_TERMS] = {0}, squares[SHARE_TERMS];
    for (size_t k = 0; k < study->texts.count; k++) {
        add_squares(study, k, place, squares);
        for (int t = 0; t < ATTENTION_TERMS; t++) sums[t] += squares[t];
    }
    const double whole = sums[DEBERTA_C2C] + sums[DEBERTA_C2P] + sums[DEBERTA_P2C];
    if (whole <= 0 || panel->count == MOST_PLACES) return;
    snprintf(panel->names[panel->count], sizeof panel->names[0], "%s", name);
    panel->labels[panel->count] = (figure_label){.text = panel->names[panel->count]};
    for (int t = 0; t < ATTENTION_TERMS; t++) panel->values[t][panel->count] = 100 * sums[t] / whole;
    panel->count++;
}

static void fill_panel(const components_study *study, share_panel *panel, share_group group)
{
    const size_t count = group == SHARE_BY_HEAD       ? study->share.layers
                         : group == SHARE_BY_DISTANCE ? (size_t)SHARE_DISTANCES
                                                      : (size_t)SHARE_CLASSES;
    for (size_t index = 0; index < count; index++) {
        share_place place = {group, index, index + 1, EVERY_LAYER};
        char name[SHARE_NAME_BYTES];
        if (group == SHARE_BY_HEAD) {
            place = (share_place){group, 0, study->share.heads, (long)index};
            snprintf(name, sizeof name, "%zu", index);
        } else {
            name_place(group, index, name);
        }
        add_place(study, panel, &place, name);
    }
    for (int t = 0; t < ATTENTION_TERMS; t++)
        panel->series[t] =
            (chart_series){.name = term_names[t], .kind = CHART_BARS, .y = panel->values[t], .count = panel->count};
}

int component_tables_finish(components_study *study)
{
    static const char *const titles[] = {"by layer", "by place of the key", "by kind of token"};
    static const char *const axes[] = {"layer", "place of the key", ""};
    share_panel *shares = calloc(3, sizeof *shares);
    chart_panel panels[3];
    if (!shares) {
        deberta_error error;
        status_fail(&error, DEBERTA_E_MEMORY, "out of memory");
        return say_error(study->options, &error);
    }
    for (size_t k = 0; k < 3; k++) {
        fill_panel(study, &shares[k], (share_group)k);
        panels[k] = (chart_panel){.title = titles[k],
                                  .x = {.label = axes[k],
                                        .scale = CHART_CATEGORIES,
                                        .categories = shares[k].labels,
                                        .category_count = shares[k].count},
                                  .y = {.label = "share of the variance (%)", .low = 0, .high = 100},
                                  .series = shares[k].series,
                                  .series_count = ATTENTION_TERMS,
                                  .stacked = true};
    }
    const chart_figure figure = {
        .style = {.title = "What the attention scores are made of", .note = study->findings.note},
        .panels = panels,
        .panel_count = 3,
        .columns = 3};
    study->findings.chart = &figure;
    const int code = study_finish(study->options, &study->findings);
    study->findings.chart = NULL;
    free(shares);
    return code;
}
