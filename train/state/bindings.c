/* Adds rows of packed gradients to the named tensors that the loader's plan lists.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/learner.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/memory.h"

enum { NAME_CAPACITY = 128 };

static parameter *find_part(const binding_list *list, const char *prefix, const char *name)
{
    char full[NAME_CAPACITY];
    if (!name) return NULL;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return parameter_find(list->set, full);
}

static void on_matrix(void *context, const packed_matrix *matrix, const matrix_plan *plan, const char *prefix)
{
    binding_list *list = context;
    matrix_binding *grown_list =
        grown(list->matrices, &list->matrix_capacity, list->matrix_count + 1, sizeof *list->matrices);
    list->out_of_memory = list->out_of_memory || !grown_list;
    if (!grown_list) return;
    list->matrices = grown_list;
    matrix_binding *binding = &list->matrices[list->matrix_count++];
    *binding = (matrix_binding){.matrix = matrix, .plan = *plan};
    for (size_t part = 0; part < plan->part_count; part++) {
        binding->weights[part] = find_part(list, prefix, plan->parts[part].weight);
        binding->biases[part] = find_part(list, prefix, plan->parts[part].bias);
    }
}

static void on_vector(void *context, const float *vector, size_t count, const char *name)
{
    (void)count;
    binding_list *list = context;
    vector_binding *grown_list =
        grown(list->vectors, &list->vector_capacity, list->vector_count + 1, sizeof *list->vectors);
    list->out_of_memory = list->out_of_memory || !grown_list;
    if (!grown_list) return;
    list->vectors = grown_list;
    list->vectors[list->vector_count++] =
        (vector_binding){.vector = vector, .parameter = parameter_find(list->set, name)};
}

load_listener bindings_listener(binding_list *list)
{
    return (load_listener){.context = list, .on_matrix = on_matrix, .on_vector = on_vector};
}

void bindings_free(binding_list *list)
{
    free(list->matrices);
    free(list->vectors);
    *list = (binding_list){0};
}

parameter *bindings_vector(const binding_list *list, const float *vector)
{
    for (size_t i = 0; i < list->vector_count; i++)
        if (list->vectors[i].vector == vector) return list->vectors[i].parameter;
    return NULL;
}

static const matrix_binding *find_matrix(const binding_list *list, const packed_matrix *matrix)
{
    for (size_t i = 0; i < list->matrix_count; i++)
        if (list->matrices[i].matrix == matrix) return &list->matrices[i];
    return NULL;
}

static void bindings_add_row(const matrix_plan *plan, size_t stored_row, const float *from, float *to)
{
    const bool as_stored = plan->input_layout == INPUT_AS_STORED;
    for (size_t c = 0; as_stored && c < plan->columns; c++) to[c] += from[c];
    for (size_t c = 0; !as_stored && c < plan->columns; c++)
        to[c] += from[matrix_plan_packed_column(plan, stored_row, c)];
}

enum { TASK_LANES = 64 };

typedef struct adding {
    const matrix_binding *binding;
    const float *gradient, *bias;
    size_t ld, first_part;
    size_t cuts; /* number of tasks per group */
} adding;

/* The range that one task adds: rows [begin, end) of one group of a part of the matrix. */
typedef struct lane_range {
    size_t part, group, begin, end;
} lane_range;

static lane_range lanes_of(const adding *job, size_t task)
{
    const matrix_plan *plan = &job->binding->plan;
    const size_t begin = task % job->cuts * TASK_LANES, block = task / job->cuts;
    return (lane_range){.part = job->first_part + block / plan->groups,
                        .group = block % plan->groups,
                        .begin = begin,
                        .end = minimum(begin + TASK_LANES, plan->group_rows)};
}

static size_t row_of(const matrix_plan *plan, const lane_range *at, size_t lane)
{
    const matrix_part *from = &plan->parts[at->part];
    return from->first_row + at->group * from->row_step + lane;
}

static void add_lanes(void *context, size_t task, size_t worker)
{
    const adding *job = context;
    const matrix_plan *plan = &job->binding->plan;
    const lane_range at = lanes_of(job, task);
    const size_t output = task / job->cuts * plan->padded_group;
    const parameter *weights = job->binding->weights[at.part], *biases = job->binding->biases[at.part];
    (void)worker;
    for (size_t lane = at.begin; lane < at.end; lane++) {
        const size_t row = row_of(plan, &at, lane);
        bindings_add_row(plan, row, job->gradient + (output + lane) * job->ld, weights->gradient + row * plan->columns);
    }
    for (size_t lane = at.begin; biases && job->bias && lane < at.end; lane++)
        biases->gradient[at.group * plan->group_rows + lane] += job->bias[output + lane];
}

static void add_parts(adding *job, size_t parts, executor *by)
{
    const matrix_plan *plan = &job->binding->plan;
    job->cuts = ceiling_divide(plan->group_rows, TASK_LANES);
    parallel_for(by, parts * plan->groups * job->cuts, add_lanes, job);
}

void bindings_add_matrix(const binding_list *list, const packed_matrix *matrix, const float *gradient, size_t ld,
                         const float *bias, executor *by)
{
    adding job = {.binding = find_matrix(list, matrix), .gradient = gradient, .bias = bias, .ld = ld};
    if (job.binding) add_parts(&job, job.binding->plan.part_count, by);
}

void bindings_add_part(const binding_list *list, const packed_matrix *matrix, size_t part, const float *gradient,
                       size_t ld, const float *bias, executor *by)
{
    adding job = {
        .binding = find_matrix(list, matrix), .gradient = gradient, .bias = bias, .ld = ld, .first_part = part};
    if (job.binding) add_parts(&job, 1, by);
}

static void scale_floats(float *values, size_t count, double scale)
{
    for (size_t e = 0; e < count; e++) values[e] = (float)((double)values[e] * scale);
}

static void scale_lanes(void *context, size_t task, size_t worker)
{
    const adding *job = context;
    const matrix_plan *plan = &job->binding->plan;
    const lane_range at = lanes_of(job, task);
    const double scale = plan->parts[at.part].scale;
    const parameter *weights = job->binding->weights[at.part], *biases = job->binding->biases[at.part];
    (void)worker;
    for (size_t lane = at.begin; lane < at.end; lane++)
        scale_floats(weights->gradient + row_of(plan, &at, lane) * plan->columns, plan->columns, scale);
    if (biases) scale_floats(biases->gradient + at.group * plan->group_rows + at.begin, at.end - at.begin, scale);
}

void bindings_scale(const binding_list *list, executor *by)
{
    for (size_t i = 0; i < list->matrix_count; i++) {
        const matrix_plan *plan = &list->matrices[i].plan;
        adding job = {.binding = &list->matrices[i], .cuts = ceiling_divide(plan->group_rows, TASK_LANES)};
        for (job.first_part = 0; job.first_part < plan->part_count; job.first_part++)
            if (plan->parts[job.first_part].scale != 1) parallel_for(by, plan->groups * job.cuts, scale_lanes, &job);
    }
}
