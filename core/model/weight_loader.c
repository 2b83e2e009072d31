/* Finding, reading, scaling and packing single tensors, in whichever pass the loader is.
 * SPDX-License-Identifier: MIT */
#include "core/model/weight_loader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/quote.h"

enum { NAME_CAPACITY = 128, PANELS_PER_TASK = 4 };

/* ------------------------------------------------------------------------------------------------ checkpoint source */

static bool find_in_checkpoint(const void *context, const char *name, weight_tensor *found)
{
    const tensor *stored = checkpoint_find(context, name);
    if (!stored) return false;
    *found = (weight_tensor){
        .place = checkpoint_place_of(stored), .rank = stored->rank, .dtype = stored->dtype, .stored = stored};
    memcpy(found->shape, stored->shape, sizeof found->shape);
    return true;
}

static deberta_status read_from_checkpoint(const void *context, const weight_tensor *from, size_t first, size_t count,
                                           float *values, deberta_error *err)
{
    return checkpoint_read_f32(context, from->stored, first, count, values, err);
}

static const float *view_in_checkpoint(const void *context, const weight_tensor *from)
{
    return checkpoint_view_f32(context, from->stored);
}

static void forget_in_checkpoint(const void *context, const weight_tensor *from)
{
    checkpoint_forget(context, from->stored);
}

weight_source weight_source_of_checkpoint(const checkpoint *stored)
{
    return (weight_source){
        .context = stored,
        .name = checkpoint_place(stored),
        .find = find_in_checkpoint,
        .read = read_from_checkpoint,
        .view = view_in_checkpoint,
        .forget = forget_in_checkpoint,
    };
}

/* ---------------------------------------------------------------------------------------------------------- finding */

deberta_status loader_begin_reading(weight_loader *loader, deberta_error *err)
{
    size_t floats = 0, bytes = 0;
    if (!size_multiply(loader->scratch_floats, loader->executor->threads, &floats) ||
        !size_multiply(floats, sizeof(float), &bytes) || !(loader->scratch = malloc(bytes + 1))) {
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for reading weights: %zu floats a thread",
                     loader->scratch_floats);
    }
    loader->pass = LOAD_READ;
    return DEBERTA_OK;
}

static void full_name(const weight_loader *loader, const char *name, char full[NAME_CAPACITY])
{
    snprintf(full, NAME_CAPACITY, "%s%s", loader->prefix, name);
}

bool loader_has(const weight_loader *loader, const char *name)
{
    char full[NAME_CAPACITY];
    weight_tensor ignored;
    full_name(loader, name, full);
    return loader->source->find(loader->source->context, full, &ignored);
}

static bool shape_matches(const weight_tensor *found, size_t rank, const size_t *shape)
{
    if (found->rank != rank) return false;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] != ANY_SIZE && found->shape[i] != shape[i]) return false;
    }
    return true;
}

deberta_status loader_find(weight_loader *loader, weight_tensor *found, const char *name, size_t rank,
                           const size_t *shape, deberta_error *err)
{
    char full[NAME_CAPACITY];
    full_name(loader, name, full);
    if (!loader->source->find(loader->source->context, full, found)) {
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' is missing", loader->source->name, full);
    }
    if (!dtype_is_floating(found->dtype)) {
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' has type %s, expected floating-point weights",
                     found->place, full, dtype_name(found->dtype));
    }
    if (!shape_matches(found, rank, shape)) {
        size_t wanted[TENSOR_MAX_RANK] = {0};
        for (size_t i = 0; i < rank; i++) wanted[i] = shape[i] == ANY_SIZE ? found->shape[i] : shape[i];
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' has shape %s, expected %s", found->place, full,
                     shape_describe(found->shape, found->rank).text, shape_describe(wanted, rank).text);
    }
    if (loader->pass == LOAD_CHECK && loader->counting) {
        size_t elements = 1;
        for (size_t i = 0; i < rank; i++) elements *= found->shape[i];
        loader->parameters += elements;
    }
    return DEBERTA_OK;
}

static deberta_status read_weight(const weight_loader *loader, const weight_tensor *from, size_t first, size_t count,
                                  float *values, deberta_error *err)
{
    return loader->source->read(loader->source->context, from, first, count, values, err);
}

static void forget_weight(const weight_loader *loader, const weight_tensor *from)
{
    if (loader->source->forget) loader->source->forget(loader->source->context, from);
}

/* ----------------------------------------------------------------------------------------------- vectors and tables */

static void tell_vector(const weight_loader *loader, const float *vector, const char *name)
{
    char full[NAME_CAPACITY];
    full_name(loader, name, full);
    loader->listener->on_vector(loader->listener->context, vector, full);
}

deberta_status loader_vector(weight_loader *loader, float **vector, const char *name, size_t count, deberta_error *err)
{
    weight_tensor found;
    DEBERTA_TRY(loader_find(loader, &found, name, 1, &count, err));
    if (loader->pass == LOAD_CHECK) return DEBERTA_OK;
    *vector = arena_take(loader->arena, round_up(count, PANEL), sizeof **vector);
    if (loader->pass != LOAD_READ) return DEBERTA_OK;
    if (loader->listener) tell_vector(loader, *vector, name);
    DEBERTA_TRY(read_weight(loader, &found, 0, count, *vector, err));
    forget_weight(loader, &found);
    return DEBERTA_OK;
}

