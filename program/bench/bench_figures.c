/* Lists the figures of bench results, selects those to draw, and saves them. SPDX-License-Identifier: MIT */
#include "program/bench/bench_drawing.h"

#include <string.h>

const bench_figure_kind bench_figure_kinds[] = {
    {"latency", "median latency against length, one line for each engine, tier and number of threads",
     "results of two or more lengths: deberta bench MODEL -n 16-512*2 --json", bench_fill_latency, true},
    {"layers", "median latency against the number of layers, with the fitted time of a layer",
     "results of two or more numbers of layers: deberta bench MODEL --depth 1-6 --json", bench_fill_layers, true},
    {"memory", "peak memory of the process and workspace of the session against length",
     "results of two or more lengths: deberta bench MODEL -n 16-512*2 --json", bench_fill_memory, true},
    {"speedup", "how many times faster than the scalar tier",
     "results of the scalar tier and of another: deberta bench MODEL --isa all --json", bench_fill_speedup, true},
    {"grid", "latency over lengths and layers as a heat map, and how far a fitted surface is off",
     "results of two or more lengths and numbers of layers: deberta bench MODEL -n 16-512*2 --depth 1-6 --json",
     bench_fill_grid, false},
    {"breakdown", "time by stage and part of attention, stacked", "breakdown: deberta bench MODEL --breakdown --json",
     bench_fill_breakdown, false},
    {"roofline",
     "FLOP/s of each stage and part of attention against its FLOPs a byte, under the measured limits of the machine",
     "breakdown with measured limits of the machine: deberta bench MODEL --breakdown --json, without --no-peak",
     bench_fill_roofline, false},
    {"error", "relative error against latency: what precision costs, and what it is worth",
     "errors of results: tools/peers.py measures them", bench_fill_error, false},
    {"bars", "median time of each engine as bars, a panel for each length",
     "results of several engines at one length: tools/peers.py measures them", bench_fill_bars, false},
    {NULL, NULL, NULL, NULL, false},
};

static const bench_figure_kind *const latency = bench_figure_kinds;

const char *const bench_figure_names[] = {"curves",   "latency", "layers", "memory", "speedup", "grid", "breakdown",
                                          "roofline", "error",   "bars",   "all",    "list",    NULL};

const bench_figure_kind *bench_figure_kind_of(int name)
{
    for (const bench_figure_kind *kind = bench_figure_kinds; kind->name; kind++)
        if (strcmp(kind->name, bench_figure_names[name]) == 0) return kind;
    return NULL;
}

bool bench_figure_takes_files(int name) { return name == 0 || bench_figure_kind_of(name) == latency; }

/* ---------------------------------------------------------------------------------------------------------- saving */

/* Saves the figure; without paths it only checks that the figure has room. */
static deberta_status save(bench_drawing *drawing, const figure_style *style, const char *const *paths,
                           size_t path_count, deberta_error *err)
{
    figure_style noted = *style;
    noted.note = drawing->note;
    if (!drawing->grid.panels) return chart_columns_draw(&drawing->chart, &noted, paths, path_count, err);
    drawing->grid.style = noted;
    return path_count ? figure_attention(&drawing->grid, paths, path_count, NULL, err)
                      : figure_check(attention_layout, &drawing->grid, &noted, NULL, err);
}

static bool is_empty(const bench_drawing *drawing) { return drawing->panel_count == 0 && !drawing->grid.panels; }

/* Fills the kind that was asked for, or all curves, or without any curve what a single point can show. */
static bench_drawing bench_figures_fill(const common_options *options, const bench_files *files,
                                        const bench_figure_kind *kind)
{
    bench_drawing drawing = {.options = options, .results = bench_files_join(options, files), .files = files};
    if (drawing.results->count) {
        bench_find_groups(&drawing);
        bench_name_machine(&drawing);
    }
    if (files->count > 1) kind = latency;
    if (kind) kind->fill(&drawing);
    for (const bench_figure_kind *k = bench_figure_kinds; !kind && k->name; k++)
        if (k->is_curve) k->fill(&drawing);
    if (!kind && is_empty(&drawing)) bench_fill_breakdown(&drawing);
    return drawing;
}

deberta_status bench_figures_can_draw(const common_options *options, const bench_files *files,
                                      const bench_figure_kind *kind, const figure_style *style, bool *can,
                                      deberta_error *err)
{
    bench_drawing drawing = bench_figures_fill(options, files, kind);
    *can = !is_empty(&drawing);
    const deberta_status status = *can ? save(&drawing, style, NULL, 0, err) : DEBERTA_OK;
    chart_columns_free(&drawing.chart);
    return status;
}

/* Explains why there is no curve: there is one length, or the results of several lengths differ in more than that. */
static deberta_status no_curve(const bench_files *files, deberta_error *err)
{
    const bench_results *results = files->results; /* bench_files_check has found a curve in each of several files */
    for (size_t k = 1; k < results->count; k++) {
        char difference[BENCH_DIFFERENCE_BYTES];
        const bench_result *first = &results->result[0], *r = &results->result[k];
        if ((first->n == r->n && first->layers == r->layers) || first->lengths || r->lengths) continue;
        bench_result_difference(difference, first, r);
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "no two results differ in length or number of layers alone, so there is no curve to draw; the "
                     "first and another have %s",
                     difference);
    }
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                 "the results have one length, one number of layers and no breakdown: there is no curve to draw "
                 "(`deberta bench MODEL -n 16-512*2 --json` measures one)");
}

deberta_status bench_figures_draw(const common_options *options, const bench_files *files,
                                  const bench_figure_kind *kind, const figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err)
{
    DEBERTA_TRY(bench_files_check(files, latency->needs, err));
    bench_drawing drawing = bench_figures_fill(options, files, kind);
    deberta_status status;
    if (!is_empty(&drawing))
        status = save(&drawing, style, paths, path_count, err);
    else if (kind)
        status = status_fail(err, DEBERTA_E_ARGUMENT, "%s: the file holds no %s", kind->name, kind->needs);
    else
        status = no_curve(files, err);
    chart_columns_free(&drawing.chart);
    return status;
}
