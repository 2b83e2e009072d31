/* Computes the means that replace ablated vectors. SPDX-License-Identifier: MIT */
#include "core/encode/encoder_parts.h"

double ablation_mean(const deberta_session *s, size_t first, size_t n, const float *rows, size_t element)
{
    double sum = 0;
    size_t count = 0;
    for (size_t t = 0; t < n; t++) {
        if (!s->mask[first + t]) continue;
        sum += (double)rows[t * s->model->padded_head + element];
        count++;
    }
    return count ? sum / (double)count : 0;
}

void ablation_take_means(deberta_session *s, size_t layer)
{
    const size_t padded = s->model->padded_head;
    if (!s->ablation.mean_queries) return;
    for (size_t head = 0; head < s->model->config.heads; head++) {
        const uint8_t *modes = ablation_modes(&s->ablation, &s->model->config, layer, head);
        if (modes[DEBERTA_C2C] != ABLATION_MEAN && modes[DEBERTA_C2P] != ABLATION_MEAN) continue;
        for (size_t sequence = 0; sequence < s->sequences; sequence++) {
            const size_t first = s->starts[sequence], n = session_sequence_length(s, sequence);
            const float *rows = head_query(s, head, first);
            float *mean = s->ablation.mean_queries + (head * s->max_tokens + sequence) * padded;
            for (size_t e = 0; e < padded; e++) mean[e] = (float)ablation_mean(s, first, n, rows, e);
        }
    }
}
