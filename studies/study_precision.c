/* `deberta study precision`: what low precision changes at masked tokens, beside float32 on the same masks.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "analysis/logits.h"
#include "program/frame/open_model.h"
#include "program/frame/progress.h"
#include "studies/studies.h"

enum { BATCH_TOKENS = 2048 };

/* Sums over the masks of a sentence; the last two are against float32. */
enum measure { RIGHT, LOSS, SAME, DIVERGENCE, MEASURES };
static const struct {
    const char *name, *title, *format;
    double unit;
} measures[MEASURES] = {
    [RIGHT] = {"top1", "right, %", "%.2f (%.2f to %.2f)", 100},
    [LOSS] = {"loss", "loss, nats", "%.4f (%.4f to %.4f)", 1},
    [SAME] = {"same_top1", "the same first answer, %", "%.2f (%.2f to %.2f)", 100},
    [DIVERGENCE] = {"divergence", "KL divergence, nats", "%.2g (%.2g to %.2g)", 1},
};

/* Of a mask. */
typedef struct reading {
    const float *logits; /* [V] */
    size_t answer;
    double log_sum;
} reading;

typedef struct precision_study {
    study study;
    masked_texts masked;
    double *masks; /* [sentences] */
    deberta_model *models[DEBERTA_PRECISION_COUNT];
    masked_reader readers[DEBERTA_PRECISION_COUNT];
    float *logits[DEBERTA_PRECISION_COUNT];          /* [masks of a batch][V] */
    reading *exact;                                  /* [masks of a batch] by float32, which comes first */
    double *sums[DEBERTA_PRECISION_COUNT][MEASURES]; /* [sentences] */
} precision_study;

/* ------------------------------------------------------------------------------------------------------- measuring */

static deberta_status open_precision(precision_study *s, deberta_precision precision, deberta_error *err)
{
    const common_options *options = s->study.options;
    masked_reader *reader = &s->readers[precision];
    deberta_model_options model_options;
    deberta_session_options session_options = s->study.texts.model.session_options;
    size_t masks;
    fill_model_options(options, &model_options);
    model_options.precision = precision;
    DEBERTA_TRY(deberta_model_open(&s->models[precision], options->arguments[0], &model_options, err));
    DEBERTA_TRY(masked_texts_head(&reader->head, s->models[precision], MASKED_DECODER_TRAINED, err));
    masked_texts_largest_batch(&s->masked, BATCH_TOKENS, &session_options.max_tokens, &masks);
    if (reader->head == DEBERTA_TASK_MLM_EMD) session_options.features |= DEBERTA_KEEP_DECODER_INPUT;
    reader->width = deberta_task_width(s->models[precision], reader->head);
    s->logits[precision] = options_take(options, masks * reader->width, sizeof(float));
    if (precision == DEBERTA_PRECISION_FLOAT32) s->exact = options_take(options, masks, sizeof *s->exact);
    for (int m = 0; m < MEASURES; m++) s->sums[precision][m] = options_take(options, s->masked.count, sizeof(double));
    return deberta_session_create_within(&reader->session, s->models[precision], &session_options,
                                         masks * reader->width * sizeof(float), err);
}

static reading read_row(const float *logits, size_t width)
{
    return (reading){logits, logits_largest(logits, width), logits_log_sum(logits, width)};
}

/* Of the distributions that two rows of logits stand for. */
static double divergence_of(const reading *from, const reading *to, size_t width)
{
    double sum = 0;
    for (size_t v = 0; v < width; v++) {
        const double log_p = (double)from->logits[v] - from->log_sum, log_q = (double)to->logits[v] - to->log_sum;
        sum += exp(log_p) * (log_p - log_q);
    }
    return sum;
}

static void add_sentence(precision_study *s, deberta_precision precision, size_t sentence, size_t first_mask)
{
    const masked_texts *masked = &s->masked;
    const size_t width = s->readers[precision].width;
    double *const *sums = s->sums[precision];
    for (size_t mask = masked->mask_starts[sentence]; mask < masked->mask_starts[sentence + 1]; mask++) {
        const size_t target = (size_t)masked->targets[mask];
        reading *exact = &s->exact[mask - first_mask],
                found = read_row(s->logits[precision] + (mask - first_mask) * width, width);
        if (precision == DEBERTA_PRECISION_FLOAT32) *exact = found;
        sums[RIGHT][sentence] += found.answer == target;
        sums[LOSS][sentence] += found.log_sum - (double)found.logits[target];
        sums[SAME][sentence] += found.answer == exact->answer;
        sums[DIVERGENCE][sentence] += divergence_of(exact, &found, width);
    }
}

