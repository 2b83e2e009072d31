/* Measures influence by central differences of a whole encode; a sweep chooses their step, and float64 checks them.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/influence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reference/reference.h"
#include "core/base/numbers.h"
#include "core/base/status.h"
#include "core/encode/session_internal_options.h"

static const double largest_step = 0.5; /* largest step, as a part of the row's length; each next one is half */
static const double noise_step = 1.0 / (1 << 18); /* step so small that float32 shows nothing but rounding */
static const double float64_step = 1e-5;
static const double above_noise = 10; /* least influence that is compared with float64, in noise floors */

typedef struct influence_work {
    scope memory; /* memory of the arrays */
    const influence_options *options;
    influence_report *report;
    deberta_model *model;
    deberta_session *session;
    deberta_model_info info;
    size_t tokens, capacity; /* length of the current text, and of the longest */
    int32_t *ids;            /* [capacity] */
    double *direction;       /* [h], of length 1 */
    size_t source;
    double shift;        /* factor of the direction; 0: nothing moves */
    float *first;        /* [capacity][h]: H[0] without a change */
    float *upper;        /* [L][capacity][h]: hidden states after +step */
    double *influence;   /* [L][capacity]: influences of the last difference */
    double length, step; /* |H[0]_j|; the current step */
    bool keep_upper;
    size_t done, total;
} influence_work;

/* ------------------------------------------------------------------------------------------------------- differences */

static deberta_status move_source(void *context, const deberta_hidden_edit *edit)
{
    influence_work *w = context;
    const size_t h = w->info.hidden_size;
    float *source = edit->values + w->source * edit->stride;
    if (edit->layer > 0) return DEBERTA_OK;
    for (size_t t = 0; t < edit->tokens; t++)
        memcpy(w->first + t * h, edit->values + t * edit->stride, h * sizeof *w->first);
    double square = 0;
    for (size_t c = 0; c < h; c++) square += (double)source[c] * (double)source[c];
    w->length = sqrt(square);
    for (size_t c = 0; c < h; c++) source[c] += (float)(w->shift * w->length * w->direction[c]);
    return DEBERTA_OK;
}

static deberta_status take_hidden(void *context, const deberta_hidden_block *block)
{
    influence_work *w = context;
    const size_t h = w->info.hidden_size;
    if (block->layer == 0) return DEBERTA_OK;
    for (size_t t = 0; t < block->tokens; t++) {
        const float *row = block->values + t * block->stride;
        float *upper = w->upper + ((block->layer - 1) * w->capacity + t) * h;
        if (w->keep_upper) {
            memcpy(upper, row, h * sizeof *upper);
            continue;
        }
        double square = 0;
        for (size_t c = 0; c < h; c++) {
            const double difference = (double)upper[c] - (double)row[c];
            square += difference * difference;
        }
        w->influence[(block->layer - 1) * w->capacity + t] = sqrt(square) / (2 * w->step * w->length);
    }
    return DEBERTA_OK;
}

static deberta_status influence_encode(influence_work *w, double shift, deberta_error *err)
{
    const size_t starts[2] = {0, w->tokens};
    const deberta_observer observer = {.struct_size = sizeof observer, .context = w, .on_hidden = take_hidden};
    const deberta_batch batch = {
        .struct_size = sizeof batch, .ids = w->ids, .sequence_starts = starts, .sequences = 1, .observer = &observer};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    w->shift = shift;
    w->keep_upper = shift > 0;
    if (w->options->of.progress) w->options->of.progress(w->options->of.context, w->done++, w->total, "influence");
    return deberta_encode(w->session, &batch, &outputs, err);
}

/* Computes the central difference of all layers and tokens into w->influence. */
static deberta_status differentiate(influence_work *w, size_t source, double step, deberta_error *err)
{
    w->source = source;
    w->step = step;
    DEBERTA_TRY(influence_encode(w, step, err));
    return influence_encode(w, -step, err);
}

