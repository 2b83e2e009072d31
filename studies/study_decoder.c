/* `deberta study decoder`: what absolute positions right before the softmax (the Enhanced Mask Decoder) change at masks
 * whose answer depends on where they stand. SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <string.h>

#include "analysis/logits.h"
#include "analysis/quantile.h"
#include "program/frame/progress.h"
#include "studies/decoder_items.h"
#include "studies/studies.h"

enum decoder { PLAIN, EMD, EMD_LEVEL, DECODERS };
static const char *const decoder_names[DECODERS] = {"plain", "emd", "emd_level"};
static const char *const decoder_titles[DECODERS] = {"head on H[L]", "EMD", "EMD, one position"};
enum { KINDS = 5, ALL = 3, EITHER = 4 };
static const char *const kind_names[KINDS] = {"subject", "verb", "preposition", "all three", "either"};

/* One mask of one sentence, one pair of words. */
typedef struct decoder_item {
    size_t context, pair, place;
    double right[DECODERS], other[DECODERS]; /* log probability of the word that belongs here, of the other one */
} decoder_item;

typedef struct decoder_study {
    study study;
    text_stream stream;
    text_batches model;
    decoder_items items;
    decoder_item *results;
    size_t result_count;
    float *logits;                                /* [2][V] of one sentence and decoder */
    int32_t *level;                               /* [longest sentence] positions that say nothing */
    double *differences[DECODERS];                /* [contexts] largest |logit at one mask - logit at the other| */
    double *scales;                               /* [contexts] largest |logit| of the plain head */
    double *parts, *wholes;                       /* [frames] of one bootstrap */
    bootstrap_interval shares[ALL + 1][DECODERS]; /* in per cent */
} decoder_study;

/* ------------------------------------------------------------------------------------------------------- measuring */

/* The sentence through one decoder. For EMD_LEVEL every token has the position of the sentence's middle: the decoder
 * adds a vector that is like those it was trained with, and that says nothing. */
static deberta_status encode(decoder_study *s, const decoder_context *context, enum decoder decoder, deberta_error *err)
{
    deberta_session *session = s->model.session;
    const deberta_task head = decoder == PLAIN ? DEBERTA_TASK_MLM : DEBERTA_TASK_MLM_EMD;
    const size_t starts[2] = {0, context->tokens}, width = deberta_task_width(s->model.model, head);
    for (size_t t = 0; t < context->tokens; t++) s->level[t] = (int32_t)(context->tokens / 2);
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = context->ids,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .position_ids = decoder == EMD_LEVEL ? s->level : NULL};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(deberta_encode(session, &batch, &outputs, err));
    return deberta_task_logits(session, head, context->masks, DECODER_MASKS, s->logits, width, err);
}

static void note_differences(decoder_study *s, size_t c, enum decoder decoder, size_t width)
{
    double worst = 0, scale = 0;
    for (size_t k = 0; k < width; k++) {
        worst = fmax(worst, fabs((double)s->logits[k] - (double)s->logits[width + k]));
        scale = fmax(scale, fabs((double)s->logits[k]));
    }
    s->differences[decoder][c] = worst;
    if (decoder == PLAIN) s->scales[c] = scale;
}

static deberta_status measure_context(decoder_study *s, size_t c, deberta_error *err)
{
    const decoder_context *context = &s->items.contexts[c];
    const decoder_frame *frame = &s->items.frames[context->frame];
    decoder_item *items = s->results + s->result_count;
    const size_t width = s->model.info.vocabulary_size;
    for (int decoder = 0; decoder < DECODERS; decoder++) {
        DEBERTA_TRY(encode(s, context, (enum decoder)decoder, err));
        note_differences(s, c, (enum decoder)decoder, width);
        for (size_t place = 0; place < DECODER_MASKS; place++) {
            const float *logits = s->logits + place * width;
            const double all = logits_log_sum(logits, width);
            for (size_t p = 0; p < frame->pair_count; p++) {
                decoder_item *item = &items[p * DECODER_MASKS + place];
                item->context = c;
                item->pair = p;
                item->place = place;
                item->right[decoder] = (double)logits[frame->pairs[p].ids[place]] - all;
                item->other[decoder] = (double)logits[frame->pairs[p].ids[1 - place]] - all;
            }
        }
    }
    s->result_count += frame->pair_count * DECODER_MASKS;
    return DEBERTA_OK;
}

