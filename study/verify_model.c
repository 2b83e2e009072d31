/* A whole model: the engine of each tier against the float64 reference, layer by layer, before and after the softmax.
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "study/capture.h"
#include "study/reference/reference.h"
#include "study/verify.h"

/* Rounding of one layer, in eps times the largest magnitude; every layer adds as much. Exact models stay below a tenth;
 * a wrong one is off by thousands. */
static const double limit_of_a_layer = 64;
enum { MOST_MLM_POSITIONS = 4 };

typedef struct truth {
    reference_model *model;
    size_t tokens, layers, heads, hidden_size;
    double *hidden;                     /* [L + 1][n][h] */
    double **components;                /* [L][components] of [A][n][n], NULL where absent */
    double *logits[DEBERTA_HEAD_COUNT]; /* [n][width], sequence [1][width] */
} truth;

typedef struct engine_run {
    deberta_session *session;
    capture capture;
    const float *last;
    size_t last_stride;
    float *logits[DEBERTA_HEAD_COUNT];
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

static void truth_free(truth *t)
{
    for (size_t k = 0; t->components && k < t->layers * DEBERTA_COMPONENT_COUNT; k++) free(t->components[k]);
    for (int head = 0; head < DEBERTA_HEAD_COUNT; head++) free(t->logits[head]);
    free(t->components);
    free(t->hidden);
    reference_free(&t->model);
}

static deberta_status truth_compute(truth *t, const verify_options *options, const char *path,
                                    const deberta_model_info *info, const int32_t *ids, size_t n, deberta_error *err)
{
    *t = (truth){.tokens = n, .layers = info->layers, .heads = info->heads, .hidden_size = info->hidden_size};
    int64_t *wide = malloc(n * sizeof *wide);
    t->hidden = malloc((info->layers + 1) * n * info->hidden_size * sizeof *t->hidden);
    t->components = calloc(info->layers * DEBERTA_COMPONENT_COUNT + 1, sizeof *t->components);
    bool fine = wide && t->hidden && t->components;
    for (size_t k = 0; fine && k < info->layers * DEBERTA_COMPONENT_COUNT; k++)
        fine = (t->components[k] = calloc(info->heads * n * n, sizeof(double))) != NULL;
    deberta_status status =
        fine ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "no memory for float64 results of %zu tokens", n);
    for (size_t i = 0; fine && i < n; i++) wide[i] = ids[i];
    const reference_input input = {.tokens = n, .ids = wide, .padding = REFERENCE_PADDING_ZERO};
    const reference_observer observer = {t, on_row};
    if (status == DEBERTA_OK) status = reference_open(&t->model, path, options->reference, err);
    if (status == DEBERTA_OK) status = reference_encode(t->model, &input, t->hidden, &observer, err);
    for (int head = 0; status == DEBERTA_OK && head < DEBERTA_HEAD_COUNT; head++) {
        if (!(info->heads_present & 1u << head)) continue;
        const size_t rows = head == DEBERTA_HEAD_SEQUENCE ? 1 : n,
                     width = reference_head_width(t->model, (deberta_head)head);
        t->logits[head] = malloc(rows * width * sizeof(double));
        status = t->logits[head]
                     ? reference_head_logits(t->model, (deberta_head)head, &input, t->hidden, t->logits[head], err)
                     : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    }
    free(wide);
    return status;
}

/* Every position, but few for the vocabulary's logits: they are many. */
static size_t positions_of(deberta_head head, size_t n)
{
    if (head == DEBERTA_HEAD_SEQUENCE) return 1;
    return (head == DEBERTA_HEAD_MLM || head == DEBERTA_HEAD_MLM_EMD) && n > MOST_MLM_POSITIONS ? MOST_MLM_POSITIONS
                                                                                                : n;
}
static size_t position_at(deberta_head head, size_t n, size_t k)
{
    const size_t count = positions_of(head, n);
    return count <= 1 ? 0 : k * (n - 1) / (count - 1);
}

