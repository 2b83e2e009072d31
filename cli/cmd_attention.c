/* `deberta attention`: a figure of the attention components of chosen layers and heads, one row of panels each.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/run.h"
#include "study/capture.h"
#include "viz/attention_figure.h"

typedef struct attention_job {
    const parsed_options *options;
    deberta_model *model;
    deberta_session *session;
    deberta_model_info info;
    input_batch input;
    capture capture;
    attention_panel *panels;
    char (*row_titles)[64];
    const char **row_title_pointers;
    figure_label *labels;
} attention_job;

static bool choose(attention_job *job)
{
    const char *layers = options_value(job->options, "layers", "0"), *heads = options_value(job->options, "heads", "0");
    if (!parse_index_list(job->options, "layers", layers, job->capture.layers, job->info.layers) ||
        !parse_index_list(job->options, "heads", heads, job->capture.heads, job->info.heads))
        return false;
    const char *list = options_value(job->options, "components", "c2c,c2p,p2c,logits,probs");
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, ",");
        int found = -1;
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
            if (strlen(component_name((deberta_component)c)) == length &&
                strncmp(at, component_name((deberta_component)c), length) == 0)
                found = c;
        if (found < 0) {
            report_usage(job->options, "--components: expected some of c2c,c2p,p2c,logits,probs, found '%.*s'",
                         (int)length, at);
            return false;
        }
        job->capture.components[found] = true;
    }
    return true;
}

/* Of the chosen components at least one must exist in this model. */
static bool has_components(const attention_job *job)
{
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (job->capture.components[c] && (c != DEBERTA_C2P || job->info.has_c2p) &&
            (c != DEBERTA_P2C || job->info.has_p2c))
            return true;
    report_usage(job->options, "--components: this model has no %s", options_value(job->options, "components", ""));
    return false;
}

static size_t count_true(const bool *flags, size_t count)
{
    size_t n = 0;
    for (size_t k = 0; k < count; k++) n += flags[k];
    return n;
}

/* What the figure draws, row by row: the components that were asked for and that the model has. */
static deberta_status fill_figure(attention_job *job, attention_figure *figure, size_t sequence, deberta_error *err)
{
    const size_t first = job->input.sequence_starts[sequence], n = job->input.sequence_starts[sequence + 1] - first;
    figure->grid_rows =
        count_true(job->capture.layers, job->info.layers) * count_true(job->capture.heads, job->info.heads);
    job->panels = calloc(figure->grid_rows * DEBERTA_COMPONENT_COUNT + 1, sizeof *job->panels);
    job->row_titles = calloc(figure->grid_rows + 1, sizeof *job->row_titles);
    job->row_title_pointers = calloc(figure->grid_rows + 1, sizeof *job->row_title_pointers);
    job->labels = calloc(n, sizeof *job->labels);
    if (!job->panels || !job->row_titles || !job->row_title_pointers || !job->labels)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    static const char *const titles[] = {"content to content", "content to position", "position to content",
                                         "logits (sum)", "probabilities"};
    size_t panels = 0, rows = 0;
    for (size_t l = 0; l < job->info.layers; l++)
        for (size_t head = 0; head < job->info.heads; head++) {
            if (!job->capture.layers[l] || !job->capture.heads[head]) continue;
            snprintf(job->row_titles[rows], sizeof *job->row_titles, "layer %zu, head %zu", l, head);
            job->row_title_pointers[rows] = job->row_titles[rows];
            rows++;
            for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
                const float *values = capture_matrix(&job->capture, l, head, (deberta_component)c, sequence);
                if (!values) continue;
                job->panels[panels++] =
                    (attention_panel){.values = values,
                                      .stride = n,
                                      .title = titles[c],
                                      .kind = c == DEBERTA_PROBABILITIES ? HEATMAP_POSITIVE : HEATMAP_SIGNED};
            }
        }
    for (size_t t = 0; t < n; t++)
        job->labels[t] = (figure_label){.text = job->input.labels[first + t], .special = job->input.special[first + t]};
    figure->panels = job->panels;
    figure->grid_columns = rows ? panels / rows : 0;
    figure->row_titles = job->row_title_pointers;
    figure->queries = figure->keys = n;
    figure->query_labels = figure->key_labels = job->labels;
    return DEBERTA_OK;
}

static deberta_status draw(attention_job *job, attention_figure *figure, deberta_error *err)
{
    const char *paths[16];
    size_t count = 0;
    for (const char *path; count < 16 && (path = options_nth_value(job->options, "out", count)); count++)
        paths[count] = path;
    static const char *const without[] = {"out", NULL};
    char *command_line = options_command_line(job->options, without), ids[1024] = "";
    for (size_t t = 0; t < job->input.tokens && strlen(ids) + 16 < sizeof ids; t++)
        snprintf(ids + strlen(ids), 16, "%s%d", t ? "," : "", job->input.ids[t]);
    const provenance_entry provenance[] = {{"Software", "deberta " DEBERTA_VERSION_TEXT},
                                           {"Model", job->info.name},
                                           {"Input ids", ids},
                                           {"Command", command_line ? command_line : ""}};
    figure->style.provenance = provenance;
    figure->style.provenance_count = sizeof provenance / sizeof *provenance;
    char unit[64];
    const int terms = 1 + job->info.has_c2p + job->info.has_p2c;
    snprintf(unit, sizeof unit, terms > 1 ? "logit / sqrt(%dd)" : "logit / sqrt(d)", terms);
    figure->units[HEATMAP_SIGNED] = unit;
    figure_notes notes = {0};
    const deberta_status status = figure_attention(figure, paths, count, &notes, err);
    free(command_line);
    if (status == DEBERTA_OK && notes.missing_glyphs)
        run_note(job->options, "deberta attention: no installed font has %zu of the characters; boxes stand for them",
                 notes.missing_glyphs);
    return status;
}

