/* Packs matrices from stored rows: scales them, smooths their channels, and quantizes them in low precision.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/load/weight_loader.h"

enum { PANELS_PER_TASK = 4 };

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

matrix_plan matrix_plan_heads(size_t part_count, size_t heads, size_t head_size, size_t padded_head, size_t inputs)
{
    return (matrix_plan){
        .part_count = part_count,
        .groups = heads,
        .group_rows = head_size,
        .padded_group = padded_head,
        .columns = inputs,
        .depth = inputs,
    };
}

/* Data that the workers of one matrix share. */
typedef struct matrix_reading {
    const weight_loader *loader;
    const packed_matrix *matrix;
    const matrix_plan *plan;
    weight_tensor weights[MAX_PARTS];
    const float *views[MAX_PARTS]; /* stored values of parts that are packed straight from the file; NULL: read through
                                      scratch */
    pthread_mutex_t lock;
    deberta_status status; /* status of the first failure */
    deberta_error error;
} matrix_reading;

size_t matrix_plan_packed_column(const matrix_plan *plan, size_t stored_row, size_t column)
{
    switch (plan->input_layout) {
    case INPUT_HEADS: return column / plan->input_group * plan->input_stride + column % plan->input_group;
    case INPUT_CONVOLUTION: /* An output channel reads the input channels of its own group only (SPEC 6.3). */
        return column % plan->width * plan->input_stride + stored_row / plan->input_group * plan->input_group +
               column / plan->width;
    case INPUT_AS_STORED: break;
    }
    return column;
}

static void expand_row(const matrix_plan *plan, size_t tensor_row, const float *stored, float *packed)
{
    if (plan->input_layout == INPUT_AS_STORED) {
        memcpy(packed, stored, plan->columns * sizeof *packed);
        return;
    }
    for (size_t c = 0; c < plan->columns; c++) packed[matrix_plan_packed_column(plan, tensor_row, c)] = stored[c];
}

/* Returns whether packed rows equal the stored ones, number by number. */
static bool rows_as_stored(const matrix_plan *plan)
{
    return plan->input_layout == INPUT_AS_STORED ||
           (plan->input_layout == INPUT_HEADS && plan->input_group == plan->input_stride);
}

static const float *view_weight(const weight_loader *loader, const weight_tensor *from)
{
    return loader->source->view ? loader->source->view(loader->source->context, from) : NULL;
}

/* Returns the 16 rows of a panel in the file, or NULL if they must be read, scaled, spread or padded with zeros; *of is
 * the part that has them. */
static const float *view_panel(const matrix_reading *reading, size_t panel, size_t *of)
{
    const matrix_plan *plan = reading->plan;
    size_t output = panel * PANEL, group_index = output / plan->padded_group, lane = output % plan->padded_group;
    size_t part = group_index / plan->groups, group = group_index % plan->groups;
    if (part >= plan->part_count || !reading->views[part] || lane + PANEL > plan->group_rows) return NULL;
    const matrix_part *from = &plan->parts[part];
    *of = part;
    return reading->views[part] + (from->first_row + group * from->row_step + lane) * plan->columns;
}

/* Writes row `output` of the packed matrix, zeros or the stored values; packed [depth] must be zero where nothing is
 * stored. */
static deberta_status matrix_loader_read_row(const matrix_reading *reading, size_t output, float *stored, float *packed,
                                             deberta_error *err)
{
    const matrix_plan *plan = reading->plan;
    memset(packed, 0, plan->depth * sizeof *packed);
    size_t group_index = output / plan->padded_group, lane = output % plan->padded_group;
    size_t part = group_index / plan->groups, group = group_index % plan->groups;
    if (part >= plan->part_count || lane >= plan->group_rows) return DEBERTA_OK;

    const matrix_part *from = &plan->parts[part];
    size_t row = from->first_row + group * from->row_step + lane;
    DEBERTA_TRY(loader_read(reading->loader, &reading->weights[part], row * plan->columns, plan->columns, stored, err));
    if (from->scale != 1) {
        for (size_t c = 0; c < plan->columns; c++) stored[c] = (float)((double)stored[c] * from->scale);
    }
    expand_row(plan, row, stored, packed);
    return DEBERTA_OK;
}

