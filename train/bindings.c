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

static void on_vector(void *context, const float *vector, const char *name)
{
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

/* Where element c of a stored row is in a packed one (weights.c expands rows the same way). */
static size_t packed_column(const matrix_plan *plan, size_t stored_row, size_t c)
{
    switch (plan->input_layout) {
    case INPUT_HEADS: return c / plan->input_group * plan->input_stride + c % plan->input_group;
    case INPUT_CONVOLUTION:
        return c % plan->width * plan->input_stride + stored_row / plan->input_group * plan->input_group +
               c / plan->width;
    case INPUT_AS_STORED: break;
    }
    return c;
}

static void add_row(const matrix_plan *plan, size_t stored_row, double scale, const float *from, float *to)
{
    for (size_t c = 0; c < plan->columns; c++) {
        const float value = from[packed_column(plan, stored_row, c)];
        to[c] += scale == 1 ? value : (float)((double)value * scale);
    }
}

void bindings_add_matrix(const binding_list *list, const packed_matrix *matrix, const float *gradient, size_t ld,
                         const float *bias)
{
    const matrix_binding *binding = find_matrix(list, matrix);
    if (!binding) return;
    const matrix_plan *plan = &binding->plan;
    for (size_t part = 0; part < plan->part_count; part++) {
        const matrix_part *from = &plan->parts[part];
        for (size_t group = 0; group < plan->groups; group++) {
            const size_t output = (part * plan->groups + group) * plan->padded_group;
            for (size_t lane = 0; lane < plan->group_rows; lane++) {
                const size_t row = from->first_row + group * from->row_step + lane;
                add_row(plan, row, from->scale, gradient + (output + lane) * ld,
                        binding->weights[part]->gradient + row * plan->columns);
            }
            if (binding->biases[part] && bias)
                for (size_t lane = 0; lane < plan->group_rows; lane++) {
                    float *to = binding->biases[part]->gradient + group * plan->group_rows + lane;
                    const double value = (double)bias[output + lane];
                    *to += (float)(value * from->scale);
                }
        }
    }
}