deberta_status loader_table(weight_loader *loader, float **table, const char *name, size_t rows, size_t columns,
                            deberta_error *err)
{
    weight_tensor found;
    size_t stride = row_stride(columns), floats = 0;
    DEBERTA_TRY(loader_find(loader, &found, name, 2, (size_t[]){rows, columns}, err));
    if (loader->pass == LOAD_CHECK) return DEBERTA_OK;
    if (!size_multiply(rows, stride, &floats)) loader->arena->overflow = true;
    *table = arena_take(loader->arena, floats, sizeof **table);
    if (loader->pass != LOAD_READ) return DEBERTA_OK;
    for (size_t row = 0; row < rows; row++) {
        DEBERTA_TRY(read_weight(loader, &found, row * columns, columns, *table + row * stride, err));
    }
    forget_weight(loader, &found);
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------- matrices */

matrix_plan matrix_plan_plain(const char *name, const char *bias, size_t outputs, size_t inputs)
{
    return (matrix_plan){
        .parts = {{.weight = name, .bias = bias, .tensor_rows = outputs, .scale = 1}},
        .part_count = 1,
        .groups = 1,
        .group_rows = outputs,
        .padded_group = round_up(outputs, PANEL),
        .columns = inputs,
        .depth = inputs,
    };
}

/* What the workers of one matrix share. */
typedef struct matrix_reading {
    const weight_loader *loader;
    const packed_matrix *matrix;
    const matrix_plan *plan;
    weight_tensor weights[MAX_PARTS];
    const float *views[MAX_PARTS]; /* of parts whose rows are packed straight from the file; NULL: through scratch */
    pthread_mutex_t lock;
    deberta_status status; /* of the first failure */
    deberta_error error;
} matrix_reading;

static void expand_row(const matrix_plan *plan, size_t tensor_row, const float *stored, float *packed)
{
    switch (plan->input_layout) {
    case INPUT_AS_STORED: memcpy(packed, stored, plan->columns * sizeof *packed); break;
    case INPUT_HEADS:
        for (size_t c = 0; c < plan->columns; c++) {
            packed[c / plan->input_group * plan->input_stride + c % plan->input_group] = stored[c];
        }
        break;
    case INPUT_CONVOLUTION: {
        /* An output channel sees the input channels of its own group only (SPEC 6.3); a group has as many of both. */
        size_t channels = plan->input_group, first = tensor_row / channels * channels;
        for (size_t c = 0; c < channels; c++) {
            for (size_t u = 0; u < plan->width; u++) {
                packed[u * plan->input_stride + first + c] = stored[c * plan->width + u];
            }
        }
        break;
    }
    }
}

/* Are packed rows the stored ones, number by number? */
static bool rows_as_stored(const matrix_plan *plan)
{
    return plan->input_layout == INPUT_AS_STORED ||
           (plan->input_layout == INPUT_HEADS && plan->input_group == plan->input_stride);
}

static const float *view_weight(const weight_loader *loader, const weight_tensor *from)
{
    return loader->source->view ? loader->source->view(loader->source->context, from) : NULL;
}

/* The 16 rows of a panel where the file has them, NULL if they must be read, scaled, spread or filled up with zeros. */
static const float *view_panel(const matrix_reading *reading, size_t panel)
{
    const matrix_plan *plan = reading->plan;
    size_t output = panel * PANEL, group_index = output / plan->padded_group, lane = output % plan->padded_group;
    size_t part = group_index / plan->groups, group = group_index % plan->groups;
    if (part >= plan->part_count || !reading->views[part] || lane + PANEL > plan->group_rows) return NULL;
    const matrix_part *from = &plan->parts[part];
    return reading->views[part] + (from->first_row + group * from->row_step + lane) * plan->columns;
}

/* Row `output` of the packed matrix, as zeros or as what is stored; packed [depth] must be zero where nothing is
 * stored. */
static deberta_status read_row(const matrix_reading *reading, size_t output, float *stored, float *packed,
                               deberta_error *err)
{
    const matrix_plan *plan = reading->plan;
    memset(packed, 0, plan->depth * sizeof *packed);
    size_t group_index = output / plan->padded_group, lane = output % plan->padded_group;
    size_t part = group_index / plan->groups, group = group_index % plan->groups;
    if (part >= plan->part_count || lane >= plan->group_rows) return DEBERTA_OK;

    const matrix_part *from = &plan->parts[part];
    size_t row = from->first_row + group * from->row_step + lane;
    DEBERTA_TRY(read_weight(reading->loader, &reading->weights[part], row * plan->columns, plan->columns, stored, err));
    if (from->scale != 1) {
        for (size_t c = 0; c < plan->columns; c++) stored[c] = (float)((double)stored[c] * from->scale);
    }
    expand_row(plan, row, stored, packed);
    return DEBERTA_OK;
}

static void read_panels(void *context, size_t task, size_t worker)
{
    matrix_reading *reading = context;
    const matrix_plan *plan = reading->plan;
    float *stored = reading->loader->scratch + worker * reading->loader->scratch_floats;
    float *rows = stored + plan->columns;
    size_t end = minimum((task + 1) * PANELS_PER_TASK, reading->matrix->panel_count);
    for (size_t panel = task * PANELS_PER_TASK; panel < end; panel++) {
        const float *view = view_panel(reading, panel);
        if (view) {
            packed_matrix_store(reading->matrix, reading->loader->kernels, panel, view, plan->columns);
            continue;
        }
        for (size_t lane = 0; lane < PANEL; lane++) {
            deberta_error error;
            deberta_status status = read_row(reading, panel * PANEL + lane, stored, rows + lane * plan->depth, &error);
            if (status == DEBERTA_OK) continue;
            pthread_mutex_lock(&reading->lock);
            if (reading->status == DEBERTA_OK) {
                reading->status = status;
                reading->error = error;
            }
            pthread_mutex_unlock(&reading->lock);
            return;
        }
        packed_matrix_store(reading->matrix, reading->loader->kernels, panel, rows, plan->depth);
    }
}

static deberta_status read_bias(const weight_loader *loader, const packed_matrix *matrix, const matrix_plan *plan,
                                size_t part, const weight_tensor *bias, deberta_error *err)
{
    const matrix_part *from = &plan->parts[part];
    for (size_t group = 0; group < plan->groups; group++) {
        float *to = matrix->bias + (part * plan->groups + group) * plan->padded_group;
        DEBERTA_TRY(read_weight(loader, bias, group * plan->group_rows, plan->group_rows, to, err));
        for (size_t i = 0; from->scale != 1 && i < plan->group_rows; i++) to[i] = (float)((double)to[i] * from->scale);
    }
    forget_weight(loader, bias);
    return DEBERTA_OK;
}

static deberta_status read_panels_in_parallel(matrix_reading *reading, deberta_error *err)
{
    const weight_loader *loader = reading->loader;
    const matrix_plan *plan = reading->plan;
    for (size_t part = 0; part < plan->part_count; part++) {
        bool direct = rows_as_stored(plan) && plan->parts[part].scale == 1;
        reading->views[part] = direct ? view_weight(loader, &reading->weights[part]) : NULL;
    }
    pthread_mutex_init(&reading->lock, NULL);
    parallel_for(loader->executor, ceiling_divide(reading->matrix->panel_count, PANELS_PER_TASK), read_panels, reading);
    pthread_mutex_destroy(&reading->lock);
    for (size_t part = 0; part < plan->part_count; part++) forget_weight(loader, &reading->weights[part]);
    if (reading->status != DEBERTA_OK && err) *err = reading->error;
    return reading->status;
}

deberta_status loader_matrix_into(weight_loader *loader, const packed_matrix *matrix, const matrix_plan *plan,
                                  deberta_error *err)
{
    matrix_reading reading = {.loader = loader, .matrix = matrix, .plan = plan};
    bool convolution = plan->input_layout == INPUT_CONVOLUTION;
    for (size_t part = 0; part < plan->part_count; part++) {
        const matrix_part *from = &plan->parts[part];
        size_t bias_rows = plan->groups * plan->group_rows;
        weight_tensor bias;
        size_t shape[3] = {from->tensor_rows, convolution ? plan->input_group : plan->columns, plan->width};
        /* v1's three parts are one tensor: found three times, counted once. */
        bool counting = loader->counting;
        loader->counting = counting && (part == 0 || strcmp(from->weight, plan->parts[0].weight) != 0);
        deberta_status status =
            loader_find(loader, &reading.weights[part], from->weight, convolution ? 3 : 2, shape, err);
        loader->counting = counting;
        DEBERTA_TRY(status);
        if (from->bias) DEBERTA_TRY(loader_find(loader, &bias, from->bias, 1, &bias_rows, err));
        if (from->bias && loader->pass == LOAD_READ) DEBERTA_TRY(read_bias(loader, matrix, plan, part, &bias, err));
    }
    size_t floats = plan->columns + PANEL * plan->depth;
    if (loader->pass == LOAD_MEASURE) loader->scratch_floats = maximum(loader->scratch_floats, floats);
    if (loader->pass != LOAD_READ) return DEBERTA_OK;
    if (loader->listener) loader->listener->on_matrix(loader->listener->context, matrix, plan, loader->prefix);
    return read_panels_in_parallel(&reading, err);
}

deberta_status loader_matrix(weight_loader *loader, packed_matrix *matrix, const matrix_plan *plan, deberta_error *err)
{
    if (loader->pass != LOAD_CHECK) {
        packed_matrix_carve(matrix, loader->arena, plan->part_count * plan->groups * plan->padded_group, plan->depth);
    }
    return loader_matrix_into(loader, matrix, plan, err);
}