static void run_free(engine_run *run)
{
    for (int head = 0; head < DEBERTA_HEAD_COUNT; head++) free(run->logits[head]);
    capture_free(&run->capture);
    deberta_session_free(&run->session);
}

static deberta_status run_engine(engine_run *run, const deberta_model *model, const deberta_model_info *info,
                                 deberta_isa isa, const verify_options *options, const int32_t *ids,
                                 const size_t starts[2], deberta_error *err)
{
    DEBERTA_TRY(capture_create(&run->capture, info, starts, 1, err));
    run->capture.hidden = true;
    for (size_t l = 0; l < info->layers; l++) run->capture.layers[l] = true;
    for (size_t a = 0; a < info->heads; a++) run->capture.heads[a] = true;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) run->capture.components[c] = true;
    DEBERTA_TRY(capture_allocate(&run->capture, options->memory_limit_bytes, err));
    const deberta_session_options session_options = {
        .struct_size = sizeof session_options,
        .isa = isa,
        .max_tokens = starts[1],
        .threads = options->threads,
        .features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION |
                    (info->heads_present & 1u << DEBERTA_HEAD_MLM_EMD ? DEBERTA_KEEP_DECODER_INPUT : 0)};
    DEBERTA_TRY(deberta_session_create(&run->session, model, &session_options, err));
    const deberta_observer observer = capture_observer(&run->capture);
    const deberta_batch batch = {.struct_size = sizeof batch, .ids = ids, .sequence_starts = starts, .sequences = 1};
    deberta_outputs outputs = {.struct_size = sizeof outputs, .observer = &observer};
    DEBERTA_TRY(deberta_encode(run->session, &batch, &outputs, err));
    for (int head = 0; head < DEBERTA_HEAD_COUNT; head++) {
        if (!(info->heads_present & 1u << head)) continue;
        const size_t width = deberta_head_width(model, (deberta_head)head),
                     count = positions_of((deberta_head)head, starts[1]);
        if (!(run->logits[head] = malloc(count * width * sizeof(float))))
            DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
        for (size_t k = 0; k < count; k++) {
            const size_t position = position_at((deberta_head)head, starts[1], k);
            DEBERTA_TRY(deberta_head_logits(run->session, (deberta_head)head, &position, 1,
                                            run->logits[head] + k * width, width, err));
        }
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
} comparison;

static double largest(const double *x, size_t n)
{
    double m = 1e-30;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) m = fmax(m, fabs(x[i]));
    return m;
}

/* One quantity of count values. `columns` only names the place of the worst. */
static deberta_status compare(const comparison *c, const char *what, const float *found, const float *base,
                              const double *exact, size_t count, size_t columns, double limit, deberta_error *err)
{
    char subject[96];
    verify_errors errors = {0};
    size_t differing = 0;
    const double scale = FLT_EPSILON * largest(exact, count);
    for (size_t i = 0; i < count; i++) {
        differing += memcmp(&found[i], &base[i], sizeof(float)) != 0;
        verify_errors_add(&errors, (double)found[i], exact[i], scale, "row %zu, column %zu", i / columns, i % columns);
    }
    snprintf(subject, sizeof subject, "%s%s%s", c->label, *c->label ? " " : "", what);
    return verify_report_add(c->report, subject, c->isa, count, differing, &errors, limit, err);
}

