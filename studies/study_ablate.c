/* `deberta study ablate`: what each term of each head is worth to the masked-LM loss, by taking it out.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "analysis/ablation_effect.h"
#include "program/frame/progress.h"
#include "studies/studies.h"

enum { BATCH_TOKENS = 2048 };
static const char *const term_names[ATTENTION_TERMS] = {"c2c", "c2p", "p2c"};

typedef struct ablate_options {
    study_options study;
    deberta_ablation_kind kind;
    masked_decoder decoder;
} ablate_options;
static const char *const kind_names[] = {[DEBERTA_ABLATE_ZERO] = "zero", [DEBERTA_ABLATE_MEAN] = "mean", NULL};
static const char *const decoder_names[] = {
    [MASKED_DECODER_TRAINED] = "auto", [MASKED_DECODER_EMD] = "emd", [MASKED_DECODER_PLAIN] = "plain", NULL};

typedef struct ablate_study {
    study study;
    masked_texts masked;
    deberta_task head; /* that is asked */
    component_share share;
    deberta_ablation *interventions; /* [count]: heads, layers as a whole, the model as a whole; terms in turn */
    size_t count, terms;             /* terms: those that the model has */
    ablation_effects effects;
    double *masks;  /* [sentences] */
    double *shares; /* [count] of the variance of the scores, NaN for more than a head */
    double *losses; /* [count] change per masked token */
    attention_figure maps;
} ablate_study;

/* -------------------------------------------------------------------------------------------------------- measuring */

static void add_interventions(ablate_study *s, size_t layer, size_t head)
{
    const deberta_model_info *info = &s->study.texts.model.info;
    const bool has_term[ATTENTION_TERMS] = {
        [DEBERTA_C2C] = true, [DEBERTA_C2P] = info->has_c2p, [DEBERTA_P2C] = info->has_p2c};
    s->terms = 0;
    for (int term = 0; term < ATTENTION_TERMS; term++) {
        if (!has_term[term]) continue;
        s->interventions[s->count++] = (deberta_ablation){.term = (deberta_component)term,
                                                          .layer = layer,
                                                          .head = head,
                                                          .kind = ((const ablate_options *)s->study.options)->kind};
        s->terms++;
    }
}

static void plan(ablate_study *s)
{
    const common_options *options = s->study.options;
    const deberta_model_info *info = &s->study.texts.model.info;
    const size_t most = (info->layers * (info->heads + 1) + 1) * ATTENTION_TERMS;
    s->interventions = options_take(options, most, sizeof *s->interventions);
    s->shares = options_take(options, most, sizeof *s->shares);
    s->losses = options_take(options, most, sizeof *s->losses);
    s->masks = options_take(options, s->study.texts.count, sizeof *s->masks);
    for (size_t layer = 0; layer < info->layers; layer++) {
        for (size_t head = 0; head < info->heads; head++) add_interventions(s, layer, head);
        if (info->heads > 1) add_interventions(s, layer, DEBERTA_EVERY);
    }
    add_interventions(s, DEBERTA_EVERY, DEBERTA_EVERY);
}

static void show_progress(void *bar, size_t sentences) { progress_step(bar, sentences, NULL); }

