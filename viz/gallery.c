/* For developers: draws every kind of figure from made-up numbers into a folder, to be looked at after a change.
 *
 *     build/viz/gallery FOLDER [png|svg|pdf]
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viz/attention_figure.h"

static const char *folder, *suffix;

/* Reports a figure; a picture book goes on after an error. */
static void show(const char *name, deberta_status status, const figure_notes *notes, const deberta_error *err)
{
    if (status != DEBERTA_OK) printf("%-24s FAILED: %s\n", name, err->message);
    else
        printf("%-24s clipped %zu, NaN %zu, inf %zu, pooled %zu, missing glyphs %zu%s\n", name, notes->clipped, notes->not_a_number,
               notes->infinite, notes->pooled, notes->missing_glyphs, notes->positions ? ", positions" : "");
}

static void save_attention(const char *name, attention_figure *spec)
{
    char path[1024];
    const char *paths[] = {path};
    figure_notes notes = {0};
    deberta_error err = {0};
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
    deberta_status status = figure_attention(spec, paths, 1, &notes, &err);
    show(name, status, &notes, &err);
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1u << 24);
}

/* Something like attention: near diagonal, vertical stripes at the first token, noise. [4][n][n]: c2c, c2p, p2c, sum; then
 * probabilities. */
static float *made_up(size_t n, uint64_t seed)
{
    float *all = malloc(5 * n * n * sizeof *all);
    if (!all) exit(4);
    for (size_t i = 0; i < n; i++) {
        double total = 0;
        for (size_t j = 0; j < n; j++) {
            double r = (double)i - (double)j, c2c = 1.5 * (uniform(&seed) + uniform(&seed) - 1) + (j == 0 ? 1.2 : 0);
            double c2p = 2.2 * exp(-r * r / 6) - 0.3 * (r > 0) + 0.2 * uniform(&seed), p2c = 1.1 * exp(-(r - 1) * (r - 1) / 2) - 0.4 * uniform(&seed);
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
    static const char *const titles[] = {"content to content (c2c)", "content to position (c2p)", "position to content (p2c)",
                                         "sum", "probabilities"};
    for (size_t c = 0; c < 5; c++)
        panels[c] = (attention_panel){data + c * n * n, n, titles[c], c < 4 ? HEATMAP_SIGNED : HEATMAP_POSITIVE};
}

static const figure_label english[] = {
    {"[CLS]", true}, {"The", false}, {"quick", false}, {"brown", false}, {"fox", false}, {"jumps", false}, {"over", false},
    {"the", false}, {"lazy", false}, {"dog", false}, {".", false}, {"[SEP]", true}, {"It", false}, {"sleeps", false},
    {"soundly", false}, {".", false}, {"[SEP]", true}};

static const figure_label scripts[] = {
    {"[CLS]", true}, {"漢字", false}, {"中文分詞", false}, {"مرحبا", false}, {"بالعالم", false}, {"नमस्ते", false},
    {"क्षत्रिय", false}, {"שלום", false}, {"ภาษาไทย", false}, {"😀", false}, {"👩\u200d👩\u200d👧", false}, {"▁the", false},
    {"extraordinarily-long-token-that-has-sixty-characters-in-all-ok", false}, {"naïve", false}, {"ﬁ&<>\"", false}, {"[SEP]", true}};

static void attention_pages(void)
{
    static const char *const rows[] = {"layer 3, head 5", "layer 7, head 0"};
    static const size_t boundary[] = {12};
    static const attention_mark marks[] = {{4, 3}};
    attention_panel panels[10];
    attention_figure spec = {
        .style = {.title = "DeBERTa-v3-base, layer 3, head 5"},
        .panels = panels, .grid_rows = 1, .grid_columns = 5,
        .queries = 17, .keys = 17, .query_labels = english, .key_labels = english,
        .boundaries = boundary, .boundary_count = 1,
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
    spec.columns = 2;
    save_attention("attention-annotated", &spec);
    free(one);
    free(two);
}

static void special_pages(void)
{
    attention_panel panels[5];
    attention_figure spec = {.style = {.title = "Any script"}, .panels = panels, .grid_rows = 1, .grid_columns = 2,
                             .queries = 16, .keys = 16, .query_labels = scripts, .key_labels = scripts,
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
    return 0;
}
