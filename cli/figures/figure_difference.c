/* `--figure difference`: one text minus another, or one model minus another. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"

/* What is subtracted. */
typedef struct other_side {
    deberta_model *model; /* NULL: the job's */
    deberta_model_info info;
    deberta_session *session; /* of that model */
    token_view view;
    bool own_view; /* else the job's */
    capture capture;
} other_side;

static void close_other(other_side *other)
{
    capture_free(&other->capture);
    deberta_session_free(&other->session);
    deberta_model_free(&other->model);
    if (other->own_view) token_view_free(&other->view);
}

static int refuse_component(const figure_job *job, const deberta_model_info *lacking, deberta_component component)
{
    return say_usage(job->options,
                     "--components: %s has no %s, so there is nothing to subtract; both models have c2c, logits and "
                     "probs%s%s",
                     lacking->name, deberta_component_name(component),
                     component != DEBERTA_C2P && component_is_in(DEBERTA_C2P, lacking) ? ", c2p" : "",
                     component != DEBERTA_P2C && component_is_in(DEBERTA_P2C, lacking) ? ", p2c" : "");
}

/* Terms that one model lacks: refused where they are asked for by name, else left out, with a note. */
static int choose_shared(figure_job *job, const deberta_model_info *other)
{
    const char *asked = options_value(job->options, "components", NULL);
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        const bool own_has = component_is_in(c, &job->info);
        if (own_has == component_is_in(c, other)) continue;
        const deberta_model_info *lacking = own_has ? other : &job->info;
        if (asked && strstr(asked, deberta_component_name(c))) return refuse_component(job, lacking, c);
        if (!asked) figure_job_note(job, "%s has no %s. ", lacking->name, deberta_component_name(c));
        job->components[c] = false;
    }
    return EXIT_OK;
}

/* Layers and heads that are looked at are checked by figure_job_open_capture: models may have more of them. */
static int check_models(figure_job *job, const deberta_model_info *other)
{
    const deberta_model_info *own = &job->info;
    if (other->vocabulary_size != own->vocabulary_size)
        return say_usage(job->options, "--against: %s knows %zu tokens, %s %zu: ids would mean other things",
                         other->name, other->vocabulary_size, own->name, own->vocabulary_size);
    return choose_shared(job, other);
}

static int open_other_model(figure_job *job, const char *path, other_side *other)
{
    int status = figure_job_open_model(job, path, &other->model, &other->info);
    if (status == EXIT_OK) status = check_models(job, &other->info);
    if (status == EXIT_OK)
        status = figure_job_open_session(job, other->model, DEBERTA_OBSERVE_ATTENTION, &other->session);
    other->view = job->view;
    return status;
}

/* The other one of two texts: of equal length, and the same after the choice of tokens. */
static int open_other_text(figure_job *job, other_side *other)
{
    deberta_error error = {0};
    if (job->input.rows != 2)
        return say_usage(job->options,
                         "--figure difference: give two texts (--text A --text B) or a second model (--against "
                         "MODEL); there %s %zu %s",
                         job->input.rows == 1 ? "is" : "are", job->input.rows, job->input.rows == 1 ? "text" : "texts");
    other->info = job->info;
    other->own_view = true;
    if (token_view_make(&other->view, &job->input, 1 - job->row, &job->view_choice, &error) != DEBERTA_OK)
        return figure_job_fail(job, &error);
    if (other->view.span[1] != job->view.span[1] || other->view.count != job->view.count)
        return say_usage(job->options,
                         "--figure difference: the texts must have equally many tokens, found %zu and %zu",
                         job->view.whole ? job->view.span[1] : job->view.count,
                         job->view.whole ? other->view.span[1] : other->view.count);
    return EXIT_OK;
}

static int encode_other(figure_job *job, other_side *other)
{
    const int status = figure_job_open_capture(job, &other->info, &other->view, &other->capture);
    if (status != EXIT_OK) return status;
    const deberta_observer observer = capture_observer(&other->capture);
    return figure_job_observe(job, other->model ? other->session : job->session, other->view.row, &observer);
}

/* "mall", or "mall/shop" where the texts differ. */
static int join_labels(figure_job *job, const other_side *other, attention_figure *figure)
{
    figure_label *labels = figure_job_allocate(job, job->view.count, sizeof *labels);
    if (!labels) return figure_job_out_of_memory(job);
    for (size_t t = 0; t < job->view.count; t++) {
        const char *own = job->view.labels[t].text, *its = other->view.labels[t].text;
        labels[t] = job->view.labels[t];
        if (strcmp(own, its) != 0 && !(labels[t].text = figure_job_text(job, "%s/%s", own, its)))
            return figure_job_out_of_memory(job);
    }
    figure->query_labels = figure->key_labels = labels;
    return EXIT_OK;
}

