/* For developers: draws every kind of figure from made-up numbers into a folder, to be looked at after a change.
 *
 *     build/tests/unit/gallery FOLDER [png|svg|pdf]
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "viz/attention_figure.h"
#include "viz/chart.h"
#include "viz/head_grid.h"
#include "viz/line_view.h"

static const char *folder, *suffix;

/* Reports a figure; a picture book goes on after an error. */
static void show(const char *name, deberta_status status, const figure_notes *notes, const deberta_error *err)
{
    if (status != DEBERTA_OK)
        printf("%-24s FAILED: %s\n", name, err->message);
    else
        printf("%-24s clipped %zu, NaN %zu, inf %zu, pooled %zu, missing glyphs %zu%s\n", name, notes->clipped,
               notes->not_a_number, notes->infinite, notes->pooled, notes->missing_glyphs,
               notes->positions ? ", positions" : "");
}

static void save(const char *name, figure_layout layout, const void *spec, const figure_style *style)
{
    char path[1024];
    const char *paths[] = {path};
    figure_notes notes = {0};
    deberta_error err = {0};
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
    deberta_status status = figure_save(layout, spec, style, paths, 1, &notes, &err);
    show(name, status, &notes, &err);
}

static void save_attention(const char *name, const attention_figure *spec)
{
    save(name, attention_layout, spec, &spec->style);
}
static void save_chart(const char *name, const chart_figure *spec) { save(name, chart_layout, spec, &spec->style); }

/* Something like attention: near diagonal, vertical stripes at the first token, noise. [4][n][n]: c2c, c2p, p2c, sum;
 * then probabilities. */
static float *made_up(size_t n, uint64_t seed)
{
    float *all = malloc(5 * n * n * sizeof *all);
    if (!all) exit(4);
    for (size_t i = 0; i < n; i++) {
        double total = 0;
        for (size_t j = 0; j < n; j++) {
            double r = (double)i - (double)j,
                   c2c = 1.5 * (random_fraction(&seed) + random_fraction(&seed) - 1) + (j == 0 ? 1.2 : 0);
            double c2p = 2.2 * exp(-r * r / 6) - 0.3 * (r > 0) + 0.2 * random_fraction(&seed),
                   p2c = 1.1 * exp(-(r - 1) * (r - 1) / 2) - 0.4 * random_fraction(&seed);
            size_t k = i * n + j;
            all[k] = (float)c2c;
            all[n * n + k] = (float)c2p;
            all[2 * n * n + k] = (float)p2c;
            all[3 * n * n + k] = (float)(c2c + c2p + p2c);
            all[4 * n * n + k] = (float)exp(c2c + c2p + p2c);
            total += all[4 * n * n + k];
        }
        for (size_t j = 0; j < n; j++) all[4 * n * n + i * n + j] /= (float)total;
    }
    return all;
}

static void fill_panels(attention_panel panels[5], const float *data, size_t n)
{
    static const char *const titles[] = {"content to content (c2c)", "content to position (c2p)",
                                         "position to content (p2c)", "sum", "probabilities"};
    for (size_t c = 0; c < 5; c++)
        panels[c] = (attention_panel){data + c * n * n, n, titles[c], c < 4 ? HEATMAP_SIGNED : HEATMAP_POSITIVE};
}

static const figure_label english[] = {
    {"[CLS]", true}, {"The", false},    {"quick", false},   {"brown", false}, {"fox", false}, {"jumps", false},
    {"over", false}, {"the", false},    {"lazy", false},    {"dog", false},   {".", false},   {"[SEP]", true},
    {"It", false},   {"sleeps", false}, {"soundly", false}, {".", false},     {"[SEP]", true}};

static const figure_label scripts[] = {{"[CLS]", true},
                                       {"漢字", false},
                                       {"中文分詞", false},
                                       {"مرحبا", false},
                                       {"بالعالم", false},
                                       {"नमस्ते", false},
                                       {"क्षत्रिय", false},
                                       {"שלום", false},
                                       {"ภาษาไทย", false},
                                       {"😀", false},
                                       {"👩\u200d👩\u200d👧", false},
                                       {"▁the", false},
                                       {"extraordinarily-long-token-that-has-sixty-characters-in-all-ok", false},
                                       {"naïve", false},
                                       {"ﬁ&<>\"", false},
                                       {"[SEP]", true}};