static deberta_status prepare(decoder_study *s, deberta_error *err)
{
    size_t results = 0, longest = 0;
    const common_options *options = s->study.options;
    const decoder_items *items = &s->items;
    for (size_t c = 0; c < items->context_count; c++) {
        results += items->frames[items->contexts[c].frame].pair_count * DECODER_MASKS;
        if (items->contexts[c].tokens > longest) longest = items->contexts[c].tokens;
    }
    s->results = options_take(options, results, sizeof *s->results);
    s->logits = options_take(options, DECODER_MASKS * s->model.info.vocabulary_size, sizeof *s->logits);
    s->level = options_take(options, longest, sizeof *s->level);
    s->scales = options_take(options, items->context_count, sizeof *s->scales);
    for (int d = 0; d < DECODERS; d++)
        s->differences[d] = options_take(options, items->context_count, sizeof *s->differences[d]);
    s->parts = options_take(options, items->frame_count, sizeof *s->parts);
    s->wholes = options_take(options, items->frame_count, sizeof *s->wholes);
    deberta_session_options session_options = s->model.session_options;
    session_options.max_tokens = longest;
    session_options.features = DEBERTA_KEEP_DECODER_INPUT;
    return deberta_session_create_within(&s->model.session, s->model.model, &session_options, 0, err);
}

static deberta_status measure(decoder_study *s, deberta_error *err)
{
    DEBERTA_TRY(prepare(s, err));
    progress_bar bar = progress_begin(s->study.options, "sentences", s->items.context_count);
    deberta_status status = DEBERTA_OK;
    for (size_t c = 0; status == DEBERTA_OK && c < s->items.context_count; c++) {
        status = measure_context(s, c, err);
        progress_step(&bar, c + 1, NULL);
    }
    progress_end(&bar);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- numbers */

static const char *kind_of(const decoder_study *s, const decoder_item *item)
{
    return s->items.frames[s->items.contexts[item->context].frame].kind;
}

static bool is_of_kind(const decoder_study *s, const decoder_item *item, size_t kind)
{
    const char *name = kind_of(s, item);
    return kind == ALL ? strcmp(name, kind_names[EITHER]) != 0 : strcmp(name, kind_names[kind]) == 0;
}

static double was_right(const decoder_item *item, int decoder) { return item->right[decoder] > item->other[decoder]; }
static double log_right(const decoder_item *item, int decoder) { return item->right[decoder]; }

/* The mean of a number over the items of a kind, or of its difference from decoder `minus` (-1: none). Frames are what
 * is drawn again: sentences of a frame are much alike. */
static bootstrap_interval mean_of(decoder_study *s, size_t kind, double (*number)(const decoder_item *, int),
                                  int decoder, int minus)
{
    memset(s->parts, 0, s->items.frame_count * sizeof *s->parts);
    memset(s->wholes, 0, s->items.frame_count * sizeof *s->wholes);
    for (size_t k = 0; k < s->result_count; k++) {
        const decoder_item *item = &s->results[k];
        const size_t frame = s->items.contexts[item->context].frame;
        if (!is_of_kind(s, item, kind)) continue;
        s->parts[frame] += number(item, decoder) - (minus < 0 ? 0 : number(item, minus));
        s->wholes[frame] += 1;
    }
    /* Frames of other kinds have no part in it. */
    size_t kept = 0;
    for (size_t f = 0; f < s->items.frame_count; f++) {
        if (s->wholes[f] == 0) continue;
        s->parts[kept] = s->parts[f];
        s->wholes[kept++] = s->wholes[f];
    }
    return kept ? study_ratio(&s->study, s->parts, s->wholes, kept) : (bootstrap_interval){NAN, NAN, NAN};
}

static size_t count_of(const decoder_study *s, size_t kind)
{
    size_t count = 0;
    for (size_t k = 0; k < s->result_count; k++) count += is_of_kind(s, &s->results[k], kind);
    return count;
}

/* ---------------------------------------------------------------------------------------------------------- tables */

/* Cells of a kind's row: each decoder, then what the Enhanced Mask Decoder has over the head and over itself without
 * the information. The formats take value, low and high. means: [DECODERS] of the decoders, times the factor. */
static void add_decoders(decoder_study *s, result_table *table, size_t kind,
                         double (*number)(const decoder_item *, int), double factor, const char *value_format,
                         const char *difference_format, bootstrap_interval means[DECODERS])
{
    static const int columns[][2] = {{PLAIN, -1}, {EMD, -1}, {EMD_LEVEL, -1}, {EMD, PLAIN}, {EMD, EMD_LEVEL}};
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        const bootstrap_interval one = mean_of(s, kind, number, columns[c][0], columns[c][1]),
                                 mean = {factor * one.value, factor * one.low, factor * one.high};
        if (columns[c][1] < 0) means[columns[c][0]] = mean;
        if (isnan(mean.value)) /* no item is of this kind */
            cell_none(table);
        else
            study_cell_estimate(table, columns[c][1] < 0 ? value_format : difference_format, &mean);
    }
}

