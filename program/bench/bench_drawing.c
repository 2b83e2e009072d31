/* Puts results into groups, and gives each group the name, colour and dash that all panels share.
 *
 * SPDX-License-Identifier: MIT */
#include "program/bench/bench_drawing.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- files */

/* Returns the index of the file that holds the result, which is one of drawing->results. */
static size_t file_of(const bench_drawing *drawing, const bench_result *result)
{
    size_t file = 0, before = (size_t)(result - drawing->results->result);
    while (before >= drawing->files->results[file].count) before -= drawing->files->results[file++].count;
    return file;
}

bool bench_same_series(const bench_drawing *drawing, const bench_result *a, const bench_result *b, unsigned axes)
{
    return trend_same_series(a, b, axes) && file_of(drawing, a) == file_of(drawing, b);
}

/* ----------------------------------------------------------------------------------------------------------- names */

const char *bench_count_text(bench_drawing *drawing, size_t count, const char *what)
{
    return options_text(drawing->options, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

void bench_add_note(bench_drawing *drawing, const char *sentence)
{
    drawing->note = drawing->note ? options_text(drawing->options, "%s %s", drawing->note, sentence) : sentence;
}

/* Facets that identify a result, in the order of its name. */
typedef enum facet {
    SOURCE,
    MACHINE,
    ENGINE,
    ISA,
    THREADS,
    MODEL,
    PRECISION,
    ATTENTION,
    POSITION_CACHE,
    BATCH,
    COLD,
    FACETS
} facet;

/* Writes the last part of a file's path without ".json" if that is unique, else the whole path. */
static void write_file_name(char text[256], const bench_files *files, size_t which)
{
    const char *path = files->names[which], *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t k = 0; k < files->count; k++) {
        const char *other = strrchr(files->names[k], '/');
        if (k != which && strcmp(other ? other + 1 : files->names[k], name) == 0) name = path;
    }
    snprintf(text, 256, "%s", name);
    char *suffix = strrchr(text, '.');
    if (suffix && strcmp(suffix, ".json") == 0) *suffix = '\0';
}

static void write_facet(char text[256], const bench_drawing *drawing, const bench_result *r, facet which)
{
    const size_t file = file_of(drawing, r);
    switch (which) {
    case SOURCE: write_file_name(text, drawing->files, file); return;
    case MACHINE: snprintf(text, 256, "%s", drawing->files->results[file].sheet.cpu); return;
    case ENGINE: snprintf(text, 256, "%s", r->engine); return;
    case ISA: snprintf(text, 256, "%s", r->isa); return;
    case THREADS: snprintf(text, 256, "%zu thread%s", r->threads, r->threads == 1 ? "" : "s"); return;
    case MODEL: snprintf(text, 256, "%s", r->model); return;
    case PRECISION: snprintf(text, 256, "%s", r->precision); return;
    case ATTENTION: snprintf(text, 256, "%s", r->attention); return;
    case POSITION_CACHE: snprintf(text, 256, "positions %s", r->position_cache ? "folded" : "recomputed"); return;
    case BATCH: snprintf(text, 256, "batch %zu", r->batch); return;
    case COLD: snprintf(text, 256, "%s caches", r->cold ? "cold" : "warm"); return;
    case FACETS: break;
    }
    *text = '\0';
}

static bool facet_varies(const bench_drawing *drawing, facet which)
{
    const bench_results *results = drawing->results;
    char first[256], other[256];
    if (which == SOURCE) return drawing->names_files;
    write_facet(first, drawing, &results->result[0], which);
    for (size_t k = 1; k < results->count && which == MODEL; k++)
        if (!bench_same_model(&results->result[0], &results->result[k])) return true;
    if (which == MODEL) return false; /* the same model may have several names */
    for (size_t k = 1; k < results->count; k++) {
        write_facet(other, drawing, &results->result[k], which);
        if (strcmp(first, other) != 0) return true;
    }
    return false;
}

bool bench_machines_vary(const bench_drawing *drawing) { return facet_varies(drawing, MACHINE); }

/* Appends to `name` the facets in which results differ, and those of `always` in any case. */
static const char *add_facets(bench_drawing *drawing, const char *name, const bench_result *r, unsigned always)
{
    bool has_engine = false;
    for (facet which = 0; which < FACETS; which++) {
        char text[256];
        write_facet(text, drawing, r, which);
        if (!*text || !(always & 1u << which || facet_varies(drawing, which))) continue;
        /* other engines choose their instruction set themselves */
        if (which == ISA && strcmp(text, "native") == 0) continue;
        const char *separator = !*name ? "" : has_engine && which == ISA ? " " : ", ";
        name = options_text(drawing->options, "%s%s%s", name, separator, text);
        has_engine = has_engine || which == ENGINE;
    }
    return name;
}

/* Returns "5+9+20", or how many lengths there are and the longest. */
static const char *ragged_name(bench_drawing *drawing, const bench_result *result)
{
    enum { MOST_LISTED = 4 };
    if (result->batch > MOST_LISTED)
        return options_text(drawing->options, "%zu texts, longest %zu", result->batch, result->n);
    const char *name = "";
    for (size_t k = 0; k < result->batch; k++)
        name = options_text(drawing->options, "%s%s%zu", name, k ? "+" : "", result->lengths[k]);
    return name;
}

const char *bench_point_name(bench_drawing *drawing, const bench_result *result)
{
    const bench_results *results = drawing->results;
    bool layers_vary = false;
    for (size_t k = 0; k < results->count; k++)
        layers_vary = layers_vary || results->result[k].layers != results->result[0].layers;
    const char *name =
        result->lengths ? ragged_name(drawing, result) : options_text(drawing->options, "n = %zu", result->n);
    if (layers_vary)
        name = options_text(drawing->options, "%s, %s", name, bench_count_text(drawing, result->layers, "layer"));
    return add_facets(drawing, name, result, 0);
}

void bench_name_machine(bench_drawing *drawing)
{
    const machine_sheet *sheet = &drawing->results->sheet;
    const char *model = facet_varies(drawing, MODEL) ? "" : drawing->results->result[0].model;
    const char *slash = strrchr(model, '/'); /* a folder is named by its last part */
    const char *cores = sheet->topology.cores ? options_text(drawing->options, ", %s",
                                                             bench_count_text(drawing, sheet->topology.cores, "core"))
                                              : "";
    if (bench_machines_vary(drawing)) {
        if (*model) bench_add_note(drawing, options_text(drawing->options, "%s.", slash ? slash + 1 : model));
    } else if (*sheet->cpu)
        bench_add_note(drawing, options_text(drawing->options, "%s%son %s%s.", slash ? slash + 1 : model,
                                             *model ? " " : "", sheet->cpu, cores));
    const char *precision = drawing->results->result[0].precision;
    if (!facet_varies(drawing, PRECISION) && strcmp(precision, "float32") != 0)
        bench_add_note(drawing, options_text(drawing->options, "Linear layers in %s.", precision));
}

/* ---------------------------------------------------------------------------------------------------------- groups */

/* Gives a group the colour of earlier groups of the same engine, or a new one. Its dash is the rank of its number of
 * threads. */
static void choose_look(const bench_drawing *drawing, bench_group *group)
{
    const unsigned axes = BENCH_LAYERS | BENCH_LENGTH;
    size_t looks = 0;
    for (const bench_group *g = drawing->groups; g < group; g++) {
        looks = g->look > looks ? g->look : looks;
        if (!group->look && bench_result_alike(g->first, group->first, axes | BENCH_THREADS) &&
            file_of(drawing, g->first) == file_of(drawing, group->first))
            group->look = g->look;
    }
    if (!group->look) group->look = looks + 1;
    if (!facet_varies(drawing, THREADS)) return;
    size_t fewer = 0; /* number of other thread counts below this one */
    for (size_t k = 0; k < drawing->results->count; k++) {
        const bench_result *r = &drawing->results->result[k];
        bool first = r->threads < group->first->threads;
        for (size_t j = 0; j < k && first; j++) first = drawing->results->result[j].threads != r->threads;
        fewer += first;
    }
    group->dash = fewer + 1;
}

static void name_groups(bench_drawing *drawing)
{
    for (size_t g = 0; g < drawing->group_count; g++)
        drawing->groups[g].name = add_facets(drawing, "", drawing->groups[g].first, 1u << ISA | 1u << THREADS);
}

void bench_find_groups(bench_drawing *drawing)
{
    const bench_results *results = drawing->results;
    drawing->groups = options_take(drawing->options, results->count, sizeof *drawing->groups);
    for (size_t k = 0; k < results->count; k++) {
        const bench_result *r = &results->result[k];
        bool known = r->lengths != NULL; /* a ragged batch has no single length to be plotted against */
        for (size_t g = 0; g < drawing->group_count && !known; g++)
            known = bench_same_series(drawing, drawing->groups[g].first, r, TREND_LAYERS | TREND_LENGTH);
        if (known) continue;
        bench_group *group = &drawing->groups[drawing->group_count++];
        *group = (bench_group){.first = r};
        choose_look(drawing, group);
    }
    name_groups(drawing);
    for (size_t g = 0; g < drawing->group_count && !drawing->names_files; g++)
        for (size_t other = 0; other < g; other++)
            drawing->names_files =
                drawing->names_files || strcmp(drawing->groups[g].name, drawing->groups[other].name) == 0;
    if (drawing->names_files) name_groups(drawing);
}

const char *bench_legend_name(const bench_drawing *drawing, bench_group *group)
{
    const bool first = drawing->panel_count == 0, named = first || !group->listed;
    group->listed = group->listed || first;
    return named ? group->name : NULL;
}

const bench_group *bench_group_of(const bench_drawing *drawing, const chart_series *series)
{
    const bench_group *group = drawing->groups;
    while (group->look != series->look || group->dash != series->dash) group++;
    return group;
}

static size_t along(const bench_result *r, trend_axis axis) { return axis == TREND_LAYERS ? r->layers : r->n; }

size_t bench_slice(const bench_drawing *drawing, const bench_group *group, trend_axis axis,
                   const bench_result **members)
{
    const bench_results *results = drawing->results;
    const trend_axis other = axis == TREND_LAYERS ? TREND_LENGTH : TREND_LAYERS;
    size_t most = 0, at = 0, count = 0;
    for (size_t k = 0; k < results->count; k++) {
        const bench_result *r = &results->result[k];
        size_t alike = 0;
        if (!bench_same_series(drawing, group->first, r, TREND_LAYERS | TREND_LENGTH)) continue;
        for (size_t m = 0; m < results->count; m++) alike += bench_same_series(drawing, r, &results->result[m], axis);
        if (alike < most || (alike == most && along(r, other) <= at)) continue;
        most = alike;
        at = along(r, other);
    }
    for (size_t k = 0; k < results->count; k++) {
        const bench_result *r = &results->result[k];
        if (!bench_same_series(drawing, group->first, r, TREND_LAYERS | TREND_LENGTH) || along(r, other) != at)
            continue;
        size_t place = count++;
        for (; place > 0 && along(members[place - 1], axis) > along(r, axis); place--)
            members[place] = members[place - 1];
        members[place] = r;
    }
    return count;
}
