/* `deberta study twins`: how attention is spread and how far it reaches, in two models of one tokenizer side by side.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "analysis/attention_spread.h"
#include "program/frame/input/input.h"
#include "program/frame/progress.h"
#include "core/base/memory_need.h"
#include "studies/studies.h"

enum { TWINS = 2, MOST_REACH = 64 /* of the curves */, ALL_HEADS = -1 };

typedef struct twins_options {
    study_options study;
    const char *drawn_layers;
} twins_options;

typedef struct twins_study {
    study study;
    attention_spread spread[TWINS];
    size_t layers, heads, reach; /* of the deeper one; of the one with more; of the curves */
    bool *drawn;                 /* [layers] whose curves are drawn */
    unsigned char *own;          /* [tokens] of all sentences; 0: the frame */
    bootstrap_interval *numbers; /* [TWINS][layers][heads + 1][SPREAD_NUMBERS], those of all heads last */
} twins_study;

/* ------------------------------------------------------------------------------------------------------- measuring */

/* Every layer and head, and what the model has of the components but the logits, which are their sum. */
static deberta_status open_capture(const study *s, size_t m, const deberta_session *session, const size_t *starts,
                                   capture *captured, deberta_error *err)
{
    const deberta_model_info *info = &s->models[m].info;
    capture_create(captured, info, starts, 1);
    for (size_t head = 0; head < info->heads; head++) captured->heads[head] = true;
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (c != DEBERTA_LOGITS) capture_want_everywhere(captured, c);
    const memory_need need = {s->models[0].info.memory_bytes + s->models[1].info.memory_bytes,
                              deberta_session_memory_bytes(session), capture_bytes(captured)};
    DEBERTA_TRY(memory_need_check(&need, s->texts.model.session_options.memory_limit_bytes, err));
    return capture_allocate(captured, err);
}

/* One sentence at a time: their matrices are kept whole. */
static deberta_status measure_sentence(twins_study *s, size_t m, deberta_session *session, size_t k, deberta_error *err)
{
    const study_texts *texts = &s->study.texts;
    size_t starts[2];
    capture captured = {0};
    deberta_batch batch = study_texts_batch(texts, k, k + 1, starts);
    deberta_status status = open_capture(&s->study, m, session, starts, &captured, err);
    const deberta_observer observer = capture_observer(&captured);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    batch.observer = &observer;
    if (status == DEBERTA_OK) status = deberta_encode(session, &batch, &outputs, err);
    if (status == DEBERTA_OK)
        status = attention_spread_add(&s->spread[m], k, &captured, s->own + texts->starts[k], err);
    capture_free(&captured);
    return status;
}

static deberta_status measure_model(twins_study *s, size_t m, progress_bar *bar, deberta_error *err)
{
    const study_texts *texts = &s->study.texts;
    deberta_session_options options = texts->model.session_options;
    deberta_session *session = NULL;
    options.max_tokens = study_texts_largest_batch(texts, 1);
    options.features = DEBERTA_OBSERVE_ATTENTION;
    DEBERTA_TRY(attention_spread_create(&s->spread[m], &s->study.models[m].info, texts->count, s->reach, err));
    deberta_status status = deberta_session_create(&session, s->study.models[m].model, &options, err);
    for (size_t k = 0; status == DEBERTA_OK && k < texts->count; k++) {
        status = measure_sentence(s, m, session, k, err);
        progress_step(bar, m * texts->count + k + 1, NULL);
    }
    deberta_session_free(&session);
    return status;
}

