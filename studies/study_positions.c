/* `deberta study positions`: relative and absolute positions, seen in hidden states and attention of two models.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "analysis/position_probe.h"
#include "analysis/position_shift.h"
#include "analysis/shuffled_model.h"
#include "program/frame/open_model.h"
#include "program/frame/progress.h"
#include "studies/studies.h"

enum {
    PROBE_TOKENS = 128, /* of a sequence, frame included */
    LEAST_PROBE_SEQUENCES = 20,
    SHORTEST_PHRASE = 6, /* tokens */
    LONGEST_PHRASE = 40,
    SHOWN_AMOUNT = 1, /* of position_amounts, in tables by layer */
    MOST_SHOWN = 2 * STUDY_MOST_MODELS
};

typedef struct positions_options {
    study_options study;
    bool control;
} positions_options;

/* Of a model or a control; intervals by layer, those of hidden states from H[0]. */
typedef struct model_findings {
    studied_model studied;
    shuffled_model control; /* what studied.model is, of a control */
    position_shift shift;
    position_probe probe;
    bootstrap_interval *moved[POSITION_VARIANTS], *attention[POSITION_VARIANTS], *r2;
} model_findings;

typedef struct positions_study {
    study study;
    model_findings found[MOST_SHOWN]; /* the models, then their controls */
    size_t shown;
    int32_t *phrase_tokens, *windows; /* [windows][PROBE_TOKENS] */
    size_t *phrase_starts, phrases, window_count, longest_phrase;
    progress_bar bar;
    size_t done; /* encoded sequences before the part under way */
} positions_study;

/* ------------------------------------------------------------------------------------------------------------ texts */

/* Sentences of middle length, without their frames, are the phrases; all sentences on end, cut into windows of one
 * length and framed again, are what the probes see: a window begins anywhere in a sentence, so that content says little
 * about the position. */
static deberta_status cut_texts(positions_study *s, deberta_error *err)
{
    const study_texts *texts = &s->study.texts;
    const size_t all = texts->starts[texts->count], inner = PROBE_TOKENS - 2;
    s->phrase_tokens = options_take(s->study.options, all, sizeof *s->phrase_tokens);
    s->phrase_starts = options_take(s->study.options, texts->count + 1, sizeof *s->phrase_starts);
    s->windows = options_take(s->study.options, (all / inner + 1) * PROBE_TOKENS, sizeof *s->windows);
    size_t filled = 0;
    for (size_t k = 0; k < texts->count; k++) {
        const int32_t *ids = texts->ids + texts->starts[k] + 1;
        const size_t count = texts->lists[k]->count - 2;
        for (size_t i = 0; i < count; i++, filled++)
            s->windows[filled / inner * PROBE_TOKENS + 1 + filled % inner] = ids[i];
        if (count < SHORTEST_PHRASE || count > LONGEST_PHRASE) continue;
        const size_t start = s->phrase_starts[s->phrases++];
        memcpy(s->phrase_tokens + start, ids, count * sizeof *ids);
        s->phrase_starts[s->phrases] = start + count;
        if (count > s->longest_phrase) s->longest_phrase = count;
    }
    s->window_count = filled / inner;
    for (size_t k = 0; k < s->window_count; k++) {
        s->windows[k * PROBE_TOKENS] = texts->ids[0];
        s->windows[(k + 1) * PROBE_TOKENS - 1] = texts->ids[texts->lists[0]->count - 1];
    }
    if (s->window_count < LEAST_PROBE_SEQUENCES)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the probes need %d windows of %zu tokens; these texts fill %zu",
                     LEAST_PROBE_SEQUENCES, inner, s->window_count);
    if (s->phrases < 2)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "expected at least 2 texts of %d to %d tokens, found %zu",
                     SHORTEST_PHRASE, LONGEST_PHRASE, s->phrases);
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- models */

static deberta_status open_control(positions_study *s, size_t m, deberta_error *err)
{
    const common_options *options = s->study.options;
    model_findings *control = &s->found[s->shown++];
    deberta_model_options model_options;
    fill_model_options(options, &model_options);
    control->studied.name = options_text(options, "%s, shuffled", s->study.models[m].name);
    DEBERTA_TRY(shuffled_model_open(&control->control, options->arguments[m], control->studied.name, &model_options,
                                    options->seed, err));
    control->studied.model = control->control.model;
    control->studied.info = *deberta_model_describe(control->control.model);
    return DEBERTA_OK;
}

