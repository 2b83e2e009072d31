/* softmax_f32 and softmax_backward_f32: chunks of all lengths, whole rows made of chunks, masks, and rows in which
 * nothing may be seen; then kernels with a fault each, which these cases must catch.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------------------------ walks */

/* Logits are two wide, or so far apart that most of a row is lost. */
enum { MILD = 2, STEEP = 40 };

static void fill_array(kernel_problem *p, const char *name, float value)
{
    problem_array *array = run_array(p, name);
    for (size_t e = 0; array && e < array->words; e++) array->initial[e] = value;
}

static void plant_open_mask(kernel_problem *p, const void *nothing)
{
    (void)nothing;
    fill_array(p, "key_bias", 0.0f);
}

static void check_softmax_sizes(test_run *run)
{
    static const planted_values open = {"open mask", plant_open_mask, NULL};
    kernel_problem p = {.values = VALUES_BELL};
    for (p.columns = 1; p.columns <= KEY_CHUNK; p.columns += p.columns < 70 || p.columns > 495 ? 1 : 7)
        for (p.rows = 0; p.rows <= 5; p.rows += 1 + p.columns % 2) {
            const size_t mask = (p.columns + p.rows) % 3;
            p.scale = (p.columns / 3 + p.rows) % 2 ? STEEP : MILD;
            p.options = (mask ? WITH_MASK : 0) | ((p.columns / 2 + p.rows) % 2 ? 0 : LATER_CHUNK);
            run_planted(run, 50, &p, mask == 1 ? &open : NULL, NULL);
        }
}

/* What is special about a row: its mask, its logits, what came before. */
typedef struct logits_kind {
    bool hides_none, hides_all, is_low, comes_after_nothing;
} logits_kind;

static void plant_logits(kernel_problem *p, const void *what)
{
    const logits_kind *kind = what;
    problem_array *s = run_array(p, "s");
    if (kind->hides_none) fill_array(p, "key_bias", 0.0f);
    if (kind->hides_all) fill_array(p, "key_bias", -INFINITY);
    for (size_t e = 0; kind->is_low && e < s->words; e++) s->initial[e] -= 1e4f;
    if (!kind->comes_after_nothing) return;
    fill_array(p, "maximum", -INFINITY);
    fill_array(p, "total", 0.0f);
}

static void check_softmax_special(test_run *run)
{
    enum { BEFORE = 3, MASKS = 4, LOGITS = 5 };
    static const size_t sizes[] = {1, 5, 16, 23, 64, 101, KEY_CHUNK};
    static const planted_values plants[MASKS] = {{"", plant_logits, NULL},
                                                 {"open mask", plant_logits, NULL},
                                                 {"random mask", plant_logits, NULL},
                                                 {"all masked", plant_logits, NULL}};
    for (size_t choice = 0; choice < BEFORE * MASKS * LOGITS * sizeof sizes / sizeof *sizes; choice++) {
        const size_t before = choice % BEFORE, mask = choice / BEFORE % MASKS,
                     logits = choice / (BEFORE * MASKS) % LOGITS;
        const logits_kind kind = {
            .hides_none = mask == 1, .hides_all = mask == 3, .is_low = logits == 3, .comes_after_nothing = before == 2};
        const kernel_problem p = {.rows = 3,
                                  .columns = sizes[choice / (BEFORE * MASKS * LOGITS)],
                                  .options =
                                      (mask ? WITH_MASK : 0) | (before ? LATER_CHUNK : 0) | (logits == 4 ? DAMAGED : 0),
                                  .values = logits == 2 ? VALUES_WHOLE : VALUES_BELL,
                                  .scale = logits == 1 ? STEEP : MILD};
        run_planted(run, 30, &p, &plants[mask], &kind);
    }
}

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
    kernel_problem numbers = {.random = run->random_state};
    c.s = run_buffer(run, "s", c.keys, ARRAY_OUTPUT);
    c.maximum = run_buffer(run, "maximum", 1, ARRAY_OUTPUT_ANY_ZERO);
    c.total = run_buffer(run, "total", 1, ARRAY_OUTPUT);
    c.rescale = run_buffer(run, "rescale", 1, ARRAY_OUTPUT);
    for (size_t j = 0; j < c.keys; j++)
        c.s->copy[COPY_INITIAL][j] = 3.0f * draw_bell(&numbers) +
                                     (c.rising ? 8.0f * (float)j / (float)c.keys : -8.0f * (float)j / (float)c.keys);
    if (run_kernels(run, call_long_row, long_task_for, &c)) compare_probabilities(run, &c);
}