static deberta_status compare_layer(const comparison *c, size_t layer, deberta_error *err)
{
    const size_t n = c->truth->tokens, h = c->info->hidden_size;
    const double limit = limit_of_a_layer * (double)(layer + 1);
    char what[64];
    snprintf(what, sizeof what, "hidden %zu", layer);
    DEBERTA_TRY(compare(c, what, c->run->capture.hidden_states[layer], c->base->capture.hidden_states[layer],
                        c->truth->hidden + layer * n * h, n * h, h, limit, err));
    if (layer == c->info->layers) return DEBERTA_OK;
    for (int k = 0; k < DEBERTA_COMPONENT_COUNT; k++) {
        const float *found = capture_matrix(&c->run->capture, layer, 0, (deberta_component)k, 0);
        if (!found) continue;
        snprintf(what, sizeof what, "layer %zu %s", layer, component_name((deberta_component)k));
        DEBERTA_TRY(compare(c, what, found, capture_matrix(&c->base->capture, layer, 0, (deberta_component)k, 0),
                            c->truth->components[layer * DEBERTA_COMPONENT_COUNT + (size_t)k], c->info->heads * n * n,
                            n, limit, err));
    }
    return DEBERTA_OK;
}

static deberta_status compare_heads(const comparison *c, deberta_error *err)
{
    for (int head = 0; head < DEBERTA_HEAD_COUNT; head++) {
        if (!(c->info->heads_present & 1u << head)) continue;
        const size_t width = reference_head_width(c->truth->model, (deberta_head)head), n = c->truth->tokens;
        const size_t count = positions_of((deberta_head)head, n);
        double *exact = malloc(count * width * sizeof *exact);
        if (!exact) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
        for (size_t k = 0; k < count; k++)
            memcpy(exact + k * width, c->truth->logits[head] + position_at((deberta_head)head, n, k) * width,
                   width * sizeof *exact);
        char what[64];
        snprintf(what, sizeof what, "logits %s", deberta_head_name((deberta_head)head));
        const deberta_status status =
            compare(c, what, c->run->logits[head], c->base->logits[head], exact, count * width, width,
                    limit_of_a_layer * (double)(c->info->layers + 2), err);
        free(exact);
        DEBERTA_TRY(status);
    }
    return DEBERTA_OK;
}

static deberta_status verify_tiers(verify_report *report, const verify_options *options, const char *path,
                                   const char *label, const deberta_model *model, const int32_t *ids, size_t tokens,
                                   engine_run runs[DEBERTA_ISA_COUNT], truth *exact, deberta_error *err)
{
    deberta_model_info info;
    deberta_model_describe(model, &info);
    const size_t starts[2] = {0, tokens};
    DEBERTA_TRY(truth_compute(exact, options, path, &info, ids, tokens, err));
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++) {
        if (t != DEBERTA_ISA_SCALAR && !options->tiers[t]) continue;
        DEBERTA_TRY(run_engine(&runs[t], model, &info, (deberta_isa)t, options, ids, starts, err));
        const comparison c = {.report = report,
                              .label = label,
                              .isa = (deberta_isa)t,
                              .info = &info,
                              .truth = exact,
                              .base = &runs[DEBERTA_ISA_SCALAR],
                              .run = &runs[t]};
        for (size_t l = 0; l <= info.layers; l++) DEBERTA_TRY(compare_layer(&c, l, err));
        DEBERTA_TRY(compare_heads(&c, err));
    }
    return DEBERTA_OK;
}

deberta_status verify_model(verify_report *report, const verify_options *options, const char *path, const char *label,
                            const int32_t *ids, size_t tokens, deberta_error *err)
{
    deberta_model *model = NULL;
    engine_run runs[DEBERTA_ISA_COUNT] = {0};
    truth exact = {0};
    const deberta_model_options model_options = {.struct_size = sizeof model_options,
                                                 .reference = options->reference,
                                                 .threads = options->threads,
                                                 .memory_limit_bytes = options->memory_limit_bytes};
    deberta_status status = model_open_mutated(&model, path, &model_options, options->mutation, err);
    if (status == DEBERTA_OK)
        status = verify_tiers(report, options, path, label, model, ids, tokens, runs, &exact, err);
    for (int t = 0; t < DEBERTA_ISA_COUNT; t++) run_free(&runs[t]);
    truth_free(&exact);
    deberta_model_free(&model);
    return status;
}
