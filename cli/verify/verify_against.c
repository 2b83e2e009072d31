/* SPDX-License-Identifier: MIT */
#include "cli/verify/verify_against.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/input/input.h"
#include "core/base/status.h"
#include "core/io/mapped_file.h"
#include "core/io/safetensors.h"
#include "analysis/capture.h"

/* Somebody else's float32 is off by as much as ours: twice the limit that verify has against float64. */
static const double limit_of_a_layer = 128;

typedef struct against_job {
    const common_options *options;
    const verify_options *verify;
    verify_report *report;
    const char *path;
    mapped_file file;
    tensor_list tensors;
    input_batch input;
    deberta_model *model;
    deberta_model_info info;
    deberta_isa isa;
    capture capture;
    deberta_session *session;
    size_t compared; /* tensors */
} against_job;

/* Calls visit for each real row of the padded input: sequence, its column, its token in the batch. */
typedef void (*visit_row)(against_job *job, size_t row, size_t column, size_t token, void *context);
static void each_real_row(against_job *job, visit_row visit, void *context)
{
    for (size_t r = 0; r < job->input.rows; r++) {
        const input_row row = job->input.row[r];
        for (size_t t = 0; t < row.tokens; t++) {
            const size_t token = job->input.sequence_starts[row.sequence] + t;
            if (!job->input.mask || job->input.mask[token]) visit(job, r, row.first_column + t, token, context);
        }
    }
}

typedef struct row_comparison {
    const float *expected; /* the whole tensor */
    const float *found;    /* [tokens][width] */
    size_t width;
    size_t layer, component;
    verify_place place;
    double scale;
    size_t values;
    verify_errors errors;
} row_comparison;

static void compare_row(against_job *job, size_t row, size_t column, size_t token, void *context)
{
    row_comparison *c = context;
    const float *expected = c->expected + (row * job->input.columns + column) * c->width;
    for (size_t k = 0; k < c->width; k++)
        verify_errors_add(&c->errors, (double)c->found[token * c->width + k], (double)expected[k], c->scale,
                          "token %zu, column %zu", token, k);
    c->values += c->width;
}

static void compare_attention_row(against_job *job, size_t row, size_t column, size_t token, void *context)
{
    row_comparison *c = context;
    const input_row where = job->input.row[row];
    const size_t n = where.tokens, N = job->input.columns, i = column - where.first_column;
    const uint8_t *mask = job->input.mask ? job->input.mask + job->input.sequence_starts[where.sequence] : NULL;
    for (size_t head = 0; head < job->info.heads; head++) {
        const float *found =
            capture_matrix(&job->capture, c->layer, head, (deberta_component)c->component, where.sequence) + i * n;
        const float *expected = c->expected + ((row * job->info.heads + head) * N + column) * N + where.first_column;
        for (size_t j = 0; j < n; j++) {
            if (mask && !mask[j]) continue;
            verify_errors_add(&c->errors, (double)found[j], (double)expected[j], c->scale, "token %zu, key %zu", token,
                              j);
            c->values++;
        }
    }
}

static deberta_status finish(against_job *job, const char *name, row_comparison *c, double layers, deberta_error *err)
{
    job->compared++;
    verify_row row = {.tier = job->isa, .place = c->place, .values = c->values, .limit = limit_of_a_layer * layers};
    snprintf(row.subject, sizeof row.subject, "%s", name);
    return verify_report_add(job->report, &row, &c->errors, err);
}

static deberta_status head_values(against_job *job, deberta_task head, size_t width, float **values, deberta_error *err)
{
    const size_t count = head == DEBERTA_TASK_SEQUENCE ? job->input.sequences : job->input.tokens;
    size_t *positions = malloc((count + 1) * sizeof *positions);
    *values = malloc((count * width + 1) * sizeof **values);
    deberta_status status = positions && *values ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    for (size_t k = 0; status == DEBERTA_OK && k < count; k++) positions[k] = k;
    if (status == DEBERTA_OK) status = deberta_task_logits(job->session, head, positions, count, *values, width, err);
    free(positions);
    return status;
}