static void attention_pages(void)
{
    static const char *const rows[] = {"layer 3, head 5", "layer 7, head 0"};
    static const size_t boundary[] = {12};
    static const attention_mark marks[] = {{4, 3}};
    attention_panel panels[10];
    attention_figure spec = {
        .style = {.title = "DeBERTa-v3-base, layer 3, head 5"},
        .panels = panels,
        .grid_rows = 1,
        .grid_columns = 5,
        .queries = 17,
        .keys = 17,
        .query_labels = english,
        .key_labels = english,
        .boundaries = boundary,
        .boundary_count = 1,
        .units = {"logit / sqrt(3d)", "probability", NULL},
    };
    float *one = made_up(17, 1), *two = made_up(17, 2);
    fill_panels(panels, one, 17);
    fill_panels(panels + 5, two, 17);
    save_attention("attention-page", &spec);
    spec.style.width_mm = 85;
    spec.panel_letters = true;
    spec.grid_columns = 4;
    save_attention("attention-column", &spec);
    spec.style.width_mm = 174;
    spec.grid_columns = 5;
    spec.grid_rows = 2;
    spec.row_titles = rows;
    spec.style.title = "Two heads";
    spec.marks = marks;
    spec.mark_count = 1;
    save_attention("attention-two-heads", &spec);
    spec.columns = 5;
    save_attention("attention-five-across", &spec);
    spec.columns = 0;
    spec.scales[HEATMAP_SIGNED].policy = spec.scales[HEATMAP_POSITIVE].policy = HEATMAP_PANEL;
    spec.grid_rows = 1;
    spec.row_titles = NULL;
    save_attention("attention-own-scales", &spec);
    spec.scales[HEATMAP_SIGNED].policy = spec.scales[HEATMAP_POSITIVE].policy = HEATMAP_ROBUST;
    spec.scales[HEATMAP_SIGNED].percentile = 95;
    save_attention("attention-robust", &spec);
    memset(spec.scales, 0, sizeof spec.scales);
    spec.annotate = true;
    spec.panel_letters = false;
    spec.queries = spec.keys = 9;
    spec.boundary_count = 0;
    spec.columns = 3;
    save_attention("attention-annotated", &spec);
    free(one);
    free(two);
}

static void special_pages(void)
{
    attention_panel panels[5];
    attention_figure spec = {.style = {.title = "Any script"},
                             .panels = panels,
                             .grid_rows = 1,
                             .grid_columns = 2,
                             .queries = 16,
                             .keys = 16,
                             .query_labels = scripts,
                             .key_labels = scripts,
                             .units = {"logit / sqrt(3d)", NULL, NULL}};
    float *data = made_up(16, 3);
    for (size_t i = 0; i < 16; i++)
        for (size_t j = i + 1; j < 16; j++) data[i * 16 + j] = -INFINITY;
    data[5 * 16 + 2] = NAN;
    fill_panels(panels, data, 16);
    save_attention("special-scripts", &spec);
    free(data);

    float same[12] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    spec.queries = 3;
    spec.keys = 4;
    panels[0] = (attention_panel){same, 4, "all equal", HEATMAP_SIGNED};
    panels[1] = (attention_panel){same, 4, "all equal", HEATMAP_POSITIVE};
    save_attention("special-all-equal", &spec);
    spec.queries = spec.keys = 1;
    save_attention("special-one-token", &spec);
    spec.grid_columns = 1;
    save_attention("special-one-cell", &spec);

    static const size_t lengths[] = {64, 128, 512, 4096};
    for (size_t k = 0; k < 4; k++) {
        size_t n = lengths[k];
        char name[32];
        data = made_up(n, 4);
        fill_panels(panels, data, n);
        spec.grid_columns = n == 4096 ? 2 : 5;
        spec.queries = spec.keys = n;
        spec.query_labels = spec.key_labels = NULL;
        snprintf(name, sizeof name, "length-%zu", n);
        spec.style.title = name;
        save_attention(name, &spec);
        free(data);
    }
}

