/* `deberta study ablate`: what each term of each head is worth to the masked-LM loss, by taking it out.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap.h"
#include "command/options.h"
#include "command/progress.h"
#include "studies/studies.h"
#include "studies/study.h"
#include "studies/study_texts.h"
#include "core/base/status.h"
#include "analysis/ablation_effect.h"

enum { BATCH_TOKENS = 2048 };
static const char *const term_names[ATTENTION_TERMS] = {"c2c", "c2p", "p2c"};

typedef struct ablate_options {
    study_options study;
    deberta_ablation_kind kind;
} ablate_options;
static const char *const kind_names[] = {[DEBERTA_ABLATE_ZERO] = "zero", [DEBERTA_ABLATE_MEAN] = "mean", NULL};

typedef struct ablate_study {
    const common_options *options;
    uint64_t seed;
    study_texts texts;
    masked_texts masked;
    component_share share;
    deberta_ablation *interventions; /* [count]: heads, layers as a whole, the model as a whole */
    size_t count;
    bool has_term[ATTENTION_TERMS];
    ablation_effects effects;
    double *masks;  /* [sentences] */
    double *shares; /* [count] of the variance of the scores, NaN for more than a head */
    double *losses; /* [count] change per masked token */
    study_findings findings;
    float *cells; /* of the figure: [terms][L][A + 1] */
} ablate_study;

static progress_bar *bar_of(void *context) { return context; }
static void show_progress(void *context, size_t sentences) { progress_step(bar_of(context), sentences, NULL); }

/* -------------------------------------------------------------------------------------------------------- preparing */

static void add_interventions(ablate_study *study, size_t layer, size_t head, deberta_ablation_kind kind)
{
    for (int term = 0; term < ATTENTION_TERMS; term++)
        if (study->has_term[term])
            study->interventions[study->count++] =
                (deberta_ablation){.term = (deberta_component)term, .layer = layer, .head = head, .kind = kind};
}

static deberta_status plan(ablate_study *study, deberta_ablation_kind kind, deberta_error *err)
{
    const deberta_model_info *info = &study->texts.model.info;
    const size_t most = (info->layers * (info->heads + 1) + 1) * ATTENTION_TERMS;
    study->interventions = calloc(most, sizeof *study->interventions);
    study->shares = calloc(most, sizeof *study->shares);
    study->losses = calloc(most, sizeof *study->losses);
    study->cells = calloc(most, sizeof *study->cells);
    if (!study->interventions || !study->shares || !study->losses || !study->cells)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    study->has_term[DEBERTA_C2C] = true;
    study->has_term[DEBERTA_C2P] = info->has_c2p;
    study->has_term[DEBERTA_P2C] = info->has_p2c;
    for (size_t layer = 0; layer < info->layers; layer++) {
        for (size_t head = 0; head < info->heads; head++) add_interventions(study, layer, head, kind);
        if (info->heads > 1) add_interventions(study, layer, DEBERTA_EVERY, kind);
    }
    add_interventions(study, DEBERTA_EVERY, DEBERTA_EVERY, kind);
    return DEBERTA_OK;
}