/* Values of another shape answer another input or another model, and must not be read as answers to these. */
static deberta_status expect_shape(const against_job *job, const tensor *t, size_t rank, const size_t *shape,
                                   deberta_error *err)
{
    if (t->rank == rank && memcmp(t->shape, shape, rank * sizeof *shape) == 0) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%.200s: %.60s has the shape %s, expected %s of this model and its input_ids",
                 job->path, t->name, shape_describe(t->shape, t->rank).text, shape_describe(shape, rank).text);
}

/* [B, V] of sequences; [B, N, V] of tokens, where a head of one number may leave V out, as encode does. */
static deberta_status expect_logits(const against_job *job, const tensor *t, deberta_task head, size_t width,
                                    deberta_error *err)
{
    const size_t B = job->input.rows, N = job->input.columns;
    if (head == DEBERTA_TASK_SEQUENCE) return expect_shape(job, t, 2, (size_t[]){B, width}, err);
    return expect_shape(job, t, width == 1 && t->rank == 2 ? 2 : 3, (size_t[]){B, N, width}, err);
}

/* One tensor of the file, if it is something that the engine computes. */
static deberta_status compare_tensor(against_job *job, const tensor *t, const float *values, deberta_error *err)
{
    row_comparison c = {.expected = values};
    double largest = 1e-30;
    for (size_t k = 0; k < t->elements; k++)
        if (isfinite(values[k])) largest = fmax(largest, fabs((double)values[k]));
    c.scale = FLT_EPSILON * largest;
    const size_t B = job->input.rows, N = job->input.columns, A = job->info.heads;
    size_t layer;
    char what[24];
    if (sscanf(t->name, "hidden_states.%zu", &layer) == 1 && layer <= job->info.layers) {
        DEBERTA_TRY(expect_shape(job, t, 3, (size_t[]){B, N, job->info.hidden_size}, err));
        c.found = job->capture.hidden_states[layer];
        c.width = job->info.hidden_size;
        c.place = (verify_place){.quantity = "hidden", .layer = layer};
        each_real_row(job, compare_row, &c);
        return finish(job, t->name, &c, (double)layer + 1, err);
    }
    if (sscanf(t->name, "attn.%zu.%23s", &layer, what) == 2 && layer < job->info.layers) {
        for (c.component = 0; c.component < DEBERTA_COMPONENT_COUNT; c.component++)
            if (strcmp(what, deberta_component_name((deberta_component)c.component)) == 0) break;
        if (c.component == DEBERTA_COMPONENT_COUNT ||
            !job->capture.attention[layer * DEBERTA_COMPONENT_COUNT + c.component])
            return DEBERTA_OK;
        DEBERTA_TRY(expect_shape(job, t, 4, (size_t[]){B, A, N, N}, err));
        c.layer = c.place.layer = layer;
        snprintf(c.place.quantity, sizeof c.place.quantity, "%s",
                 deberta_component_name((deberta_component)c.component));
        each_real_row(job, compare_attention_row, &c);
        return finish(job, t->name, &c, (double)layer + 1, err);
    }
    for (int head = 0; head < DEBERTA_TASK_COUNT; head++) {
        if (strncmp(t->name, "logits.", 7) != 0 || strcmp(t->name + 7, deberta_task_name((deberta_task)head)) != 0)
            continue;
        float *found = NULL;
        if (!(c.width = deberta_task_width(job->model, (deberta_task)head))) return DEBERTA_OK;
        DEBERTA_TRY(expect_logits(job, t, (deberta_task)head, c.width, err));
        deberta_status status = head_values(job, (deberta_task)head, c.width, &found, err);
        c.found = found;
        if (status == DEBERTA_OK && head != DEBERTA_TASK_SEQUENCE) each_real_row(job, compare_row, &c);
        for (size_t r = 0; status == DEBERTA_OK && head == DEBERTA_TASK_SEQUENCE && r < job->input.rows; r++)
            for (size_t k = 0; job->input.row[r].tokens && k < c.width; k++, c.values++)
                verify_errors_add(&c.errors, (double)found[job->input.row[r].sequence * c.width + k],
                                  (double)values[r * c.width + k], c.scale, "row %zu, label %zu", r, k);
        free(found);
        return status == DEBERTA_OK ? finish(job, t->name, &c, (double)job->info.layers + 2, err) : status;
    }
    return DEBERTA_OK;
}

