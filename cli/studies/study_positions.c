/* `deberta study positions`: relative and absolute positions, seen in hidden states and attention of two models.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bootstrap.h"
#include "cli/run.h"
#include "cli/studies/studies.h"
#include "cli/studies/study.h"
#include "cli/studies/study_texts.h"
#include "core/base/status.h"
#include "study/position_probe.h"
#include "study/position_shift.h"

enum {
    MOST_SENTENCES = 100000,
    MOST_MODELS = 2,
    MOST_LAYERS = 65,    /* H[0] ... H[64] */
    SHORTEST_PHRASE = 6, /* tokens, without frame */
    LONGEST_PHRASE = 40,
    PROBE_TOKENS = 128, /* of a sequence, frame included */
    LEAST_PROBE_SEQUENCES = 20,
    SHOWN_AMOUNT = 1, /* of position_amounts, in tables by layer */
};

static const char *const change_names[POSITION_CHANGES] = {"ids later", "before", "after"};

/* A number with its interval for every layer, as tables and charts want it. */
typedef struct layer_curve {
    double value[MOST_LAYERS], low[MOST_LAYERS], high[MOST_LAYERS];
} layer_curve;

typedef struct studied_model {
    const char *name;
    deberta_model *model;
    deberta_model_info info;
    position_shift shift;
    position_probe probe;
    layer_curve moved[POSITION_VARIANTS], attention[POSITION_VARIANTS], r2;
} studied_model;

typedef struct positions_study {
    const parsed_options *options;
    uint64_t seed;
    study_texts texts;
    studied_model models[MOST_MODELS];
    size_t model_count;
    int32_t *phrase_tokens, *windows; /* [windows][PROBE_TOKENS] */
    size_t *phrase_starts, phrases, window_count, longest_phrase;
    study_findings findings;
    char hidden_title[128];
    progress_bar bar;
    size_t done; /* encoded sequences before the part under way */
} positions_study;

/* ------------------------------------------------------------------------------------------------------------ texts */

/* Sentences of middle length, without their frames, are the phrases; all sentences on end, cut into windows of one
 * length and framed again, are what the probes see: a window begins anywhere in a sentence, so that content says little
 * about the position. */
static deberta_status cut_texts(positions_study *study, deberta_error *err)
{
    const study_texts *texts = &study->texts;
    const size_t all = texts->starts[texts->count], inner = PROBE_TOKENS - 2;
    study->phrase_tokens = malloc((all + 1) * sizeof *study->phrase_tokens);
    study->phrase_starts = calloc(texts->count + 1, sizeof *study->phrase_starts);
    study->windows = malloc((all / inner + 1) * PROBE_TOKENS * sizeof *study->windows);
    if (!study->phrase_tokens || !study->phrase_starts || !study->windows)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu tokens", all);
    size_t filled = 0;
    for (size_t k = 0; k < texts->count; k++) {
        const int32_t *ids = texts->ids + texts->starts[k] + 1;
        const size_t count = texts->lists[k].count - 2;
        for (size_t i = 0; i < count; i++, filled++)
            study->windows[filled / inner * PROBE_TOKENS + 1 + filled % inner] = ids[i];
        if (count < SHORTEST_PHRASE || count > LONGEST_PHRASE) continue;
        const size_t start = study->phrase_starts[study->phrases++];
        memcpy(study->phrase_tokens + start, ids, count * sizeof *ids);
        study->phrase_starts[study->phrases] = start + count;
        if (count > study->longest_phrase) study->longest_phrase = count;
    }
    study->window_count = filled / inner;
    for (size_t k = 0; k < study->window_count; k++) {
        study->windows[k * PROBE_TOKENS] = texts->ids[0];
        study->windows[(k + 1) * PROBE_TOKENS - 1] = texts->ids[texts->lists[0].count - 1];
    }
    if (study->window_count < LEAST_PROBE_SEQUENCES)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the probes need %d windows of %zu tokens; these texts fill %zu",
                     LEAST_PROBE_SEQUENCES, inner, study->window_count);
    if (study->phrases < 2)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "expected at least 2 texts of %d to %d tokens, found %zu",
                     SHORTEST_PHRASE, LONGEST_PHRASE, study->phrases);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------ measurement */

static void show_progress(void *context, size_t done)
{
    positions_study *study = context;
    progress_step(&study->bar, study->done + done, NULL);
}

