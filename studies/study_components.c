/* `deberta study components`: which share of the attention scores each term makes, by layer, head, distance and kind of
 * token; and what the term that the models leave out, position to position, would make and do.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "analysis/component_share.h"
#include "program/frame/progress.h"
#include "studies/studies.h"
#include "studies/token_class.h"

enum { BATCH_TOKENS = 2048, P2P = 2, LOSSES = 1 + P2P, EVERY_LAYER = -1 };
static const char *const term_names[SHARE_TERMS] = {"c2c", "c2p", "p2c", "p2p"};

typedef struct components_study {
    study study;
    component_share share;
    bool has_p2p, has_losses;
    position_term p2p[P2P]; /* by position_term_index */
    double *losses[LOSSES]; /* [sentences] sums: the model, then with each p2p. NULL without has_losses */
    double *masks;          /* [sentences] */
} components_study;

/* What a row of a table is about: some heads, a bin or a class, in one layer or all of them. */
typedef struct share_place {
    share_group group;
    size_t first, end; /* indices of the group */
    long layer;        /* or EVERY_LAYER */
} share_place;

/* ------------------------------------------------------------------------------------------------------- measuring */

static void classify(components_study *s)
{
    const study_texts *texts = &s->study.texts;
    uint8_t *classes = options_take(s->study.options, texts->starts[texts->count], sizeof *classes);
    for (size_t k = 0; k < texts->count; k++)
        for (size_t t = 0; t < texts->lists[k]->count; t++)
            classes[texts->starts[k] + t] = (uint8_t)token_class_of(texts->lists[k], t, texts->sentences[k]);
    s->share.classes = classes;
    s->share.starts = texts->starts;
}

/* The squares of all terms over all sentences. */
static deberta_status measure_shares(components_study *s, deberta_error *err)
{
    const study_texts *texts = &s->study.texts;
    deberta_session_options session_options = texts->model.session_options;
    deberta_session *session = NULL;
    size_t *starts = options_take(s->study.options, texts->count + 1, sizeof *starts);
    session_options.max_tokens = study_texts_largest_batch(texts, BATCH_TOKENS);
    session_options.features = DEBERTA_OBSERVE_ATTENTION;
    deberta_status status = deberta_session_create_within(&session, texts->model.model, &session_options, 0, err);
    const deberta_observer observer = component_share_observer(&s->share);
    progress_bar bar = progress_begin(s->study.options, "sentences", texts->count);
    for (size_t first = 0, end; status == DEBERTA_OK && first < texts->count; first = end) {
        end = study_texts_batch_end(texts, first, BATCH_TOKENS);
        deberta_batch batch = study_texts_batch(texts, first, end, starts);
        deberta_outputs outputs = {.struct_size = sizeof outputs};
        batch.observer = &observer;
        s->share.first_sentence = first;
        status = deberta_encode(session, &batch, &outputs, err);
        progress_step(&bar, end, NULL);
    }
    progress_end(&bar);
    deberta_session_free(&session);
    return status;
}

/* The masked-LM loss as it is, and with either version of p2p added to the scores. */
static deberta_status measure_losses(components_study *s, deberta_error *err)
{
    const common_options *options = s->study.options;
    const study_texts *texts = &s->study.texts;
    masked_texts masked = {0};
    s->masks = options_take(options, texts->count, sizeof *s->masks);
    deberta_status status = study_texts_hide(texts, options->seed, &masked, s->masks, err);
    for (size_t k = 0; status == DEBERTA_OK && k < LOSSES; k++) {
        s->losses[k] = options_take(options, texts->count, sizeof *s->losses[k]);
        status = masked_texts_measure(&masked, texts->model.model, &texts->model.session_options,
                                      k ? s->p2p[k - 1].by_row : NULL, BATCH_TOKENS, s->losses[k], err);
    }
    masked_texts_free(&masked);
    return status;
}

