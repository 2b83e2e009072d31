/* `--figure shares`: what each term is worth to each head, as heat maps or as bars. SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"

enum { VARIANCE, SHAPLEY, KL, MEASURES };

/* How a measure is told. Variance shares and Shapley values can be negative and add up to something; KL neither. */
typedef struct measure_look {
    const char *column, *unit, *note;
    bool adds_up;
} measure_look;

static const measure_look looks[MEASURES] = {
    {"variance_share", "share of variance",
     "Share: covariance of a term with the sum over the variance of the sum, within rows. ", true},
    {"shapley_bits", "Shapley value (bits)",
     "Shapley values of the divergence between the full softmax and that of a subset of the terms. ", true},
    {"kl_bits", "KL without the term (bits)",
     "Divergence between the full softmax and the one without this term, mean over queries. ", false},
};

typedef struct shares {
    figure_job *job;
    size_t measure;
    double *values[MEASURES][ATTENTION_TERMS]; /* [heads] */
    double *total;                             /* bits that the Shapley values add up to */
} shares;

static int measure_heads(shares *s)
{
    figure_job *job = s->job;
    deberta_error error = {0};
    for (size_t m = 0; m < MEASURES; m++)
        for (size_t t = 0; t < ATTENTION_TERMS; t++)
            if (!(s->values[m][t] = head_numbers(job))) return figure_job_out_of_memory(job);
    if (!(s->total = head_numbers(job))) return figure_job_out_of_memory(job);
    progress_bar bar = progress_begin(job->options, "measuring heads", head_count(job));
    int status = EXIT_OK;
    for (size_t k = 0; k < head_count(job) && status == EXIT_OK; k++) {
        logit_terms terms;
        attention_term_effects effects = {0};
        progress_step(&bar, k, NULL);
        status = head_logit_terms(job, head_layer(job, k), head_number(job, k), &terms);
        if (status == EXIT_OK && attention_term_effects_measure(&effects, &terms, &error) != DEBERTA_OK)
            status = say_error(job->options, &error);
        for (size_t t = 0; t < ATTENTION_TERMS; t++) {
            s->values[VARIANCE][t][k] = effects.variance_share[t];
            s->values[SHAPLEY][t][k] = effects.shapley[t];
            s->values[KL][t][k] = effects.kl_without[t];
        }
        s->total[k] = effects.kl_uniform;
    }
    progress_end(&bar);
    return status;
}

/* The data holds all three measures, whichever is drawn. */
static int add_columns(const shares *s)
{
    figure_job *job = s->job;
    for (size_t m = 0; m < MEASURES; m++)
        for (size_t t = 0; t < ATTENTION_TERMS; t++) {
            if (!job->components[t]) continue;
            const char *name =
                figure_job_text(job, "%s_%s", deberta_component_name((deberta_component)t), looks[m].column);
            const int status = name ? head_map_column(job, name, s->values[m][t]) : figure_job_out_of_memory(job);
            if (status != EXIT_OK) return status;
        }
    return head_map_column(job, "kl_uniform_bits", s->total);
}

static int draw_maps(const shares *s, attention_figure *figure)
{
    figure_job *job = s->job;
    const measure_look *look = &looks[s->measure];
    attention_panel panels[ATTENTION_TERMS];
    for (size_t t = 0; t < ATTENTION_TERMS; t++) {
        if (!job->components[t]) continue;
        const int status =
            head_map_panel(job, &panels[figure->grid_columns++], deberta_component_name((deberta_component)t),
                           look->adds_up ? HEATMAP_SIGNED : HEATMAP_POSITIVE, s->values[s->measure][t]);
        if (status != EXIT_OK) return status;
    }
    figure->panels = panels;
    figure->units[HEATMAP_SIGNED] = figure->units[HEATMAP_POSITIVE] = look->unit;
    return figure_job_finish(job, attention_layout, figure);
}