static deberta_status measure(twins_study *s, deberta_error *err)
{
    const study_texts *texts = &s->study.texts;
    const size_t longest = study_texts_largest_batch(texts, 1);
    s->reach = longest - 1 < MOST_REACH ? longest - 1 : (size_t)MOST_REACH;
    s->own = options_take(s->study.options, texts->starts[texts->count], sizeof *s->own);
    for (size_t k = 0; k < texts->count; k++)
        for (size_t t = 0; t < texts->lists[k]->count; t++)
            s->own[texts->starts[k] + t] = texts->lists[k]->roles[t] != DEBERTA_TOKEN_FRAME;
    progress_bar bar = progress_begin(s->study.options, "sentences", TWINS * texts->count);
    deberta_status status = DEBERTA_OK;
    for (size_t m = 0; status == DEBERTA_OK && m < TWINS; m++) status = measure_model(s, m, &bar, err);
    progress_end(&bar);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- numbers */

static bool has_head(const twins_study *s, size_t m, size_t layer, long head)
{
    const deberta_model_info *info = &s->study.models[m].info;
    return layer < info->layers && (head == ALL_HEADS || (size_t)head < info->heads);
}

static bootstrap_interval *number_of(const twins_study *s, size_t m, size_t layer, long head, spread_number number)
{
    const size_t column = head == ALL_HEADS ? s->heads : (size_t)head;
    return &s->numbers[((m * s->layers + layer) * (s->heads + 1) + column) * SPREAD_NUMBERS + number];
}

/* Of one sentence, summed over its queries: of a head, or the mean over the heads of a layer. */
static double sum_of(const twins_study *s, size_t m, size_t sentence, size_t layer, long head, spread_number number)
{
    const size_t heads = s->study.models[m].info.heads;
    double sum = 0;
    if (head != ALL_HEADS) return attention_spread_number(&s->spread[m], sentence, layer, (size_t)head, number);
    for (size_t h = 0; h < heads; h++) sum += attention_spread_number(&s->spread[m], sentence, layer, h, number);
    return sum / (double)heads;
}

/* The mean over all queries; of model `minus` (or -1: none) subtracted sentence by sentence. */
static bootstrap_interval find_number(twins_study *s, size_t m, int minus, size_t layer, long head,
                                      spread_number number)
{
    const study_texts *texts = &s->study.texts;
    for (size_t k = 0; k < texts->count; k++) {
        s->study.wholes[k] = (double)texts->lists[k]->count;
        s->study.parts[k] =
            sum_of(s, m, k, layer, head, number) - (minus < 0 ? 0 : sum_of(s, (size_t)minus, k, layer, head, number));
    }
    return study_sentence_ratio(&s->study);
}

/* The share of the attention of a layer that goes to a place, in per cent. */
static bootstrap_interval find_place(twins_study *s, size_t m, size_t layer, size_t place)
{
    for (size_t k = 0; k < s->study.texts.count; k++) {
        const double *places = attention_spread_places(&s->spread[m], k, layer);
        s->study.parts[k] = 100 * places[place];
        s->study.wholes[k] = 0;
        for (size_t p = 0; p < SPREAD_PLACES; p++) s->study.wholes[k] += places[p];
    }
    return study_sentence_ratio(&s->study);
}

/* ---------------------------------------------------------------------------------------------------------- tables */

/* Begins a row of the data: the caller adds where, and the value with its interval. */
static result_table *begin_data(const twins_study *s, size_t m, const char *what, size_t layer, long head)
{
    result_table *data = s->study.data;
    cell_text(data, "%s", s->study.models[m].name);
    cell_text(data, "%s", what);
    cell_integer(data, (int64_t)layer);
    study_cell_index(data, head);
    return data;
}

static const char *const number_names[SPREAD_NUMBERS] = {"entropy", "distance", "offset"};

static void add_head(twins_study *s, result_table *table, size_t layer, long head)
{
    cell_integer(table, (int64_t)layer);
    study_cell_index(table, head);
    for (size_t m = 0; m < TWINS; m++)
        for (spread_number number = 0; number < SPREAD_NUMBERS; number++) {
            if (!has_head(s, m, layer, head)) {
                cell_text(table, "-");
                continue;
            }
            const bootstrap_interval found = find_number(s, m, -1, layer, head, number);
            *number_of(s, m, layer, head, number) = found;
            study_cell_estimate(table, number == SPREAD_OFFSET ? "%+.2f (%+.2f to %+.2f)" : "%.2f (%.2f to %.2f)",
                                &found);
            result_table *data = begin_data(s, m, number_names[number], layer, head);
            cell_none(data);
            study_cell_interval(data, &found);
        }
}

static void tabulate_heads(twins_study *s)
{
    result_table *table = study_add_table(
        &s->study, "heads", "Entropy (bits), mean distance and mean offset (tokens; > 0: to the left)", NULL);
    result_add_column(table, COLUMN_INTEGER, NULL, "layer");
    result_add_column(table, COLUMN_INTEGER, NULL, "head");
    for (size_t m = 0; m < TWINS; m++)
        for (int number = 0; number < SPREAD_NUMBERS; number++)
            result_add_column(table, COLUMN_TEXT, NULL, "%s: %s", s->study.models[m].name, number_names[number]);
    for (size_t layer = 0; layer < s->layers; layer++) {
        for (size_t head = 0; head < s->heads; head++) add_head(s, table, layer, (long)head);
        add_head(s, table, layer, ALL_HEADS);
    }
}

/* Layers that both have, heads together: a head of one has no counterpart in the other. */
static void tabulate_differences(twins_study *s)
{
    static const result_column columns[] = {STUDY_COUNT_COLUMN("layer"),
                                            STUDY_TEXT_COLUMN("entropy (bits)"),
                                            STUDY_TEXT_COLUMN("distance (tokens)"),
                                            {.name = NULL}};
    result_table *table =
        study_add_table(&s->study, "differences", "The first model minus the second, means over heads", columns);
    for (size_t layer = 0; has_head(s, 0, layer, ALL_HEADS) && has_head(s, 1, layer, ALL_HEADS); layer++) {
        cell_integer(table, (int64_t)layer);
        for (spread_number number = SPREAD_ENTROPY; number <= SPREAD_DISTANCE; number++) {
            const bootstrap_interval found = find_number(s, 0, 1, layer, ALL_HEADS, number);
            study_cell_estimate(table, "%+.2f (%+.2f to %+.2f)", &found);
        }
    }
}

/* Of one model and place in all layers: cells of a row, and data. */
static void add_place(twins_study *s, result_table *table, size_t m, size_t place, const char *name)
{
    for (size_t layer = 0; layer < s->layers; layer++) {
        if (!has_head(s, m, layer, ALL_HEADS)) {
            cell_text(table, "-");
            continue;
        }
        const bootstrap_interval found = find_place(s, m, layer, place);
        cell_real(table, found.value);
        result_table *data = begin_data(s, m, "place", layer, ALL_HEADS);
        cell_text(data, "%s", name);
        study_cell_interval(data, &found);
    }
}

static bool is_empty(const twins_study *s, size_t place)
{
    for (size_t k = 0; k < s->study.texts.count; k++)
        if (attention_spread_places(&s->spread[0], k, 0)[place] > 0) return false;
    return true;
}

static void tabulate_places(twins_study *s)
{
    result_table *table = study_add_table(&s->study, "places", "Where attention goes, in % of a layer's", NULL);
    result_add_column(table, COLUMN_TEXT, NULL, "key");
    for (size_t m = 0; m < TWINS; m++)
        for (size_t layer = 0; layer < s->layers; layer++)
            result_add_column(table, COLUMN_REAL, "%.1f", "%s: %zu", s->study.models[m].name, layer);
    for (size_t place = 0; place < SPREAD_PLACES; place++) {
        char name[SHARE_NAME_BYTES];
        if (is_empty(s, place)) continue;
        attention_spread_place_name(place, name);
        cell_text(table, "%s", name);
        for (size_t m = 0; m < TWINS; m++) add_place(s, table, m, place, name);
    }
}

/* Means of the curves, without intervals. */
static void add_curve_data(twins_study *s, size_t m, size_t layer, deberta_component c)
{
    const ptrdiff_t reach = (ptrdiff_t)s->reach;
    for (ptrdiff_t r = -reach; r <= reach; r++) {
        const double mean = distance_sample_mean(attention_spread_profile(&s->spread[m], layer, c), r);
        if (!isfinite(mean)) continue;
        result_table *data = begin_data(s, m, deberta_component_name(c), layer, ALL_HEADS);
        cell_integer(data, r);
        study_cell_interval(data, &(bootstrap_interval){mean, NAN, NAN});
    }
}

static void tabulate(twins_study *s)
{
    static const result_column columns[] = {STUDY_TEXT_COLUMN("model"),
                                            STUDY_TEXT_COLUMN("what"),
                                            STUDY_COUNT_COLUMN("layer"),
                                            STUDY_COUNT_COLUMN("head"),
                                            STUDY_COUNT_COLUMN("at"),
                                            STUDY_INTERVAL_COLUMNS,
                                            {.name = NULL}};
    const study_texts *texts = &s->study.texts;
    study_set_data(&s->study, columns);
    tabulate_heads(s);
    tabulate_differences(s);
    tabulate_places(s);
    for (size_t m = 0; m < TWINS; m++)
        for (size_t layer = 0; layer < s->study.models[m].info.layers; layer++)
            for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
                if (c != DEBERTA_LOGITS && component_is_in(c, &s->study.models[m].info)) add_curve_data(s, m, layer, c);
    s->study.note = options_text(
        s->study.options,
        "%zu sentences, %zu tokens. Entropy, distance and offset: all tokens ask; places and curves: those of the "
        "text, not [CLS] and [SEP]. 95 %% intervals over sentences (%s). Head numbers of the two models have nothing "
        "to do with each other.",
        texts->count, texts->starts[texts->count], study_resamples(&s->study));
}

/* ---------------------------------------------------------------------------------------------------------- figure */

/* Heads as points beside the line of their means: one model a little to the left, the other to the right. */
static void add_head_panel(twins_study *s, spread_number number, const char *title, const char *label)
{
    static const double beside[TWINS] = {-0.08, 0.08};
    chart_columns *chart = &s->study.chart;
    chart_add_panel(chart, (chart_panel){.title = title,
                                         .x = {.label = "layer", .scale = CHART_WHOLE},
                                         .y = {.label = label, .from_zero = true}});
    for (size_t m = 0; m < TWINS; m++) {
        chart_add_series(chart, (chart_series){.name = s->study.models[m].name, .kind = CHART_LINE, .look = 1 + m});
        for (size_t layer = 0; layer < s->study.models[m].info.layers; layer++)
            study_add_point(&s->study, (double)layer + beside[m], number_of(s, m, layer, ALL_HEADS, number));
    }
    for (size_t m = 0; m < TWINS; m++) {
        const deberta_model_info *info = &s->study.models[m].info;
        chart_add_series(chart, (chart_series){.kind = CHART_POINTS, .look = 1 + m});
        for (size_t k = 0; k < info->layers * info->heads; k++) {
            const size_t layer = k / info->heads;
            chart_add_point(chart, (double)layer + beside[m],
                            number_of(s, m, layer, (long)(k % info->heads), number)->value);
        }
    }
}

static void add_curve(twins_study *s, size_t m, size_t layer, deberta_component c, const char *name, size_t look)
{
    const ptrdiff_t reach = (ptrdiff_t)s->reach;
    if (!has_head(s, m, layer, ALL_HEADS) || !component_is_in(c, &s->study.models[m].info)) return;
    chart_add_series(&s->study.chart, (chart_series){.name = name, .kind = CHART_CURVE, .look = look});
    for (ptrdiff_t r = -reach; r <= reach; r++)
        chart_add_point(&s->study.chart, (double)r,
                        distance_sample_mean(attention_spread_profile(&s->spread[m], layer, c), r));
}

static void add_curve_panel(chart_columns *chart, size_t layer, const char *what, const char *label)
{
    chart_add_panel(chart, (chart_panel){.title = chart_text(chart, "layer %zu, %s", layer, what),
                                         .x = {.label = "query \u2212 key (tokens; > 0: key to the left)",
                                               .scale = CHART_SIGNED_LOG,
                                               .linear_to = 4},
                                         .y = {.label = label}});
}

static void add_layer(twins_study *s, size_t layer)
{
    chart_columns *chart = &s->study.chart;
    add_curve_panel(chart, layer, "attention", "probability");
    for (size_t m = 0; m < TWINS; m++) add_curve(s, m, layer, DEBERTA_PROBABILITIES, s->study.models[m].name, 1 + m);
    add_curve_panel(chart, layer, "terms", "scaled logit");
    for (size_t m = 0; m < TWINS; m++)
        for (deberta_component c = DEBERTA_C2C; c <= DEBERTA_P2C; c++)
            add_curve(s, m, layer, c,
                      chart_text(chart, "%.80s: %s", s->study.models[m].name, deberta_component_name(c)),
                      c == DEBERTA_C2C ? 1 + m : 1 + TWINS * (size_t)c + m); /* c2c as its model */
}

static void fill_chart(twins_study *s)
{
    s->study.style.note = "Points: heads; lines: their means, with 95 % intervals. Curves: means over heads and pairs "
                          "of the text's own tokens; terms without what is constant over the keys.";
    s->study.chart.across = 2;
    s->study.chart.panel_height = 28;
    add_head_panel(s, SPREAD_ENTROPY, "entropy of heads", "bits");
    add_head_panel(s, SPREAD_DISTANCE, "how far they look", "mean distance (tokens)");
    for (size_t layer = 0; layer < s->layers; layer++)
        if (s->drawn[layer]) add_layer(s, layer);
}

/* ------------------------------------------------------------------------------------------------------------- run */

static int prepare(study *base)
{
    twins_study *s = (twins_study *)base;
    const twins_options *o = (const twins_options *)base->options;
    for (size_t m = 0; m < TWINS; m++) {
        const deberta_model_info *info = &base->models[m].info;
        if (info->layers > s->layers) s->layers = info->layers;
        if (info->heads > s->heads) s->heads = info->heads;
    }
    s->drawn = options_take(base->options, s->layers, sizeof *s->drawn);
    s->numbers = options_take(base->options, TWINS * s->layers * (s->heads + 1) * SPREAD_NUMBERS, sizeof *s->numbers);
    return parse_index_list(base->options, &o->drawn_layers, s->drawn, s->layers) ? EXIT_OK : EXIT_USAGE;
}

static deberta_status work(study *base, deberta_error *err)
{
    twins_study *s = (twins_study *)base;
    DEBERTA_TRY(measure(s, err));
    tabulate(s);
    fill_chart(s);
    return DEBERTA_OK;
}

static void close_spreads(study *base)
{
    attention_spread *spread = ((twins_study *)base)->spread;
    for (size_t m = 0; m < TWINS; m++)
        if (spread[m].model) attention_spread_free(&spread[m]);
}

static const option options[] = {
    STUDY_TEXTS_OPTIONS,
    {"layers", 0, "LIST", "layers whose curves are drawn, counted from 0 (default all); tables and data have all",
     TEXT_AT(twins_options, drawn_layers)},
    ABLATE_OPTION,
    STUDY_OPTIONS,
    {.name = NULL},
};

const study_kind study_twins = {
    STUDY_COMMAND(
        "twins", "MODEL OTHER", TWINS, TWINS, twins_options, .defaults = &(const twins_options){.drawn_layers = "all"},
        .summary = "entropy of every head and attention by distance, in two models side by side",
        .example =
            "  deberta study twins models/demo models/demo-bert --file docs/studies/data/sentences.txt -o twins.png\n",
        .claims = "disentangled attention looks elsewhere than attention with positions at the input"),
    .size = sizeof(twins_study),
    .of_sentences = true,
    .open = prepare,
    .work = work,
    .close = close_spreads,
};
