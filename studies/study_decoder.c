/* `deberta study decoder`: what absolute positions right before the softmax (the Enhanced Mask Decoder) change at masks
 * whose answer depends on where they stand. SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap.h"
#include "command/options.h"
#include "command/progress.h"
#include "studies/decoder_items.h"
#include "studies/studies.h"
#include "studies/study.h"
#include "command/input/text_batches.h"
#include "core/base/status.h"
#include "analysis/masked_texts.h"
#include "analysis/quantile.h"

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
    const common_options *options;
    uint64_t seed;
    text_batches model;
    decoder_items items;
    decoder_item *results;
    size_t result_count;
    float *logits;                 /* [2][V] of one sentence and decoder */
    double *differences[DECODERS]; /* [contexts] largest |logit at one mask - logit at the other| */
    double *scales;                /* [contexts] largest |logit| of the plain head */
    double *parts, *wholes;        /* [frames] of one bootstrap */
    study_findings findings;
    double shares[DECODERS][KINDS], low[DECODERS][KINDS], high[DECODERS][KINDS]; /* for the figure */
} decoder_study;

/* ------------------------------------------------------------------------------------------------------- measuring */

/* The sentence through one decoder. For EMD_LEVEL every token has the position of the sentence's middle: the decoder
 * adds a vector that is like those it was trained with, and that says nothing. */
static deberta_status encode(decoder_study *study, const decoder_context *context, enum decoder decoder,
                             deberta_error *err)
{
    deberta_session *session = study->model.session;
    const deberta_task head = decoder == PLAIN ? DEBERTA_TASK_MLM : DEBERTA_TASK_MLM_EMD;
    const size_t starts[2] = {0, context->tokens}, width = deberta_task_width(study->model.model, head);
    int32_t *level = malloc(context->tokens * sizeof *level);
    if (!level) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    for (size_t t = 0; t < context->tokens; t++) level[t] = (int32_t)(context->tokens / 2);
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = context->ids,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .position_ids = decoder == EMD_LEVEL ? level : NULL};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    deberta_status status = deberta_encode(session, &batch, &outputs, err);
    if (status == DEBERTA_OK)
        status = deberta_task_logits(session, head, context->masks, DECODER_MASKS, study->logits, width, err);
    free(level);
    return status;
}

static void note_differences(decoder_study *study, size_t c, enum decoder decoder, size_t width)
{
    double worst = 0, scale = 0;
    for (size_t k = 0; k < width; k++) {
        worst = fmax(worst, fabs((double)study->logits[k] - (double)study->logits[width + k]));
        scale = fmax(scale, fabs((double)study->logits[k]));
    }
    study->differences[decoder][c] = worst;
    if (decoder == PLAIN) study->scales[c] = scale;
}

