/* SPDX-License-Identifier: MIT */
#include "train/bindings.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/grow.h"

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

static void add_row(const matrix_plan *plan, size_t stored_row, double scale, const float *from, float *to)
{
    if (plan->input_layout == INPUT_AS_STORED && scale == 1) {
        for (size_t c = 0; c < plan->columns; c++) to[c] += from[c];
        return;
    }
    for (size_t c = 0; c < plan->columns; c++) {
        const float value = from[matrix_plan_packed_column(plan, stored_row, c)];
        to[c] += scale == 1 ? value : (float)((double)value * scale);
    }
}

enum { TASK_LANES = 64 };

typedef struct adding {
    const matrix_binding *binding;
    const float *gradient, *bias;
    size_t ld, cuts; /* tasks of a group */
} adding;

/* Some rows of one group of one tensor. */
static void add_group(void *context, size_t task, size_t worker)
{
    const adding *job = context;
    const matrix_plan *plan = &job->binding->plan;
    const size_t begin = task % job->cuts * TASK_LANES, end = minimum(begin + TASK_LANES, plan->group_rows);
    const size_t block = task / job->cuts, part = block / plan->groups, group = block % plan->groups;
    const size_t output = block * plan->padded_group;
    const matrix_part *from = &plan->parts[part];
    const parameter *weights = job->binding->weights[part], *biases = job->binding->biases[part];
    (void)worker;
    for (size_t lane = begin; lane < end; lane++) {
        const size_t row = from->first_row + group * from->row_step + lane;
        add_row(plan, row, from->scale, job->gradient + (output + lane) * job->ld,
                weights->gradient + row * plan->columns);
    }
    for (size_t lane = begin; biases && job->bias && lane < end; lane++) {
        const double value = (double)job->bias[output + lane];
        biases->gradient[group * plan->group_rows + lane] += (float)(value * from->scale);
    }
}

void bindings_add_matrix(const binding_list *list, const packed_matrix *matrix, const float *gradient, size_t ld,
                         const float *bias, executor *executor)
{
    adding job = {.binding = find_matrix(list, matrix), .gradient = gradient, .bias = bias, .ld = ld};
    if (!job.binding) return;
    const matrix_plan *plan = &job.binding->plan;
    job.cuts = ceiling_divide(plan->group_rows, TASK_LANES);
    parallel_for(executor, plan->part_count * plan->groups * job.cuts, add_group, &job);
}
