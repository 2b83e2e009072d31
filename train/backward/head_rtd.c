/* Trains replaced-token detection: row 0 of a sequence is added to every row, its own included; then norm, dense,
 * activation, one logit.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/model/activation.h"
#include "core/model/linear.h"
#include "train/backward/backward_layer.h"
#include "train/backward/heads.h"

/* Writes sum [rows][normed_stride] = H_0 + H_t. */
static void add_first_rows(const learner *l, const head_rows *rows, float *sum)
{
    const deberta_session *s = l->session;
    head_gather(l, rows, sum);
    for (size_t i = 0; i < rows->count; i++) {
        const float *first = s->hidden + s->starts[session_sequence_of(s, rows->tokens[i])] * s->hidden_stride;
        for (size_t e = 0; e < l->model->config.hidden_size; e++) sum[i * s->normed_stride + e] += first[e];
    }
}

/* Adds the gradient that row 0 gets through all rows of its sequence, in order. */
static void scatter_to_first(const step_state *step, const head_rows *rows, const float *d_sum, float *total)
{
    const learner *l = step->learner;
    const deberta_session *s = l->session;
    const size_t hidden = l->model->config.hidden_size;
    for (size_t i = 0; i < rows->count;) {
        const size_t sequence = session_sequence_of(s, rows->tokens[i]);
        memset(total, 0, hidden * sizeof *total);
        for (; i < rows->count && rows->tokens[i] < s->starts[sequence + 1]; i++)
            for (size_t e = 0; e < hidden; e++) total[e] += d_sum[i * s->normed_stride + e];
        float *to = step->memory->carried.output + s->starts[sequence] * s->hidden_stride;
        for (size_t e = 0; e < hidden; e++) to[e] += total[e];
    }
}

/* Computes losses of rows. A token is replaced where its id differs from the label. */
static void losses_of_rows(const step_state *step, const step_batch *batch, const head_rows *rows, size_t stride,
                           float scale)
{
    step_memory *m = step->memory;
    const int32_t *ids = step->ids;
    for (size_t i = 0; i < rows->count; i++) {
        const size_t t = rows->tokens[i];
        const bool replaced = batch->labels[t] != NOT_LABELLED && batch->labels[t] != ids[t];
        const row_value *value = step->options->value;
        float *logit = m->logits + i * stride;
        m->losses[i] = value
                           ? value->run(value->context, step, t, logit, 1)
                           : binary_cross_entropy(learner_kernels(step->learner), logit, replaced ? 1.0f : 0.0f, scale);
        memset(m->logits + i * stride + 1, 0, (stride - 1) * sizeof *m->logits);
    }
}

deberta_status head_rtd(step_state *step, const step_batch *batch, deberta_error *err)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const model_tasks *heads = &l->model->tasks;
    const size_t ns = s->normed_stride, hidden = config->hidden_size, stride = PANEL;
    const head_rows rows = head_rows_of(step, NULL);
    const row_parts parts = {rows.bounds, step->group.count};
    float *sum = m->head_rows[0], *y = m->head_rows[1], *u = m->head_rows[2], *g = m->head_rows[3];
    float *d_g = m->passes[0].d_normed, *d_y = m->passes[0].d_attention_sum, *d_sum = m->passes[0].d_output_sum;
    if (rows.count == 0) return DEBERTA_OK;
    DEBERTA_TRY(head_reserve(m, rows.count, stride, err));

    add_first_rows(l, &rows, sum);
    s->kernels.layernorm_f32(y, ns, sum, ns, heads->rtd_norm.gamma, heads->rtd_norm.beta, rows.count, hidden,
                             config->layer_norm_eps);
    const linear_product dense = linear_plain(&heads->rtd_dense, rows.count, y, ns, u, ns);
    linear_run_parallel(&s->kernels, s->executor, &dense, 1);
    memcpy(g, u, rows.count * ns * sizeof *g);
    activate_rows(&s->kernels, config->hidden_activation, g, ns, rows.count, hidden);
    const linear_product classifier = linear_plain(&heads->rtd_classifier, rows.count, g, ns, m->logits, stride);
    linear_run_parallel(&s->kernels, s->executor, &classifier, 1);

    losses_of_rows(step, batch, &rows, stride, step->options->rtd_weight / (float)step->head.counts.labelled[0]);
    head_add_losses(step, 0, rows.bounds);

    matrix_gradient(step, &heads->rtd_classifier, m->logits, stride, g, ns, parts);
    input_gradient(l, &l->transposed.rtd_classifier, rows.count, m->logits, stride, d_g, ns);
    activate_rows_backward(&s->kernels, config->hidden_activation, d_g, NULL, u, ns, rows.count, hidden);
    matrix_gradient(step, &heads->rtd_dense, d_g, ns, y, ns, parts);
    input_gradient(l, &l->transposed.rtd_dense, rows.count, d_g, ns, d_y, ns);
    norm_backward(l, rows.count, hidden, &heads->rtd_norm, sum, ns, d_y, ns, d_sum, ns);
    norm_gradient(step, &heads->rtd_norm, hidden, sum, ns, d_y, ns, parts);
    head_scatter(step, &rows, d_sum, ns);
    scatter_to_first(step, &rows, d_sum, u);
    return DEBERTA_OK;
}