static deberta_status measure_context(decoder_study *study, size_t c, deberta_error *err)
{
    const decoder_context *context = &study->items.contexts[c];
    const decoder_frame *frame = &study->items.frames[context->frame];
    decoder_item *items = study->results + study->result_count;
    const size_t width = study->model.info.vocabulary_size;
    for (int decoder = 0; decoder < DECODERS; decoder++) {
        DEBERTA_TRY(encode(study, context, (enum decoder)decoder, err));
        note_differences(study, c, (enum decoder)decoder, width);
        for (size_t place = 0; place < DECODER_MASKS; place++) {
            const float *logits = study->logits + place * width;
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
    study->result_count += frame->pair_count * DECODER_MASKS;
    return DEBERTA_OK;
}

static deberta_status allocate(decoder_study *study, deberta_error *err)
{
    size_t results = 0, longest = 0;
    const decoder_items *items = &study->items;
    for (size_t c = 0; c < items->context_count; c++) {
        results += items->frames[items->contexts[c].frame].pair_count * DECODER_MASKS;
        if (items->contexts[c].tokens > longest) longest = items->contexts[c].tokens;
    }
    bool fine = (study->results = calloc(results, sizeof *study->results)) != NULL;
    fine = (study->logits = malloc(DECODER_MASKS * study->model.info.vocabulary_size * sizeof(float))) && fine;
    fine = (study->scales = calloc(items->context_count, sizeof(double))) && fine;
    for (int d = 0; d < DECODERS; d++)
        fine = (study->differences[d] = calloc(items->context_count, sizeof(double))) && fine;
    fine = (study->parts = calloc(items->frame_count, sizeof(double))) && fine;
    fine = (study->wholes = calloc(items->frame_count, sizeof(double))) && fine;
    if (!fine) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu items", results);
    deberta_session_options session_options = study->model.session_options;
    session_options.max_tokens = longest;
    session_options.features = DEBERTA_KEEP_DECODER_INPUT;
    return deberta_session_create_within(&study->model.session, study->model.model, &session_options, 0, err);
}

static deberta_status measure(decoder_study *study, deberta_error *err)
{
    DEBERTA_TRY(allocate(study, err));
    progress_bar bar = progress_begin(study->options, "sentences", study->items.context_count);
    deberta_status status = DEBERTA_OK;
    for (size_t c = 0; status == DEBERTA_OK && c < study->items.context_count; c++) {
        status = measure_context(study, c, err);
        progress_step(&bar, c + 1, NULL);
    }
    progress_end(&bar);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- numbers */

static const char *kind_of(const decoder_study *study, const decoder_item *item)
{
    return study->items.frames[study->items.contexts[item->context].frame].kind;
}

static bool is_of_kind(const decoder_study *study, const decoder_item *item, size_t kind)
{
    const char *name = kind_of(study, item);
    return kind == ALL ? strcmp(name, kind_names[EITHER]) != 0 : strcmp(name, kind_names[kind]) == 0;
}

static double was_right(const decoder_item *item, int decoder) { return item->right[decoder] > item->other[decoder]; }
static double log_right(const decoder_item *item, int decoder) { return item->right[decoder]; }

/* The mean of a number over the items of a kind, or of its difference from decoder `minus` (-1: none). Frames are what
 * is drawn again: sentences of a frame are much alike. */
static deberta_status mean_of(decoder_study *study, size_t kind, double (*number)(const decoder_item *, int),
                              int decoder, int minus, bootstrap_interval *interval, deberta_error *err)
{
    memset(study->parts, 0, study->items.frame_count * sizeof *study->parts);
    memset(study->wholes, 0, study->items.frame_count * sizeof *study->wholes);
    for (size_t k = 0; k < study->result_count; k++) {
        const decoder_item *item = &study->results[k];
        const size_t frame = study->items.contexts[item->context].frame;
        if (!is_of_kind(study, item, kind)) continue;
        study->parts[frame] += number(item, decoder) - (minus < 0 ? 0 : number(item, minus));
        study->wholes[frame] += 1;
    }
    /* Frames of other kinds have no part in it. */
    size_t kept = 0;
    for (size_t f = 0; f < study->items.frame_count; f++) {
        if (study->wholes[f] == 0) continue;
        study->parts[kept] = study->parts[f];
        study->wholes[kept++] = study->wholes[f];
    }
    if (!kept) return *interval = (bootstrap_interval){NAN, NAN, NAN}, DEBERTA_OK;
    return bootstrap_ratio(interval, study->parts, study->wholes, kept, study->seed, err);
}

static size_t count_of(const decoder_study *study, size_t kind)
{
    size_t count = 0;
    for (size_t k = 0; k < study->result_count; k++) count += is_of_kind(study, &study->results[k], kind);
    return count;
}

/* ---------------------------------------------------------------------------------------------------------- tables */

/* Cells of a kind's row: each decoder, then what the Enhanced Mask Decoder has over the head and over itself without
 * the information. The formats take value, low and high. */
static deberta_status add_decoders(decoder_study *study, result_table *table, size_t kind,
                                   double (*number)(const decoder_item *, int), double factor, const char *value_format,
                                   const char *difference_format, deberta_error *err)
{
    static const int columns[][2] = {{PLAIN, -1}, {EMD, -1}, {EMD_LEVEL, -1}, {EMD, PLAIN}, {EMD, EMD_LEVEL}};
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        bootstrap_interval mean;
        DEBERTA_TRY(mean_of(study, kind, number, columns[c][0], columns[c][1], &mean, err));
        if (isnan(mean.value)) /* no item is of this kind */
            cell_none(table);
        else
            cell_text(table, columns[c][1] < 0 ? value_format : difference_format, factor * mean.value,
                      factor * mean.low, factor * mean.high);
    }
    return DEBERTA_OK;
}

static void add_decoder_columns(result_table *table, bool with_items)
{
    result_add_column(table, COLUMN_TEXT, NULL, "position of");
    if (with_items) result_add_column(table, COLUMN_INTEGER, NULL, "items");
    for (int d = 0; d < DECODERS; d++) result_add_column(table, COLUMN_TEXT, NULL, "%s", decoder_titles[d]);
    result_add_column(table, COLUMN_TEXT, NULL, "EMD - head");
    result_add_column(table, COLUMN_TEXT, NULL, "EMD - one position");
}

static deberta_status add_accuracy(decoder_study *study, deberta_error *err)
{
    result_table *table = study_add_table(
        &study->findings, "accuracy", "Which of the two words is more probable: the one that belongs here, in %", NULL);
    add_decoder_columns(table, true);
    for (size_t kind = 0; kind <= ALL; kind++) {
        cell_text(table, "%s", kind_names[kind]);
        cell_integer(table, (int64_t)(count_of(study, kind)));
        DEBERTA_TRY(
            add_decoders(study, table, kind, was_right, 100, "%.1f (%.1f to %.1f)", "%+.1f (%+.1f to %+.1f)", err));
        for (int d = 0; d < DECODERS; d++) {
            bootstrap_interval share;
            DEBERTA_TRY(mean_of(study, kind, was_right, d, -1, &share, err));
            study->shares[d][kind] = 100 * share.value;
            study->low[d][kind] = 100 * share.low;
            study->high[d][kind] = 100 * share.high;
        }
    }
    return DEBERTA_OK;
}

static deberta_status add_probabilities(decoder_study *study, deberta_error *err)
{
    result_table *table = study_add_table(&study->findings, "log_probability",
                                          "Mean log probability of the word that belongs here, in nats", NULL);
    add_decoder_columns(table, false);
    for (size_t kind = 0; kind <= ALL; kind++) {
        cell_text(table, "%s", kind_names[kind]);
        DEBERTA_TRY(
            add_decoders(study, table, kind, log_right, 1, "%.2f (%.2f to %.2f)", "%+.2f (%+.2f to %+.2f)", err));
    }
    return DEBERTA_OK;
}

/* Are the two masks of a sentence told apart? The smallest difference also in units of float32's rounding. */
static deberta_status add_differences(decoder_study *study, deberta_error *err)
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
    result_table *table =
        study_add_table(&study->findings, "two_masks",
                        "The two masks of a sentence: largest difference of a logit; eps = 2^-23", columns);
    double *values = malloc(study->items.context_count * sizeof *values);
    if (!values) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    for (size_t kind = 0; kind < KINDS; kind++) {
        for (int d = 0; kind != ALL && d < DECODERS; d++) {
            size_t count = 0, equal = 0;
            double in_eps = INFINITY;
            for (size_t c = 0; c < study->items.context_count; c++) {
                const double found = study->differences[d][c];
                if (strcmp(study->items.frames[study->items.contexts[c].frame].kind, kind_names[kind]) != 0) continue;
                equal += found == 0;
                values[count++] = found;
                in_eps = fmin(in_eps, found / (FLT_EPSILON * study->scales[c]));
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
    free(values);
    return DEBERTA_OK;
}

static void add_data(decoder_study *study)
{
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("kind"),       STUDY_TEXT_COLUMN("sentence"),    STUDY_COUNT_COLUMN("mask"),
        STUDY_TEXT_COLUMN("word"),       STUDY_TEXT_COLUMN("other"),       STUDY_TEXT_COLUMN("decoder"),
        STUDY_REAL_COLUMN("log_p_word"), STUDY_REAL_COLUMN("log_p_other"), {.name = NULL}};
    study_set_data(&study->findings, columns);
    result_table *data = study->findings.data;
    for (size_t k = 0; k < study->result_count; k++) {
        const decoder_item *item = &study->results[k];
        const decoder_context *context = &study->items.contexts[item->context];
        const decoder_pair *pair = &study->items.frames[context->frame].pairs[item->pair];
        for (int d = 0; d < DECODERS; d++) {
            cell_text(data, "%s", kind_of(study, item));
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

/* ------------------------------------------------------------------------------------------------------------- run */

static int finish(decoder_study *study)
{
    /* What a figure points to lives until it is drawn. */
    static const figure_label labels[] = {
        {.text = "subject"}, {.text = "verb"}, {.text = "preposition"}, {.text = "all"}};
    chart_series series[DECODERS];
    for (size_t d = 0; d < DECODERS; d++)
        series[d] = (chart_series){.name = decoder_titles[d],
                                   .kind = CHART_BARS,
                                   .y = study->shares[d],
                                   .low = study->low[d],
                                   .high = study->high[d],
                                   .count = ALL + 1};
    const chart_rule chance = {.at = 50};
    const chart_panel panel = {
        .x = {.label = "position of", .scale = CHART_CATEGORIES, .categories = labels, .category_count = ALL + 1},
        .y = {.label = "items right (%)", .low = 0, .high = 100},
        .series = series,
        .series_count = DECODERS,
        .rules = &chance,
        .rule_count = 1};
    const chart_figure figure = {
        .style = {.width_mm = 120, .title = "Which of two words belongs at this mask?", .note = "Dashed: chance."},
        .panels = &panel,
        .panel_count = 1};
    study->findings.chart = &figure;
    return study_finish(study->options, &study->findings);
}

static deberta_status find_out(decoder_study *study, text_stream *stream, deberta_error *err)
{
    DEBERTA_TRY(decoder_items_read(&study->items, stream, study->model.tokenizer, err));
    DEBERTA_TRY(measure(study, err));
    DEBERTA_TRY(add_accuracy(study, err));
    DEBERTA_TRY(add_probabilities(study, err));
    DEBERTA_TRY(add_differences(study, err));
    add_data(study);
    snprintf(study->findings.note, sizeof study->findings.note,
             "%zu items in %zu sentences of %zu frames; %zu pairs left out, their words are not single tokens. 95 %% "
             "intervals over frames (%d resamples, seed %llu). EMD, one position: every token is given the position of "
             "the sentence's middle.",
             study->result_count, study->items.context_count, study->items.frame_count, study->items.skipped_pairs,
             BOOTSTRAP_RESAMPLES, (unsigned long long)study->seed);
    return DEBERTA_OK;
}

static int require_decoder(const decoder_study *study)
{
    deberta_error error = {0};
    const deberta_model_info *info = &study->model.info;
    if (info->tasks_present & 1u << DEBERTA_TASK_MLM_EMD && !info->position_biased_input) return EXIT_OK;
    status_fail(&error, DEBERTA_E_UNSUPPORTED, "%s has no Enhanced Mask Decoder to be compared with its plain head",
                info->name);
    return say_error(study->options, &error);
}

static void free_all(decoder_study *study)
{
    study_findings_free(&study->findings);
    decoder_items_free(&study->items);
    for (int d = 0; d < DECODERS; d++) free(study->differences[d]);
    free(study->results);
    free(study->logits);
    free(study->scales);
    free(study->parts);
    free(study->wholes);
    text_batches_close(&study->model);
}

static int run(const common_options *options)
{
    static const text_stream_names names = {.text = "text"};
    decoder_study study = {.options = options, .seed = options->seed};
    text_stream stream = {0};
    deberta_error error = {0};
    if (!study_check_options(options)) return EXIT_USAGE;
    int code = text_stream_open(&stream, reading_of(options), &names);
    if (code == EXIT_OK) code = text_batches_open(&study.model, reading_of(options), DEBERTA_KEEP_DECODER_INPUT);
    if (code == EXIT_OK) code = require_decoder(&study);
    if (code == EXIT_OK)
        code = find_out(&study, &stream, &error) == DEBERTA_OK ? finish(&study) : say_error(options, &error);
    text_stream_close(&stream);
    free_all(&study);
    return code;
}

static const option options[] = {
    {"file", 'f', "FILE", "frames: kind, tab, sentence with {1}, {2} and <a|b>, tab, pairs of words; may be repeated",
     TEXTS_AT(reading_options, files)},
    {"text", 0, "TEXT", "such a line; may be repeated", TEXTS_AT(reading_options, texts)},
    ABLATE_OPTION,
    STUDY_OPTIONS,
    {.name = NULL},
};

const command study_decoder = {
    .name = "study decoder",
    .summary = "what absolute positions before the softmax (EMD) change at masks that depend on their place",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(study_options),
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example = "  deberta study decoder models/demo --file docs/studies/data/decoder.txt\n",
    .run = run,
    .claims = "store and mall cannot be told apart by relative positions; content-only and position-enhanced "
              "predictions differ on subject, verb and preposition",
};