static void check_softmax_chunks(test_run *run)
{
    static const size_t chunks[] = {16, 48, 512};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        for (size_t extra = 0; extra <= 18; extra++) {
            const long_row c = {.keys = 3 * chunks[i] + extra, .chunk = chunks[i], .rising = extra % 2};
            run_case(run, 12, long_row_body, &c, "keys %zu in chunks of %zu, maximum %s", c.keys, c.chunk,
                     c.rising ? "rising" : "falling");
        }
}

CHECKS_OF(softmax_f32, {"softmax_f32/sizes", check_softmax_sizes}, {"softmax_f32/chunks", check_softmax_chunks},
          {"softmax_f32/special", check_softmax_special})

/* Nothing is seen from the first row. */
static void plant_blind_row(kernel_problem *p, const void *nothing)
{
    (void)nothing;
    float *seen = run_array(p, has_option(p, WITH_EXPONENTIALS) ? "exponentials" : "s")->initial;
    for (size_t j = 0; p->rows && j < p->columns; j++) seen[j] = has_option(p, WITH_EXPONENTIALS) ? 0.0f : -INFINITY;
    if (!p->rows) return;
    run_array(p, "maximum")->initial[0] = -INFINITY;
    run_array(p, "inverse_total")->initial[0] = 0.0f;
}

static void check_softmax_backward(test_run *run)
{
    static const planted_values blind = {"nothing seen", plant_blind_row, NULL};
    kernel_problem p = {.values = VALUES_BELL};
    for (int kind = 0; kind < 4; kind++)
        for (p.columns = 1; p.columns <= 5 * PANEL + 1; p.columns++)
            for (p.rows = 0; p.rows <= 3; p.rows++) {
                p.options = ((p.columns + p.rows) % 2 ? WITH_MASK : 0) | (p.columns / 2 % 2 ? OWN_DELTA : 0) |
                            (kind / 2 ? WITH_EXPONENTIALS : 0);
                run_planted(run, 12, &p, kind % 2 ? &blind : NULL, NULL);
            }
}

CHECKS_OF(softmax_backward_f32, {"softmax_backward_f32/sizes", check_softmax_backward})

/* ----------------------------------------------------------------------------------------------------------- faults */

/* Sums from the first key to the last instead of in 16 partial sums. */
static void softmax_sums_in_a_row(const softmax_task *t)
{
    sound.softmax_f32(t);
    for (size_t i = 0; t->first && i < t->rows; i++) {
        float sum = 0;
        for (size_t j = 0; j < t->keys; j++) sum += t->s[i * t->lds + j];
        t->total[i] = sum;
    }
}

static void softmax_forgets_old_maximum(const softmax_task *t)
{
    for (size_t i = 0; !t->first && i < t->rows; i++) t->maximum[i] = -INFINITY;
    sound.softmax_f32(t);
}

static void softmax_spoils_masked_rows(const softmax_task *t)
{
    sound.softmax_f32(t);
    for (size_t i = 0; i < t->rows; i++)
        for (size_t j = 0; t->maximum[i] == -INFINITY && j < t->keys; j++) t->s[i * t->lds + j] = NAN;
}

static void softmax_writes_rescale(const softmax_task *t)
{
    sound.softmax_f32(t);
    if (t->first && t->rows) t->rescale[0] = 1.0f;
}

static void softmax_masks_with_a_number(const softmax_task *t)
{
    sound.softmax_f32(t);
    for (size_t i = 0; t->key_bias && i < t->rows; i++)
        for (size_t j = 0; j < t->keys; j++)
            if (t->s[i * t->lds + j] == 0.0f) t->s[i * t->lds + j] = 1e-37f;
}

static void softmax_backward_without_delta(const softmax_backward_task *t)
{
    static const float zeros[64];
    softmax_backward_task changed = *t;
    changed.delta = zeros;
    sound.softmax_backward_f32(&changed);
}

CHANGED_TASK(softmax_backward_f32, softmax_backward_of_logits, softmax_backward_task, changed.exponentials = NULL)
CHANGED_TASK(softmax_backward_f32, softmax_backward_without_mask, softmax_backward_task, changed.key_bias = NULL)

FAULTS_OF(softmax_f32, BITS_FAULT(softmax_f32, softmax_sums_in_a_row),
          GROSS_FAULT(softmax_f32, softmax_forgets_old_maximum), GROSS_FAULT(softmax_f32, softmax_spoils_masked_rows),
          GROSS_FAULT(softmax_f32, softmax_writes_rescale), GROSS_FAULT(softmax_f32, softmax_masks_with_a_number))

FAULTS_OF(softmax_backward_f32, GROSS_FAULT(softmax_backward_f32, softmax_backward_without_delta),
          GROSS_FAULT(softmax_backward_f32, softmax_backward_of_logits),
          GROSS_FAULT(softmax_backward_f32, softmax_backward_without_mask))