static deberta_status measure(ablate_study *study, deberta_error *err)
{
    const text_batches *model = &study->texts.model;
    DEBERTA_TRY(component_share_create(&study->share, &model->info, study->texts.count, err));
    progress_bar bar = progress_begin(study->options, "sentences", study->texts.count);
    const ablation_sweep sweep = {.model = model->model,
                                  .session_options = &model->session_options,
                                  .texts = &study->masked,
                                  .interventions = study->interventions,
                                  .count = study->count,
                                  .batch_tokens = BATCH_TOKENS,
                                  .share = &study->share,
                                  .progress = show_progress,
                                  .context = &bar};
    const deberta_status status = ablation_effects_measure(&study->effects, &sweep, err);
    progress_end(&bar);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- reporting */

static double share_of(const ablate_study *study, const deberta_ablation *unit)
{
    double part = 0, whole = 0;
    if (unit->head == DEBERTA_EVERY) return NAN;
    for (size_t k = 0; k < study->texts.count; k++) {
        const double *squares = component_share_at(&study->share, k, unit->layer, SHARE_BY_HEAD, unit->head);
        part += squares[unit->term];
        for (int term = 0; term < ATTENTION_TERMS; term++) whole += squares[term];
    }
    return whole > 0 ? part / whole : NAN;
}

/* One intervention into table and data. */
static deberta_status report_unit(ablate_study *study, size_t index, bootstrap_interval *logits, result_table *table,
                                  deberta_error *err)
{
    const deberta_ablation *unit = &study->interventions[index];
    const size_t sentences = study->texts.count;
    result_table *data = study->findings.data;
    bootstrap_interval loss;
    DEBERTA_TRY(bootstrap_ratio(&loss, study->effects.loss_change + index * sentences, study->masks, sentences,
                                study->seed, err));
    DEBERTA_TRY(bootstrap_ratio(logits, study->effects.logit_change + index * sentences, study->masks, sentences,
                                study->seed, err));
    study->losses[index] = loss.value;
    study->shares[index] = share_of(study, unit);
    cell_text(table, "%+.4f (%+.4f, %+.4f)", loss.value, loss.low, loss.high);
    study_cell_index(data, (long)unit->layer);
    study_cell_index(data, (long)unit->head);
    cell_text(data, "%s", term_names[unit->term]);
    cell_real(data, study->shares[index]);
    study_cell_interval(data, &loss);
    study_cell_interval(data, logits);
    return DEBERTA_OK;
}

static size_t count_terms(const ablate_study *study)
{
    return (size_t)study->has_term[0] + study->has_term[1] + study->has_term[2];
}

static deberta_status tabulate_effects(ablate_study *study, deberta_error *err)
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
    const size_t terms = count_terms(study);
    result_table *table =
        study_add_table(&study->findings, "effects",
                        "Change of the loss per masked token without a term (95 % interval), and mean "
                        "change of the logits",
                        NULL);
    study_set_data(&study->findings, columns);
    result_add_column(table, COLUMN_INTEGER, NULL, "layer");
    result_add_column(table, COLUMN_INTEGER, NULL, "head");
    for (size_t k = 0; k < terms; k++)
        result_add_column(table, COLUMN_TEXT, NULL, "%s", term_names[study->interventions[k].term]);
    for (size_t k = 0; k < terms; k++)
        result_add_column(table, COLUMN_REAL, "%.3f", "%s logits", term_names[study->interventions[k].term]);
    for (size_t first = 0; first < study->count; first += terms) {
        bootstrap_interval logits[ATTENTION_TERMS];
        study_cell_index(table, (long)study->interventions[first].layer);
        study_cell_index(table, (long)study->interventions[first].head);
        for (size_t k = 0; k < terms; k++) DEBERTA_TRY(report_unit(study, first + k, &logits[k], table, err));
        for (size_t k = 0; k < terms; k++) cell_real(table, logits[k].value);
    }
    return DEBERTA_OK;
}

/* Does the share of the variance foretell the effect? Among the heads, of one term (or all: ATTENTION_TERMS). */
static void add_correlation(ablate_study *study, result_table *table, int term, double *x, double *y)
{
    size_t count = 0;
    for (size_t k = 0; k < study->count; k++) {
        const deberta_ablation *unit = &study->interventions[k];
        if (isnan(study->shares[k]) || (term < ATTENTION_TERMS && (int)unit->term != term)) continue;
        x[count] = study->shares[k];
        y[count++] = study->losses[k];
    }
    const double rho = rank_correlation(x, y, count);
    cell_text(table, "%s", term < ATTENTION_TERMS ? term_names[term] : "all");
    cell_integer(table, (int64_t)count);
    cell_real(table, rho);        /* there is none where all shares are equal: a single term */
    if (count > 3 && !isnan(rho)) /* Fisher's transformation */
        cell_text(table, "%.2f to %.2f", tanh(atanh(rho) - 1.96 / sqrt((double)count - 3)),
                  tanh(atanh(rho) + 1.96 / sqrt((double)count - 3)));
    else
        cell_none(table);
}

static deberta_status tabulate_prediction(ablate_study *study, deberta_error *err)
{
    static const result_column columns[] = {STUDY_TEXT_COLUMN("term"),
                                            STUDY_COUNT_COLUMN("heads"),
                                            {.name = "rho", .type = COLUMN_REAL, .format = "%.2f"},
                                            STUDY_TEXT_COLUMN("95 %"),
                                            {.name = NULL}};
    double *x = calloc(2 * study->count, sizeof *x);
    if (!x) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    result_table *table =
        study_add_table(&study->findings, "prediction",
                        "Rank correlation of a term's share of the variance with the change of the loss", columns);
    for (int term = 0; term <= ATTENTION_TERMS; term++)
        if (term == ATTENTION_TERMS || study->has_term[term]) add_correlation(study, table, term, x, x + study->count);
    free(x);
    return DEBERTA_OK;
}