static void note_failure(matrix_reading *reading, deberta_status status, const deberta_error *error)
{
    pthread_mutex_lock(&reading->lock);
    if (reading->status == DEBERTA_OK) {
        reading->status = status;
        reading->error = *error;
    }
    pthread_mutex_unlock(&reading->lock);
}

static float *worker_scratch_of(const matrix_reading *reading, size_t worker)
{
    return reading->loader->scratch + worker * reading->loader->scratch_floats;
}

/* Returns the 16 rows of a panel, `ld` floats apart, in the file or in the worker's scratch; NULL after a failure. */
static const float *panel_rows(matrix_reading *reading, size_t panel, size_t worker, size_t *ld)
{
    const matrix_plan *plan = reading->plan;
    float *stored = worker_scratch_of(reading, worker), *rows = stored + plan->columns;
    size_t part;
    const float *view = view_panel(reading, panel, &part);
    *ld = view ? plan->columns : plan->depth;
    if (view) return view;
    for (size_t lane = 0; lane < PANEL; lane++) {
        deberta_error error;
        deberta_status status =
            matrix_loader_read_row(reading, panel * PANEL + lane, stored, rows + lane * plan->depth, &error);
        if (status == DEBERTA_OK) continue;
        note_failure(reading, status, &error);
        return NULL;
    }
    return rows;
}

/* Checks the rows of a panel in the file, which a read has not done: after their use, when they are in the cache. */
static void check_viewed(matrix_reading *reading, size_t panel)
{
    size_t part;
    deberta_error error;
    const float *view = view_panel(reading, panel, &part);
    if (view && weights_check(&reading->weights[part], (size_t)(view - reading->views[part]), view,
                              PANEL * reading->plan->columns, reading->loader->most, &error) != DEBERTA_OK)
        note_failure(reading, DEBERTA_E_FORMAT, &error);
}

static size_t last_panel(const matrix_reading *reading, size_t task)
{
    return minimum((task + 1) * PANELS_PER_TASK, reading->matrix->panel_count);
}

static void read_panels(void *context, size_t task, size_t worker)
{
    matrix_reading *reading = context;
    for (size_t panel = task * PANELS_PER_TASK, ld; panel < last_panel(reading, task); panel++) {
        const float *rows = panel_rows(reading, panel, worker, &ld);
        if (!rows) return;
        packed_matrix_store(reading->matrix, reading->loader->kernels, panel, rows, ld);
        check_viewed(reading, panel);
    }
}

/* --------------------------------------------------------------------------------------------------------- integers */

/* Returns the worker's array of the largest |W| of every input; it follows the scratch of panel_rows. */
static float *largest_weights_of(const matrix_reading *reading, size_t worker)
{
    return worker_scratch_of(reading, worker) + reading->plan->columns + PANEL * reading->plan->depth;
}

static void measure_panels(void *context, size_t task, size_t worker)
{
    matrix_reading *reading = context;
    float *largest = largest_weights_of(reading, worker);
    for (size_t panel = task * PANELS_PER_TASK, ld; panel < last_panel(reading, task); panel++) {
        const float *rows = panel_rows(reading, panel, worker, &ld);
        if (!rows) return;
        for (size_t lane = 0; lane < PANEL; lane++)
            for (size_t k = 0; k < reading->plan->depth; k++) {
                const float size = fabsf(rows[lane * ld + k]);
                largest[k] = largest[k] < size ? size : largest[k]; /* as fmaxf, but in vectors */
            }
        check_viewed(reading, panel);
    }
}

static void quantize_panels(void *context, size_t task, size_t worker)
{
    matrix_reading *reading = context;
    const weight_loader *loader = reading->loader;
    for (size_t panel = task * PANELS_PER_TASK, ld; panel < last_panel(reading, task); panel++) {
        const float *rows = panel_rows(reading, panel, worker, &ld);
        if (!rows) return;
        quantized_matrix_store(reading->matrix, panel, rows, ld);
        spread_of_outputs(&loader->outputs, panel * PANEL, PANEL, rows, ld, reading->matrix->bias + panel * PANEL,
                          &loader->inputs, reading->plan->depth);
    }
}