/* p2p needs both projections of the positions, and its effect a masked-LM head: without them that part is left out. */
static deberta_status prepare_p2p(components_study *s, deberta_error *err)
{
    const text_batches *model = &s->study.texts.model;
    deberta_task head;
    if (!model->info.has_c2p || !model->info.has_p2c) return DEBERTA_OK;
    s->has_p2p = true;
    s->has_losses = masked_texts_head(&head, model->model, MASKED_DECODER_TRAINED, NULL) == DEBERTA_OK;
    for (int k = 0; k < P2P; k++)
        DEBERTA_TRY(position_term_make(&s->p2p[k], model->model, (position_term_index)k,
                                       study_texts_largest_batch(&s->study.texts, 1), err));
    s->share.extra = &s->p2p[POSITION_TERM_CODE];
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

static void add_squares(const components_study *s, size_t sentence, const share_place *place,
                        double squares[SHARE_TERMS])
{
    for (size_t layer = 0; layer < s->share.layers; layer++) {
        if (place->layer != EVERY_LAYER && (size_t)place->layer != layer) continue;
        for (size_t index = place->first; index < place->end; index++) {
            const double *found = component_share_at(&s->share, sentence, layer, place->group, index);
            for (int t = 0; t < SHARE_TERMS; t++) squares[t] += found[t];
        }
    }
}

static double model_terms(const double squares[SHARE_TERMS])
{
    return squares[DEBERTA_C2C] + squares[DEBERTA_C2P] + squares[DEBERTA_P2C];
}

/* Of the model's three terms; of p2p among four. */
static bootstrap_interval find_share(components_study *s, const share_place *place, int term)
{
    for (size_t k = 0; k < s->study.texts.count; k++) {
        double squares[SHARE_TERMS] = {0};
        add_squares(s, k, place, squares);
        s->study.parts[k] = squares[term];
        s->study.wholes[k] = model_terms(squares) + (term == SHARE_P2P ? squares[SHARE_P2P] : 0);
    }
    return study_sentence_ratio(&s->study);
}

/* Over all sentences; false: there is nothing in it. */
static bool sum_squares(const components_study *s, const share_place *place, double squares[SHARE_TERMS])
{
    memset(squares, 0, SHARE_TERMS * sizeof *squares);
    for (size_t k = 0; k < s->study.texts.count; k++) add_squares(s, k, place, squares);
    return model_terms(squares) > 0;
}

static size_t count_of(const components_study *s, share_group group)
{
    return group == SHARE_BY_HEAD       ? s->share.layers
           : group == SHARE_BY_DISTANCE ? (size_t)SHARE_DISTANCES
                                        : (size_t)SHARE_CLASSES;
}

/* Place number `index` of a table or a panel, all heads together, and its name. */
static share_place place_of(const components_study *s, share_group group, size_t index, char name[SHARE_NAME_BYTES])
{
    if (group == SHARE_BY_HEAD) {
        snprintf(name, SHARE_NAME_BYTES, "%zu", index);
        return (share_place){group, 0, s->share.heads, (long)index};
    }
    if (group == SHARE_BY_DISTANCE)
        share_distance_name(index, name);
    else
        snprintf(name, SHARE_NAME_BYTES, "%s", token_class_name((token_class)index));
    return (share_place){group, index, index + 1, EVERY_LAYER};
}

/* ----------------------------------------------------------------------------------------------------------- tables */

/* The terms of one place into a table and the data. name NULL: a head. */
static void add_terms(components_study *s, result_table *table, const share_place *place, const char *group,
                      const char *name)
{
    result_table *data = s->study.data;
    for (int term = 0; term < SHARE_TERMS; term++) {
        if (term == SHARE_P2P && !s->has_p2p) continue;
        const bootstrap_interval share = find_share(s, place, term);
        const bootstrap_interval percent = {100 * share.value, 100 * share.low, 100 * share.high};
        study_cell_estimate(table, "%.1f %% (%.1f-%.1f)", &percent);
        cell_text(data, "%s", group);
        study_cell_index(data, place->layer);
        if (name)
            cell_text(data, "%s", name);
        else
            study_cell_index(data, place->end - place->first > 1 ? -1 : (long)place->first);
        cell_text(data, "%s", term_names[term]);
        study_cell_interval(data, &share);
    }
}

static result_table *add_table(components_study *s, const char *name, const char *title, const char *first,
                               const char *second)
{
    result_table *table = study_add_table(&s->study, name, title, NULL);
    result_add_column(table, second ? COLUMN_INTEGER : COLUMN_TEXT, NULL, "%s", first);
    if (second) result_add_column(table, COLUMN_INTEGER, NULL, "%s", second);
    for (int term = 0; term < ATTENTION_TERMS; term++)
        result_add_column(table, COLUMN_TEXT, NULL, "%s", term_names[term]);
    if (s->has_p2p) result_add_column(table, COLUMN_TEXT, NULL, "p2p, if added");
    return table;
}

static void tabulate_heads(components_study *s)
{
    result_table *table = add_table(s, "shares", "Share of the variance of the scores", "layer", "head");
    for (size_t layer = 0; layer < s->share.layers; layer++) {
        for (size_t head = 0; head <= s->share.heads; head++) {
            const bool all = head == s->share.heads;
            const share_place place = {SHARE_BY_HEAD, all ? 0 : head, all ? s->share.heads : head + 1, (long)layer};
            if (all && s->share.heads == 1) continue;
            cell_integer(table, (int64_t)layer);
            study_cell_index(table, all ? -1 : (long)head);
            add_terms(s, table, &place, "head", NULL);
        }
    }
}

/* Over all layers into the table, by layer into the data as well. */
static void tabulate_group(components_study *s, share_group group, result_table *table, const char *name)
{
    for (size_t index = 0; index < count_of(s, group); index++) {
        char text[SHARE_NAME_BYTES];
        double squares[SHARE_TERMS];
        share_place place = place_of(s, group, index, text);
        if (!sum_squares(s, &place, squares)) continue;
        cell_text(table, "%s", text);
        add_terms(s, table, &place, name, text);
        for (size_t layer = 0; layer < s->share.layers; layer++) {
            place.layer = (long)layer;
            add_terms(s, NULL, &place, name, text);
        }
    }
}

static void tabulate_losses(components_study *s)
{
    static const char *const names[LOSSES] = {"as it is", "with p2p, row(r) on both sides",
                                              "with p2p, row(r) and row(-r)"};
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("model"), STUDY_TEXT_COLUMN("loss (nats)"), STUDY_TEXT_COLUMN("change"), {.name = NULL}};
    study *base = &s->study;
    result_table *table =
        study_add_table(&s->study, "losses", "Masked-LM loss with the position-to-position term", columns);
    for (size_t k = 0; k < LOSSES; k++) {
        for (size_t t = 0; t < base->texts.count; t++) base->parts[t] = s->losses[k][t] - s->losses[0][t];
        const bootstrap_interval loss = study_ratio(base, s->losses[k], s->masks, base->texts.count),
                                 change = study_ratio(base, base->parts, s->masks, base->texts.count);
        cell_text(table, "%s", names[k]);
        study_cell_estimate(table, "%.4f (%.4f, %.4f)", &loss);
        if (k)
            study_cell_estimate(table, "%+.4f (%+.4f, %+.4f)", &change);
        else
            cell_none(table);
    }
}