static deberta_status measure_batch(precision_study *s, size_t first, size_t end, deberta_error *err)
{
    for (int p = 0; p < DEBERTA_PRECISION_COUNT; p++) {
        DEBERTA_TRY(masked_texts_read(&s->masked, &s->readers[p], first, end, s->logits[p], err));
        for (size_t k = first; k < end; k++) add_sentence(s, (deberta_precision)p, k, s->masked.mask_starts[first]);
    }
    return DEBERTA_OK;
}

static deberta_status measure(precision_study *s, deberta_error *err)
{
    for (int p = 0; p < DEBERTA_PRECISION_COUNT; p++) DEBERTA_TRY(open_precision(s, (deberta_precision)p, err));
    progress_bar bar = progress_begin(s->study.options, "sentences", s->masked.count);
    deberta_status status = DEBERTA_OK;
    for (size_t first = 0, end; status == DEBERTA_OK && first < s->masked.count; first = end) {
        end = masked_texts_batch_end(&s->masked, first, BATCH_TOKENS);
        status = measure_batch(s, first, end, err);
        progress_step(&bar, end, NULL);
    }
    progress_end(&bar);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- reporting */

static void report(precision_study *s, deberta_precision precision, result_table *table)
{
    const char *name = deberta_precision_name(precision);
    cell_text(table, "%s", name);
    for (int m = 0; m < MEASURES; m++) {
        bootstrap_interval found = study_ratio(&s->study, s->sums[precision][m], s->masks, s->masked.count);
        cell_text(s->study.data, "%s", name);
        cell_text(s->study.data, "%s", measures[m].name);
        study_cell_interval(s->study.data, &found);
        found.value *= measures[m].unit;
        found.low *= measures[m].unit;
        found.high *= measures[m].unit;
        study_cell_estimate(table, measures[m].format, &found);
    }
}

static void tabulate(precision_study *s)
{
    static const result_column columns[] = {
        STUDY_TEXT_COLUMN("precision"), STUDY_TEXT_COLUMN("measure"), STUDY_INTERVAL_COLUMNS, {.name = NULL}};
    result_table *table = study_add_table(
        &s->study, "precision",
        "Masked tokens: what the first answer and the loss are, and how near to float32 (95 % interval)", NULL);
    study_set_data(&s->study, columns);
    result_add_column(table, COLUMN_TEXT, NULL, "precision");
    for (int m = 0; m < MEASURES; m++) result_add_column(table, COLUMN_TEXT, NULL, "%s", measures[m].title);
    for (int p = 0; p < DEBERTA_PRECISION_COUNT; p++) report(s, (deberta_precision)p, table);
}

/* -------------------------------------------------------------------------------------------------------------- run */

static int refuse_precision(study *base) { return check_float32(base->options, "what is compared with"); }

static deberta_status work(study *base, deberta_error *err)
{
    precision_study *s = (precision_study *)base;
    s->masks = options_take(base->options, base->texts.count, sizeof *s->masks);
    DEBERTA_TRY(study_texts_hide(&base->texts, base->options->seed, &s->masked, s->masks, err));
    DEBERTA_TRY(measure(s, err));
    tabulate(s);
    base->note =
        options_text(base->options, "%zu masked tokens of %zu sentences; %s",
                     masked_texts_masks(&s->masked, 0, s->masked.count), s->masked.count, study_resamples(base));
    return DEBERTA_OK;
}

static void close_precisions(study *base)
{
    precision_study *s = (precision_study *)base;
    for (int p = 0; p < DEBERTA_PRECISION_COUNT; p++) {
        deberta_session_free(&s->readers[p].session);
        deberta_model_free(&s->models[p]);
    }
    masked_texts_free(&s->masked);
}

static const option options[] = {STUDY_TEXTS_OPTIONS, STUDY_OPTIONS, {.name = NULL}};

const study_kind study_precision = {
    STUDY_COMMAND("precision", "MODEL", 1, 1, study_options, .summary = "what int16 and int8 change at masked tokens",
                  .example = "  deberta study precision models/demo --file docs/studies/data/sentences.txt\n",
                  .claims = "low precision leaves the answers as they are"),
    .size = sizeof(precision_study),
    .of_sentences = true,
    .open = refuse_precision,
    .work = work,
    .close = close_precisions,
};
