/* Verifies a whole model: the engine of each tier against the float64 reference, layer by layer, before and after the
 * softmax.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/capture.h"
#include "analysis/reference/reference.h"
#include "check/verify.h"
#include "core/encode/session.h"
#include "include/deberta_unstable.h"

/* Error limits of one layer, in eps times the largest magnitude; every layer adds as much. Correct models stay below a
 * tenth; a wrong one is off by thousands. For low precision the limits are 2.4e-4 and 1.6 % of the largest magnitude
 * per layer. Models reach half of that, and up to four fifths where some channels are far larger than others; a wrong
 * one is off by its whole size, and one whose large channels are not smoothed exceeds the limit. */
double verify_limit_of_a_layer(deberta_precision precision)
{
    static const double limits[DEBERTA_PRECISION_COUNT] = {
        [DEBERTA_PRECISION_FLOAT32] = 64,
        [DEBERTA_PRECISION_INT16] = 0x1p11,
        [DEBERTA_PRECISION_INT8] = 0x1p17,
    };
    return limits[precision];
}
enum { MOST_MLM_POSITIONS = 4 };

typedef struct truth {
    scope memory;
    reference_model *model;
    size_t tokens, layers, heads, hidden_size;
    double *hidden;                     /* [L + 1][n][h] */
    double **components;                /* [L][components] of [A][n][n], NULL where absent */
    double *logits[DEBERTA_TASK_COUNT]; /* [n][width], sequence [1][width] */
    reference_input input;
} truth;

typedef struct engine_run {
    deberta_session *session;
    capture capture;
    const float *last;
    size_t last_stride;
    float *logits[DEBERTA_TASK_COUNT];
} engine_run;

static void on_row(void *context, const reference_attention_row *row)
{
    truth *t = context;
    const size_t n = t->tokens;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        double *matrix = t->components[row->layer * DEBERTA_COMPONENT_COUNT + (size_t)c];
        if (!matrix || !row->value[c]) continue;
        for (size_t head = 0; head < t->heads; head++)
            memcpy(matrix + (head * n + row->query) * n, row->value[c] + head * n, n * sizeof *matrix);
    }
}

/* Converts ids to the reference's type; NULL stays NULL. */
static int64_t *widen(scope *memory, const int32_t *ids, size_t n)
{
    int64_t *wide = ids ? scope_take(memory, n, sizeof *wide) : NULL;
    for (size_t i = 0; wide && i < n; i++) wide[i] = ids[i];
    return wide;
}

static deberta_status truth_compute(truth *t, const verify_options *options, const char *path,
                                    const deberta_model_info *info, const verify_texts *text, deberta_error *err)
{
    const size_t n = text->starts[1];
    *t = (truth){.tokens = n, .layers = info->layers, .heads = info->heads, .hidden_size = info->hidden_size};
    t->hidden = scope_take(&t->memory, (info->layers + 1) * n * info->hidden_size, sizeof *t->hidden);
    t->components = scope_take(&t->memory, info->layers * DEBERTA_COMPONENT_COUNT, sizeof *t->components);
    for (size_t k = 0; k < info->layers * DEBERTA_COMPONENT_COUNT; k++)
        t->components[k] = scope_take(&t->memory, info->heads * n * n, sizeof(double));
    t->input = (reference_input){.tokens = n,
                                 .ids = widen(&t->memory, text->ids, n),
                                 .token_types = widen(&t->memory, text->token_types, n),
                                 .position_ids = widen(&t->memory, text->position_ids, n),
                                 .mask = text->mask,
                                 .padding = REFERENCE_PADDING_KEPT,
                                 .ablations = options->ablations,
                                 .ablation_count = options->ablation_count};
    const reference_observer observer = {t, on_row};
    deberta_status status = reference_open(&t->model, path, options->reference, err);
    if (status == DEBERTA_OK) status = reference_encode(t->model, &t->input, t->hidden, &observer, err);
    for (int head = 0; status == DEBERTA_OK && head < DEBERTA_TASK_COUNT; head++) {
        if (!(info->tasks_present & 1u << head)) continue;
        const size_t rows = head == DEBERTA_TASK_SEQUENCE ? 1 : n,
                     width = reference_head_width(t->model, (deberta_task)head);
        t->logits[head] = scope_take(&t->memory, rows * width, sizeof(double));
        status = reference_head_logits(t->model, (deberta_task)head, &t->input, t->hidden, t->logits[head], err);
    }
    return status;
}

