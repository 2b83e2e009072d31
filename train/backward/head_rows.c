/* Gathers the rows of the batch that a head reads, and scatters their gradients back.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "train/backward/heads.h"

head_rows head_rows_of(const step_state *step, const uint8_t *wanted)
{
    const deberta_session *s = step->learner->session;
    head_rows rows = {.tokens = step->memory->positions};
    for (size_t part = 0, t = 0; part < step->group.count; part++) {
        for (; t < step->part_bounds[part + 1]; t++)
            if (wanted ? wanted[t] : s->mask[t]) rows.tokens[rows.count++] = t;
        rows.bounds[part + 1] = rows.count;
    }
    return rows;
}

head_rows head_rows_of_sequences(const step_state *step, const uint8_t *wanted)
{
    const deberta_session *s = step->learner->session;
    head_rows rows = {.tokens = step->memory->positions};
    for (size_t part = 0, i = 0; part < step->group.count; part++) {
        for (; i < step->sequence_bounds[part + 1]; i++)
            if (wanted[i]) rows.tokens[rows.count++] = s->starts[i];
        rows.bounds[part + 1] = rows.count;
    }
    return rows;
}

void head_gather(const learner *l, const head_rows *rows, float *to)
{
    const deberta_session *s = l->session;
    for (size_t i = 0; i < rows->count; i++)
        memcpy(to + i * s->normed_stride, s->hidden + rows->tokens[i] * s->hidden_stride,
               s->hidden_stride * sizeof *to);
}

void head_scatter(const step_state *step, const head_rows *rows, const float *from, size_t ld)
{
    const learner *l = step->learner;
    const size_t stride = l->session->hidden_stride;
    for (size_t i = 0; i < rows->count; i++)
        for (size_t e = 0; e < l->model->config.hidden_size; e++)
            step->memory->carried.output[rows->tokens[i] * stride + e] += from[i * ld + e];
}

void head_add_losses(step_state *step, size_t end, const size_t *bounds)
{
    losses_by_part(step->memory->losses, bounds, step->group.count, step->head.losses[end] + step->group.first);
}

deberta_status head_reserve(step_memory *m, size_t rows, size_t stride, deberta_error *err)
{
    size_t floats, bytes;
    if (!size_multiply(rows, stride, &floats) || !size_multiply(floats, sizeof(float), &bytes))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "logits of %zu rows exceed the address space", rows);
    if (floats <= m->logits_capacity) return DEBERTA_OK;
    free(m->logits);
    m->logits_capacity = 0;
    m->logits = large_floats(floats);
    if (!m->logits) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for logits of %zu rows", rows);
    m->logits_capacity = floats;
    return DEBERTA_OK;
}