static void choose_factors(const matrix_reading *reading)
{
    size_t depth = reading->plan->depth;
    float *largest = largest_weights_of(reading, 0);
    for (size_t worker = 1; worker < reading->loader->executor->threads; worker++) {
        const float *other = largest_weights_of(reading, worker);
        for (size_t k = 0; k < depth; k++) largest[k] = fmaxf(largest[k], other[k]);
    }
    smoothing_factors(reading->matrix->factors, largest, reading->loader->amplitudes, depth);
    for (size_t k = 0; reading->loader->unsmoothed && k < depth; k++) reading->matrix->factors[k] = 1;
}

static void read_integers(matrix_reading *reading, size_t tasks)
{
    executor *by = reading->loader->executor;
    for (size_t worker = 0; worker < by->threads; worker++)
        memset(largest_weights_of(reading, worker), 0, reading->plan->depth * sizeof(float));
    parallel_for(by, tasks, measure_panels, reading);
    if (reading->status != DEBERTA_OK) return;
    choose_factors(reading);
    parallel_for(by, tasks, quantize_panels, reading);
}

/* ------------------------------------------------------------------------------------------------------ all of them */

static deberta_status read_bias(const weight_loader *loader, const packed_matrix *matrix, const matrix_plan *plan,
                                size_t part, const weight_tensor *bias, deberta_error *err)
{
    const matrix_part *from = &plan->parts[part];
    for (size_t group = 0; group < plan->groups; group++) {
        float *to = matrix->bias + (part * plan->groups + group) * plan->padded_group;
        DEBERTA_TRY(loader_read(loader, bias, group * plan->group_rows, plan->group_rows, to, err));
        for (size_t i = 0; from->scale != 1 && i < plan->group_rows; i++) to[i] = (float)((double)to[i] * from->scale);
    }
    loader_forget(loader, bias);
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
    size_t tasks = ceiling_divide(reading->matrix->panel_count, PANELS_PER_TASK);
    if (reading->matrix->digits)
        read_integers(reading, tasks);
    else
        parallel_for(loader->executor, tasks, read_panels, reading);
    pthread_mutex_destroy(&reading->lock);
    for (size_t part = 0; part < plan->part_count; part++) loader_forget(loader, &reading->weights[part]);
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
        /* v1's three parts are one tensor: it is found three times and counted once. */
        bool counting = loader->counting;
        loader->counting = counting && (part == 0 || strcmp(from->weight, plan->parts[0].weight) != 0);
        deberta_status status =
            loader_find(loader, &reading.weights[part], from->weight, convolution ? 3 : 2, shape, err);
        loader->counting = counting;
        DEBERTA_TRY(status);
        if (from->bias) DEBERTA_TRY(loader_find(loader, &bias, from->bias, 1, &bias_rows, err));
        if (from->bias && loader->pass == LOAD_READ) DEBERTA_TRY(read_bias(loader, matrix, plan, part, &bias, err));
    }
    size_t floats = plan->columns + (PANEL + 1) * plan->depth;
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
    if (loader->pass == LOAD_VIEW && loader->listener)
        loader->listener->on_matrix(loader->listener->context, matrix, plan, loader->prefix);
    return loader_matrix_into(loader, matrix, plan, err);
}

deberta_status loader_product(weight_loader *loader, packed_matrix *matrix, const matrix_plan *plan, deberta_error *err)
{
    size_t outputs = plan->part_count * plan->groups * plan->padded_group;
    if (loader->digits == 0) return loader_matrix(loader, matrix, plan, err);
    if (loader->pass != LOAD_CHECK) quantized_matrix_carve(matrix, loader->arena, outputs, plan->depth, loader->digits);
    loader->channels = maximum(loader->channels, maximum(round_up(outputs, PANEL), plan->depth));
    return loader_matrix_into(loader, matrix, plan, err);
}