/* Selects every position, but only a few for the vocabulary's logits, because they are many. */
static size_t positions_of(deberta_task head, size_t n)
{
    if (head == DEBERTA_TASK_SEQUENCE) return 1;
    return (head == DEBERTA_TASK_MLM || head == DEBERTA_TASK_MLM_EMD) && n > MOST_MLM_POSITIONS ? MOST_MLM_POSITIONS
                                                                                                : n;
}
static size_t position_at(deberta_task head, size_t n, size_t k)
{
    const size_t count = positions_of(head, n);
    return count <= 1 ? 0 : k * (n - 1) / (count - 1);
}

static void run_free(engine_run *run)
{
    for (int head = 0; head < DEBERTA_TASK_COUNT; head++) free(run->logits[head]);
    capture_free(&run->capture);
    deberta_session_free(&run->session);
}

/* Computes the logits in one call, because each call packs the whole word table. */
static deberta_status task_logits(engine_run *run, deberta_task task, size_t tokens, size_t count, size_t width,
                                  deberta_error *err)
{
    size_t *positions = memory_take(count, sizeof *positions);
    for (size_t k = 0; k < count; k++) positions[k] = position_at(task, tokens, k);
    const deberta_status status =
        deberta_task_logits(run->session, task, positions, count, run->logits[task], width, err);
    free(positions);
    return status;
}

static deberta_status run_engine(engine_run *run, const deberta_model *model, const deberta_model_info *info,
                                 deberta_isa isa, const verify_options *options, const verify_texts *text,
                                 deberta_error *err)
{
    const size_t *starts = text->starts;
    capture_create(&run->capture, info, starts, 1);
    run->capture.hidden = true;
    for (size_t a = 0; a < info->heads; a++) run->capture.heads[a] = true;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) capture_want_everywhere(&run->capture, (deberta_component)c);
    const deberta_session_options session_options = {
        .struct_size = sizeof session_options,
        .isa = isa,
        .max_tokens = starts[1],
        .threads = options->threads,
        .memory_limit_bytes = options->memory_limit_bytes,
        .features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION |
                    (info->tasks_present & 1u << DEBERTA_TASK_MLM_EMD ? DEBERTA_KEEP_DECODER_INPUT : 0),
        .ablations = options->ablations,
        .ablation_count = options->ablation_count};
    DEBERTA_TRY(deberta_session_check_within(model, &session_options, capture_bytes(&run->capture), err));
    DEBERTA_TRY(capture_allocate(&run->capture, err));
    DEBERTA_TRY(deberta_session_create(&run->session, model, &session_options, err));
    const deberta_observer observer = capture_observer(&run->capture);
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = text->ids,
                                 .token_types = text->token_types,
                                 .position_ids = text->position_ids,
                                 .mask = text->mask,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .observer = &observer};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(deberta_encode(run->session, &batch, &outputs, err));
    DEBERTA_TRY(deberta_session_check_finite(run->session, err));
    for (int head = 0; head < DEBERTA_TASK_COUNT; head++) {
        if (!(info->tasks_present & 1u << head)) continue;
        const size_t width = deberta_task_width(model, (deberta_task)head),
                     count = positions_of((deberta_task)head, starts[1]);
        run->logits[head] = memory_take(count * width, sizeof(float));
        DEBERTA_TRY(task_logits(run, (deberta_task)head, starts[1], count, width, err));
    }
    return DEBERTA_OK;
}