static void tabulate(components_study *s)
{
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("group"), STUDY_COUNT_COLUMN("layer"), STUDY_TEXT_COLUMN("name"), STUDY_TEXT_COLUMN("term"),
        STUDY_REAL_COLUMN("share"), STUDY_REAL_COLUMN("low"),    STUDY_REAL_COLUMN("high"), {.name = NULL}};
    const study_texts *texts = &s->study.texts;
    study_set_data(&s->study, columns);
    tabulate_heads(s);
    tabulate_group(s, SHARE_BY_DISTANCE, add_table(s, "distances", "By the place of the key", "key", NULL), "distance");
    tabulate_group(s, SHARE_BY_CLASS, add_table(s, "classes", "By the kind of the token that asks", "token", NULL),
                   "token");
    if (s->has_losses) tabulate_losses(s);
    s->study.note = options_text(s->study.options, "%zu sentences, %zu tokens; 95 %% intervals over sentences (%s).",
                                 texts->count, texts->starts[texts->count], study_resamples(&s->study));
}

/* ----------------------------------------------------------------------------------------------------------- figure */

/* Stacked shares of the places that occur, in per cent. */
static void add_panel(components_study *s, share_group group, const char *title, const char *axis)
{
    chart_columns *chart = &s->study.chart;
    chart_add_panel(chart, (chart_panel){.title = title,
                                         .x = {.label = axis, .scale = CHART_CATEGORIES},
                                         .y = {.label = "share of the variance (%)", .low = 0, .high = 100},
                                         .stacked = true});
    for (int term = 0; term < ATTENTION_TERMS; term++) {
        size_t count = 0;
        chart_add_series(chart, (chart_series){.name = term_names[term], .kind = CHART_BARS});
        for (size_t index = 0; index < count_of(s, group); index++) {
            char name[SHARE_NAME_BYTES];
            double squares[SHARE_TERMS];
            const share_place place = place_of(s, group, index, name);
            if (!sum_squares(s, &place, squares)) continue;
            if (term == 0) chart_add_category(chart, chart_text(chart, "%s", name));
            chart_add_point(chart, (double)count++, 100 * squares[term] / model_terms(squares));
        }
    }
}

static void fill_chart(components_study *s)
{
    add_panel(s, SHARE_BY_HEAD, "by layer", "layer");
    add_panel(s, SHARE_BY_DISTANCE, "by place of the key", "place of the key");
    add_panel(s, SHARE_BY_CLASS, "by kind of token", "");
    s->study.chart.across = 3;
    s->study.chart.no_letters = true;
    s->study.style.title = "What the attention scores are made of";
    s->study.style.note = s->study.note;
}

/* -------------------------------------------------------------------------------------------------------------- run */

static deberta_status work(study *base, deberta_error *err)
{
    components_study *s = (components_study *)base;
    DEBERTA_TRY(component_share_create(&s->share, &base->texts.model.info, base->texts.count, err));
    classify(s);
    DEBERTA_TRY(prepare_p2p(s, err));
    DEBERTA_TRY(measure_shares(s, err));
    if (s->has_losses) DEBERTA_TRY(measure_losses(s, err));
    tabulate(s);
    fill_chart(s);
    return DEBERTA_OK;
}

static void close_measures(study *base)
{
    components_study *s = (components_study *)base;
    component_share_free(&s->share);
    for (size_t k = 0; k < P2P; k++) position_term_free(&s->p2p[k]);
}

static const option options[] = {
    STUDY_TEXTS_OPTIONS,
    ABLATE_OPTION,
    STUDY_OPTIONS,
    {.name = NULL},
};

const study_kind study_components = {
    STUDY_COMMAND(
        "components", "MODEL", 1, 1, study_options,
        .summary = "which share of the attention scores each term makes, by layer, head, distance and kind of token",
        .example = "  deberta study components models/demo --file docs/studies/data/sentences.txt -o shares.png\n",
        .claims = "the position-to-position term is not useful; position fades in deeper layers"),
    .size = sizeof(components_study),
    .of_sentences = true,
    .work = work,
    .close = close_measures,
};
