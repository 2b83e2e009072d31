/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "studies/study_twins_output.h"
#include "analysis/bootstrap.h"

enum { ALL_HEADS = -1 };

static const char *const number_names[SPREAD_NUMBERS] = {"entropy", "distance", "offset"};

/* --------------------------------------------------------------------------------------------------------- numbers */

/* Of one sentence, summed over its queries: of a head, or the mean over the heads of a layer. */
static double sum_of(const twin *model, size_t sentence, size_t layer, long head, spread_number number)
{
    double sum = 0;
    if (head != ALL_HEADS) return attention_spread_number(&model->spread, sentence, layer, (size_t)head, number);
    for (size_t h = 0; h < model->info.heads; h++)
        sum += attention_spread_number(&model->spread, sentence, layer, h, number);
    return sum / (double)model->info.heads;
}

/* The mean over all queries; of `minus` (or NULL) subtracted sentence by sentence. */
static deberta_status find_number(twins_study *study, const twin *model, const twin *minus, size_t layer, long head,
                                  spread_number number, bootstrap_interval *interval, deberta_error *err)
{
    const study_texts *texts = &study->texts;
    for (size_t k = 0; k < texts->count; k++) {
        study->wholes[k] = (double)texts->lists[k]->count;
        study->parts[k] = sum_of(model, k, layer, head, number) - (minus ? sum_of(minus, k, layer, head, number) : 0);
    }
    return bootstrap_ratio(interval, study->parts, study->wholes, texts->count, study->seed, err);
}

/* The share of the attention of a layer that goes to a place, in per cent. */
static deberta_status find_place(twins_study *study, const twin *model, size_t layer, size_t place,
                                 bootstrap_interval *interval, deberta_error *err)
{
    for (size_t k = 0; k < study->texts.count; k++) {
        const double *places = attention_spread_places(&model->spread, k, layer);
        study->parts[k] = 100 * places[place];
        study->wholes[k] = 0;
        for (size_t p = 0; p < SPREAD_PLACES; p++) study->wholes[k] += places[p];
    }
    return bootstrap_ratio(interval, study->parts, study->wholes, study->texts.count, study->seed, err);
}

/* ---------------------------------------------------------------------------------------------------------- tables */

/* Begins a row of the data: the caller adds where, and the value with its interval. */
static result_table *begin_data(twins_study *study, const twin *model, const char *what, size_t layer, long head)
{
    result_table *data = study->findings.data;
    cell_text(data, "%s", model->name);
    cell_text(data, "%s", what);
    cell_integer(data, (int64_t)layer);
    study_cell_index(data, head);
    return data;
}

static size_t most_heads(const twins_study *study)
{
    const size_t first = study->models[0].info.heads, second = study->models[1].info.heads;
    return first > second ? first : second;
}

static deberta_status add_head(twins_study *study, result_table *table, size_t layer, long head, deberta_error *err)
{
    cell_integer(table, (int64_t)layer);
    study_cell_index(table, head);
    for (size_t m = 0; m < TWINS; m++) {
        const twin *model = &study->models[m];
        const bool there = layer < model->info.layers && (head == ALL_HEADS || (size_t)head < model->info.heads);
        for (spread_number number = 0; number < SPREAD_NUMBERS; number++) {
            bootstrap_interval found;
            if (!there) {
                cell_text(table, "-");
                continue;
            }
            DEBERTA_TRY(find_number(study, model, NULL, layer, head, number, &found, err));
            cell_text(table, number == SPREAD_OFFSET ? "%+.2f (%+.2f to %+.2f)" : "%.2f (%.2f to %.2f)", found.value,
                      found.low, found.high);
            result_table *data = begin_data(study, model, number_names[number], layer, head);
            cell_none(data);
            study_cell_interval(data, &found);
        }
    }
    return DEBERTA_OK;
}

static deberta_status tabulate_heads(twins_study *study, deberta_error *err)
{
    result_table *table = study_add_table(
        &study->findings, "heads", "Entropy (bits), mean distance and mean offset (tokens; > 0: to the left)", NULL);
    result_add_column(table, COLUMN_INTEGER, NULL, "layer");
    result_add_column(table, COLUMN_INTEGER, NULL, "head");
    for (size_t m = 0; m < TWINS; m++)
        for (int number = 0; number < SPREAD_NUMBERS; number++)
            result_add_column(table, COLUMN_TEXT, NULL, "%s: %s", study->models[m].name, number_names[number]);
    for (size_t layer = 0; layer < study->layers; layer++) {
        for (size_t head = 0; head < most_heads(study); head++)
            DEBERTA_TRY(add_head(study, table, layer, (long)head, err));
        DEBERTA_TRY(add_head(study, table, layer, ALL_HEADS, err));
    }
    return DEBERTA_OK;
}