typedef struct comparison {
    verify_report *report;
    const char *label;
    deberta_isa isa;
    const deberta_model_info *info;
    const truth *truth;
    const engine_run *base, *run;
    const uint8_t *mask;                     /* mask of the sequence; NULL: no holes */
    double input_errors[DEBERTA_TASK_COUNT]; /* size, in logits, that errors of hidden states have after the head */
    char sequence[48];                       /* "sequence 2 of 16 tokens, ", or empty if there is only one */
} comparison;

static double largest(const double *x, size_t n)
{
    double m = 1e-30;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) m = fmax(m, fabs(x[i]));
    return m;
}

/* One quantity of `count` values to be compared. `columns` and `where` only name the place of the worst. */
typedef struct compared {
    verify_place place;
    const char *where;
    const float *found, *base;
    const double *exact;
    size_t count, columns;
    double limit;
    double least;      /* lower bound of the largest magnitude, because values that cancel are not small */
    bool by_key;       /* rows are heads times tokens, columns keys; else rows are tokens, */
    deberta_task head; /* or positions of a head, where is_of_head */
    bool is_of_head;
} compared;

/* Returns whether a value is unspecified because of a hole. A head of sequences reads rows of holes all the same. */
static bool is_of_hole(const comparison *c, const compared *values, size_t i)
{
    const size_t n = c->truth->tokens, row = i / values->columns, column = i % values->columns;
    if (!c->mask || (values->is_of_head && values->head == DEBERTA_TASK_SEQUENCE)) return false;
    if (values->is_of_head) return !c->mask[position_at(values->head, n, row)];
    return !c->mask[row % n] || (values->by_key && !c->mask[column]);
}

static void verify_model_compare(const comparison *c, const char *what, const compared *values)
{
    verify_errors errors = {.prefix = c->sequence};
    verify_row row = {.tier = c->isa, .place = values->place, .values = values->count, .limit = values->limit};
    const double scale = FLT_EPSILON * fmax(values->least, largest(values->exact, values->count));
    for (size_t i = 0; i < values->count; i++) {
        if (is_of_hole(c, values, i)) continue;
        row.differing += memcmp(&values->found[i], &values->base[i], sizeof(float)) != 0;
        verify_errors_add(&errors, (double)values->found[i], values->exact[i], scale, values->where,
                          i / values->columns, i % values->columns);
    }
    snprintf(row.subject, sizeof row.subject, "%s%s%s", c->label, *c->label ? " " : "", what);
    snprintf(row.place.model, sizeof row.place.model, "%s", c->label);
    verify_report_add(c->report, &row, &errors);
}

/* Returns the limit of probabilities in low precision. A probability changes by at most half of the change of the
 * logits, which is their own limit times the largest of them. */
static double limit_of_probabilities(const comparison *c, size_t layer, double limit_of_logits)
{
    const double *const *exact = (const double *const *)c->truth->components + layer * DEBERTA_COMPONENT_COUNT;
    const size_t count = c->info->heads * c->truth->tokens * c->truth->tokens;
    if (c->info->precision == DEBERTA_PRECISION_FLOAT32) return limit_of_logits;
    const double largest_logit = largest(exact[DEBERTA_LOGITS], count);
    return limit_of_logits * fmax(1, largest_logit / 2 / largest(exact[DEBERTA_PROBABILITIES], count));
}

