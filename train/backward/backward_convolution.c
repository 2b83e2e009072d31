/* Computes the gradients of v2-xlarge's convolution after layer 0 as products with the neighbours that each token saw.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/model/activation.h"
#include "train/backward/backward_layer.h"
#include "train/backward/backward_parts.h"
#include "train/state/step_dropout.h"

/* Gathers the `width` rows of H[0] that token t read, zeros outside its sequence; or, backward, scatters their
 * gradients. */
typedef struct neighbour_loop {
    const step_state *step;
    size_t width, stride;
} neighbour_loop;

/* Returns token t + u - border of its sequence, or NULL. */
static float *neighbour(const deberta_session *s, float *rows, size_t sequence, size_t t, size_t u, size_t border)
{
    const size_t place = t + u;
    if (place < s->starts[sequence] + border || place >= s->starts[sequence + 1] + border) return NULL;
    return rows + (place - border) * s->hidden_stride;
}

static void gather_sequence(void *context, size_t sequence, size_t worker)
{
    const neighbour_loop *loop = context;
    const deberta_session *s = loop->step->learner->session;
    const step_memory *m = loop->step->memory;
    (void)worker;
    for (size_t t = s->starts[sequence]; t < s->starts[sequence + 1]; t++)
        for (size_t u = 0; u < loop->width; u++) {
            float *to = m->columns + t * loop->stride + u * s->hidden_stride;
            const float *from = neighbour(s, m->records[0].input, sequence, t, u, loop->width / 2);
            if (from)
                memcpy(to, from, s->hidden_stride * sizeof *to);
            else
                memset(to, 0, s->hidden_stride * sizeof *to);
        }
}

/* Adds to the gradient of a row of H[0], in order, from the tokens that read it. */
static void scatter_sequence(void *context, size_t sequence, size_t worker)
{
    const neighbour_loop *loop = context;
    const step_state *step = loop->step;
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    (void)worker;
    for (size_t t = s->starts[sequence]; t < s->starts[sequence + 1]; t++)
        memset(m->d_first + t * s->hidden_stride, 0, s->hidden_stride * sizeof(float));
    for (size_t t = s->starts[sequence]; t < s->starts[sequence + 1]; t++)
        for (size_t u = 0; u < loop->width; u++) {
            const float *from = m->columns + t * loop->stride + u * s->hidden_stride;
            float *to = neighbour(s, m->d_first, sequence, t, u, loop->width / 2);
            for (size_t e = 0; to && e < l->model->config.hidden_size; e++) to[e] += from[e];
        }
}

void convolution_backward(const step_state *step)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t hs = s->hidden_stride, hidden = config->hidden_size;
    const row_parts parts = {step->part_bounds, step->group.count};
    neighbour_loop loop = {.step = step, .width = config->convolution_width, .stride = config->convolution_width * hs};
    float *d_hidden = m->carried.output, *d_sum = m->carried.input, *d_product = m->d_first;
    clear_holes(l, d_hidden, hs, hidden);
    norm_backward(l, s->tokens, hidden, &l->model->convolution_norm, m->forward.convolution_sum, hs, d_hidden, hs,
                  d_sum, hs);
    norm_gradient(step, &l->model->convolution_norm, hidden, m->forward.convolution_sum, hs, d_hidden, hs, parts);
    clear_holes(l, d_sum, hs, hidden);
    memcpy(d_hidden, d_sum, s->tokens * hs * sizeof *d_hidden);
    memcpy(d_product, d_sum, s->tokens * hs * sizeof *d_product);
    activate_rows_backward(&s->kernels, config->convolution_activation, d_product, NULL, m->forward.convolution, hs,
                           s->tokens, hidden);
    step_dropout_rows(step, &(dropout_place){.site = DROPOUT_CONVOLUTION}, d_product, hs, hidden, s->tokens);
    clear_holes(l, d_product, hs, hidden);
    parallel_for(s->executor, s->sequences, gather_sequence, &loop);
    matrix_gradient(step, &l->model->convolution, d_product, hs, m->columns, loop.stride, parts);
    input_gradient(l, &l->transposed.convolution, s->tokens, d_product, hs, m->columns, loop.stride);
    parallel_for(s->executor, s->sequences, scatter_sequence, &loop);
}