static deberta_status measure(ablate_study *s, deberta_error *err)
{
    const text_batches *model = &s->study.texts.model;
    DEBERTA_TRY(component_share_create(&s->share, &model->info, s->study.texts.count, err));
    progress_bar bar = progress_begin(s->study.options, "sentences", s->study.texts.count);
    const ablation_sweep sweep = {.model = model->model,
                                  .session_options = &model->session_options,
                                  .texts = &s->masked,
                                  .head = s->head,
                                  .interventions = s->interventions,
                                  .count = s->count,
                                  .batch_tokens = BATCH_TOKENS,
                                  .share = &s->share,
                                  .progress = show_progress,
                                  .context = &bar};
    const deberta_status status = ablation_effects_measure(&s->effects, &sweep, err);
    progress_end(&bar);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- reporting */

static const char *term_name(const ablate_study *s, size_t index) { return term_names[s->interventions[index].term]; }

/* Per masked token. sums: [sentences] */
static bootstrap_interval per_mask(ablate_study *s, const double *sums)
{
    return study_ratio(&s->study, sums, s->masks, s->study.texts.count);
}

static double share_of(const ablate_study *s, const deberta_ablation *unit)
{
    double part = 0, whole = 0;
    if (unit->head == DEBERTA_EVERY) return NAN;
    for (size_t k = 0; k < s->study.texts.count; k++) {
        const double *squares = component_share_at(&s->share, k, unit->layer, SHARE_BY_HEAD, unit->head);
        part += squares[unit->term];
        for (int term = 0; term < ATTENTION_TERMS; term++) whole += squares[term];
    }
    return whole > 0 ? part / whole : NAN;
}

/* One intervention into table and data; returns the change of the logits. */
static double report_unit(ablate_study *s, size_t index, result_table *table)
{
    const deberta_ablation *unit = &s->interventions[index];
    const size_t at = index * s->study.texts.count;
    const bootstrap_interval loss = per_mask(s, s->effects.loss_change + at),
                             logits = per_mask(s, s->effects.logit_change + at);
    result_table *data = s->study.data;
    s->losses[index] = loss.value;
    s->shares[index] = share_of(s, unit);
    study_cell_estimate(table, "%+.4f (%+.4f, %+.4f)", &loss);
    study_cell_index(data, (long)unit->layer);
    study_cell_index(data, (long)unit->head);
    cell_text(data, "%s", term_name(s, index));
    cell_real(data, s->shares[index]);
    study_cell_interval(data, &loss);
    study_cell_interval(data, &logits);
    return logits.value;
}

static void tabulate_effects(ablate_study *s)
{
    static const result_column columns[] = {STUDY_COUNT_COLUMN("layer"),
                                            STUDY_COUNT_COLUMN("head"),
                                            STUDY_TEXT_COLUMN("term"),
                                            STUDY_REAL_COLUMN("share"),
                                            STUDY_REAL_COLUMN("loss_change"),
                                            STUDY_REAL_COLUMN("loss_low"),
                                            STUDY_REAL_COLUMN("loss_high"),
                                            STUDY_REAL_COLUMN("logit_change"),
                                            STUDY_REAL_COLUMN("logit_low"),
                                            STUDY_REAL_COLUMN("logit_high"),
                                            {.name = NULL}};
    result_table *table =
        study_add_table(&s->study, "effects",
                        "Change of the loss per masked token without a term (95 % interval), and mean "
                        "change of the logits",
                        NULL);
    study_set_data(&s->study, columns);
    result_add_column(table, COLUMN_INTEGER, NULL, "layer");
    result_add_column(table, COLUMN_INTEGER, NULL, "head");
    for (size_t k = 0; k < s->terms; k++) result_add_column(table, COLUMN_TEXT, NULL, "%s", term_name(s, k));
    for (size_t k = 0; k < s->terms; k++) result_add_column(table, COLUMN_REAL, "%.3f", "%s logits", term_name(s, k));
    for (size_t first = 0; first < s->count; first += s->terms) {
        double logits[ATTENTION_TERMS];
        study_cell_index(table, (long)s->interventions[first].layer);
        study_cell_index(table, (long)s->interventions[first].head);
        for (size_t k = 0; k < s->terms; k++) logits[k] = report_unit(s, first + k, table);
        for (size_t k = 0; k < s->terms; k++) cell_real(table, logits[k]);
    }
}

/* Does the share of the variance foretell the effect? Among the heads, of one term, or of all: NULL. */
static void add_correlation(ablate_study *s, result_table *table, const char *term)
{
    double *x = options_take(s->study.options, 2 * s->count, sizeof *x), *y = x + s->count;
    size_t count = 0;
    for (size_t k = 0; k < s->count; k++) {
        if (isnan(s->shares[k]) || (term && term_name(s, k) != term)) continue;
        x[count] = s->shares[k];
        y[count++] = s->losses[k];
    }
    const double rho = rank_correlation(x, y, count);
    cell_text(table, "%s", term ? term : "all");
    cell_integer(table, (int64_t)count);
    cell_real(table, rho);        /* there is none where all shares are equal: a single term */
    if (count > 3 && !isnan(rho)) /* Fisher's transformation */
        cell_text(table, "%.2f to %.2f", tanh(atanh(rho) - 1.96 / sqrt((double)count - 3)),
                  tanh(atanh(rho) + 1.96 / sqrt((double)count - 3)));
    else
        cell_none(table);
}

static void tabulate_prediction(ablate_study *s)
{
    static const result_column columns[] = {STUDY_TEXT_COLUMN("term"),
                                            STUDY_COUNT_COLUMN("heads"),
                                            {.name = "rho", .type = COLUMN_REAL, .format = "%.2f"},
                                            STUDY_TEXT_COLUMN("95 %"),
                                            {.name = NULL}};
    result_table *table =
        study_add_table(&s->study, "prediction",
                        "Rank correlation of a term's share of the variance with the change of the loss", columns);
    for (size_t k = 0; k < s->terms; k++) add_correlation(s, table, term_name(s, k));
    add_correlation(s, table, NULL);
}

static void write_note(ablate_study *s)
{
    const common_options *options = s->study.options;
    const size_t count = s->study.texts.count;
    const bootstrap_interval loss = per_mask(s, s->effects.loss);
    char text[STUDY_ESTIMATE_BYTES];
    s->study.note = options_text(
        options,
        "Loss of the whole model: %s over %zu masked tokens of %zu sentences (15 %%, seed %llu); one term at a time "
        "replaced by %s. Intervals over sentences, %d resamples. Masked-LM head: %s.",
        study_estimate("%.4f nats (%.4f, %.4f)", &loss, text), masked_texts_masks(&s->masked, 0, count), count,
        (unsigned long long)options->seed,
        s->interventions[0].kind == DEBERTA_ABLATE_MEAN ? "its mean over the text" : "zero", BOOTSTRAP_RESAMPLES,
        s->head == DEBERTA_TASK_MLM_EMD ? "emd" : "plain");
}

/* ---------------------------------------------------------------------------------------------------------- drawing */

/* 0, 1 ... and, if there is one more, "all". NULL: more than fit. */
static const figure_label *label_axis(const common_options *options, size_t indices, size_t count)
{
    enum { MOST_LABELS = 64 };
    if (count > MOST_LABELS) return NULL;
    figure_label *labels = options_take(options, count, sizeof *labels);
    for (size_t k = 0; k < count; k++) labels[k].text = k < indices ? options_text(options, "%zu", k) : "all";
    return labels;
}

/* Panels by term, rows by layer, columns by head and, last, all heads of the layer at once. */
static void fill_maps(ablate_study *s)
{
    const common_options *options = s->study.options;
    const deberta_model_info *info = &s->study.texts.model.info;
    const size_t columns = info->heads + (info->heads > 1), cells = info->layers * columns;
    float *values = options_take(options, s->terms * cells, sizeof *values);
    attention_panel *panels = options_take(options, s->terms, sizeof *panels);
    for (size_t k = 0; k < s->count; k++) {
        const deberta_ablation *unit = &s->interventions[k];
        const size_t column = unit->head == DEBERTA_EVERY ? info->heads : unit->head;
        if (unit->layer != DEBERTA_EVERY)
            values[k % s->terms * cells + unit->layer * columns + column] = (float)s->losses[k];
    }
    for (size_t k = 0; k < s->terms; k++)
        panels[k] = (attention_panel){
            .values = values + k * cells, .stride = columns, .title = term_name(s, k), .kind = HEATMAP_SIGNED};
    s->maps = (attention_figure){.panels = panels,
                                 .grid_rows = 1,
                                 .grid_columns = s->terms,
                                 .queries = info->layers,
                                 .keys = columns,
                                 .query_labels = label_axis(options, info->layers, info->layers),
                                 .key_labels = label_axis(options, info->heads, columns),
                                 .annotate_if_room = columns <= 8,
                                 .cell_aspect = 0.6,
                                 .query_axis = "layer",
                                 .key_axis = "head",
                                 .keep_row_mean = true,
                                 .units = {[HEATMAP_SIGNED] = "change of the loss (nats per masked token)"}};
    s->study.maps = &s->maps;
    s->study.style = (figure_style){.title = "Change of the masked-LM loss without a term", .note = s->study.note};
}

/* -------------------------------------------------------------------------------------------------------------- run */

static deberta_status work(study *base, deberta_error *err)
{
    ablate_study *s = (ablate_study *)base;
    const masked_decoder decoder = ((const ablate_options *)base->options)->decoder;
    plan(s);
    DEBERTA_TRY(masked_texts_head(&s->head, base->texts.model.model, decoder, err));
    DEBERTA_TRY(study_texts_hide(&base->texts, base->options->seed, &s->masked, s->masks, err));
    DEBERTA_TRY(measure(s, err));
    tabulate_effects(s);
    tabulate_prediction(s);
    write_note(s);
    fill_maps(s);
    return DEBERTA_OK;
}

static void close_measures(study *base)
{
    ablate_study *s = (ablate_study *)base;
    ablation_effects_free(&s->effects);
    component_share_free(&s->share);
    masked_texts_free(&s->masked);
}

static const option options[] = {
    STUDY_TEXTS_OPTIONS,
    ABLATE_OPTION,
    {"kind", 0, "NAME", "what replaces a term: zero (default), or mean: what it says whatever the token is",
     CHOICE_AT(ablate_options, kind, kind_names)},
    {"mlm-decoder", 0, "NAME",
     "auto (default): emd where the model has it; emd, the Enhanced Mask Decoder, which runs the last layer two more "
     "times; plain: the head on the last layer",
     CHOICE_AT(ablate_options, decoder, decoder_names)},
    STUDY_OPTIONS,
    {.name = NULL},
};

const study_kind study_ablate = {
    STUDY_COMMAND(
        "ablate", "MODEL", 1, 1, ablate_options,
        .summary = "what each term of each head is worth to the masked-LM loss",
        .example = "  deberta study ablate models/demo --file docs/studies/data/sentences.txt -o effects.png\n"
                   "  deberta study ablate models/demo --file docs/studies/data/sentences.txt --kind mean --data "
                   "effects.csv\n",
        .claims = "position information fades in deeper layers; a term's share of the scores says what it is worth"),
    .size = sizeof(ablate_study),
    .of_sentences = true,
    .work = work,
    .close = close_measures,
};
