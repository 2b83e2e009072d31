/* SPDX-License-Identifier: MIT */
#include "cli/figures/figure_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/figures/figure_style.h"
#include "cli/figures/figure_kinds.h"
#include "command/run.h"
#include "core/base/path.h"

/* --------------------------------------------------------------------------------------------------------- paths */

static bool read_paths(figure_job *job)
{
    const parsed_options *options = job->options;
    const char *path, *data = options_value(options, "data", NULL), *latex = options_value(options, "latex", NULL);
    if (!run_check_figure_paths(options)) return false;
    while ((path = options_nth_value(options, "out", job->path_count))) job->paths[job->path_count++] = path;
    if (data && !figure_data_knows_suffix(data))
        say_usage(options, "--data: unknown suffix in '%s', expected .csv or .safetensors", data);
    else if (latex && !path_has_suffix(latex, ".tex"))
        say_usage(options, "--latex: unknown suffix in '%s', expected .tex", latex);
    else if (latex && !job->path_count)
        say_usage(options, "--latex includes a figure: give --out FILE.pdf too");
    else if (!job->path_count && !data)
        say_usage(options, "say where the figure goes: --out FILE.png (or .svg, .pdf), or where its numbers go: "
                           "--data FILE.csv (or .safetensors)");
    else
        return true;
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- look */

/* "shared", "panel", "robust", "robust:98", "-2,2". Limits that begin below zero are those of signed panels, others of
 * what cannot be negative; the rest is for all. */
static bool read_scale(const parsed_options *options, const char *text, heatmap_choice scales[HEATMAP_KINDS])
{
    heatmap_choice choice = {0};
    char *end = NULL;
    bool fine = true;
    if (strcmp(text, "shared") == 0)
        choice.policy = HEATMAP_SHARED;
    else if (strcmp(text, "panel") == 0)
        choice.policy = HEATMAP_PANEL;
    else if (strcmp(text, "robust") == 0)
        choice.policy = HEATMAP_ROBUST;
    else if (strncmp(text, "robust:", 7) == 0) {
        choice.policy = HEATMAP_ROBUST;
        choice.percentile = strtod(text + 7, &end);
        fine = end > text + 7 && *end == 0 && choice.percentile > 50 && choice.percentile <= 100;
    } else {
        choice.policy = HEATMAP_FIXED;
        choice.low = strtod(text, &end);
        fine = end > text && *end == ',';
        const char *high = fine ? end + 1 : text;
        if (fine) choice.high = strtod(high, &end);
        fine = fine && end > high && *end == 0 && isfinite(choice.low) && isfinite(choice.high) &&
               choice.low < choice.high;
    }
    if (!fine) {
        say_usage(options,
                  "--scale: expected shared, panel, LOW,HIGH with LOW < HIGH such as -2,2, or robust:PERCENTILE "
                  "with 50 < PERCENTILE <= 100, found '%s'",
                  text);
        return false;
    }
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        const bool fits = choice.policy != HEATMAP_FIXED || (choice.low < 0) == (kind == HEATMAP_SIGNED);
        if (fits && !(kind == HEATMAP_LOG && choice.policy == HEATMAP_FIXED && choice.low <= 0)) scales[kind] = choice;
    }
    return true;
}

static bool read_palette(const parsed_options *options, const char *name, const char **palette)
{
    *palette = options_value(options, name, NULL);
    if (!*palette || palette_find(*palette)) return true;
    say_usage(options, "--%s: expected one of %s; found '%s'", name, palette_names(), *palette);
    return false;
}

static bool read_look(const parsed_options *options, heatmap_look *look)
{
    static const char *const centres[] = {"row", "none", NULL};
    const char *text, *palette;
    size_t centre;
    for (size_t k = 0; (text = options_nth_value(options, "scale", k)); k++)
        if (!read_scale(options, text, look->scales)) return false;
    if (!read_palette(options, "palette", &palette) ||
        !read_palette(options, "signed-palette", &look->palettes[HEATMAP_SIGNED]) ||
        !options_choice(options, "center", centres, 0, &centre) ||
        !options_size(options, "layout", 0, 1, 100, &look->columns))
        return false;
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++)
        if (kind != HEATMAP_SIGNED) look->palettes[kind] = palette;
    if (!palette) look->palettes[HEATMAP_LOG] = "cividis"; /* probabilities in both */
    look->keep_row_mean = centre == 1;
    look->annotate = options_has(options, "annotate");
    look->letters = options_has(options, "letters");
    look->logarithmic = options_has(options, "log");
    return true;
}

bool figure_options_read(figure_job *job)
{
    const parsed_options *options = job->options;
    return read_paths(job) && read_look(options, &job->look) && token_view_parse(options, &job->view_choice) &&
           options_size(options, "row", 0, 0, SIZE_MAX, &job->row) && figure_style_read(options, &job->style);
}