static deberta_status encode_model(positions_study *study, studied_model *model, deberta_error *err)
{
    deberta_session *session = NULL;
    deberta_session_options options = study->texts.model.session_options;
    const size_t batch = position_shift_tokens(study->longest_phrase);
    options.max_tokens = batch > PROBE_TOKENS ? batch : PROBE_TOKENS;
    options.features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION;
    DEBERTA_TRY(deberta_session_create(&session, model->model, &options, err));
    const position_shift_input shift = {.session = session,
                                        .model = &model->info,
                                        .tokens = study->phrase_tokens,
                                        .starts = study->phrase_starts,
                                        .phrases = study->phrases,
                                        .first = study->windows[0],
                                        .last = study->windows[PROBE_TOKENS - 1],
                                        .progress = show_progress,
                                        .context = study};
    const position_probe_input probe = {.session = session,
                                        .model = &model->info,
                                        .ids = study->windows,
                                        .sequences = study->window_count,
                                        .tokens = PROBE_TOKENS,
                                        .progress = show_progress,
                                        .context = study};
    deberta_status status = position_shift_measure(&model->shift, &shift, err);
    study->done += study->phrases;
    if (status == DEBERTA_OK) status = position_probe_measure(&model->probe, &probe, err);
    study->done += study->window_count;
    deberta_session_free(&session);
    return status;
}

static void set_point(layer_curve *curve, size_t layer, double value, double low, double high)
{
    curve->value[layer] = value;
    curve->low[layer] = low;
    curve->high[layer] = high;
}

/* From sums by phrase and window to a number with its interval: distances as a part of that between two tokens. */
static deberta_status find_intervals(positions_study *study, studied_model *model, deberta_error *err)
{
    const position_shift *shift = &model->shift;
    const position_probe *probe = &model->probe;
    bootstrap_interval found;
    for (size_t v = 0; v < POSITION_VARIANTS; v++) {
        for (size_t layer = 0; layer <= shift->layers; layer++) {
            const double *moved = shift->moved + (v * (shift->layers + 1) + layer) * shift->phrases;
            DEBERTA_TRY(bootstrap_ratio(&found, moved, shift->spread + layer * shift->phrases, shift->phrases,
                                        study->seed, err));
            set_point(&model->moved[v], layer, sqrt(found.value), sqrt(found.low), sqrt(found.high));
            if (layer == shift->layers) continue;
            DEBERTA_TRY(bootstrap_ratio(&found, shift->attention + (v * shift->layers + layer) * shift->phrases, NULL,
                                        shift->phrases, study->seed, err));
            set_point(&model->attention[v], layer, found.value, found.low, found.high);
        }
    }
    for (size_t layer = 0; layer < probe->layers; layer++) {
        DEBERTA_TRY(bootstrap_ratio(&found, probe->errors + layer * probe->tested,
                                    probe->deviations + layer * probe->tested, probe->tested, study->seed, err));
        set_point(&model->r2, layer, 1 - found.value, 1 - found.high, 1 - found.low);
    }
    return DEBERTA_OK;
}