/* Layers that both have, heads together: a head of one has no counterpart in the other. */
static deberta_status tabulate_differences(twins_study *study, deberta_error *err)
{
    const twin *a = &study->models[0], *b = &study->models[1];
    static const result_column columns[] = {STUDY_COUNT_COLUMN("layer"),
                                            STUDY_TEXT_COLUMN("entropy (bits)"),
                                            STUDY_TEXT_COLUMN("distance (tokens)"),
                                            {.name = NULL}};
    result_table *table =
        study_add_table(&study->findings, "differences", "The first model minus the second, means over heads", columns);
    for (size_t layer = 0; layer < a->info.layers && layer < b->info.layers; layer++) {
        cell_integer(table, (int64_t)layer);
        for (spread_number number = SPREAD_ENTROPY; number <= SPREAD_DISTANCE; number++) {
            bootstrap_interval found;
            DEBERTA_TRY(find_number(study, a, b, layer, ALL_HEADS, number, &found, err));
            cell_text(table, "%+.2f (%+.2f to %+.2f)", found.value, found.low, found.high);
        }
    }
    return DEBERTA_OK;
}

/* Of one model and place in all layers: cells of a row, and data. */
static deberta_status add_place(twins_study *study, result_table *table, const twin *model, size_t place,
                                deberta_error *err)
{
    char name[SHARE_NAME_BYTES];
    attention_spread_place_name(place, name);
    for (size_t layer = 0; layer < study->layers; layer++) {
        bootstrap_interval found;
        if (layer >= model->info.layers) {
            cell_text(table, "-");
            continue;
        }
        DEBERTA_TRY(find_place(study, model, layer, place, &found, err));
        cell_real(table, found.value);
        result_table *data = begin_data(study, model, "place", layer, ALL_HEADS);
        cell_text(data, "%s", name);
        study_cell_interval(data, &found);
    }
    return DEBERTA_OK;
}

static bool is_empty(const twins_study *study, size_t place)
{
    for (size_t k = 0; k < study->texts.count; k++)
        if (attention_spread_places(&study->models[0].spread, k, 0)[place] > 0) return false;
    return true;
}

static deberta_status tabulate_places(twins_study *study, deberta_error *err)
{
    result_table *table = study_add_table(&study->findings, "places", "Where attention goes, in % of a layer's", NULL);
    result_add_column(table, COLUMN_TEXT, NULL, "key");
    for (size_t m = 0; m < TWINS; m++)
        for (size_t layer = 0; layer < study->layers; layer++)
            result_add_column(table, COLUMN_REAL, "%.1f", "%s: %zu", study->models[m].name, layer);
    for (size_t place = 0; place < SPREAD_PLACES; place++) {
        char name[SHARE_NAME_BYTES];
        if (is_empty(study, place)) continue;
        attention_spread_place_name(place, name);
        cell_text(table, "%s", name);
        for (size_t m = 0; m < TWINS; m++) DEBERTA_TRY(add_place(study, table, &study->models[m], place, err));
    }
    return DEBERTA_OK;
}

/* Means of the curves, without intervals. */
static void add_curves(twins_study *study)
{
    const ptrdiff_t reach = (ptrdiff_t)study->reach;
    for (size_t m = 0; m < TWINS; m++) {
        const twin *model = &study->models[m];
        for (size_t layer = 0; layer < model->info.layers; layer++)
            for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
                if (c == DEBERTA_LOGITS || !component_is_in(c, &model->info)) continue;
                for (ptrdiff_t r = -reach; r <= reach; r++) {
                    const double mean = distance_sample_mean(attention_spread_profile(&model->spread, layer, c), r);
                    if (!isfinite(mean)) continue;
                    result_table *data = begin_data(study, model, deberta_component_name(c), layer, ALL_HEADS);
                    cell_integer(data, r);
                    study_cell_interval(data, &(bootstrap_interval){mean, NAN, NAN});
                }
            }
    }
}

