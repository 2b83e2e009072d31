/* Finds tensors of a file among those that the engine computes, and compares them value by value.
 *
 * SPDX-License-Identifier: MIT */
#include "program/verify/verify_output.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/mapped_file.h"
#include "core/io/safetensors.h"
#include "output/scope.h"
#include "program/frame/input/encoded_input.h"

typedef struct against_job {
    const verify_options *verify;
    verify_report *report;
    const char *path;
    mapped_file file;
    tensor_list tensors;
    encoded_input ours;
    deberta_isa isa;
    bool extras;     /* true: the file may hold tensors that the engine does not compute */
    size_t compared; /* number of tensors */
} against_job;

/* Comparison of one tensor of the file with the engine's. */
typedef struct comparison {
    const float *expected; /* all values of the file's tensor */
    const char *where;     /* format of a value's place: its token or row, and its column */
    double scale;
    size_t values;
    verify_errors errors;
} comparison;

static deberta_status compare_piece(void *context, const encoded_piece *piece, deberta_error *err)
{
    (void)err;
    comparison *c = context;
    const float *found = piece->values, *expected = c->expected + piece->first;
    for (size_t k = 0; k < piece->count; k++)
        verify_errors_add(&c->errors, (double)found[k], (double)expected[k], c->scale, c->where, piece->token,
                          piece->column + k);
    c->values += piece->count;
    return DEBERTA_OK;
}

/* Checks the shape: values of another shape belong to another input or model. A head of one number for each token may
 * have a dimension of size 1, or leave it out. */
static void expect_shape(const against_job *job, const tensor *t, const export_tensor *ours)
{
    const size_t rank = t->rank < ours->rank ? t->rank : ours->rank;
    bool same = memcmp(t->shape, ours->shape, rank * sizeof *t->shape) == 0 && rank >= 2;
    for (size_t d = rank; d < t->rank; d++) same = same && t->shape[d] == 1;
    for (size_t d = rank; d < ours->rank; d++) same = same && ours->shape[d] == 1;
    if (!same)
        end_with(job->ours.options, EXIT_INPUT,
                 "%.200s: %.60s has the shape %s, expected %s of this model and its input_ids", job->path, t->name,
                 shape_describe(t->shape, t->rank).text, shape_describe(ours->shape, ours->rank).text);
}

/* Returns the row of the report, whose limit grows with the layer as errors do. */
static verify_row row_of(const against_job *job, const tensor *t, const encoded_meaning *what)
{
    const bool logits = what->kind == ENCODED_LOGITS, hidden = what->kind == ENCODED_HIDDEN;
    const size_t layers = logits ? job->ours.info.layers + 2 : what->layer + 1;
    /* Another engine's float32 is as inexact as ours, so the limit is twice that of verify against float64. */
    verify_row row = {.tier = job->isa, .limit = 2 * verify_limit_of_a_layer(job->verify->precision) * (double)layers};
    snprintf(row.subject, sizeof row.subject, "%s", t->name);
    if (logits) return row;
    row.place.layer = what->layer;
    snprintf(row.place.quantity, sizeof row.place.quantity, "%s",
             hidden ? "hidden" : deberta_component_name((deberta_component)what->which));
    return row;
}

/* Returns the index of the tensor among the engine's; ours->count if it computes none of that name. */
static size_t find_ours(const encoded_input *ours, const tensor *t)
{
    size_t k = 0;
    while (k < ours->count && strcmp(ours->tensors[k].name, t->name) != 0) k++;
    return k;
}

static void compare_tensor(against_job *job, const tensor *t, size_t k, const float *values)
{
    encoded_input *ours = &job->ours;
    const encoded_meaning *what = &ours->meanings[k];
    deberta_error error;
    expect_shape(job, t, &ours->tensors[k]);
    comparison c = {.expected = values, .where = "token %zu, column %zu"};
    if (what->kind == ENCODED_ATTENTION) c.where = "token %zu, key %zu";
    if (what->kind == ENCODED_LOGITS && what->which == DEBERTA_TASK_SEQUENCE) c.where = "row %zu, label %zu";
    double largest = 1e-30;
    for (size_t e = 0; e < t->elements; e++)
        if (isfinite(values[e])) largest = fmax(largest, fabs((double)values[e]));
    c.scale = FLT_EPSILON * largest;
    must(ours->options, encoded_walk(ours, k, compare_piece, &c, &error), &error);
    verify_row row = row_of(job, t, what);
    row.values = c.values;
    job->compared++;
    verify_report_add(job->report, &row, &c.errors);
}

/* Tensors of a file that cannot be compared, as a list at the end of a sentence. */
typedef struct leftovers {
    char names[300];
    size_t used, count;
} leftovers;