static deberta_status measure(positions_study *study, deberta_error *err)
{
    DEBERTA_TRY(cut_texts(study, err));
    study->bar =
        progress_begin(study->options, "sequences", study->model_count * (study->phrases + study->window_count));
    deberta_status status = DEBERTA_OK;
    for (size_t k = 0; status == DEBERTA_OK && k < study->model_count; k++)
        status = encode_model(study, &study->models[k], err);
    progress_end(&study->bar);
    for (size_t k = 0; status == DEBERTA_OK && k < study->model_count; k++)
        status = find_intervals(study, &study->models[k], err);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- tables */

static size_t most_layers(const positions_study *study)
{
    size_t most = 0;
    for (size_t k = 0; k < study->model_count; k++)
        if (study->models[k].info.layers > most) most = study->models[k].info.layers;
    return most;
}

static void add_point(text_table *table, const layer_curve *curve, size_t layer)
{
    text_table_add(table, "%.3f (%.3f-%.3f)", curve->value[layer], curve->low[layer], curve->high[layer]);
}

static void add_variant_titles(const positions_study *study, text_table *table, const char *first)
{
    text_table_add(table, "%s", first);
    for (size_t k = 0; k < study->model_count; k++)
        for (size_t c = 0; c < POSITION_CHANGES; c++)
            text_table_add(table, "%s: %s", study->models[k].name, change_names[c]);
}

/* Hidden states have one layer more than attention: H[0]. */
static void tabulate_by_layer(positions_study *study, const char *name, const char *title, bool attention)
{
    text_table *table = study_add_table(&study->findings, name, title, 1 + study->model_count * POSITION_CHANGES);
    add_variant_titles(study, table, "layer");
    for (size_t layer = 0; layer < most_layers(study) + !attention; layer++) {
        text_table_add(table, attention ? "%zu" : "H[%zu]", layer);
        for (size_t k = 0; k < study->model_count; k++) {
            const studied_model *model = &study->models[k];
            for (size_t c = 0; c < POSITION_CHANGES; c++) {
                const size_t variant = c * POSITION_AMOUNTS + SHOWN_AMOUNT;
                if (layer < model->info.layers + !attention)
                    add_point(table, attention ? &model->attention[variant] : &model->moved[variant], layer);
                else
                    text_table_add(table, "-");
            }
        }
    }
}

static void tabulate_by_amount(positions_study *study)
{
    text_table *table = study_add_table(&study->findings, "amounts", "The last layer, by how many positions or tokens",
                                        1 + study->model_count * POSITION_CHANGES);
    add_variant_titles(study, table, "amount");
    for (size_t a = 0; a < POSITION_AMOUNTS; a++) {
        text_table_add(table, "%zu", position_amounts[a]);
        for (size_t k = 0; k < study->model_count; k++)
            for (size_t c = 0; c < POSITION_CHANGES; c++)
                add_point(table, &study->models[k].moved[c * POSITION_AMOUNTS + a], study->models[k].info.layers);
    }
}

static void tabulate_probes(positions_study *study)
{
    text_table *table =
        study_add_table(&study->findings, "probes", "R2 of the token's position from its row, held-out windows",
                        1 + study->model_count);
    text_table_add(table, "layer");
    for (size_t k = 0; k < study->model_count; k++) text_table_add(table, "%s", study->models[k].name);
    for (size_t layer = 0; layer <= most_layers(study); layer++) {
        text_table_add(table, "H[%zu]", layer);
        for (size_t k = 0; k < study->model_count; k++) {
            if (layer <= study->models[k].info.layers)
                add_point(table, &study->models[k].r2, layer);
            else
                text_table_add(table, "-");
        }
    }
}

static void add_data(text_table *data, const studied_model *model, const char *what, const char *change, size_t amount,
                     const layer_curve *curve, size_t layers)
{
    for (size_t layer = 0; layer < layers; layer++) {
        text_table_add(data, "%s", model->name);
        text_table_add(data, "%s", what);
        text_table_add(data, "%s", change);
        text_table_add(data, "%zu", amount);
        text_table_add(data, "%zu", layer);
        text_table_add(data, "%.6f", curve->value[layer]);
        text_table_add(data, "%.6f", curve->low[layer]);
        text_table_add(data, "%.6f", curve->high[layer]);
    }
}

static void collect_data(positions_study *study)
{
    static const char *const titles[] = {"model", "what", "change", "amount", "layer", "value", "low", "high"};
    text_table *data = &study->findings.data;
    *data = text_table_make(sizeof titles / sizeof *titles);
    for (size_t k = 0; k < data->columns; k++) text_table_add(data, "%s", titles[k]);
    for (size_t k = 0; k < study->model_count; k++) {
        const studied_model *model = &study->models[k];
        for (size_t v = 0; v < POSITION_VARIANTS; v++) {
            const char *change = change_names[v / POSITION_AMOUNTS];
            const size_t amount = position_amounts[v % POSITION_AMOUNTS];
            add_data(data, model, "hidden", change, amount, &model->moved[v], model->info.layers + 1);
            add_data(data, model, "attention", change, amount, &model->attention[v], model->info.layers);
        }
        add_data(data, model, "probe", "", 0, &model->r2, model->info.layers + 1);
    }
}

static void tabulate(positions_study *study)
{
    snprintf(study->hidden_title, sizeof study->hidden_title,
             "Movement of hidden states, %zu positions or tokens (1: as far as two tokens are apart)",
             position_amounts[SHOWN_AMOUNT]);
    tabulate_by_layer(study, "hidden", study->hidden_title, false);
    tabulate_by_amount(study);
    tabulate_by_layer(study, "attention",
                      "Movement of attention inside the phrase, same amount (total variation, 0 to 1)", true);
    tabulate_probes(study);
    collect_data(study);
    snprintf(study->findings.note, sizeof study->findings.note,
             "%zu phrases, %zu windows of %d tokens (%zu held out); 95 %% intervals over phrases and windows "
             "(%d resamples, seed %llu).",
             study->phrases, study->window_count, PROBE_TOKENS, study->models[0].probe.tested, BOOTSTRAP_RESAMPLES,
             (unsigned long long)study->seed);
}

/* ----------------------------------------------------------------------------------------------------------- figure */

#if HAVE_VIZ
enum { PANELS = 1 + POSITION_CHANGES };

typedef struct positions_figure {
    chart_series series[PANELS][MOST_MODELS];
    chart_panel panels[PANELS];
    chart_figure figure;
} positions_figure;

static void add_panel(positions_figure *f, const char *title, const char *label)
{
    const size_t at = f->figure.panel_count++;
    f->panels[at] = (chart_panel){.title = title,
                                  .x = {.label = "layer", .scale = CHART_WHOLE},
                                  .y = {.label = label, .from_zero = true},
                                  .series = f->series[at]};
}

static void add_series(positions_figure *f, const studied_model *model, const layer_curve *curve)
{
    const size_t at = f->figure.panel_count - 1;
    f->series[at][f->panels[at].series_count++] = (chart_series){.name = model->name,
                                                                 .kind = CHART_LINE,
                                                                 .y = curve->value,
                                                                 .low = curve->low,
                                                                 .high = curve->high,
                                                                 .count = model->info.layers + 1};
}

/* Every panel shows the same models, so one legend serves all. */
static void make_figure(positions_figure *f, const positions_study *study)
{
    static const char *const titles[POSITION_CHANGES] = {"position ids 16 later", "16 tokens before",
                                                         "16 tokens after"};
    *f = (positions_figure){.figure = {.panels = f->panels, .columns = 2, .panel_height = 32, .panel_letters = true}};
    for (size_t c = 0; c < POSITION_CHANGES; c++) {
        add_panel(f, titles[c], "movement");
        for (size_t k = 0; k < study->model_count; k++)
            add_series(f, &study->models[k], &study->models[k].moved[c * POSITION_AMOUNTS + SHOWN_AMOUNT]);
    }
    add_panel(f, "position read back", "held-out R²");
    for (size_t k = 0; k < study->model_count; k++) add_series(f, &study->models[k], &study->models[k].r2);
}
#endif

static int finish(positions_study *study)
{
    tabulate(study);
#if HAVE_VIZ
    positions_figure figure;
    make_figure(&figure, study);
    study->findings.chart = &figure.figure;
#endif
    return study_finish(study->options, &study->findings);
}

/* -------------------------------------------------------------------------------------------------------------- run */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The second model gets the token ids of the first one's tokenizer. */
static int open_models(positions_study *study)
{
    deberta_error error;
    deberta_model_options options;
    study->models[0].model = study->texts.model.model;
    for (size_t k = 0; k < study->model_count; k++) {
        studied_model *model = &study->models[k];
        const char *path = options_argument(study->options, k);
        model->name = last_part(path);
        if (k > 0 && !run_model_options(study->options, &options)) return EXIT_USAGE;
        if (k > 0 && deberta_model_open(&model->model, path, &options, &error) != DEBERTA_OK)
            return report_error(study->options, &error);
        deberta_model_describe(model->model, &model->info);
        if (model->info.vocabulary_size != study->models[0].info.vocabulary_size)
            return report_usage(
                study->options,
                "%s: expected a model with the tokenizer of %s, found a vocabulary of %zu instead of %zu", path,
                options_argument(study->options, 0), model->info.vocabulary_size,
                study->models[0].info.vocabulary_size);
        if (model->info.layers >= MOST_LAYERS)
            return report_usage(study->options, "%s: expected at most %d layers, found %zu", path, MOST_LAYERS - 1,
                                model->info.layers);
    }
    return EXIT_OK;
}

static void close_study(positions_study *study)
{
    for (size_t k = 0; k < study->model_count; k++) {
        position_shift_free(&study->models[k].shift);
        position_probe_free(&study->models[k].probe);
        if (k > 0) deberta_model_free(&study->models[k].model);
    }
    free(study->phrase_tokens);
    free(study->phrase_starts);
    free(study->windows);
    study_findings_free(&study->findings);
    study_texts_close(&study->texts);
}

static int run(const parsed_options *options)
{
    positions_study *study = calloc(1, sizeof *study);
    deberta_error error = {0};
    if (!study) {
        status_fail(&error, DEBERTA_E_MEMORY, "out of memory");
        return report_error(options, &error);
    }
    study->options = options;
    study->model_count = options_argument_count(options);
    int code = EXIT_USAGE;
    if (study_check_options(options) && options_u64(options, "seed", 1, &study->seed))
        code = study_texts_open(&study->texts, options, MOST_SENTENCES);
    if (code == EXIT_OK) code = open_models(study);
    if (code == EXIT_OK) code = measure(study, &error) == DEBERTA_OK ? finish(study) : report_error(options, &error);
    close_study(study);
    free(study);
    return code;
}

static const option_spec options[] = {
    STUDY_TEXTS_OPTIONS,
    STUDY_OPTIONS,
    {NULL, 0, NULL, NULL},
};

const command study_positions = {
    .name = "study positions",
    .summary = "what a shift of position moves, and where position can be read back, in two models",
    .arguments = "MODEL [OTHER]",
    .min_arguments = 1,
    .max_arguments = MOST_MODELS,
    .options = options,
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example = "  deberta study positions models/demo models/demo-bert --file docs/studies/data/sentences.txt\n",
    .run = run,
    .claims =
        "position mixed into the input fades in deeper layers; relative distances hold where absolute positions do not",
};