static deberta_status tabulate(twins_study *study, deberta_error *err)
{
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("model"), STUDY_TEXT_COLUMN("what"), STUDY_COUNT_COLUMN("layer"),
        STUDY_COUNT_COLUMN("head"), STUDY_COUNT_COLUMN("at"),  STUDY_REAL_COLUMN("value"),
        STUDY_REAL_COLUMN("low"),   STUDY_REAL_COLUMN("high"), {.name = NULL}};
    study_findings *findings = &study->findings;
    study_set_data(findings, columns);
    DEBERTA_TRY(tabulate_heads(study, err));
    DEBERTA_TRY(tabulate_differences(study, err));
    DEBERTA_TRY(tabulate_places(study, err));
    add_curves(study);
    snprintf(findings->note, sizeof findings->note,
             "%zu sentences, %zu tokens. Entropy, distance and offset: all tokens ask; places and curves: those of the "
             "text, not [CLS] and [SEP]. 95 %% intervals over sentences (%d resamples, seed %llu). Head numbers of the "
             "two models have nothing to do with each other.",
             study->texts.count, study->texts.starts[study->texts.count], BOOTSTRAP_RESAMPLES,
             (unsigned long long)study->seed);
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- figure */

#if HAVE_VIZ
enum {
    MOST_TERMS = 3,
    HEAD_PANELS = 2,
    MOST_PANELS = HEAD_PANELS + 2 * TWINS_MOST_LAYERS,
    MOST_SERIES = TWINS * MOST_TERMS,
    MOST_HEADS = 256, /* points of a panel beyond that are left out */
    CURVE_POINTS = 2 * TWINS_REACH + 1,
};

typedef struct head_points {
    double x[MOST_HEADS], y[MOST_HEADS];
    double layer[TWINS_MOST_LAYERS], mean[TWINS_MOST_LAYERS], low[TWINS_MOST_LAYERS], high[TWINS_MOST_LAYERS];
    size_t count;
} head_points;

typedef struct twins_figure {
    head_points heads[HEAD_PANELS][TWINS];
    double distances[CURVE_POINTS], curves[MOST_PANELS][MOST_SERIES][CURVE_POINTS];
    char titles[MOST_PANELS][48], names[TWINS][MOST_TERMS][96];
    chart_series series[MOST_PANELS][MOST_SERIES];
    chart_panel panels[MOST_PANELS];
    chart_figure figure;
} twins_figure;

/* Heads as points beside the line of their means: one model a little to the left, the other to the right. */
static deberta_status fill_points(twins_study *study, size_t m, spread_number number, head_points *points,
                                  deberta_error *err)
{
    static const double beside = 0.08;
    const twin *model = &study->models[m];
    for (size_t layer = 0; layer < model->info.layers; layer++) {
        bootstrap_interval found;
        points->layer[layer] = (double)layer + (m ? beside : -beside);
        for (size_t head = 0; head < model->info.heads && points->count < MOST_HEADS; head++) {
            DEBERTA_TRY(find_number(study, model, NULL, layer, (long)head, number, &found, err));
            points->x[points->count] = points->layer[layer];
            points->y[points->count++] = found.value;
        }
        DEBERTA_TRY(find_number(study, model, NULL, layer, ALL_HEADS, number, &found, err));
        points->mean[layer] = found.value;
        points->low[layer] = found.low;
        points->high[layer] = found.high;
    }
    return DEBERTA_OK;
}

static deberta_status add_head_panel(twins_study *study, twins_figure *f, spread_number number, const char *title,
                                     const char *label, deberta_error *err)
{
    const size_t at = f->figure.panel_count++;
    f->panels[at] = (chart_panel){.title = title,
                                  .x = {.label = "layer", .scale = CHART_WHOLE},
                                  .y = {.label = label, .from_zero = true},
                                  .series = f->series[at],
                                  .series_count = 2 * TWINS};
    for (size_t m = 0; m < TWINS; m++) {
        head_points *points = &f->heads[at][m];
        DEBERTA_TRY(fill_points(study, m, number, points, err));
        f->series[at][m] = (chart_series){.name = study->models[m].name,
                                          .kind = CHART_LINE,
                                          .x = points->layer,
                                          .y = points->mean,
                                          .low = points->low,
                                          .high = points->high,
                                          .count = study->models[m].info.layers,
                                          .look = 1 + m};
        f->series[at][TWINS + m] =
            (chart_series){.kind = CHART_POINTS, .x = points->x, .y = points->y, .count = points->count, .look = 1 + m};
    }
    return DEBERTA_OK;
}

