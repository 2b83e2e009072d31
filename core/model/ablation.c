/* SPDX-License-Identifier: MIT */
#include "core/model/ablation.h"

#include <string.h>

#include "core/model/attention.h"

/* --------------------------------------------------------------------------------------------------------- checking */

static deberta_status check_index(const deberta_model *model, size_t number, const char *what, size_t index,
                                  size_t count, deberta_error *err)
{
    if (index == DEBERTA_EVERY || index < count) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "ablation %zu: %s %zu is out of range; %s has %zu (0 ... %zu)", number, what,
                 index, model->name, count, count - 1);
}

deberta_status ablation_check(const deberta_model *model, const deberta_ablation *list, size_t count,
                              deberta_error *err)
{
    if (count > 0 && !list) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu ablations, but no list of them", count);
    for (size_t k = 0; k < count; k++) {
        const deberta_ablation *ablation = &list[k];
        if ((unsigned)ablation->term >= ABLATION_TERMS)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "ablation %zu: component %d is no term; expected c2c, c2p or p2c", k,
                         (int)ablation->term);
        if (ablation->kind != DEBERTA_ABLATE_ZERO && ablation->kind != DEBERTA_ABLATE_MEAN)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "ablation %zu: kind %d does not exist", k, (int)ablation->kind);
        const bool lacks =
            (ablation->term == DEBERTA_C2P && !model->has_c2p) || (ablation->term == DEBERTA_P2C && !model->has_p2c);
        if (lacks)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "ablation %zu: %s has no term %s; its terms are c2c%s%s", k,
                         model->name, ablation->term == DEBERTA_C2P ? "c2p" : "p2c", model->has_c2p ? ", c2p" : "",
                         model->has_p2c ? ", p2c" : "");
        DEBERTA_TRY(check_index(model, k, "layer", ablation->layer, model->config.layers, err));
        DEBERTA_TRY(check_index(model, k, "head", ablation->head, model->config.heads, err));
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- carving */

static uint8_t *modes_of(const deberta_session *s, size_t layer, size_t head)
{
    return s->ablation.modes + (layer * s->model->config.heads + head) * ABLATION_TERMS;
}

/* A later entry for the same place takes over from an earlier one. */
static void fill_modes(const deberta_session *s)
{
    const model_config *config = &s->model->config;
    for (size_t k = 0; k < s->ablation.given_count; k++) {
        const deberta_ablation *given = &s->ablation.given[k];
        for (size_t layer = 0; layer < config->layers; layer++) {
            if (given->layer != DEBERTA_EVERY && given->layer != layer) continue;
            for (size_t head = 0; head < config->heads; head++) {
                if (given->head != DEBERTA_EVERY && given->head != head) continue;
                modes_of(s, layer, head)[given->term] =
                    given->kind == DEBERTA_ABLATE_MEAN ? ABLATION_MEAN : ABLATION_ZERO;
            }
        }
    }
}

static bool takes_mean_of(const ablation_plan *plan, bool keys)
{
    for (size_t k = 0; k < plan->given_count; k++)
        if (plan->given[k].kind == DEBERTA_ABLATE_MEAN && (plan->given[k].term == DEBERTA_P2C) == keys) return true;
    return false;
}

deberta_status ablation_change(deberta_session *s, const deberta_ablation *list, size_t count, deberta_error *err)
{
    ablation_plan *plan = &s->ablation;
    DEBERTA_TRY(ablation_check(s->model, list, count, err));
    if (!plan->modes) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the session was made without interventions");
    plan->given = list;
    plan->given_count = count;
    const bool fits =
        (plan->mean_queries || !takes_mean_of(plan, false)) && (plan->mean_keys || !takes_mean_of(plan, true));
    if (fits) {
        memset(plan->modes, 0, s->model->config.layers * s->model->config.heads * ABLATION_TERMS);
        fill_modes(s);
    }
    plan->given = NULL;
    if (!fits) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the session was made without memory for these means");
    return DEBERTA_OK;
}

void ablation_carve(deberta_session *s, arena *memory)
{
    ablation_plan *plan = &s->ablation;
    const deberta_model *model = s->model;
    const size_t heads = model->config.heads, d = model->head_size;
    if (plan->given_count == 0) return;
    plan->modes = arena_take(memory, model->config.layers * heads * ABLATION_TERMS, sizeof *plan->modes);
    plan->zeros = arena_take(memory, maximum(model->padded_head, d * PANEL), sizeof *plan->zeros);
    if (takes_mean_of(plan, false))
        plan->mean_queries = arena_take(memory, heads * s->max_tokens * model->padded_head, sizeof(float));
    if (takes_mean_of(plan, true))
        plan->mean_keys = arena_take(memory, s->key_panels * PANEL * heads * d, sizeof(float));
    if (plan->modes) fill_modes(s);
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
            const float *rows = s->queries + (head * s->tokens + first) * padded;
            float *mean = s->ablation.mean_queries + (head * s->max_tokens + sequence) * padded;
            for (size_t e = 0; e < padded; e++) mean[e] = (float)mean_at(s, first, n, rows, e);
        }
    }
}

void ablation_pack_mean_key(deberta_session *s, const attention_head *head)
{
    const size_t d = s->model->head_size;
    if (!head->mean_key) return;
    const float *rows = s->keys + (head->head * s->tokens + head->first_token) * s->model->padded_head;
    for (size_t e = 0; e < d; e++) {
        const float mean = (float)mean_at(s, head->first_token, head->n, rows, e);
        for (size_t l = 0; l < PANEL; l++) head->mean_key[e * PANEL + l] = mean;
    }
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
    head->p2c_keys = head->mean_key ? head->mean_key : plan->zeros;
    head->p2c_panel_stride = 0;
}
