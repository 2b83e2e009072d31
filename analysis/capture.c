/* Implements an observer that keeps attention maps (terms, logits, probabilities) and hidden states: it copies what a
 * session shows into memory measured before the encode.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/capture.h"

#include <string.h>

void capture_create(capture *capture, const deberta_model_info *model, const size_t *sequence_starts, size_t sequences)
{
    memset(capture, 0, sizeof *capture);
    capture->model = model;
    capture->sequence_starts = sequence_starts;
    capture->sequences = sequences;
    capture->tokens = sequence_starts[sequences];
    capture->heads = scope_take(&capture->memory, model->heads + 1, sizeof *capture->heads);
    capture->matrices =
        scope_take(&capture->memory, model->layers * DEBERTA_COMPONENT_COUNT + 1, sizeof *capture->matrices);
    capture->hidden_states = scope_take(&capture->memory, model->layers + 1, sizeof *capture->hidden_states);
    capture->attention =
        scope_take(&capture->memory, model->layers * DEBERTA_COMPONENT_COUNT + 1, sizeof *capture->attention);
    capture->matrix_starts = scope_take(&capture->memory, sequences + 1, sizeof *capture->matrix_starts);
    for (size_t s = 0; s < sequences; s++) {
        const size_t n = sequence_starts[s + 1] - sequence_starts[s];
        capture->matrix_starts[s + 1] = capture->matrix_starts[s] + n * n;
    }
}

bool component_is_in(deberta_component component, const deberta_model_info *model)
{
    return (component != DEBERTA_C2P || model->has_c2p) && (component != DEBERTA_P2C || model->has_p2c);
}

void capture_want(capture *capture, size_t layer, deberta_component component)
{
    bool *wanted = &capture->matrices[layer * DEBERTA_COMPONENT_COUNT + component];
    if (*wanted || !component_is_in(component, capture->model)) return;
    *wanted = true;
    capture->matrix_count++;
}

void capture_want_everywhere(capture *capture, deberta_component component)
{
    for (size_t layer = 0; layer < capture->model->layers; layer++) capture_want(capture, layer, component);
}

static bool capture_measure(const capture *capture, size_t *matrix_bytes, size_t *hidden_bytes, size_t *total)
{
    const deberta_model_info *model = capture->model;
    const size_t cells = capture->matrix_starts[capture->sequences];
    *hidden_bytes = capture->hidden ? (model->layers + 1) * capture->tokens * model->hidden_size * sizeof(float) : 0;
    return size_multiply(cells, model->heads * sizeof(float), matrix_bytes) &&
           size_multiply(*matrix_bytes, capture->matrix_count, total) && size_add(*total, *hidden_bytes, total);
}

size_t capture_bytes(const capture *capture)
{
    size_t matrix_bytes, hidden_bytes, total;
    return capture_measure(capture, &matrix_bytes, &hidden_bytes, &total) ? total : SIZE_MAX;
}

deberta_status capture_allocate(capture *capture, deberta_error *err)
{
    const deberta_model_info *model = capture->model;
    size_t matrix_bytes, hidden_bytes, total;
    if (!capture_measure(capture, &matrix_bytes, &hidden_bytes, &total))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY,
                     "%zu attention matrices of %zu heads and %zu cells need more than the address space",
                     capture->matrix_count, model->heads, capture->matrix_starts[capture->sequences]);
    for (size_t l = 0; capture->hidden && l <= model->layers; l++)
        capture->hidden_states[l] = scope_take(&capture->memory, capture->tokens * model->hidden_size, sizeof(float));
    /* The memory is zero-filled, so heads that were not chosen stay 0. */
    for (size_t k = 0; k < model->layers * DEBERTA_COMPONENT_COUNT; k++)
        if (capture->matrices[k]) capture->attention[k] = scope_take(&capture->memory, matrix_bytes, 1);
    return DEBERTA_OK;
}

void capture_free(capture *capture)
{
    scope_free(&capture->memory);
    memset(capture, 0, sizeof *capture);
}

float *capture_matrix(const capture *capture, size_t layer, size_t head, deberta_component component, size_t sequence)
{
    float *values = capture->attention[layer * DEBERTA_COMPONENT_COUNT + component];
    if (!values) return NULL;
    /* All heads of a sequence lie together, as [A][n][n]. */
    const size_t start = capture->matrix_starts[sequence], cells = capture->matrix_starts[sequence + 1] - start;
    return values + start * capture->model->heads + head * cells;
}

static deberta_status on_hidden(void *context, const deberta_hidden_block *block)
{
    const capture *capture = context;
    float *kept = capture->hidden_states[block->layer];
    const size_t h = capture->model->hidden_size;
    if (!kept) return DEBERTA_OK;
    for (size_t t = 0; t < block->tokens; t++)
        memcpy(kept + t * h, block->values + t * block->stride, h * sizeof(float));
    return DEBERTA_OK;
}

static int wants_attention(void *context, size_t layer, size_t head, deberta_component component)
{
    const capture *capture = context;
    return capture->attention[layer * DEBERTA_COMPONENT_COUNT + component] && capture->heads[head];
}

static deberta_status on_attention(void *context, const deberta_attention_block *block)
{
    const capture *capture = context;
    float *matrix = capture_matrix(capture, block->layer, block->head, block->component, block->sequence);
    if (!matrix) return DEBERTA_OK;
    for (size_t r = 0; r < block->rows; r++)
        memcpy(matrix + (block->first_query + r) * block->keys, block->values + r * block->stride,
               block->keys * sizeof(float));
    return DEBERTA_OK;
}

deberta_observer capture_observer(capture *capture)
{
    deberta_observer observer = {.struct_size = sizeof observer, .context = capture};
    if (capture->hidden) observer.on_hidden = on_hidden;
    if (capture->matrix_count > 0) {
        observer.wants_attention = wants_attention;
        observer.on_attention = on_attention;
    }
    return observer;
}