static void add_curve(const twins_study *study, twins_figure *f, const twin *model, size_t layer,
                      deberta_component component, const char *name, size_t look)
{
    const size_t at = f->figure.panel_count - 1, place = f->panels[at].series_count++;
    const distance_sample *profile = attention_spread_profile(&model->spread, layer, component);
    double *curve = f->curves[at][place];
    for (size_t k = 0; k < 2 * study->reach + 1; k++)
        curve[k] = distance_sample_mean(profile, (ptrdiff_t)k - (ptrdiff_t)study->reach);
    f->series[at][place] = (chart_series){
        .name = name, .kind = CHART_CURVE, .x = f->distances, .y = curve, .count = 2 * study->reach + 1, .look = look};
}

static void add_curve_panel(twins_figure *f, size_t layer, const char *what, const char *label)
{
    const size_t at = f->figure.panel_count++;
    snprintf(f->titles[at], sizeof f->titles[at], "layer %zu, %s", layer, what);
    f->panels[at] = (chart_panel){
        .title = f->titles[at],
        .x = {.label = "query \u2212 key (tokens; > 0: key to the left)", .scale = CHART_SIGNED_LOG, .linear_to = 4},
        .y = {.label = label},
        .series = f->series[at]};
}

static void add_layer(twins_study *study, twins_figure *f, size_t layer)
{
    add_curve_panel(f, layer, "attention", "probability");
    for (size_t m = 0; m < TWINS; m++)
        if (layer < study->models[m].info.layers)
            add_curve(study, f, &study->models[m], layer, DEBERTA_PROBABILITIES, study->models[m].name, 1 + m);
    add_curve_panel(f, layer, "terms", "scaled logit");
    for (size_t m = 0; m < TWINS; m++)
        for (deberta_component c = DEBERTA_C2C; c <= DEBERTA_P2C; c++)
            if (layer < study->models[m].info.layers && component_is_in(c, &study->models[m].info))
                add_curve(study, f, &study->models[m], layer, c, f->names[m][c],
                          c == DEBERTA_C2C ? 1 + m : 1 + TWINS * (size_t)c + m); /* c2c as its model */
}

static deberta_status make_figure(twins_study *study, twins_figure *f, deberta_error *err)
{
    f->figure = (chart_figure){
        .style = {.note = "Points: heads; lines: their means, with 95 % intervals. Curves: means over heads and pairs "
                          "of the text's own tokens; terms without what is constant over the keys."},
        .panels = f->panels,
        .columns = 2,
        .panel_height = 28,
        .panel_letters = true};
    for (size_t k = 0; k < 2 * study->reach + 1; k++) f->distances[k] = (double)k - (double)study->reach;
    for (size_t m = 0; m < TWINS; m++)
        for (deberta_component c = DEBERTA_C2C; c <= DEBERTA_P2C; c++)
            snprintf(f->names[m][c], sizeof f->names[m][c], "%.80s: %s", study->models[m].name,
                     deberta_component_name(c));
    DEBERTA_TRY(add_head_panel(study, f, SPREAD_ENTROPY, "entropy of heads", "bits", err));
    DEBERTA_TRY(add_head_panel(study, f, SPREAD_DISTANCE, "how far they look", "mean distance (tokens)", err));
    for (size_t layer = 0; layer < study->layers; layer++)
        if (study->drawn[layer]) add_layer(study, f, layer);
    return DEBERTA_OK;
}

/* The figure is large: it is made only where one is asked for. */
static deberta_status draw(twins_study *study, twins_figure **figure, deberta_error *err)
{
    *figure = NULL;
    if (!study->options->outs.count) return DEBERTA_OK;
    *figure = calloc(1, sizeof **figure);
    if (!*figure) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for the figure");
    study->findings.chart = &(*figure)->figure;
    return make_figure(study, *figure, err);
}
#else
typedef void twins_figure;

static deberta_status draw(twins_study *study, twins_figure **figure, deberta_error *err)
{
    (void)study, (void)err;
    *figure = NULL;
    return DEBERTA_OK;
}
#endif

int twins_finish(twins_study *study)
{
    twins_figure *figure = NULL;
    deberta_error error = {0};
    deberta_status status = tabulate(study, &error);
    if (status == DEBERTA_OK) status = draw(study, &figure, &error);
    const int code =
        status == DEBERTA_OK ? study_finish(study->options, &study->findings) : say_error(study->options, &error);
    study->findings.chart = NULL;
    free(figure);
    return code;
}
