/* Turns numbers of heads into panels of layers by heads, columns of the data, and bars. SPDX-License-Identifier: MIT */
#include "program/attention/head_map.h"

#include <math.h>

double *head_numbers(const figure_source *source)
{
    return options_take(source->options, source_heads(source), sizeof(double));
}

const figure_label *head_number_labels(const figure_source *source, const size_t *numbers, size_t count)
{
    figure_label *labels = options_take(source->options, count, sizeof *labels);
    for (size_t k = 0; k < count; k++) labels[k].text = options_text(source->options, "%zu", numbers[k]);
    return labels;
}

void head_map_axes(const figure_source *source, attention_figure *figure)
{
    figure->queries = source->layer_count;
    figure->keys = source->head_count;
    figure->query_labels = head_number_labels(source, source->layers, source->layer_count);
    figure->key_labels = head_number_labels(source, source->heads, source->head_count);
    figure->query_numbers = source->layers;
    figure->key_numbers = source->heads;
    figure->query_axis = "layer";
    figure->key_axis = "head";
    figure->boundary_count = 0;
    figure->keep_row_mean = true;
}

void head_map_open(figure_sheet *sheet, attention_figure *figure)
{
    const figure_source *source = sheet->source;
    double *layers = head_numbers(source), *heads = head_numbers(source);
    panels_open(sheet, figure);
    head_map_axes(source, figure);
    figure->mark_count = 0;
    figure->annotate_if_room = true;
    figure->grid_rows = 1;
    for (size_t k = 0; k < source_heads(source); k++) {
        layers[k] = (double)source_layer(source, k);
        heads[k] = (double)source_head(source, k);
    }
    head_map_column(sheet, "layer", layers);
    head_map_column(sheet, "head", heads);
}

void head_map_column(figure_sheet *sheet, const char *name, const double *values)
{
    sheet_add_numbers(sheet, name, values, source_heads(sheet->source));
}

attention_panel head_map_panel(const figure_source *source, const char *title, heatmap_kind kind, const double *values)
{
    float *cells = options_take(source->options, source_heads(source), sizeof *cells);
    for (size_t k = 0; k < source_heads(source); k++) cells[k] = (float)values[k];
    return (attention_panel){.values = cells, .stride = source->head_count, .title = title, .kind = kind};
}

void head_bars_share_axis(chart_panel *panels, size_t count)
{
    double low = 0, high = 0;
    for (size_t k = 0; k < count; k++)
        for (size_t place = 0; place < panels[k].x.category_count; place++) {
            double up = 0, down = 0;
            for (size_t s = 0; s < panels[k].series_count; s++) {
                const double value = panels[k].series[s].y[place];
                if (!isfinite(value)) continue;
                if (panels[k].series[s].kind == CHART_BARS && panels[k].stacked)
                    *(value > 0 ? &up : &down) += value;
                else if (value > up)
                    up = value;
            }
            if (up > high) high = up;
            if (down < low) low = down;
        }
    for (size_t k = 0; k < count && low < high; k++) {
        panels[k].y.low = 1.04 * low;
        panels[k].y.high = 1.04 * high;
    }
}