static void compare_layer(const comparison *c, size_t layer)
{
    const size_t n = c->truth->tokens, h = c->info->hidden_size;
    char what[64];
    compared values = {.place = {.quantity = "hidden", .layer = layer},
                       .where = "token %zu, column %zu",
                       .found = c->run->capture.hidden_states[layer],
                       .base = c->base->capture.hidden_states[layer],
                       .exact = c->truth->hidden + layer * n * h,
                       .count = n * h,
                       .columns = h,
                       .limit = verify_limit_of_a_layer(c->info->precision) * (double)(layer + 1)};
    /* In int8, queries and keys are quantized once more, so their products may err by as much again. */
    const double limit_of_terms = values.limit * (c->info->precision == DEBERTA_PRECISION_INT8 ? 2 : 1);
    snprintf(what, sizeof what, "hidden %zu", layer);
    verify_model_compare(c, what, &values);
    if (layer == c->info->layers) return;
    for (int k = 0; k < DEBERTA_COMPONENT_COUNT; k++) {
        const char *name = deberta_component_name((deberta_component)k);
        values.found = capture_matrix(&c->run->capture, layer, 0, (deberta_component)k, 0);
        if (!values.found) continue;
        values.base = capture_matrix(&c->base->capture, layer, 0, (deberta_component)k, 0);
        values.exact = c->truth->components[layer * DEBERTA_COMPONENT_COUNT + (size_t)k];
        values.count = c->info->heads * n * n;
        values.columns = n;
        values.by_key = true;
        values.least = k == DEBERTA_PROBABILITIES ? 0 : 1;
        values.where = "head x n + query = %zu, key %zu";
        values.limit = k == DEBERTA_PROBABILITIES ? limit_of_probabilities(c, layer, limit_of_terms) : limit_of_terms;
        snprintf(values.place.quantity, sizeof values.place.quantity, "%s", name);
        snprintf(what, sizeof what, "layer %zu %s", layer, name);
        verify_model_compare(c, what, &values);
    }
}

/* In low precision a head reads hidden states that err, within a limit of their own, and multiplies in float32: what
 * float64 makes of these errors is none of the head's. A norm over three columns makes ten times as much of them. */
static deberta_status error_of_input(const comparison *c, deberta_task head, double *error, deberta_error *err)
{
    const size_t width = reference_head_width(c->truth->model, head), n = c->truth->tokens, h = c->info->hidden_size,
                 layers = c->info->layers;
    const size_t rows = head == DEBERTA_TASK_SEQUENCE ? 1 : n;
    const capture *base = &c->base->capture;
    double *hidden = memory_take((layers + 1) * n * h, sizeof *hidden),
           *logits = memory_take(rows * width, sizeof *logits);
    for (size_t l = 0; l <= layers; l++)
        for (size_t e = 0; e < n * h; e++) hidden[l * n * h + e] = (double)base->hidden_states[l][e];
    const deberta_status status = reference_head_logits(c->truth->model, head, &c->truth->input, hidden, logits, err);
    for (size_t i = 0; status == DEBERTA_OK && i < rows * width; i++)
        if (rows == 1 || !c->mask || c->mask[i / width])
            *error = fmax(*error, fabs(logits[i] - c->truth->logits[head][i]));
    free(hidden);
    free(logits);
    return status;
}

/* Runs once per sequence, because every tier has the same hidden states. */
static deberta_status find_errors_of_inputs(comparison *c, deberta_error *err)
{
    for (int k = 0; k < DEBERTA_TASK_COUNT; k++) {
        const deberta_task head = (deberta_task)k;
        c->input_errors[k] = 0;
        if (c->info->precision == DEBERTA_PRECISION_FLOAT32 || !(c->info->tasks_present & 1u << k)) continue;
        DEBERTA_TRY(error_of_input(c, head, &c->input_errors[k], err));
    }
    return DEBERTA_OK;
}

static void compare_heads(const comparison *c)
{
    for (int head = 0; head < DEBERTA_TASK_COUNT; head++) {
        if (!(c->info->tasks_present & 1u << head)) continue;
        const size_t width = reference_head_width(c->truth->model, (deberta_task)head), n = c->truth->tokens;
        const size_t count = positions_of((deberta_task)head, n);
        double *exact = memory_take(count * width, sizeof *exact);
        for (size_t k = 0; k < count; k++)
            memcpy(exact + k * width, c->truth->logits[head] + position_at((deberta_task)head, n, k) * width,
                   width * sizeof *exact);
        char what[64];
        snprintf(what, sizeof what, "logits %s", deberta_task_name((deberta_task)head));
        compared values = {.where = "position %zu, column %zu",
                           .found = c->run->logits[head],
                           .base = c->base->logits[head],
                           .exact = exact,
                           .count = count * width,
                           .columns = width,
                           .head = (deberta_task)head,
                           .is_of_head = true,
                           .least = 1,
                           .limit = verify_limit_of_a_layer(c->info->precision) * (double)(c->info->layers + 2)};
        values.limit += c->input_errors[head] / (FLT_EPSILON * fmax(values.least, largest(exact, values.count)));
        verify_model_compare(c, what, &values);
        free(exact);
    }
}