static void choose_direction(influence_work *w, uint64_t number)
{
    const size_t h = w->info.hidden_size;
    uint64_t state = w->options->of.seed * 0x2545f4914f6cdd1du + number;
    double square = 0;
    for (size_t c = 0; c < h; c++) { /* Sums of uniform numbers are near enough to normal for a direction. */
        double sum = -6;
        for (int k = 0; k < 12; k++) sum += random_fraction(&state);
        w->direction[c] = sum;
        square += sum * sum;
    }
    for (size_t c = 0; c < h; c++) w->direction[c] /= sqrt(square);
}

/* -------------------------------------------------------------------------------------------------------------- steps */

/* Finds the step whose differences agree best with those of half of it, and the noise at that step. */
static deberta_status sweep_steps(influence_work *w, double *before, double *relative, deberta_error *err)
{
    influence_report *report = w->report;
    const size_t values = report->layers * w->capacity, source = w->tokens / 2;
    size_t best = 0;
    choose_direction(w, 0);
    for (size_t k = 0; k < INFLUENCE_STEPS; k++) {
        report->steps[k] = ldexp(largest_step, -(int)k);
        DEBERTA_TRY(differentiate(w, source, report->steps[k], err));
        size_t count = 0;
        for (size_t l = 0; l < report->layers; l++)
            for (size_t t = 0; t < w->tokens; t++) {
                const double now = w->influence[l * w->capacity + t], then = before[l * w->capacity + t];
                if (k > 0 && now > 0) relative[count++] = fabs(now - then) / now;
            }
        if (k > 0) report->disagreement[k - 1] = quantile(relative, count, 0.5);
        if (k > 1 && report->disagreement[k - 1] < report->disagreement[best]) best = k - 1;
        memcpy(before, w->influence, values * sizeof *before);
    }
    report->step = report->steps[best];
    DEBERTA_TRY(differentiate(w, source, noise_step, err));
    for (size_t l = 0; l < report->layers; l++) {
        memcpy(relative, w->influence + l * w->capacity, w->tokens * sizeof *relative);
        report->layer[l].noise_floor = quantile(relative, w->tokens, 0.5) * noise_step / report->step;
    }
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- distances */

/* Returns the bin of |r| = 1, 2, 3-4, 5-8 ... */
static size_t ring_of(size_t distance)
{
    size_t ring = 0;
    while (((size_t)1 << ring) < distance) ring++;
    return ring;
}

typedef struct sample {
    ptrdiff_t distance;
    double value;
} sample;

static int by_distance(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    return (x->distance > y->distance) - (x->distance < y->distance);
}

static void make_bins(influence_layer *layer, const sample *samples, size_t count, double *values)
{
    for (size_t begin = 0, end; begin < count && layer->bin_count < INFLUENCE_MOST_BINS; begin = end) {
        const ptrdiff_t r = samples[begin].distance;
        const size_t ring = r == 0 ? 0 : ring_of((size_t)labs(r));
        double sum = 0;
        for (end = begin; end < count; end++) {
            const ptrdiff_t other = samples[end].distance;
            if ((other > 0) != (r > 0) || (other < 0) != (r < 0) || (r != 0 && ring_of((size_t)labs(other)) != ring))
                break;
            values[end - begin] = samples[end].value;
            sum += samples[end].value;
        }
        const size_t n = end - begin;
        layer->bins[layer->bin_count++] = (influence_bin){.from = r,
                                                          .to = samples[end - 1].distance,
                                                          .count = n,
                                                          .mean = sum / (double)n,
                                                          .q10 = quantile(values, n, 0.1),
                                                          .median = quantile(values, n, 0.5),
                                                          .q90 = quantile(values, n, 0.9)};
        if (r == 0) layer->self = sum / (double)n;
    }
}

/* Every distance counts with its mean, however often the text has it. */
static void find_radius(influence_layer *layer, const sample *samples, size_t count, double *ring, size_t tokens)
{
    double total = 0, sum = 0;
    memset(ring, 0, tokens * sizeof *ring);
    for (size_t begin = 0, end; begin < count; begin = end) {
        double mean = 0;
        for (end = begin; end < count && samples[end].distance == samples[begin].distance; end++)
            mean += samples[end].value;
        if (samples[begin].distance) ring[labs(samples[begin].distance)] += mean / (double)(end - begin);
    }
    for (size_t r = 1; r < tokens; r++) total += ring[r];
    for (size_t r = 1; r < tokens && sum < 0.95 * total; r++) {
        sum += ring[r];
        layer->radius95 = r;
    }
    layer->bounded = 2 * layer->radius95 <= tokens - 1;
}

static deberta_status measure_all(influence_work *w, double *values, deberta_error *err)
{
    influence_report *report = w->report;
    const size_t n = w->tokens, sources = report->sources;
    sample *samples = memory_take(report->layers * sources * n, sizeof *samples);
    deberta_status status = DEBERTA_OK;
    for (size_t s = 0; s < sources && status == DEBERTA_OK; s++) {
        const size_t source = (s + 1) * n / (sources + 1);
        choose_direction(w, s);
        status = differentiate(w, source, report->step, err);
        for (size_t l = 0; l < report->layers; l++)
            for (size_t t = 0; t < n; t++)
                samples[(l * sources + s) * n + t] =
                    (sample){(ptrdiff_t)t - (ptrdiff_t)source, w->influence[l * w->capacity + t]};
    }
    for (size_t l = 0; l < report->layers && status == DEBERTA_OK; l++) {
        sample *of_layer = samples + l * sources * n;
        qsort(of_layer, sources * n, sizeof *of_layer, by_distance);
        make_bins(&report->layer[l], of_layer, sources * n, values);
        find_radius(&report->layer[l], of_layer, sources * n, values, n);
    }
    free(samples);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- float64 */

/* Computes the hidden states of the oracle, [L + 1][n][h], with the source moved. */
static deberta_status encode_float64(const influence_work *w, const reference_model *oracle, double shift,
                                     double *states, double *hidden, deberta_error *err)
{
    const size_t n = w->tokens, h = w->info.hidden_size;
    int64_t ids[INFLUENCE_MOST_CHECKED];
    for (size_t t = 0; t < n; t++) ids[t] = w->ids[t];
    for (size_t e = 0; e < n * h; e++) states[e] = (double)w->first[e];
    for (size_t c = 0; c < h; c++) states[w->source * h + c] += shift * w->length * w->direction[c];
    const reference_input input = {.tokens = n,
                                   .ids = ids,
                                   .first_hidden = states,
                                   .ablations = w->options->of.ablations,
                                   .ablation_count = w->options->of.ablation_count};
    return reference_encode(oracle, &input, hidden, NULL, err);
}

/* Compares the same text, source and direction in both precisions. */
static deberta_status check_float64(influence_work *w, double *relative, deberta_error *err)
{
    influence_report *report = w->report;
    const size_t n = w->tokens = w->options->check_tokens, h = w->info.hidden_size, size = (report->layers + 1) * n * h;
    reference_model *oracle = NULL;
    deberta_status status;
    double *states = memory_take((n * h + 2 * size), sizeof *states);
    double *upper = states + n * h, *lower = upper + size;
    choose_direction(w, 0);
    DEBERTA_TRY_OR_FAIL(status, differentiate(w, n / 2, report->step, err));
    DEBERTA_TRY_OR_FAIL(status, reference_open(&oracle, w->options->of.model, w->options->of.reference, err));
    DEBERTA_TRY_OR_FAIL(status, encode_float64(w, oracle, float64_step, states, upper, err));
    DEBERTA_TRY_OR_FAIL(status, encode_float64(w, oracle, -float64_step, states, lower, err));
    for (size_t l = 0; l < report->layers; l++)
        for (size_t t = 0; t < n; t++) {
            const double *a = upper + ((l + 1) * n + t) * h, *b = lower + ((l + 1) * n + t) * h;
            double square = 0;
            for (size_t c = 0; c < h; c++) square += (a[c] - b[c]) * (a[c] - b[c]);
            const double exact = sqrt(square) / (2 * float64_step * w->length);
            if (exact > above_noise * report->layer[l].noise_floor)
                relative[report->float64_values++] = fabs(w->influence[l * w->capacity + t] - exact) / exact;
        }
    report->float64_median = quantile(relative, report->float64_values, 0.5);
    report->float64_worst = quantile(relative, report->float64_values, 1);
    report->checked = true;
fail:
    reference_free(&oracle);
    free(states);
    return status;
}

/* --------------------------------------------------------------------------------------------------------------- whole */

static deberta_status influence_prepare(influence_work *w, deberta_error *err)
{
    const influence_options *o = w->options;
    const size_t h = w->info.hidden_size, layers = w->info.layers, n = w->capacity;
    const deberta_session_options session_options = {.struct_size = sizeof session_options,
                                                     .isa = o->of.isa,
                                                     .max_tokens = n,
                                                     .threads = o->of.threads,
                                                     .features = DEBERTA_OBSERVE_HIDDEN,
                                                     .memory_limit_bytes = o->of.memory_limit_bytes,
                                                     .ablations = o->of.ablations,
                                                     .ablation_count = o->of.ablation_count};
    const session_internal_options internal = {.interventions.changes = {.edit_hidden = move_source, .context = w}};
    DEBERTA_TRY(session_create_within(&w->session, w->model, &session_options, &internal, 0, err));
    w->ids = scope_take(&w->memory, n, sizeof *w->ids);
    w->direction = scope_take(&w->memory, h, sizeof *w->direction);
    w->first = scope_take(&w->memory, n * h, sizeof *w->first);
    w->upper = scope_take(&w->memory, layers * n * h, sizeof *w->upper);
    w->influence = scope_take(&w->memory, layers * n, sizeof *w->influence);
    w->report->layer = scope_take(&w->report->memory, layers, sizeof *w->report->layer);
    uint64_t state = o->of.seed;
    for (size_t t = 0; t < n; t++) {
        w->ids[t] = o->ids ? o->ids[t] : (int32_t)(random_next(&state) % w->info.vocabulary_size);
    }
    return DEBERTA_OK;
}

static deberta_status measure_influence(influence_work *w, deberta_error *err)
{
    influence_report *report = w->report;
    const size_t values = report->layers * w->capacity * report->sources;
    double *before = memory_take(2 * values, sizeof *before);
    deberta_status status = sweep_steps(w, before, before + values, err);
    if (status == DEBERTA_OK) status = measure_all(w, before, err);
    if (status == DEBERTA_OK && w->options->check_tokens) status = check_float64(w, before, err);
    free(before);
    return status;
}

deberta_status influence_measure(influence_report *report, const influence_options *options, deberta_error *err)
{
    influence_work w = {.options = options,
                        .report = report,
                        .tokens = options->tokens,
                        .capacity = options->tokens,
                        .total = 2 * (INFLUENCE_STEPS + 2 + options->sources)};
    const deberta_model_options model_options = {.struct_size = sizeof model_options,
                                                 .reference = options->of.reference,
                                                 .threads = options->of.threads,
                                                 .memory_limit_bytes = options->of.memory_limit_bytes};
    *report = (influence_report){.tokens = options->tokens, .sources = options->sources};
    if (options->tokens < 2 || options->sources == 0 || options->check_tokens > options->tokens ||
        options->check_tokens > INFLUENCE_MOST_CHECKED)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "influence needs at least two tokens and a source, and a float64 check of at most %d tokens",
                     INFLUENCE_MOST_CHECKED);
    deberta_status status = deberta_model_open(&w.model, options->of.model, &model_options, err);
    if (status == DEBERTA_OK) {
        w.info = *deberta_model_describe(w.model);
        report->layers = w.info.layers;
        status = influence_prepare(&w, err);
    }
    if (status == DEBERTA_OK) status = measure_influence(&w, err);
    scope_free(&w.memory);
    deberta_session_free(&w.session);
    deberta_model_free(&w.model);
    return status;
}