/* One panel of bars for a layer. */
static int fill_bars(const shares *s, const attention_figure *labels, size_t layer, chart_panel *panel)
{
    figure_job *job = s->job;
    const measure_look *look = &looks[s->measure];
    const size_t first = layer * job->head_count;
    chart_series *series = figure_job_allocate(job, ATTENTION_TERMS + 1, sizeof *series);
    *panel = (chart_panel){
        .title = figure_job_text(job, "layer %zu", job->layers[layer]),
        .x = {.label = "head",
              .scale = CHART_CATEGORIES,
              .categories = labels->key_labels,
              .category_count = job->head_count},
        .y = {.label = look->unit},
        .series = series,
        .stacked = look->adds_up,
    };
    if (!series || !panel->title) return figure_job_out_of_memory(job);
    for (size_t t = 0; t < ATTENTION_TERMS; t++)
        if (job->components[t])
            series[panel->series_count++] = (chart_series){.name = deberta_component_name((deberta_component)t),
                                                           .kind = CHART_BARS,
                                                           .y = s->values[s->measure][t] + first,
                                                           .count = job->head_count,
                                                           .look = t + 1};
    if (s->measure == SHAPLEY)
        series[panel->series_count++] = (chart_series){.name = "KL from uniform",
                                                       .kind = CHART_POINTS,
                                                       .y = s->total + first,
                                                       .count = job->head_count,
                                                       .look = 7};
    return EXIT_OK;
}

static int draw_bars(const shares *s, const attention_figure *labels)
{
    figure_job *job = s->job;
    chart_panel *panels = figure_job_allocate(job, job->layer_count, sizeof *panels);
    if (!panels) return figure_job_out_of_memory(job);
    for (size_t layer = 0; layer < job->layer_count; layer++) {
        const int status = fill_bars(s, labels, layer, &panels[layer]);
        if (status != EXIT_OK) return status;
    }
    head_bars_share_axis(panels, job->layer_count);
    const chart_figure chart = {.style = labels->style,
                                .panels = panels,
                                .panel_count = job->layer_count,
                                .columns = job->look.columns,
                                .panel_height = 30,
                                .panel_letters = job->look.letters};
    return figure_job_finish(job, chart_layout, &chart);
}

/* Bars have no colour scale and no cells. */
static bool bars_take_all(const figure_job *job)
{
    static const char *const of_maps[] = {"scale", "palette", "signed-palette", "annotate", NULL};
    for (const char *const *name = of_maps; *name; name++) {
        if (!options_has(job->options, *name)) continue;
        say_usage(job->options, "--%s: --form bars does not take it; --form map does", *name);
        return false;
    }
    return true;
}

static int run(figure_job *job)
{
    static const char *const measures[] = {"variance", "shapley", "kl", NULL}, *const forms[] = {"map", "bars", NULL};
    shares s = {.job = job};
    size_t form;
    attention_figure figure;
    if (!options_choice(job->options, "measure", measures, VARIANCE, &s.measure) ||
        !options_choice(job->options, "form", forms, 0, &form))
        return EXIT_USAGE;
    if (form && !bars_take_all(job)) return EXIT_USAGE;
    int status = figure_job_encode(job);
    if (status == EXIT_OK) status = measure_heads(&s);
    if (status != EXIT_OK) return status;
    figure_job_note(job, "%s", looks[s.measure].note);
    if (!job->view.whole) figure_job_note(job, "Measured among the tokens that are shown. ");
    figure_job_caption(job, "What each term of the logits is worth to each head. %s", looks[s.measure].note);
    status = head_map_figure(job, &figure);
    if (status == EXIT_OK) status = add_columns(&s);
    if (status != EXIT_OK) return status;
    return form ? draw_bars(&s, &figure) : draw_maps(&s, &figure);
}

static const char *const options[] = {"measure",  "form",    "scale",  "palette", "signed-palette",
                                      "annotate", "letters", "layout", NULL};

const figure_kind figure_shares = {
    .name = "shares",
    .summary = "what each term is worth to each head: share of variance, Shapley value or KL",
    .layers = "all",
    .heads = "all",
    .components = "c2c,c2p,p2c",
    .options = options,
    .run = run,
};