/* "3,5": the cell of query 3 and key 5, by their places in the text. */
int figure_options_marks(figure_job *job)
{
    const char *text;
    while (options_nth_value(job->options, "mark", job->mark_count)) job->mark_count++;
    job->marks = figure_job_allocate(job, job->mark_count, sizeof *job->marks);
    if (!job->marks) return figure_job_out_of_memory(job);
    for (size_t k = 0; (text = options_nth_value(job->options, "mark", k)); k++) {
        unsigned long long query = 0, key = 0;
        int used = 0;
        if (sscanf(text, "%llu,%llu%n", &query, &key, &used) != 2 || text[used] || strpbrk(text, "+- "))
            return say_usage(job->options, "--mark: expected QUERY,KEY such as 3,5, found '%s'", text);
        job->marks[k] = (attention_mark){token_view_place(&job->view, query), token_view_place(&job->view, key)};
        if (job->marks[k].query == SIZE_MAX || job->marks[k].key == SIZE_MAX)
            return say_usage(job->options, "--mark: '%s': no such pair of tokens is shown, the text has %zu", text,
                             job->view.span[1]);
    }
    return EXIT_OK;
}

int figure_options_query(const figure_job *job, size_t *query)
{
    size_t token;
    if (!options_size(job->options, "query", 0, 0, SIZE_MAX - 1, &token)) return EXIT_USAGE;
    *query = token_view_place(&job->view, token);
    if (*query != SIZE_MAX) return EXIT_OK;
    return say_usage(job->options, "--query: token %zu is not shown, the text has %zu, counted from 0", token,
                     job->view.span[1]);
}

/* ---------------------------------------------------------------------------------------------------- provenance */

static void add(figure_job *job, const char *key, const char *value)
{
    if (value && *value && job->style.provenance_count < FIGURE_MOST_PROVENANCE)
        job->provenance[job->style.provenance_count++] = (provenance_entry){key, value};
}

/* "0-4,7": as one would type it. */
static const char *list_indices(figure_job *job, const size_t *indices, size_t count)
{
    const char *text = "";
    for (size_t k = 0, last; k < count && text; k = last + 1) {
        for (last = k; last + 1 < count && indices[last + 1] == indices[last] + 1;) last++;
        if (last == k + 1) last = k; /* "0,1" */
        text = figure_job_text(job, k ? "%s,%zu" : "%s%zu", text, indices[k]);
        if (text && last > k) text = figure_job_text(job, "%s-%zu", text, indices[last]);
    }
    return text;
}

/* The ids of the row, cut where they would fill a page. */
static const char *list_ids(figure_job *job)
{
    enum { MOST_BYTES = 1024 };
    char text[MOST_BYTES + 16] = "";
    size_t used = 0;
    for (size_t t = 0; t < job->view.span[1]; t++) {
        if (used > MOST_BYTES - 16) {
            strcpy(text + used, ",...");
            break;
        }
        used += (size_t)snprintf(text + used, 16, t ? ",%d" : "%d", job->input.ids[job->view.first_token + t]);
    }
    return figure_job_text(job, "%s", text);
}

/* Of the files that are asked for, does any tell where it comes from? A .csv does not; nor is the model, which may be
 * gigabytes, read for it once more. */
static bool writes_provenance(const figure_job *job)
{
    const char *data = options_value(job->options, "data", NULL);
    return job->path_count > 0 || options_has(job->options, "latex") || (data && !path_has_suffix(data, ".csv"));
}

int figure_options_provenance(figure_job *job)
{
    char *command_line = options_command_line(job->options, false), digest[65] = "";
    const char *command = command_line ? figure_job_text(job, "%s", command_line) : NULL;
    free(command_line);
    deberta_error error = {0};
    if (writes_provenance(job) && deberta_model_digest(job->model, digest, &error) != DEBERTA_OK)
        return say_error(job->options, &error);
    const input_batch *input = &job->input;
    add(job, "Software", "deberta " DEBERTA_VERSION_TEXT);
    add(job, "Figure", job->kind->name);
    add(job, "Model", job->info.name);
    add(job, "Model SHA-256", *digest ? figure_job_text(job, "%s", digest) : NULL);
    add(job, "Text", input->texts ? input->texts[job->row] : NULL);
    add(job, "Pair", input->pairs ? input->pairs[job->row] : NULL);
    add(job, "Input ids", list_ids(job));
    add(job, "Layers", list_indices(job, job->layers, job->layer_count));
    add(job, "Heads", list_indices(job, job->heads, job->head_count));
    add(job, "Seed", options_value(job->options, "seed", NULL));
    add(job, "Command", command);
    job->style.provenance = job->provenance;
    return command ? EXIT_OK : figure_job_out_of_memory(job);
}
