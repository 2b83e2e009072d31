/* What an ablation changes in one head of one sequence, while a layer runs. SPDX-License-Identifier: MIT */
#include "core/model/ablation.h"

static const uint8_t *modes_of(const deberta_session *s, size_t layer, size_t head)
{
    return ablation_modes(&s->ablation, &s->model->config, layer, head);
}

deberta_status ablation_change(deberta_session *s, const deberta_ablation *list, size_t count, deberta_error *err)
{
    return ablation_plan_change(&s->ablation, s->model, list, count, err);
}

/* ------------------------------------------------------------------------------------------------------------ means */

/* Of the rows of a sequence's tokens that are no holes, summed in float64 in their order: the same bits wherever it
 * runs. All holes: zeros. */
static double mean_at(const deberta_session *s, size_t first, size_t n, const float *rows, size_t element)
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
        const uint8_t *modes = modes_of(s, layer, head);
        if (modes[DEBERTA_C2C] != ABLATION_MEAN && modes[DEBERTA_C2P] != ABLATION_MEAN) continue;
        for (size_t sequence = 0; sequence < s->sequences; sequence++) {
            const size_t first = s->starts[sequence], n = session_sequence_length(s, sequence);
            const float *rows = head_query(s, head, first);
            float *mean = s->ablation.mean_queries + (head * s->max_tokens + sequence) * padded;
            for (size_t e = 0; e < padded; e++) mean[e] = (float)mean_at(s, first, n, rows, e);
        }
    }
}

void ablation_pack_mean_key(deberta_session *s, const attention_head *head)
{
    const size_t d = s->model->head_size;
    if (!head->mean_key) return;
    const float *rows = head_key(s, head->head, head->first_token);
    for (size_t e = 0; e < d; e++) {
        const float mean = (float)mean_at(s, head->first_token, head->n, rows, e);
        for (size_t l = 0; l < PANEL; l++) head->mean_key[e * PANEL + l] = mean;
    }
    if (s->model->integer_attention)
        integer_panels_fill(&head->p2c_keys.integers, &s->kernels, head->mean_key, 0, NULL, 1, d);
}

/* --------------------------------------------------------------------------------------------------------- applying */

void ablation_apply(const deberta_session *s, size_t layer, size_t place, attention_head *head)
{
    const ablation_plan *plan = &s->ablation;
    const size_t padded = s->model->padded_head;
    if (!plan->modes) return;
    const uint8_t *modes = modes_of(s, layer, head->head);
    const float *mean =
        plan->mean_queries ? plan->mean_queries + (head->head * s->max_tokens + head->sequence) * padded : NULL;
    if (modes[DEBERTA_C2C]) head->c2c_query = modes[DEBERTA_C2C] == ABLATION_MEAN ? mean : plan->zeros;
    if (modes[DEBERTA_C2P]) head->c2p_query = modes[DEBERTA_C2P] == ABLATION_MEAN ? mean : plan->zeros;
    if (!modes[DEBERTA_P2C]) return;
    if (modes[DEBERTA_P2C] == ABLATION_MEAN) head->mean_key = plan->mean_keys + place * s->model->head_size * PANEL;
    head->p2c_keys = (panel_operand){0}; /* one panel for all */
    if (!s->model->integer_attention)
        head->p2c_keys.floats = head->mean_key ? head->mean_key : plan->zeros;
    else
        head->p2c_keys.integers =
            head->mean_key ? integer_panels_from(&plan->mean_key_integers, place, s->model->head_size) : plan->zero_key;
}