static void add_decoder_columns(result_table *table, bool with_items)
{
    result_add_column(table, COLUMN_TEXT, NULL, "position of");
    if (with_items) result_add_column(table, COLUMN_INTEGER, NULL, "items");
    for (int d = 0; d < DECODERS; d++) result_add_column(table, COLUMN_TEXT, NULL, "%s", decoder_titles[d]);
    result_add_column(table, COLUMN_TEXT, NULL, "EMD - head");
    result_add_column(table, COLUMN_TEXT, NULL, "EMD - one position");
}

static void add_accuracy(decoder_study *s)
{
    result_table *table = study_add_table(
        &s->study, "accuracy", "Which of the two words is more probable: the one that belongs here, in %", NULL);
    add_decoder_columns(table, true);
    for (size_t kind = 0; kind <= ALL; kind++) {
        cell_text(table, "%s", kind_names[kind]);
        cell_integer(table, (int64_t)(count_of(s, kind)));
        add_decoders(s, table, kind, was_right, 100, "%.1f (%.1f to %.1f)", "%+.1f (%+.1f to %+.1f)", s->shares[kind]);
    }
}

static void add_probabilities(decoder_study *s)
{
    bootstrap_interval means[DECODERS];
    result_table *table = study_add_table(&s->study, "log_probability",
                                          "Mean log probability of the word that belongs here, in nats", NULL);
    add_decoder_columns(table, false);
    for (size_t kind = 0; kind <= ALL; kind++) {
        cell_text(table, "%s", kind_names[kind]);
        add_decoders(s, table, kind, log_right, 1, "%.2f (%.2f to %.2f)", "%+.2f (%+.2f to %+.2f)", means);
    }
}

/* Are the two masks of a sentence told apart? The smallest difference also in units of float32's rounding. */
static void add_differences(decoder_study *s)
{
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("position of"),
        STUDY_TEXT_COLUMN("decoder"),
        STUDY_COUNT_COLUMN("sentences"),
        STUDY_COUNT_COLUMN("with equal logits"),
        {.name = "smallest", .type = COLUMN_REAL, .format = "%.2f"},
        {.name = "median", .type = COLUMN_REAL, .format = "%.2f"},
        {.name = "smallest, in eps x largest logit", .type = COLUMN_REAL, .format = "%.2g"},
        {.name = NULL}};
    result_table *table = study_add_table(
        &s->study, "two_masks", "The two masks of a sentence: largest difference of a logit; eps = 2^-23", columns);
    double *values = options_take(s->study.options, s->items.context_count, sizeof *values);
    for (size_t kind = 0; kind < KINDS; kind++) {
        for (int d = 0; kind != ALL && d < DECODERS; d++) {
            size_t count = 0, equal = 0;
            double in_eps = INFINITY;
            for (size_t c = 0; c < s->items.context_count; c++) {
                const double found = s->differences[d][c];
                if (strcmp(s->items.frames[s->items.contexts[c].frame].kind, kind_names[kind]) != 0) continue;
                equal += found == 0;
                values[count++] = found;
                in_eps = fmin(in_eps, found / (FLT_EPSILON * s->scales[c]));
            }
            if (!count) continue;
            cell_text(table, "%s", kind_names[kind]);
            cell_text(table, "%s", decoder_titles[d]);
            cell_integer(table, (int64_t)count);
            cell_integer(table, (int64_t)equal);
            cell_real(table, quantile(values, count, 0));
            cell_real(table, quantile(values, count, 0.5));
            cell_real(table, in_eps);
        }
    }
}