static deberta_status gather_models(positions_study *s, deberta_error *err)
{
    for (size_t m = 0; m < s->study.model_count; m++) s->found[s->shown++].studied = s->study.models[m];
    if (((const positions_options *)s->study.options)->control)
        for (size_t m = 0; m < s->study.model_count; m++) DEBERTA_TRY(open_control(s, m, err));
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------ measurement */

static void show_progress(void *context, size_t done)
{
    positions_study *s = context;
    progress_step(&s->bar, s->done + done, NULL);
}

static deberta_status encode_model(positions_study *s, size_t m, deberta_error *err)
{
    const studied_model *model = &s->found[m].studied;
    deberta_session *session = NULL;
    deberta_session_options options = s->study.texts.model.session_options;
    const size_t batch = position_shift_tokens(s->longest_phrase);
    options.max_tokens = batch > PROBE_TOKENS ? batch : PROBE_TOKENS;
    options.features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION;
    DEBERTA_TRY(deberta_session_create_within(&session, model->model, &options, 0, err));
    const position_shift_input shift = {.session = session,
                                        .model = &model->info,
                                        .tokens = s->phrase_tokens,
                                        .starts = s->phrase_starts,
                                        .phrases = s->phrases,
                                        .first = s->windows[0],
                                        .last = s->windows[PROBE_TOKENS - 1],
                                        .progress = show_progress,
                                        .context = s};
    const position_probe_input probe = {.session = session,
                                        .model = &model->info,
                                        .ids = s->windows,
                                        .sequences = s->window_count,
                                        .tokens = PROBE_TOKENS,
                                        .progress = show_progress,
                                        .context = s};
    deberta_status status = position_shift_measure(&s->found[m].shift, &shift, err);
    s->done += s->phrases;
    if (status == DEBERTA_OK) status = position_probe_measure(&s->found[m].probe, &probe, err);
    s->done += s->window_count;
    deberta_session_free(&session);
    return status;
}

/* Distances as a part of that between two tokens, by layer. */
static bootstrap_interval *find_moved(study *s, const position_shift *shift, size_t variant)
{
    bootstrap_interval *found = options_take(s->options, shift->layers + 1, sizeof *found);
    for (size_t layer = 0; layer <= shift->layers; layer++) {
        const double *moved = shift->moved + (variant * (shift->layers + 1) + layer) * shift->phrases;
        const bootstrap_interval squares =
            study_ratio(s, moved, shift->spread + layer * shift->phrases, shift->phrases);
        found[layer] = (bootstrap_interval){sqrt(squares.value), sqrt(squares.low), sqrt(squares.high)};
    }
    return found;
}

static bootstrap_interval *find_attention(study *s, const position_shift *shift, size_t variant)
{
    bootstrap_interval *found = options_take(s->options, shift->layers, sizeof *found);
    for (size_t layer = 0; layer < shift->layers; layer++)
        found[layer] =
            study_ratio(s, shift->attention + (variant * shift->layers + layer) * shift->phrases, NULL, shift->phrases);
    return found;
}

static bootstrap_interval *find_r2(study *s, const position_probe *probe)
{
    bootstrap_interval *found = options_take(s->options, probe->layers, sizeof *found);
    for (size_t layer = 0; layer < probe->layers; layer++) {
        const bootstrap_interval rest = study_ratio(s, probe->errors + layer * probe->tested,
                                                    probe->deviations + layer * probe->tested, probe->tested);
        found[layer] = (bootstrap_interval){1 - rest.value, 1 - rest.high, 1 - rest.low};
    }
    return found;
}

static deberta_status measure(positions_study *s, deberta_error *err)
{
    deberta_status status = DEBERTA_OK;
    s->bar = progress_begin(s->study.options, "sequences", s->shown * (s->phrases + s->window_count));
    for (size_t m = 0; status == DEBERTA_OK && m < s->shown; m++) status = encode_model(s, m, err);
    progress_end(&s->bar);
    for (size_t m = 0; status == DEBERTA_OK && m < s->shown; m++) {
        model_findings *found = &s->found[m];
        for (size_t v = 0; v < POSITION_VARIANTS; v++) {
            found->moved[v] = find_moved(&s->study, &found->shift, v);
            found->attention[v] = find_attention(&s->study, &found->shift, v);
        }
        found->r2 = find_r2(&s->study, &found->probe);
    }
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- tables */

static const char *const change_names[POSITION_CHANGES] = {"ids later", "before", "after"};

/* Models or controls: those whose movement stands in one table. */
typedef struct table_part {
    const char *name, *title; /* what names and titles of tables begin with */
    size_t first, end;        /* of found */
} table_part;

static size_t layers_of(const positions_study *s, size_t m) { return s->found[m].studied.info.layers; }

static size_t most_layers(const positions_study *s)
{
    size_t most = 0;
    for (size_t m = 0; m < s->shown; m++)
        if (layers_of(s, m) > most) most = layers_of(s, m);
    return most;
}

/* Nothing where the model has no such layer. */
static void add_number(result_table *table, const bootstrap_interval *numbers, size_t layer, size_t layers)
{
    if (layer < layers)
        study_cell_estimate(table, "%.3f (%.3f-%.3f)", &numbers[layer]);
    else
        cell_text(table, "-");
}

static result_table *add_variant_table(positions_study *s, const table_part *part, const char *name, const char *title,
                                       const char *first)
{
    const common_options *options = s->study.options;
    result_table *table = study_add_table(&s->study, options_text(options, "%s%s", part->name, name),
                                          options_text(options, "%s%s", part->title, title), NULL);
    result_add_column(table, COLUMN_INTEGER, NULL, "%s", first);
    for (size_t m = part->first; m < part->end; m++)
        for (size_t c = 0; c < POSITION_CHANGES; c++)
            result_add_column(table, COLUMN_TEXT, NULL, "%s: %s", s->found[m].studied.name, change_names[c]);
    return table;
}

/* Hidden states have one layer more than attention: H[0]. */
static void tabulate_by_layer(positions_study *s, const table_part *part, const char *name, const char *title,
                              bool attention)
{
    result_table *table = add_variant_table(s, part, name, title, "layer");
    for (size_t layer = 0; layer < most_layers(s) + !attention; layer++) {
        if (attention)
            cell_integer(table, (int64_t)layer);
        else
            cell_text(table, "H[%zu]", layer);
        for (size_t m = part->first; m < part->end; m++)
            for (size_t v = SHOWN_AMOUNT; v < POSITION_VARIANTS; v += POSITION_AMOUNTS)
                add_number(table, attention ? s->found[m].attention[v] : s->found[m].moved[v], layer,
                           layers_of(s, m) + !attention);
    }
}

static void tabulate_by_amount(positions_study *s, const table_part *part)
{
    result_table *table =
        add_variant_table(s, part, "amounts", "The last layer, by how many positions or tokens", "amount");
    for (size_t a = 0; a < POSITION_AMOUNTS; a++) {
        cell_integer(table, (int64_t)position_amounts[a]);
        for (size_t m = part->first; m < part->end; m++)
            for (size_t v = a; v < POSITION_VARIANTS; v += POSITION_AMOUNTS)
                add_number(table, s->found[m].moved[v], layers_of(s, m), layers_of(s, m) + 1);
    }
}

static void tabulate_probes(positions_study *s)
{
    result_table *table =
        study_add_table(&s->study, "probes", "R2 of the token's position from its row, held-out windows", NULL);
    result_add_column(table, COLUMN_TEXT, NULL, "layer");
    for (size_t m = 0; m < s->shown; m++) result_add_column(table, COLUMN_TEXT, NULL, "%s", s->found[m].studied.name);
    for (size_t layer = 0; layer <= most_layers(s); layer++) {
        cell_text(table, "H[%zu]", layer);
        for (size_t m = 0; m < s->shown; m++) add_number(table, s->found[m].r2, layer, layers_of(s, m) + 1);
    }
}

static void add_data(const positions_study *s, size_t m, const char *what, const char *change, size_t amount,
                     const bootstrap_interval *numbers, size_t layers)
{
    result_table *data = s->study.data;
    for (size_t layer = 0; layer < layers; layer++) {
        cell_text(data, "%s", s->found[m].studied.name);
        cell_text(data, "%s", what);
        study_cell_text(data, change);
        cell_integer(data, (int64_t)amount);
        cell_integer(data, (int64_t)layer);
        study_cell_interval(data, &numbers[layer]);
    }
}

static void collect_data(positions_study *s)
{
    static const result_column columns[] = {STUDY_TEXT_COLUMN("model"),
                                            STUDY_TEXT_COLUMN("what"),
                                            STUDY_TEXT_COLUMN("change"),
                                            STUDY_COUNT_COLUMN("amount"),
                                            STUDY_COUNT_COLUMN("layer"),
                                            STUDY_INTERVAL_COLUMNS,
                                            {.name = NULL}};
    study_set_data(&s->study, columns);
    for (size_t m = 0; m < s->shown; m++) {
        const size_t layers = layers_of(s, m);
        for (size_t v = 0; v < POSITION_VARIANTS; v++) {
            const char *change = change_names[v / POSITION_AMOUNTS];
            const size_t amount = position_amounts[v % POSITION_AMOUNTS];
            add_data(s, m, "hidden", change, amount, s->found[m].moved[v], layers + 1);
            add_data(s, m, "attention", change, amount, s->found[m].attention[v], layers);
        }
        add_data(s, m, "probe", "", 0, s->found[m].r2, layers + 1);
    }
}

static void tabulate_movement(positions_study *s, const table_part *part)
{
    const char *hidden = options_text(
        s->study.options, "Movement of hidden states, %zu positions or tokens (1: as far as two tokens are apart)",
        position_amounts[SHOWN_AMOUNT]);
    tabulate_by_layer(s, part, "hidden", hidden, false);
    tabulate_by_amount(s, part);
    tabulate_by_layer(s, part, "attention",
                      "Movement of attention inside the phrase, same amount (total variation, 0 to 1)", true);
}

static void tabulate(positions_study *s)
{
    const common_options *options = s->study.options;
    const size_t models = s->study.model_count;
    tabulate_movement(s, &(table_part){.name = "", .title = "", .end = models});
    if (s->shown > models)
        tabulate_movement(s, &(table_part){.name = "control_", .title = "Control: ", .first = models, .end = s->shown});
    tabulate_probes(s);
    collect_data(s);
    s->study.note = options_text(
        options,
        "%zu phrases, %zu windows of %d tokens (%zu held out); 95 %% intervals over phrases and windows (%s).%s",
        s->phrases, s->window_count, PROBE_TOKENS, s->found[0].probe.tested, study_resamples(&s->study),
        s->shown > models ? " Shuffled: the values of every matrix of the layers in another order, which says what "
                            "depth does without what was learned."
                          : "");
}

/* ----------------------------------------------------------------------------------------------------------- figure */

/* Every panel shows the same models, so one legend serves all. variant POSITION_VARIANTS: the probes. */
static void add_panel(positions_study *s, const char *title, const char *label, size_t variant)
{
    chart_columns *chart = &s->study.chart;
    chart_add_panel(chart, (chart_panel){.title = title,
                                         .x = {.label = "layer", .scale = CHART_WHOLE},
                                         .y = {.label = label, .from_zero = true}});
    for (size_t m = 0; m < s->shown; m++) {
        const bootstrap_interval *numbers = variant < POSITION_VARIANTS ? s->found[m].moved[variant] : s->found[m].r2;
        chart_add_series(chart, (chart_series){.name = s->found[m].studied.name, .kind = CHART_LINE});
        for (size_t layer = 0; layer <= layers_of(s, m); layer++)
            study_add_point(&s->study, (double)layer, &numbers[layer]);
    }
}

static void fill_chart(positions_study *s)
{
    static const char *const titles[POSITION_CHANGES] = {"position ids 16 later", "16 tokens before",
                                                         "16 tokens after"};
    s->study.chart.across = 2;
    s->study.chart.panel_height = 32;
    for (size_t c = 0; c < POSITION_CHANGES; c++)
        add_panel(s, titles[c], "movement", c * POSITION_AMOUNTS + SHOWN_AMOUNT);
    add_panel(s, "position read back", "held-out R²", POSITION_VARIANTS);
}

/* -------------------------------------------------------------------------------------------------------------- run */

static deberta_status work(study *base, deberta_error *err)
{
    positions_study *s = (positions_study *)base;
    DEBERTA_TRY(cut_texts(s, err));
    DEBERTA_TRY(gather_models(s, err));
    DEBERTA_TRY(measure(s, err));
    tabulate(s);
    fill_chart(s);
    return DEBERTA_OK;
}

static void close_findings(study *base)
{
    positions_study *s = (positions_study *)base;
    for (size_t m = 0; m < MOST_SHOWN; m++) {
        position_shift_free(&s->found[m].shift);
        position_probe_free(&s->found[m].probe);
        shuffled_model_close(&s->found[m].control);
    }
}

static const option options[] = {
    STUDY_TEXTS_OPTIONS,
    ABLATE_OPTION,
    {"control", 0, NULL, "measure each model again with the values of its layers' matrices shuffled (--seed)",
     FLAG_AT(positions_options, control)},
    STUDY_OPTIONS,
    {.name = NULL},
};

const study_kind study_positions = {
    STUDY_COMMAND("positions", "MODEL [OTHER]", 1, STUDY_MOST_MODELS, positions_options,
                  .summary = "what a shift of position moves, and where position can be read back, in two models",
                  .example =
                      "  deberta study positions models/demo models/demo-bert --file docs/studies/data/sentences.txt\n",
                  .claims = "position mixed into the input fades in deeper layers; relative distances hold where "
                            "absolute positions do not"),
    .size = sizeof(positions_study),
    .of_sentences = true,
    .work = work,
    .close = close_findings,
};