static deberta_status compare_file(against_job *job, deberta_error *err)
{
    for (size_t k = 0; k < job->tensors.count; k++) {
        const stored_tensor *stored = &job->tensors.items[k];
        if (!dtype_is_floating(stored->tensor.dtype)) continue;
        float *values = malloc((stored->tensor.elements + 1) * sizeof *values);
        if (!values) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
        tensor_convert_f32(values, stored, job->file.bytes, 0, stored->tensor.elements);
        const deberta_status status = compare_tensor(job, &stored->tensor, values, err);
        free(values);
        DEBERTA_TRY(status);
    }
    if (job->compared == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: none of its %zu tensors is one that this model computes (hidden_states.*, attn.*, logits.*)",
                     job->path, job->tensors.count);
    return DEBERTA_OK;
}

static deberta_status run_tier(against_job *job, deberta_isa isa, deberta_error *err)
{
    job->isa = isa;
    DEBERTA_TRY(capture_create(&job->capture, &job->info, job->input.sequence_starts, job->input.sequences, err));
    job->capture.hidden = true;
    for (size_t a = 0; a < job->info.heads; a++) job->capture.heads[a] = true;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) capture_want_everywhere(&job->capture, (deberta_component)c);
    const deberta_session_options session_options = {
        .struct_size = sizeof session_options,
        .isa = isa,
        .max_tokens = job->input.tokens,
        .threads = job->verify->threads,
        .memory_limit_bytes = job->verify->memory_limit_bytes,
        .features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION |
                    (job->info.tasks_present & 1u << DEBERTA_TASK_MLM_EMD ? DEBERTA_KEEP_DECODER_INPUT : 0),
        .ablations = job->verify->ablations,
        .ablation_count = job->verify->ablation_count};
    DEBERTA_TRY(deberta_session_check_within(job->model, &session_options, capture_bytes(&job->capture), err));
    DEBERTA_TRY(capture_allocate(&job->capture, err));
    DEBERTA_TRY(deberta_session_create(&job->session, job->model, &session_options, err));
    const deberta_observer observer = capture_observer(&job->capture);
    deberta_batch batch = input_as_batch(&job->input);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    batch.observer = &observer;
    DEBERTA_TRY(deberta_encode(job->session, &batch, &outputs, err));
    return compare_file(job, err);
}

static deberta_status run_job(against_job *job, deberta_error *err)
{
    const deberta_model_options model_options = {.struct_size = sizeof model_options,
                                                 .reference = job->verify->reference,
                                                 .threads = job->verify->threads,
                                                 .memory_limit_bytes = job->verify->memory_limit_bytes};
    DEBERTA_TRY(input_read_tensors(&job->input, job->path, err));
    if (job->input.sequences == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: every position is masked", job->path);
    DEBERTA_TRY(mapped_file_open(&job->file, job->path, err));
    DEBERTA_TRY(safetensors_list(&job->tensors, job->file.bytes, job->file.size_bytes, job->path, err));
    DEBERTA_TRY(deberta_model_open(&job->model, job->options->arguments[0], &model_options, err));
    job->info = *deberta_model_describe(job->model);
    DEBERTA_TRY(input_check(&job->input, &job->info, job->path, err));
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++) {
        if (!job->verify->tiers[t]) continue;
        job->compared = 0;
        const deberta_status status = run_tier(job, (deberta_isa)t, err);
        capture_free(&job->capture);
        deberta_session_free(&job->session);
        DEBERTA_TRY(status);
    }
    return DEBERTA_OK;
}

int verify_against_file(const common_options *options, const char *path, const verify_options *verify,
                        verify_report *report)
{
    deberta_error error = {0};
    against_job job = {.options = options, .verify = verify, .report = report, .path = path};
    report->errors_only = true;
    const deberta_status status = run_job(&job, &error);
    tensor_list_free(&job.tensors);
    mapped_file_close(&job.file);
    input_free(&job.input);
    deberta_model_free(&job.model);
    return status == DEBERTA_OK ? EXIT_OK : say_error(options, &error);
}
