/* softmax_f32: chunks of all lengths, whole rows made of chunks, masks, and rows in which nothing may be seen.
 *
 * The exponentials are compared with exp of the difference as rounded to float32, in ULP; sums in eps S.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

typedef enum logit_kind { LOGITS_BELL, LOGITS_STEEP, LOGITS_TIES, LOGITS_LOW, LOGITS_NAN, LOGITS_KINDS } logit_kind;
typedef enum mask_kind { MASK_NONE, MASK_OPEN, MASK_RANDOM, MASK_ALL, MASK_KINDS } mask_kind;

typedef struct softmax_case {
    size_t rows, keys;
    logit_kind logits;
    mask_kind mask;
    bool first;
    bool nothing_before; /* what came before was masked: maximum -inf, total 0 */

    /* chosen by the body */
    size_t lds;
    test_buffer *s, *key_bias, *maximum, *total, *rescale;
} softmax_case;

static void call_softmax(const kernels *table, const void *task) { table->softmax_f32(task); }

static const void *softmax_task_for(void *context, int copy)
{
    static softmax_task task;
    const softmax_case *c = context;
    task = (softmax_task){
        .rows = c->rows,
        .keys = c->keys,
        .s = c->s->copy[copy],
        .lds = c->lds,
        .key_bias = c->key_bias ? c->key_bias->copy[copy] : NULL,
        .maximum = c->maximum->copy[copy],
        .total = c->total->copy[copy],
        .rescale = c->rescale ? c->rescale->copy[copy] : NULL,
        .first = c->first,
    };
    return &task;
}

/* ---------------------------------------------------------------------------------------------------------- filling */

static float random_logit(test_run *run, logit_kind logits)
{
    switch (logits) {
    case LOGITS_STEEP: return 40.0f * random_bell(run);
    case LOGITS_TIES: return (float)random_index(run, 3);
    case LOGITS_LOW: return -1e4f + random_bell(run);
    default: return 2.0f * random_bell(run);
    }
}

static void fill_logits(test_run *run, const softmax_case *c)
{
    for (size_t i = 0; i < c->rows; i++) {
        float *s = c->s->copy[COPY_INITIAL] + i * c->lds;
        for (size_t j = 0; j < c->keys; j++) s[j] = random_logit(run, c->logits);
        /* one row only, so that the others can be seen to be untouched by it */
        if (c->logits == LOGITS_NAN && i == c->rows / 2) s[random_index(run, c->keys)] = NAN;
    }
}

static void fill_mask(test_run *run, softmax_case *c)
{
    if (c->mask == MASK_NONE) return;
    c->key_bias = run_buffer(run, "key_bias", c->keys, BUFFER_INPUT);
    for (size_t j = 0; j < c->keys; j++) {
        const bool hidden = c->mask == MASK_ALL || (c->mask == MASK_RANDOM && random_flag(run));
        c->key_bias->copy[COPY_INITIAL][j] = hidden ? -INFINITY : 0.0f;
    }
}

/* In a first chunk maximum and total are only written, and rescale is not touched at all: it is NULL. */
static void fill_state(test_run *run, softmax_case *c)
{
    const buffer_kind kind = c->logits == LOGITS_NAN ? BUFFER_OUTPUT_ANY : BUFFER_OUTPUT;
    c->maximum =
        run_buffer(run, "maximum", c->rows, c->logits == LOGITS_NAN ? BUFFER_OUTPUT_ANY : BUFFER_OUTPUT_ANY_ZERO);
    c->total = run_buffer(run, "total", c->rows, kind);
    if (c->first) return;
    c->rescale = run_buffer(run, "rescale", c->rows, kind);
    for (size_t i = 0; i < c->rows; i++) {
        c->maximum->copy[COPY_INITIAL][i] = c->nothing_before ? -INFINITY : random_logit(run, c->logits);
        c->total->copy[COPY_INITIAL][i] = c->nothing_before ? 0.0f : random_uniform(run, 1.0f, 300.0f);
    }
}

/* -------------------------------------------------------------------------------------------------------- comparing */

/* The exponential of a difference that was rounded to float32: 2 ULP, and nothing subnormal. */
static bool compare_exponential(test_run *run, const char *where, size_t index, float got, float difference)
{
    const double want = difference < -87.33654f ? 0.0 : exp((double)difference);
    return run_error(run, where, index, (double)got, want, UNIT_ULP, ulp_of(want), 2.0);
}

