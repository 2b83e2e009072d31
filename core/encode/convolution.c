/* Computes the convolution of v2-xlarge and v2-xxlarge over H[0], added after the first layer (SPEC 6.3).
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/encoder_parts.h"

#include <string.h>

#include "core/model/activation.h"
#include "core/model/linear.h"

static size_t border_rows(const deberta_session *s) { return s->model->config.convolution_width / 2; }

/* Returns the row of the halo at which the border before a sequence begins; neighbours share a border. */
static size_t halo_row(const deberta_session *s, size_t sequence)
{
    return s->starts[sequence] + sequence * border_rows(s);
}

void convolution_keep_input(deberta_session *s)
{
    size_t border = border_rows(s), row_bytes = s->hidden_stride * sizeof(float);
    memset(s->halo, 0, border * row_bytes);
    for (size_t sequence = 0; sequence < s->sequences; sequence++) {
        size_t start = s->starts[sequence], n = s->starts[sequence + 1] - start;
        float *to = s->halo + (halo_row(s, sequence) + border) * s->hidden_stride;
        memcpy(to, s->hidden + start * s->hidden_stride, n * row_bytes);
        memset(to + n * s->hidden_stride, 0, border * row_bytes);
    }
}

/* Returns the memory of the products: a recorded layer needs its context again. */
static float *product_rows(const deberta_session *s, size_t *ld)
{
    const forward_record *record = s->internal.record;
    *ld = record ? s->hidden_stride : s->context_stride;
    return record ? record->convolution : s->context;
}

/* Returns row t of the products, which becomes the sum before the norm. In a recorded run it applies dropout and
 * returns a copy, so that the record keeps the product as dropout leaves it. */
static float *sum_row(const deberta_session *s, size_t t)
{
    const forward_record *record = s->internal.record;
    size_t ld;
    float *product = product_rows(s, &ld) + t * ld;
    if (!record) return product;
    if (record->dropout)
        dropout_rows(&s->kernels, record->dropout, &(dropout_place){.site = DROPOUT_CONVOLUTION}, product, ld,
                     s->model->config.hidden_size, t, 1);
    float *sum = record->convolution_sum + t * s->hidden_stride;
    memcpy(sum, product, s->model->config.hidden_size * sizeof *sum);
    return sum;
}

typedef struct norm_loop {
    deberta_session *session;
    size_t parts;
} norm_loop;

static void convolution_norm_task(void *context, size_t part, size_t worker)
{
    (void)worker;
    const norm_loop *loop = context;
    deberta_session *s = loop->session;
    const deberta_model *model = s->model;
    const model_config *config = &model->config;
    size_t start = part_start(s->tokens, loop->parts, part), end = part_start(s->tokens, loop->parts, part + 1);
    for (size_t t = start; t < end; t++) {
        float *sum = sum_row(s, t), *hidden = s->hidden + t * s->hidden_stride;
        if (!s->mask[t]) {
            memset(hidden, 0, config->hidden_size * sizeof *hidden);
            continue;
        }
        activate_rows(&s->kernels, config->convolution_activation, sum, s->context_stride, 1, config->hidden_size);
        for (size_t e = 0; e < config->hidden_size; e++) sum[e] += hidden[e];
        s->kernels.layernorm_f32(hidden, s->hidden_stride, sum, s->context_stride, model->convolution_norm.gamma,
                                 model->convolution_norm.beta, 1, config->hidden_size, config->layer_norm_eps);
    }
}

void convolution_run(deberta_session *s)
{
    double time = profile_start(session_profiling(s));
    size_t ld;
    float *products = product_rows(s, &ld);
    for (size_t sequence = 0; sequence < s->sequences; sequence++) {
        size_t start = s->starts[sequence], n = s->starts[sequence + 1] - start;
        linear_product product =
            linear_plain(&s->model->convolution, n, s->halo + halo_row(s, sequence) * s->hidden_stride,
                         s->hidden_stride, products + start * ld, ld);
        linear_run_parallel(&s->kernels, s->executor, &product, 1);
    }
    norm_loop loop = {.session = s, .parts = minimum(s->tokens, 4 * s->threads)};
    parallel_for(s->executor, loop.parts, convolution_norm_task, &loop);
    profile_lap_all(session_profiling(s), PROFILE_CONVOLUTION, time);
}