static int subtract(figure_job *job, const other_side *other, size_t index, deberta_component component,
                    attention_panel *panel)
{
    const size_t cells = job->view.count * job->view.count, layer = head_layer(job, index),
                 head = head_number(job, index);
    const float *a, *b;
    float *difference = figure_job_allocate(job, cells, sizeof *difference);
    if (!difference) return figure_job_out_of_memory(job);
    int status = figure_job_matrix(job, &job->capture, &job->view, layer, head, component, &a);
    if (status == EXIT_OK) status = figure_job_matrix(job, &other->capture, &other->view, layer, head, component, &b);
    if (status != EXIT_OK) return status;
    for (size_t c = 0; c < cells; c++) difference[c] = a[c] - b[c];
    *panel = (attention_panel){.values = difference,
                               .stride = job->view.count,
                               .title = component_title(component),
                               .kind = component == DEBERTA_PROBABILITIES ? HEATMAP_RANGE : HEATMAP_SIGNED};
    return figure_job_add_matrix(job, deberta_component_name(component), layer, head, difference);
}

/* Probabilities have a scale and a unit of their own, but signs too: a range, symmetric unless it was chosen, in the
 * colours of signed panels. Limits below 0 are theirs where they are all there is. */
static void style_probabilities(attention_figure *figure)
{
    bool alone = true;
    double reach = 0;
    for (size_t k = 0; k < figure->grid_rows * figure->grid_columns; k++) {
        alone = alone && figure->panels[k].kind == HEATMAP_RANGE;
        for (size_t c = 0; c < figure->queries * figure->keys && figure->panels[k].kind == HEATMAP_RANGE; c++)
            reach = fmax(reach, fabs((double)figure->panels[k].values[c]));
    }
    figure->palettes[HEATMAP_RANGE] = figure->palettes[HEATMAP_SIGNED] ? figure->palettes[HEATMAP_SIGNED] : "polar";
    if (alone && figure->scales[HEATMAP_SIGNED].policy == HEATMAP_FIXED) {
        figure->scales[HEATMAP_RANGE] = figure->scales[HEATMAP_SIGNED];
        figure->scales[HEATMAP_SIGNED].policy = HEATMAP_SHARED; /* of no panel */
    }
    if (figure->scales[HEATMAP_RANGE].policy == HEATMAP_SHARED)
        figure->scales[HEATMAP_RANGE] =
            (heatmap_choice){.policy = HEATMAP_FIXED, .low = -(reach > 0 ? reach : 1), .high = reach > 0 ? reach : 1};
    figure->units[HEATMAP_RANGE] = "difference of probability";
}

static int fill(figure_job *job, const other_side *other, attention_figure *figure)
{
    attention_panel *panels;
    size_t columns = 0;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) columns += job->components[c];
    int status = head_rows(job, figure, columns, &panels);
    for (size_t k = 0; k < head_count(job); k++)
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT && status == EXIT_OK; c++)
            if (job->components[c]) status = subtract(job, other, k, (deberta_component)c, panels++);
    if (status == EXIT_OK) style_probabilities(figure);
    return status;
}

static int run_with(figure_job *job, other_side *other)
{
    const char *against = options_value(job->options, "against", NULL);
    const heatmap_choice *positive = &job->look.scales[HEATMAP_POSITIVE];
    if (positive->policy == HEATMAP_FIXED)
        return say_usage(job->options,
                         "--scale: differences have both signs, expected limits such as -0.5,0.5, found '%g,%g'",
                         positive->low, positive->high);
    int status = against ? open_other_model(job, against, other) : open_other_text(job, other);
    if (status == EXIT_OK) status = figure_job_encode(job);
    if (status == EXIT_OK) status = encode_other(job, other);
    if (status != EXIT_OK) return status;
    if (against)
        figure_job_note(job, "%s minus %s. ", job->info.name, against);
    else
        figure_job_note(job, "%s text minus the %s. ", job->row ? "Second" : "First", job->row ? "first" : "second");
    figure_job_caption(job, "Difference of attention between two %s. ", against ? "models" : "texts");
    attention_figure figure = figure_job_attention(job);
    const bool same_unit = other->info.has_c2p == job->info.has_c2p && other->info.has_p2c == job->info.has_p2c;
    const char *unit = figure_job_text(job, "difference of %s", same_unit ? job->unit : "scaled logits");
    if (!unit) return figure_job_out_of_memory(job);
    figure.units[HEATMAP_SIGNED] = unit;
    status = join_labels(job, other, &figure);
    if (status == EXIT_OK) status = fill(job, other, &figure);
    if (status != EXIT_OK) return status;
    job->data.row_labels = job->data.column_labels = figure.query_labels;
    return figure_job_finish(job, attention_layout, &figure);
}

static int run(figure_job *job)
{
    other_side other = {0};
    const int status = run_with(job, &other);
    close_other(&other);
    return status;
}

static const char *const options[] = {"components", "against", "scale",   "signed-palette", "center",
                                      "annotate",   "mark",    "letters", "layout",         NULL};

const figure_kind figure_difference = {
    .name = "difference",
    .summary = "one text minus another of equal length, or one model minus another",
    .layers = "0",
    .heads = "0",
    .components = "c2c,c2p,p2c,logits,probs",
    .options = options,
    .all_rows = true,
    .run = run,
};