static deberta_status write_note(ablate_study *study, const char *kind, deberta_error *err)
{
    bootstrap_interval loss;
    const size_t count = study->texts.count;
    DEBERTA_TRY(bootstrap_ratio(&loss, study->effects.loss, study->masks, count, study->seed, err));
    snprintf(study->findings.note, sizeof study->findings.note,
             "Loss of the whole model: %.4f nats (%.4f, %.4f) over %zu masked tokens of %zu sentences (15 %%, seed "
             "%llu); one term at a time replaced by %s. Intervals over sentences, %d resamples.",
             loss.value, loss.low, loss.high, masked_texts_masks(&study->masked, 0, count), count,
             (unsigned long long)study->seed, kind, BOOTSTRAP_RESAMPLES);
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- drawing */

enum { MOST_LABELS = 64 }; /* more do not fit */

typedef struct axis_labels {
    char names[MOST_LABELS][8];
    figure_label labels[MOST_LABELS];
} axis_labels;

/* 0, 1 ... and, if there is one more, "all". */
static const figure_label *label_axis(axis_labels *axis, size_t indices, size_t count)
{
    if (count > MOST_LABELS) return NULL;
    for (size_t k = 0; k < count; k++) {
        if (k < indices)
            snprintf(axis->names[k], sizeof axis->names[k], "%zu", k);
        else
            snprintf(axis->names[k], sizeof axis->names[k], "all");
        axis->labels[k] = (figure_label){.text = axis->names[k]};
    }
    return axis->labels;
}

static void fill_cells(ablate_study *study, size_t columns)
{
    const deberta_model_info *info = &study->texts.model.info;
    for (size_t k = 0; k < study->count; k++) {
        const deberta_ablation *unit = &study->interventions[k];
        if (unit->layer == DEBERTA_EVERY) continue;
        const size_t column = unit->head == DEBERTA_EVERY ? info->heads : unit->head;
        study->cells[(k % count_terms(study) * info->layers + unit->layer) * columns + column] =
            (float)study->losses[k];
    }
}

/* Panels by term, rows by layer, columns by head and, last, all heads of the layer at once. */
static int finish(ablate_study *study)
{
    const deberta_model_info *info = &study->texts.model.info;
    const size_t columns = info->heads + (info->heads > 1), terms = count_terms(study);
    attention_panel panels[ATTENTION_TERMS] = {0};
    axis_labels rows_axis, columns_axis;
    fill_cells(study, columns);
    for (size_t k = 0; k < terms; k++)
        panels[k] = (attention_panel){.values = study->cells + k * info->layers * columns,
                                      .stride = columns,
                                      .title = term_names[study->interventions[k].term],
                                      .kind = HEATMAP_SIGNED};
    const attention_figure figure = {
        .style = {.title = "Change of the masked-LM loss without a term", .note = study->findings.note},
        .panels = panels,
        .grid_rows = 1,
        .grid_columns = terms,
        .queries = info->layers,
        .keys = columns,
        .query_labels = label_axis(&rows_axis, info->layers, info->layers),
        .key_labels = label_axis(&columns_axis, info->heads, columns),
        .annotate = columns <= 8,
        .cell_aspect = 0.6,
        .query_axis = "layer",
        .key_axis = "head",
        .keep_row_mean = true,
        .units = {[HEATMAP_SIGNED] = "change of the loss (nats per masked token)"}};
    study->findings.maps = &figure;
    const int code = study_finish(study->options, &study->findings);
    study->findings.maps = NULL;
    return code;
}

static deberta_status work(ablate_study *study, deberta_ablation_kind kind, deberta_error *err)
{
    DEBERTA_TRY(plan(study, kind, err));
    DEBERTA_TRY(study_texts_hide(&study->texts, study->seed, &study->masked, &study->masks, err));
    DEBERTA_TRY(measure(study, err));
    DEBERTA_TRY(tabulate_effects(study, err));
    DEBERTA_TRY(tabulate_prediction(study, err));
    return write_note(study, kind == DEBERTA_ABLATE_MEAN ? "its mean over the text" : "zero", err);
}

static int run(const common_options *options)
{
    ablate_study study = {.options = options, .seed = options->seed};
    const ablate_options *o = (const ablate_options *)options;
    deberta_error error = {0};
    if (!study_check_options(options)) return EXIT_USAGE;
    int code = study_texts_open(&study.texts, &o->study);
    if (code == EXIT_OK)
        code = work(&study, o->kind, &error) == DEBERTA_OK ? finish(&study) : say_error(options, &error);
    study_findings_free(&study.findings);
    ablation_effects_free(&study.effects);
    component_share_free(&study.share);
    masked_texts_free(&study.masked);
    free(study.interventions);
    free(study.masks);
    free(study.shares);
    free(study.losses);
    free(study.cells);
    study_texts_close(&study.texts);
    return code;
}

static const option options[] = {
    STUDY_TEXTS_OPTIONS,
    ABLATE_OPTION,
    {"kind", 0, "NAME", "what replaces a term: zero (default), or mean: what it says whatever the token is",
     CHOICE_AT(ablate_options, kind, kind_names)},
    STUDY_OPTIONS,
    {.name = NULL},
};

const command study_ablate = {
    .name = "study ablate",
    .summary = "what each term of each head is worth to the masked-LM loss",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(ablate_options),
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example =
        "  deberta study ablate models/demo --file docs/studies/data/sentences.txt -o effects.png\n"
        "  deberta study ablate models/demo --file docs/studies/data/sentences.txt --kind mean --data effects.csv\n",
    .run = run,
    .claims = "position information fades in deeper layers; a term's share of the scores says what it is worth",
};