static void latency_pages(void)
{
    double n[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
    double y[3][9], low[3][9], high[3][9];
    for (size_t i = 0; i < 9; i++)
        for (size_t s = 0; s < 3; s++) {
            y[s][i] = (1.2 + s * 0.9) * (0.11 * n[i] + 0.00006 * n[i] * n[i] * (1 + (double)s)) + 0.3;
            low[s][i] = y[s][i] * 0.93;
            high[s][i] = y[s][i] * 1.1;
        }
    chart_series series[] = {
        {.name = "deberta.c, AVX-512", .x = n, .y = y[0], .low = low[0], .high = high[0], .count = 9},
        {.name = "deberta.c, AVX2", .x = n, .y = y[1], .low = low[1], .high = high[1], .count = 9},
        {.name = "ONNX Runtime", .x = n, .y = y[2], .low = low[2], .high = high[2], .count = 9}};
    chart_panel panel = {.x = {.label = "sequence length n (tokens)", .scale = CHART_LOG2},
                         .y = {.label = "latency (ms)", .scale = CHART_LOG10},
                         .series = series,
                         .series_count = 3};
    chart_figure spec = {.style = {.width_mm = 85, .note = "Median of 9 runs; bars: 5th to 95th percentile."},
                         .panels = &panel,
                         .panel_count = 1};
    save_chart("latency-column", &spec);
    spec.style.width_mm = 174;
    spec.style.title = "DeBERTa-v3-base, 1 thread";
    y[1][3] = NAN;
    y[2][8] = -1;
    save_chart("latency-page", &spec);
    y[1][3] = 22;

    double layers[] = {1, 2, 3, 4, 6, 8, 10, 12}, time[8], fit[8], slope = 3.13, intercept = 2.1;
    char name[64];
    for (size_t i = 0; i < 8; i++) time[i] = 1.9 + 3.13 * layers[i] + (i % 3) * 0.2;
    for (size_t i = 0; i < 8; i++) fit[i] = intercept + slope * layers[i];
    snprintf(name, sizeof name, "%.2f ms + %.2f ms per layer", intercept, slope);
    chart_series depth[] = {{.name = "measured", .kind = CHART_POINTS, .x = layers, .y = time, .count = 8},
                            {.name = name, .kind = CHART_CURVE, .x = layers, .y = fit, .count = 8}};
    chart_panel pair[2] = {panel,
                           {.x = {.label = "layers", .scale = CHART_WHOLE, .from_zero = true},
                            .y = {.label = "latency (ms)", .from_zero = true},
                            .series = depth,
                            .series_count = 2}};
    pair[0].title = "Latency against length";
    pair[1].title = "Latency against depth";
    spec = (chart_figure){.panels = pair, .panel_count = 2, .panel_letters = true};
    save_chart("latency-two-panels", &spec);
}

static void cost_pages(void)
{
    static const figure_label lengths[] = {{"16", false},  {"64", false},  {"128", false},
                                           {"256", false}, {"512", false}, {"1024", false}};
    double share[4][6] = {
        {60, 58, 55, 50, 42, 30}, {25, 25, 24, 22, 20, 18}, {5, 9, 13, 20, 30, 46}, {10, 8, 8, 8, 8, 6}};
    static const char *const stages[] = {"linear layers", "feed-forward", "attention", "embedding, norms"};
    chart_series series[4];
    for (size_t s = 0; s < 4; s++)
        series[s] = (chart_series){.name = stages[s], .kind = CHART_BARS, .y = share[s], .count = 6};
    chart_panel panel = {
        .x = {.label = "sequence length n", .scale = CHART_CATEGORIES, .categories = lengths, .category_count = 6},
        .y = {.label = "share of time (%)", .low = 0, .high = 100},
        .series = series,
        .series_count = 4,
        .stacked = true};
    chart_panel two[2] = {panel, panel};
    two[1].stacked = false;
    two[1].y = (chart_axis){.label = "share of time (%)"};
    chart_figure spec = {.panels = two, .panel_count = 2};
    save_chart("cost-bars", &spec);

    double intensity[] = {0.1, 80.0 / 20, 100}, roof[] = {2, 80, 80}, scalar_x[] = {0.1, 10.0 / 20, 100},
           scalar_roof[] = {2, 10, 10};
    double kx[] = {0.25, 0.5, 1.1, 12, 14, 40}, ky[] = {3.6, 8, 17, 71, 60, 74};
    static const chart_rule rules[] = {{false, 128, "nominal peak, 1 core"}};
    chart_series roofline[] = {
        {.name = "AVX-512 roof (measured)", .kind = CHART_CURVE, .x = intensity, .y = roof, .count = 3},
        {.name = "scalar roof (measured)", .kind = CHART_CURVE, .x = scalar_x, .y = scalar_roof, .count = 3},
        {.name = "stage", .kind = CHART_POINTS, .x = kx, .y = ky, .count = 6}};
    chart_panel roofs = {.x = {.label = "arithmetic intensity (FLOP / byte)", .scale = CHART_LOG10},
                         .y = {.label = "GFLOP/s", .scale = CHART_LOG10},
                         .series = roofline,
                         .series_count = 3,
                         .rules = rules,
                         .rule_count = 1};
    spec = (chart_figure){.style = {.width_mm = 100}, .panels = &roofs, .panel_count = 1};
    save_chart("roofline", &spec);
}

static void distance_pages(void)
{
    enum { REACH = 300, POINTS = 2 * REACH + 1 };
    static double r[POINTS], y[3][POINTS], low[3][POINTS], high[3][POINTS], edges[64];
    for (size_t i = 0; i < POINTS; i++) {
        r[i] = (double)i - REACH;
        for (size_t s = 0; s < 3; s++) {
            y[s][i] = (2.5 - (double)s) * exp(-fabs(r[i] - (double)s) / (4 + 10 * (double)s)) - 0.2 * (double)s;
            low[s][i] = y[s][i] - 0.3;
            high[s][i] = y[s][i] + 0.4;
        }
    }
    size_t edge_count = 0;
    for (double e = 128; e < REACH; e *= 1.06) {
        edges[edge_count++] = e;
        edges[edge_count++] = -e;
    }
    chart_series series[3] = {{.name = "c2c"}, {.name = "c2p"}, {.name = "p2c"}};
    for (size_t s = 0; s < 3; s++) {
        series[s].kind = CHART_CURVE;
        series[s].x = r;
        series[s].y = y[s];
        series[s].low = low[s];
        series[s].high = high[s];
        series[s].count = POINTS;
    }
    static const chart_rule rules[] = {{true, 0, NULL}};
    chart_panel panels[2] = {
        {.title = "near",
         .x = {.label = "relative distance i \u2212 j", .scale = CHART_WHOLE, .low = -32, .high = 32},
         .y = {.label = "logit / sqrt(3d)"},
         .series = series,
         .series_count = 3,
         .rules = rules,
         .rule_count = 1},
        {.title = "all distances",
         .x = {.label = "relative distance i \u2212 j", .scale = CHART_SIGNED_LOG},
         .y = {.label = "logit / sqrt(3d)"},
         .series = series,
         .series_count = 3,
         .rules = rules,
         .rule_count = 1,
         .edges = edges,
         .edge_count = edge_count}};
    chart_figure spec = {
        .style = {.title = "Layer 3, head 5",
                  .note = "Median over pairs of tokens, band: 10 to 90 %. Strokes at the top: bucket edges."},
        .panels = panels,
        .panel_count = 2};
    save_chart("distance-curves", &spec);

    double layer[12], left[12], right[12], formula[12], other[12];
    for (size_t i = 0; i < 12; i++) {
        layer[i] = (double)i + 1;
        left[i] = -255.0 * layer[i];
        right[i] = 256.0 * layer[i];
        formula[i] = 511.0 * layer[i];
        other[i] = 1 + 510.0 * layer[i];
    }
    chart_series band[] = {{.name = "distances with a slot of their own",
                            .kind = CHART_BAND,
                            .x = layer,
                            .low = left,
                            .high = right,
                            .count = 12},
                           {.name = "(2k\u22121)n", .kind = CHART_LINE, .x = layer, .y = formula, .count = 12},
                           {.name = "1+2(k\u22121)n", .kind = CHART_POINTS, .x = layer, .y = other, .count = 12}};
    chart_panel field = {
        .x = {.label = "layers n", .scale = CHART_WHOLE}, .y = {.label = "tokens"}, .series = band, .series_count = 3};
    spec = (chart_figure){.style = {.width_mm = 85}, .panels = &field, .panel_count = 1};
    save_chart("receptive-field", &spec);

    static double parts[3][17];
    uint64_t seed = 9;
    for (size_t s = 0; s < 3; s++)
        for (size_t j = 0; j < 17; j++) parts[s][j] = 2 * random_fraction(&seed) - 0.8;
    static double sum[17];
    for (size_t j = 0; j < 17; j++) sum[j] = parts[0][j] + parts[1][j] + parts[2][j];
    chart_series stack[4] = {{.name = "c2c"},
                             {.name = "c2p"},
                             {.name = "p2c"},
                             {.name = "sum", .kind = CHART_POINTS, .y = sum, .count = 17, .look = 7}};
    for (size_t s = 0; s < 3; s++) {
        stack[s].kind = CHART_BARS;
        stack[s].y = parts[s];
        stack[s].count = 17;
    }
    chart_panel query = {.title = "query \"fox\"",
                         .x = {.label = "key", .scale = CHART_CATEGORIES, .categories = english, .category_count = 17},
                         .y = {.label = "logit / sqrt(3d)"},
                         .series = stack,
                         .series_count = 4,
                         .stacked = true};
    spec = (chart_figure){.style = {.width_mm = 120}, .panels = &query, .panel_count = 1, .panel_height = 40};
    save_chart("query-stack", &spec);
}

static void head_pages(void)
{
    enum { LAYERS = 12, HEADS = 12, N = 128 };
    static const float *maps[LAYERS * HEADS];
    static float *made[LAYERS * HEADS];
    for (size_t i = 0; i < LAYERS * HEADS; i++) {
        made[i] = made_up(N, i + 1);
        for (size_t k = 0; k < N * N; k++)
            made[i][k] = made[i][k] * (float)(i % 5) * 0.3f + made[i][N * N + k] * (float)(i % 7) * 0.2f;
        maps[i] = made[i];
    }
    head_grid grid = {.style = {.title = "c2c of all heads"},
                      .maps = maps,
                      .layers = LAYERS,
                      .heads = HEADS,
                      .queries = N,
                      .keys = N,
                      .stride = N,
                      .unit = "logit / sqrt(3d)"};
    save("head-grid", head_grid_layout, &grid, &grid.style);
    grid.style.width_mm = 85;
    grid.scale.policy = HEATMAP_ROBUST;
    grid.queries = grid.keys = 24;
    save("head-grid-column", head_grid_layout, &grid, &grid.style);
    for (size_t i = 0; i < LAYERS * HEADS; i++) free(made[i]);

    float share[3][LAYERS * HEADS];
    static const char *const titles[] = {"c2c", "c2p", "p2c"};
    uint64_t seed = 5;
    attention_panel panels[3];
    for (size_t c = 0; c < 3; c++) {
        for (size_t i = 0; i < LAYERS * HEADS; i++) share[c][i] = (float)(0.2 + 0.5 * random_fraction(&seed));
        panels[c] = (attention_panel){share[c], HEADS, titles[c], HEATMAP_POSITIVE};
    }
    attention_figure shares = {.style = {.title = "Share of the variance of the logits"},
                               .panels = panels,
                               .grid_rows = 1,
                               .grid_columns = 3,
                               .queries = LAYERS,
                               .keys = HEADS,
                               .query_axis = "layer",
                               .key_axis = "head",
                               .units = {[HEATMAP_POSITIVE] = "share of variance"}};
    save_attention("component-share", &shares);

    static const figure_label lengths[] = {{"16", false},  {"32", false},  {"64", false},
                                           {"128", false}, {"256", false}, {"512", false}};
    static const figure_label depths[] = {{"1", false}, {"2", false}, {"4", false}, {"6", false}, {"12", false}};
    float latency[5 * 6];
    for (size_t l = 0; l < 5; l++)
        for (size_t n = 0; n < 6; n++)
            latency[l * 6 + n] = (float)((0.4 + (double)l * (double)l) * 0.3 * pow(2, (double)n * 1.2));
    latency[3] = 0;
    panels[0] = (attention_panel){latency, 6, NULL, HEATMAP_LOG};
    attention_figure sweep = {.style = {.width_mm = 85, .title = "Latency, 1 thread"},
                              .panels = panels,
                              .grid_rows = 1,
                              .grid_columns = 1,
                              .queries = 5,
                              .keys = 6,
                              .query_labels = depths,
                              .key_labels = lengths,
                              .query_axis = "layers",
                              .key_axis = "sequence length n",
                              .units = {[HEATMAP_LOG] = "latency (ms)"},
                              .annotate = true,
                              .cell_aspect = 0.5};
    save_attention("latency-grid", &sweep);

    float distance[9 * 9];
    static const attention_mark mark[] = {{6, 2}};
    for (size_t i = 0; i < 9; i++)
        for (size_t j = 0; j < 9; j++) distance[i * 9 + j] = (float)i - (float)j;
    panels[0] = (attention_panel){distance, 9, "relative distance i \u2212 j", HEATMAP_SIGNED};
    attention_figure distances = {.style = {.width_mm = 85},
                                  .panels = panels,
                                  .grid_rows = 1,
                                  .grid_columns = 1,
                                  .queries = 9,
                                  .keys = 9,
                                  .query_labels = english,
                                  .key_labels = english,
                                  .units = {"distance in tokens", NULL, NULL},
                                  .annotate = true,
                                  .keep_row_mean = true,
                                  .marks = mark,
                                  .mark_count = 1};
    save_attention("distance-matrix", &distances);
}

static void line_pages(void)
{
    float *data = made_up(17, 6);
    line_view_panel panels[] = {
        {data + 4 * 17 * 17, 17, "probabilities"}, {data, 17, "c2c"}, {data + 17 * 17, 17, "c2p"}};
    line_view view = {.style = {.width_mm = 85},
                      .panels = panels,
                      .panel_count = 1,
                      .queries = 17,
                      .keys = 17,
                      .kind = HEATMAP_POSITIVE,
                      .query_labels = english,
                      .key_labels = english};
    save("lines-column", line_view_layout, &view, &view.style);
    view.style.width_mm = 174;
    view.panels = panels + 1;
    view.panel_count = 2;
    view.kind = HEATMAP_SIGNED;
    view.unit = "logit / sqrt(3d)";
    view.style.title = "Layer 3, head 5";
    save("lines-signed", line_view_layout, &view, &view.style);
    view.one_query = true;
    view.query = 4;
    view.panels = panels;
    view.panel_count = 1;
    view.style.width_mm = 60;
    view.unit = NULL;
    view.kind = HEATMAP_POSITIVE;
    view.queries = view.keys = 16;
    view.query_labels = view.key_labels = scripts;
    save("lines-one-query", line_view_layout, &view, &view.style);
    free(data);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: gallery FOLDER [png|svg|pdf]\n");
        return 2;
    }
    folder = argv[1];
    suffix = argc > 2 ? argv[2] : "png";
    attention_pages();
    special_pages();
    head_pages();
    line_pages();
    latency_pages();
    cost_pages();
    distance_pages();
    return 0;
}