static void compare_row(test_run *run, const softmax_case *c, size_t i)
{
    const float *before = c->s->copy[COPY_INITIAL] + i * c->lds, *s = c->s->copy[COPY_TESTED] + i * c->lds;
    const float old = c->first ? -INFINITY : c->maximum->copy[COPY_INITIAL][i];
    float maximum = old;
    for (size_t j = 0; j < c->keys; j++)
        maximum = fmaxf(maximum, before[j] + (c->key_bias ? c->key_bias->copy[COPY_INITIAL][j] : 0.0f));
    if (!run_error(run, "maximum", i, (double)c->maximum->copy[COPY_TESTED][i], (double)maximum, UNIT_ULP, 1.0, 0.0))
        return;

    const float shift = maximum == -INFINITY ? 0.0f : maximum;
    double sum = 0;
    for (size_t j = 0; j < c->keys; j++) {
        const float x = before[j] + (c->key_bias ? c->key_bias->copy[COPY_INITIAL][j] : 0.0f);
        if (!compare_exponential(run, "s", i * c->lds + j, s[j], x - shift)) return;
        sum += (double)s[j];
    }
    /* The longest of 16 chains, the tree, and the step from the chunks before. */
    const double limit = (double)(c->keys + PANEL - 1) / PANEL + 4 + 2;
    if (!c->first) {
        const float factor = c->rescale->copy[COPY_TESTED][i];
        if (!compare_exponential(run, "rescale", i, factor, old - shift)) return;
        sum += (double)c->total->copy[COPY_INITIAL][i] * (double)factor;
    }
    run_error(run, "total", i, (double)c->total->copy[COPY_TESTED][i], sum, UNIT_EPS_S, EPS * sum + 0x1p-149, limit);
}

/* A NaN must be seen in its row and in no other. */
static void compare_nan_rows(test_run *run, const softmax_case *c)
{
    for (size_t i = 0; i < c->rows; i++) {
        if (i != c->rows / 2) {
            compare_row(run, c, i);
        } else if (!isnan(c->total->copy[COPY_TESTED][i])) {
            run_fail(run, "total[%zu]: got %g, expected NaN", i, (double)c->total->copy[COPY_TESTED][i]);
        }
    }
}

static void softmax_body(test_run *run, const void *parameters)
{
    softmax_case c = *(const softmax_case *)parameters;
    c.lds = random_ld(run, c.keys);
    c.s = run_buffer(run, "s", matrix_span(c.rows, c.keys, c.lds),
                     c.logits == LOGITS_NAN ? BUFFER_OUTPUT_ANY : BUFFER_OUTPUT);
    fill_logits(run, &c);
    fill_mask(run, &c);
    fill_state(run, &c);
    if (!run_kernels(run, call_softmax, softmax_task_for, &c)) return;
    if (c.logits == LOGITS_NAN)
        compare_nan_rows(run, &c);
    else
        for (size_t i = 0; i < c.rows; i++) compare_row(run, &c, i);
}

static void run_softmax_case(test_run *run, size_t weight, const softmax_case *c)
{
    static const char *const kinds[] = {"mild", "steep", "tied", "low", "NaN"};
    static const char *const masks[] = {"no mask", "open mask", "random mask", "all masked"};
    run_case(run, weight, softmax_body, c, "rows %zu, keys %zu, %s logits, %s, %s", c->rows, c->keys, kinds[c->logits],
             masks[c->mask],
             c->first            ? "first chunk"
             : c->nothing_before ? "after a masked chunk"
                                 : "next chunk");
}

/* ------------------------------------------------------------------------------------------------------------ walks */

void check_softmax_sizes(test_run *run)
{
    softmax_case c = {0};
    for (c.keys = 1; c.keys <= KEY_CHUNK; c.keys += c.keys < 70 || c.keys > 495 ? 1 : 7)
        for (c.rows = 0; c.rows <= 5; c.rows += 1 + c.keys % 2) {
            c.mask = (mask_kind)((c.keys + c.rows) % 3);
            c.logits = (c.keys / 3 + c.rows) % 2 ? LOGITS_STEEP : LOGITS_BELL;
            c.first = (c.keys / 2 + c.rows) % 2;
            run_softmax_case(run, 50, &c);
        }
}