/* Before anything is computed. */
static bool check_suffixes(const parsed_options *options)
{
    const char *path;
    for (size_t k = 0; (path = options_nth_value(options, "out", k)); k++) {
        const char *suffix = strrchr(path, '.');
        if (suffix &&
            (strcasecmp(suffix, ".png") == 0 || strcasecmp(suffix, ".svg") == 0 || strcasecmp(suffix, ".pdf") == 0))
            continue;
        report_usage(options, "--out: unknown suffix in '%s', expected .png, .svg or .pdf", path);
        return false;
    }
    return true;
}

static int run_job(attention_job *job)
{
    deberta_session_options session_options;
    deberta_error error = {0};
    attention_figure figure = {0};
    size_t row;
    if (!options_has(job->options, "out"))
        return report_usage(job->options, "say where the figure goes: --out FILE.png (or .svg, .pdf)");
    if (!run_session_options(job->options, &session_options) ||
        !options_size(job->options, "row", 0, 0, SIZE_MAX, &row) ||
        !options_number(job->options, "width-mm", 0, &figure.style.width_mm) ||
        !options_number(job->options, "dpi", 0, &figure.style.dpi))
        return EXIT_USAGE;
    static const char *const centres[] = {"row", "none", NULL};
    size_t centre;
    if (!options_choice(job->options, "center", centres, 0, &centre)) return EXIT_USAGE;
    figure.keep_row_mean = centre == 1;
    figure.style.title = options_value(job->options, "title", NULL);
    figure.style.font = options_value(job->options, "font", NULL);
    if (!check_suffixes(job->options)) return EXIT_USAGE;
    int status = run_open_model(job->options, &job->model);
    if (status != EXIT_OK) return status;
    deberta_model_describe(job->model, &job->info);
    if ((status = input_read(job->options, options_argument(job->options, 0), &job->info, &job->input)) != EXIT_OK)
        return status;
    if (row >= job->input.rows || job->input.row[row].tokens == 0)
        return report_usage(job->options, "--row: the input has no real tokens in row %zu", row);
    if (capture_create(&job->capture, &job->info, job->input.sequence_starts, job->input.sequences, &error) !=
        DEBERTA_OK)
        return report_error(job->options, &error);
    if (!choose(job) || !has_components(job)) return EXIT_USAGE;
    session_options.max_tokens = job->input.tokens;
    session_options.features = DEBERTA_OBSERVE_ATTENTION;
    const deberta_observer observer = capture_observer(&job->capture);
    deberta_outputs outputs = {.struct_size = sizeof outputs, .observer = &observer};
    const deberta_batch batch = input_as_batch(&job->input);
    if (capture_allocate(&job->capture, session_options.memory_limit_bytes, &error) != DEBERTA_OK ||
        deberta_session_create(&job->session, job->model, &session_options, &error) != DEBERTA_OK ||
        deberta_encode(job->session, &batch, &outputs, &error) != DEBERTA_OK ||
        fill_figure(job, &figure, job->input.row[row].sequence, &error) != DEBERTA_OK ||
        draw(job, &figure, &error) != DEBERTA_OK) {
        /* once there are panels, a bad argument is one of the figure's options */
        return error.code == DEBERTA_E_ARGUMENT && job->panels ? report_usage(job->options, "%s", error.message)
                                                               : report_error(job->options, &error);
    }
    return EXIT_OK;
}

static int run(const parsed_options *options)
{
    attention_job job = {.options = options};
    const int status = run_job(&job);
    free(job.panels);
    free(job.row_titles);
    free(job.row_title_pointers);
    free(job.labels);
    capture_free(&job.capture);
    deberta_session_free(&job.session);
    input_free(&job.input);
    deberta_model_free(&job.model);
    return status;
}

static const option_spec options[] = {
    INPUT_OPTIONS,
    {"row", 0, "N", "which row of the input to draw (default 0)"},
    {"layers", 0, "LIST", "layers, counted from 0: all, or such as 0,3-5 (default 0)"},
    {"heads", 0, "LIST", "heads, counted from 0 (default 0)"},
    {"components", 0, "LIST", "some of c2c,c2p,p2c,logits,probs (default all of them)"},
    {"center", 0, "WHAT", "row: subtract what is constant over the keys, which a softmax ignores (default); none"},
    {"title", 0, "TEXT", "above the figure"},
    {"width-mm", 0, "MM", "width on paper: 85 a column, 174 a page (default)"},
    {"dpi", 0, "N", "resolution of a PNG (default 300)"},
    {"font", 0, "FAMILY", "type of labels"},
    {NULL, 0, NULL, NULL},
};

const command command_attention = {
    .name = "attention",
    .summary = "a figure of content-to-content, content-to-position, position-to-content and their sum",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .most_outputs = 16,
    .options = options,
    .example = "  deberta attention models/demo --text 'a new store opened beside the new mall' -o attention.png\n"
               "  deberta attention synthetic:v3-xsmall --ids 1,7,3,11,5,2 --layers 0,1 --heads 0 -o attention.png -o "
               "attention.pdf\n",
    .run = run,
};