static void leave_over(leftovers *list, const tensor *t)
{
    list->count++;
    const bool full = list->used + 80 > sizeof list->names;
    if (full && strcmp(list->names + list->used - 3, "...") == 0) return;
    if (full) {
        list->used += (size_t)snprintf(list->names + list->used, sizeof list->names - list->used, ", ...");
        return;
    }
    list->used += (size_t)snprintf(list->names + list->used, sizeof list->names - list->used, "%s%.50s (%s)",
                                   list->used ? ", " : "", t->name, dtype_name(t->dtype));
}

/* Checks that every tensor of the file was compared: a check that skips some would say nothing about them. */
static void expect_all_compared(const against_job *job)
{
    leftovers unknown = {.count = 0}, unreadable = {.count = 0};
    for (size_t i = 0; i < job->tensors.count; i++) {
        const tensor *t = &job->tensors.items[i].tensor;
        const size_t k = find_ours(&job->ours, t);
        if (encoded_is_input(t->name)) continue;
        if (k == job->ours.count)
            leave_over(&unknown, t);
        else if (!dtype_is_floating(t->dtype))
            leave_over(&unreadable, t);
    }
    if (unreadable.count)
        end_with(job->ours.options, EXIT_INPUT,
                 "%.100s: %zu of its tensors cannot be compared: %s; expected F32, F64, F16 or BF16", job->path,
                 unreadable.count, unreadable.names);
    if (unknown.count && !job->extras)
        end_with(job->ours.options, EXIT_INPUT,
                 "%.100s: %zu of its tensors are none that this model computes (hidden_states.*, attn.*, logits.*): %s "
                 "(--allow-extra passes over them)",
                 job->path, unknown.count, unknown.names);
}

static void compare_file(against_job *job)
{
    expect_all_compared(job);
    for (size_t k = 0; k < job->tensors.count; k++) {
        const stored_tensor *stored = &job->tensors.items[k];
        const size_t place = find_ours(&job->ours, &stored->tensor);
        if (place == job->ours.count || encoded_is_input(stored->tensor.name)) continue;
        float *values = memory_take((stored->tensor.elements + 1), sizeof *values);
        tensor_convert_f32(values, stored, job->file.bytes, 0, stored->tensor.elements);
        compare_tensor(job, &stored->tensor, place, values);
        free(values);
    }
    if (job->compared == 0)
        end_with(job->ours.options, EXIT_INPUT,
                 "%s: none of its %zu tensors is one that this model computes (hidden_states.*, attn.*, logits.*)",
                 job->path, job->tensors.count);
}

static void run_tier(against_job *job, deberta_isa isa)
{
    encoded_input *ours = &job->ours;
    deberta_error error;
    deberta_session_options session_options = {.struct_size = sizeof session_options,
                                               .isa = isa,
                                               .threads = job->verify->threads,
                                               .memory_limit_bytes = job->verify->memory_limit_bytes,
                                               .ablations = job->verify->ablations,
                                               .ablation_count = job->verify->ablation_count};
    job->isa = isa;
    job->compared = 0;
    encoded_prepare(ours);
    ours->capture.hidden = true;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) capture_want_everywhere(&ours->capture, (deberta_component)c);
    for (int task = 0; task < DEBERTA_TASK_COUNT; task++) ours->tasks[task] = ours->info.tasks_present & 1u << task;
    must(ours->options, encoded_run(ours, &session_options, &error), &error);
    compare_file(job);
    encoded_release(ours);
}

void verify_against_file(const common_options *options, const char *path, bool extras, const verify_options *verify,
                         verify_report *report)
{
    deberta_error error;
    against_job job = {
        .verify = verify, .report = report, .path = path, .extras = extras, .ours = {.options = options}};
    encoded_input *ours = &job.ours;
    const deberta_model_options model_options = {.struct_size = sizeof model_options,
                                                 .reference = verify->reference,
                                                 .precision = verify->precision,
                                                 .threads = verify->threads,
                                                 .memory_limit_bytes = verify->memory_limit_bytes};
    report->errors_only = true;
    must(options, input_read_tensors(&ours->input, path, &error), &error);
    note_padding(options, &ours->input, path);
    if (ours->input.sequences == 0) end_with(options, EXIT_INPUT, "%s: every position is masked", path);
    must(options, mapped_file_open(&job.file, path, &error), &error);
    must(options, safetensors_list(&job.tensors, job.file.bytes, job.file.size_bytes, path, &error), &error);
    must(options, deberta_model_open(&ours->model, options->arguments[0], &model_options, &error), &error);
    ours->info = *deberta_model_describe(ours->model);
    must(options, input_check(&ours->input, &ours->info, path, &error), &error);
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++)
        if (verify->tiers[t]) run_tier(&job, (deberta_isa)t);
    must(options, mapped_file_intact(&job.file, &error), &error);
    tensor_list_free(&job.tensors);
    mapped_file_close(&job.file);
    encoded_free(ours);
}