static void add_data(decoder_study *s)
{
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("kind"),       STUDY_TEXT_COLUMN("sentence"),    STUDY_COUNT_COLUMN("mask"),
        STUDY_TEXT_COLUMN("word"),       STUDY_TEXT_COLUMN("other"),       STUDY_TEXT_COLUMN("decoder"),
        STUDY_REAL_COLUMN("log_p_word"), STUDY_REAL_COLUMN("log_p_other"), {.name = NULL}};
    study_set_data(&s->study, columns);
    result_table *data = s->study.data;
    for (size_t k = 0; k < s->result_count; k++) {
        const decoder_item *item = &s->results[k];
        const decoder_context *context = &s->items.contexts[item->context];
        const decoder_pair *pair = &s->items.frames[context->frame].pairs[item->pair];
        for (int d = 0; d < DECODERS; d++) {
            cell_text(data, "%s", kind_of(s, item));
            cell_text(data, "%s", context->text);
            cell_integer(data, (int64_t)(item->place + 1));
            cell_text(data, "%s", pair->words[item->place]);
            cell_text(data, "%s", pair->words[1 - item->place]);
            cell_text(data, "%s", decoder_names[d]);
            cell_real(data, item->right[d]);
            cell_real(data, item->other[d]);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------- figure */

static void fill_chart(decoder_study *s)
{
    static const char *const places[ALL + 1] = {"subject", "verb", "preposition", "all"};
    chart_columns *chart = &s->study.chart;
    chart_add_panel(chart, (chart_panel){.x = {.label = "position of", .scale = CHART_CATEGORIES},
                                         .y = {.label = "items right (%)", .low = 0, .high = 100}});
    chart_add_rule(chart, (chart_rule){.at = 50});
    for (size_t kind = 0; kind <= ALL; kind++) chart_add_category(chart, places[kind]);
    for (size_t d = 0; d < DECODERS; d++) {
        chart_add_series(chart, (chart_series){.name = decoder_titles[d], .kind = CHART_BARS});
        for (size_t kind = 0; kind <= ALL; kind++) study_add_point(&s->study, (double)kind, &s->shares[kind][d]);
    }
    s->study.style =
        (figure_style){.width_mm = 120, .title = "Which of two words belongs at this mask?", .note = "Dashed: chance."};
}

/* ------------------------------------------------------------------------------------------------------------- run */

static deberta_status work(study *base, deberta_error *err)
{
    decoder_study *s = (decoder_study *)base;
    DEBERTA_TRY(decoder_items_read(&s->items, base->options, &s->stream, s->model.tokenizer, err));
    DEBERTA_TRY(measure(s, err));
    add_accuracy(s);
    add_probabilities(s);
    add_differences(s);
    add_data(s);
    base->note = options_text(
        base->options,
        "%zu items in %zu sentences of %zu frames; %zu pairs left out, their words are not single tokens. 95 %% "
        "intervals over frames (%s). EMD, one position: every token is given the position of the sentence's middle.",
        s->result_count, s->items.context_count, s->items.frame_count, s->items.skipped_pairs, study_resamples(base));
    fill_chart(s);
    return DEBERTA_OK;
}

static int open_model(study *base)
{
    static const text_stream_names names = {.text = "text", .columns = true};
    decoder_study *s = (decoder_study *)base;
    const deberta_model_info *info = &s->model.info;
    const reading_options *reading = reading_of(base->options);
    deberta_error error = {0};
    int status = text_stream_open(&s->stream, reading, &names);
    if (status == EXIT_OK) status = text_batches_open(&s->model, reading, DEBERTA_KEEP_DECODER_INPUT);
    if (status != EXIT_OK || (info->tasks_present & 1u << DEBERTA_TASK_MLM_EMD && !info->position_biased_input))
        return status;
    status_fail(&error, DEBERTA_E_UNSUPPORTED, "%s has no Enhanced Mask Decoder to be compared with its plain head",
                info->name);
    return say_error(base->options, &error);
}

static void close_model(study *base)
{
    decoder_study *s = (decoder_study *)base;
    text_stream_close(&s->stream);
    text_batches_close(&s->model);
}

static const option options[] = {
    {"file", 'f', "FILE", "frames: kind, tab, sentence with {1}, {2} and <a|b>, tab, pairs of words; may be repeated",
     TEXTS_AT(reading_options, files)},
    {"text", 0, "TEXT", "such a line; may be repeated", TEXTS_AT(reading_options, texts)},
    ABLATE_OPTION,
    STUDY_OPTIONS,
    {.name = NULL},
};

const study_kind study_decoder = {
    STUDY_COMMAND(
        "decoder", "MODEL", 1, 1, study_options,
        .summary = "what absolute positions before the softmax (EMD) change at masks that depend on their place",
        .example = "  deberta study decoder models/demo --file docs/studies/data/decoder.txt\n",
        .claims = "store and mall cannot be told apart by relative positions; content-only and position-enhanced "
                  "predictions differ on subject, verb and preposition"),
    .size = sizeof(decoder_study),
    .open = open_model,
    .work = work,
    .close = close_model,
};