/* Verifies one sequence on every tier. */
static deberta_status verify_sequence(const verify_options *options, comparison *c, const char *path,
                                      const deberta_model *model, const verify_texts *text, deberta_error *err)
{
    engine_run runs[DEBERTA_ISA_COUNT] = {0};
    truth exact = {0};
    deberta_status status = truth_compute(&exact, options, path, c->info, text, err);
    c->mask = text->mask;
    c->truth = &exact;
    c->base = &runs[DEBERTA_ISA_SCALAR];
    for (int t = DEBERTA_ISA_SCALAR; status == DEBERTA_OK && t < DEBERTA_ISA_COUNT; t++) {
        if (t != DEBERTA_ISA_SCALAR && !options->tiers[t]) continue;
        c->isa = (deberta_isa)t;
        c->run = &runs[t];
        status = run_engine(&runs[t], model, c->info, (deberta_isa)t, options, text, err);
        for (size_t l = 0; status == DEBERTA_OK && l <= c->info->layers; l++) compare_layer(c, l);
        if (status == DEBERTA_OK && t == DEBERTA_ISA_SCALAR) status = find_errors_of_inputs(c, err);
        if (status == DEBERTA_OK) compare_heads(c);
    }
    for (int t = 0; t < DEBERTA_ISA_COUNT; t++) run_free(&runs[t]);
    reference_free(&exact.model);
    scope_free(&exact.memory);
    return status;
}

deberta_status verify_open(deberta_model **model, deberta_model_info *info, const verify_options *options,
                           const char *path, deberta_error *err)
{
    const deberta_model_options model_options = {.struct_size = sizeof model_options,
                                                 .reference = options->reference,
                                                 .precision = options->precision,
                                                 .threads = options->threads,
                                                 .memory_limit_bytes = options->memory_limit_bytes};
    DEBERTA_TRY(model_open_mutated(model, path, &model_options, options->mutation, err));
    *info = *deberta_model_describe(*model);
    return DEBERTA_OK;
}

deberta_status verify_texts_of(verify_report *report, const verify_options *options, const char *path,
                               const char *label, const verify_texts *texts, deberta_error *err)
{
    deberta_model *model;
    deberta_model_info info;
    DEBERTA_TRY(verify_open(&model, &info, options, path, err));
    comparison c = {.report = report, .label = label, .info = &info};
    deberta_status status = DEBERTA_OK;
    for (size_t s = 0; status == DEBERTA_OK && s < texts->sequences; s++) {
        const size_t at = texts->starts[s], starts[2] = {0, texts->starts[s + 1] - at};
        const verify_texts text = {.ids = texts->ids + at,
                                   .token_types = texts->token_types ? texts->token_types + at : NULL,
                                   .position_ids = texts->position_ids ? texts->position_ids + at : NULL,
                                   .mask = texts->mask ? texts->mask + at : NULL,
                                   .starts = starts,
                                   .sequences = 1};
        if (texts->sequences > 1) snprintf(c.sequence, sizeof c.sequence, "sequence %zu of %zu tokens, ", s, starts[1]);
        status = verify_sequence(options, &c, path, model, &text, err);
    }
    deberta_model_free(&model);
    return status;
}

deberta_status verify_model(verify_report *report, const verify_options *options, const char *path, const char *label,
                            const int32_t *ids, const size_t *starts, size_t sequences, deberta_error *err)
{
    const verify_texts texts = {.ids = ids, .starts = starts, .sequences = sequences};
    return verify_texts_of(report, options, path, label, &texts, err);
}
