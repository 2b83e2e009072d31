/* Draws latency over lengths and layers as a heat map, with the residuals of a fitted surface.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "program/bench/bench_drawing.h"

/* Rows and columns of the grids of all groups: every length and every number of layers that occurs. */
typedef struct grid_axes {
    size_t *lengths, *layers;
    size_t length_count, layer_count;
} grid_axes;

static void insert_once(size_t *values, size_t *count, size_t value)
{
    size_t place = 0;
    while (place < *count && values[place] < value) place++;
    if (place < *count && values[place] == value) return;
    for (size_t k = (*count)++; k > place; k--) values[k] = values[k - 1];
    values[place] = value;
}

static size_t place_of(const size_t *values, size_t value)
{
    size_t place = 0;
    while (values[place] != value) place++;
    return place;
}

static bool find_axes(bench_drawing *drawing, grid_axes *axes)
{
    const bench_results *results = drawing->results;
    axes->lengths = options_take(drawing->options, results->count, sizeof *axes->lengths);
    axes->layers = options_take(drawing->options, results->count, sizeof *axes->layers);
    for (size_t k = 0; k < results->count; k++) {
        if (results->result[k].lengths) continue;
        insert_once(axes->lengths, &axes->length_count, results->result[k].n);
        insert_once(axes->layers, &axes->layer_count, results->result[k].layers);
    }
    return axes->length_count >= 2 && axes->layer_count >= 2;
}

/* The results of one group, stored as columns. */
typedef struct grid_points {
    double *n, *layers, *ms;
    size_t count;
} grid_points;

static grid_points find_points(const bench_drawing *drawing, const bench_group *group)
{
    const bench_results *results = drawing->results;
    double *memory = options_take(drawing->options, 3 * results->count, sizeof *memory);
    grid_points points = {memory, memory + results->count, memory + 2 * results->count, 0};
    for (size_t k = 0; k < results->count; k++) {
        const bench_result *r = &results->result[k];
        if (!bench_same_series(drawing, group->first, r, TREND_LAYERS | TREND_LENGTH)) continue;
        points.n[points.count] = (double)r->n;
        points.layers[points.count] = (double)r->layers;
        points.ms[points.count++] = 1e3 * r->time.median;
    }
    return points;
}

/* Returns the formula of a surface: "time = (0.1 + 2e-05 n) + layers (0.3 + 0.001 n + 2e-06 n²) ms". */
static const char *surface_text(bench_drawing *drawing, const statistics_surface *s)
{
    static const char *const powers[] = {"", " n", " n²"};
    const char *parts[2] = {"", ""};
    for (size_t a = 0; a < 2; a++) {
        for (size_t k = 0; k <= s->degree; k++) {
            const double c = s->coefficient[a][k];
            parts[a] = options_text(drawing->options, "%s%s%.3g%s", parts[a],
                                    k == 0 ? (c < 0 ? DRAW_MINUS : "") : (c < 0 ? " " DRAW_MINUS " " : " + "), fabs(c),
                                    powers[k]);
        }
    }
    return options_text(drawing->options, "%s + layers · (%s) ms, off by at most %.1f %%", parts[0], parts[1],
                        100 * s->worst);
}

/* Adds two panels of a group: milliseconds, and percent of the measured time. Cells that were not measured are
 * NaN. */
static void add_group(bench_drawing *drawing, const grid_axes *axes, const bench_group *group, attention_panel *panels)
{
    const size_t cells = axes->length_count * axes->layer_count;
    float *values = options_take(drawing->options, 2 * cells, sizeof *values);
    const grid_points points = find_points(drawing, group);
    for (size_t k = 0; k < 2 * cells; k++) values[k] = NAN;
    const statistics_surface surface = statistics_fit_surface(points.n, points.layers, points.ms, points.count);
    const bool fitted = surface.valid && surface.degree > 0;
    for (size_t k = 0; k < points.count; k++) {
        const size_t cell = place_of(axes->lengths, (size_t)points.n[k]) * axes->layer_count +
                            place_of(axes->layers, (size_t)points.layers[k]);
        values[cell] = (float)points.ms[k];
        if (fitted)
            values[cells + cell] =
                (float)(100 * (1 - statistics_surface_at(&surface, points.n[k], points.layers[k]) / points.ms[k]));
    }
    panels[0] = (attention_panel){values, axes->layer_count, "median latency", HEATMAP_LOG};
    panels[1] =
        (attention_panel){fitted ? values + cells : NULL, axes->layer_count, "residual of the fit", HEATMAP_SIGNED};
    if (fitted)
        bench_add_note(drawing,
                       options_text(drawing->options, "Fit, %s: %s.", group->name, surface_text(drawing, &surface)));
}

static const figure_label *number_labels(bench_drawing *drawing, const size_t *values, size_t count)
{
    figure_label *labels = options_take(drawing->options, count, sizeof *labels);
    for (size_t k = 0; k < count; k++) labels[k].text = options_text(drawing->options, "%zu", values[k]);
    return labels;
}

void bench_fill_grid(bench_drawing *drawing)
{
    grid_axes axes = {0};
    attention_panel *panels = options_take(drawing->options, 2 * drawing->group_count, sizeof *panels);
    const char **titles = options_take(drawing->options, drawing->group_count, sizeof *titles);
    if (!find_axes(drawing, &axes)) return;
    for (size_t g = 0; g < drawing->group_count; g++) {
        add_group(drawing, &axes, &drawing->groups[g], &panels[2 * g]);
        titles[g] = drawing->groups[g].name;
    }
    drawing->grid =
        (attention_figure){.panels = panels,
                           .grid_rows = drawing->group_count,
                           .grid_columns = 2,
                           .row_titles = titles,
                           .panel_letters = drawing->group_count > 1,
                           .queries = axes.length_count,
                           .keys = axes.layer_count,
                           .query_labels = number_labels(drawing, axes.lengths, axes.length_count),
                           .key_labels = number_labels(drawing, axes.layers, axes.layer_count),
                           .query_numbers = axes.lengths,
                           .key_numbers = axes.layers,
                           .annotate_if_room = true,
                           .cell_aspect = 0.5,
                           .query_axis = "tokens",
                           .key_axis = "layers",
                           .keep_row_mean = true,
                           .units = {[HEATMAP_LOG] = "ms", [HEATMAP_SIGNED] = "measured minus fitted, % of measured"}};
}