void check_softmax_special(test_run *run)
{
    static const size_t sizes[] = {1, 5, 16, 23, 64, 101, KEY_CHUNK};
    softmax_case c = {.rows = 3};
    for (int kind = 0; kind < LOGITS_KINDS; kind++)
        for (int m = 0; m < MASK_KINDS; m++)
            for (int before = 0; before < 3; before++)
                for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                    c.logits = (logit_kind)kind;
                    c.mask = (mask_kind)m;
                    c.first = before == 0;
                    c.nothing_before = before == 2;
                    c.keys = sizes[i];
                    run_softmax_case(run, 30, &c);
                }
}

/* ---------------------------------------------------------------------------------------------- rows of many chunks */

/* A row longer than a chunk, through both kernels as attention calls them: chunk by chunk, the weights of the earlier
 * chunks rescaled afterwards. One call runs them all. */
typedef struct long_row {
    size_t keys, chunk;
    bool rising; /* the maximum grows from chunk to chunk: every rescale counts */
    test_buffer *s, *maximum, *total, *rescale;
} long_row;

typedef struct long_task {
    size_t keys, chunk;
    float *s, *maximum, *total, *rescale;
} long_task;

static void call_long_row(const kernels *table, const void *task)
{
    const long_task *t = task;
    for (size_t begin = 0; begin < t->keys; begin += t->chunk) {
        const size_t keys = t->keys - begin < t->chunk ? t->keys - begin : t->chunk;
        const softmax_task part = {.rows = 1,
                                   .keys = keys,
                                   .s = t->s + begin,
                                   .lds = keys,
                                   .maximum = t->maximum,
                                   .total = t->total,
                                   .rescale = t->rescale,
                                   .first = begin == 0};
        table->softmax_f32(&part);
        for (size_t j = 0; j < begin; j++) t->s[j] *= *t->rescale;
    }
}

static const void *long_task_for(void *context, int copy)
{
    static long_task task;
    const long_row *c = context;
    task = (long_task){.keys = c->keys,
                       .chunk = c->chunk,
                       .s = c->s->copy[copy],
                       .maximum = c->maximum->copy[copy],
                       .total = c->total->copy[copy],
                       .rescale = c->rescale->copy[copy]};
    return &task;
}

static void compare_probabilities(test_run *run, const long_row *c)
{
    const float *logits = c->s->copy[COPY_INITIAL], *s = c->s->copy[COPY_TESTED];
    const double total = (double)c->total->copy[COPY_TESTED][0];
    double greatest = -INFINITY, sum = 0;
    for (size_t j = 0; j < c->keys; j++) greatest = fmax(greatest, (double)logits[j]);
    for (size_t j = 0; j < c->keys; j++) sum += exp((double)logits[j] - greatest);
    for (size_t j = 0; j < c->keys; j++) {
        const double difference = (double)logits[j] - greatest;
        const double want = exp(difference) / sum;
        /* Each chunk rounds one difference, of at most 100 here, and multiplies once. */
        const double size = EPS * want * (100.0 + fabs(difference)) + 0x1p-126;
        if (!run_error(run, "probability", j, (double)s[j] / total, want, UNIT_EPS_S, size, 8.0)) return;
    }
}

static void long_row_body(test_run *run, const void *parameters)
{
    long_row c = *(const long_row *)parameters;
    c.s = run_buffer(run, "s", c.keys, BUFFER_OUTPUT);
    c.maximum = run_buffer(run, "maximum", 1, BUFFER_OUTPUT_ANY_ZERO);
    c.total = run_buffer(run, "total", 1, BUFFER_OUTPUT);
    c.rescale = run_buffer(run, "rescale", 1, BUFFER_OUTPUT);
    for (size_t j = 0; j < c.keys; j++)
        c.s->copy[COPY_INITIAL][j] =
            3.0f * random_bell(run) + (c.rising ? 8.0f * (float)j / (float)c.keys : -8.0f * (float)j / (float)c.keys);
    if (run_kernels(run, call_long_row, long_task_for, &c)) compare_probabilities(run, &c);
}

void check_softmax_chunks(test_run *run)
{
    static const size_t chunks[] = {16, 48, 512};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        for (size_t extra = 0; extra <= 18; extra++) {
            const long_row c = {.keys = 3 * chunks[i] + extra, .chunk = chunks[i], .rising = extra % 2};
            run_case(run, 12, long_row_body, &c, "keys %zu in chunks of %zu, maximum %s", c.keys, c.chunk,
                     c.rising ? "rising" : "falling");
        }
}
