/* Turns ablations into a table of modes by layer, head and term, and computes the memory that they need and the means
 * that replace ablated vectors.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/encode/encoder_parts.h"
#include "core/encode/session.h"

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

uint8_t *ablation_modes(const ablation_plan *plan, const model_config *config, size_t layer, size_t head)
{
    return plan->modes + (layer * config->heads + head) * ABLATION_TERMS;
}

/* A later entry for the same place takes over from an earlier one. */
static void fill_modes(const ablation_plan *plan, const model_config *config)
{
    for (size_t k = 0; k < plan->given_count; k++) {
        const deberta_ablation *given = &plan->given[k];
        for (size_t layer = 0; layer < config->layers; layer++) {
            if (given->layer != DEBERTA_EVERY && given->layer != layer) continue;
            for (size_t head = 0; head < config->heads; head++) {
                if (given->head != DEBERTA_EVERY && given->head != head) continue;
                ablation_modes(plan, config, layer, head)[given->term] =
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

void ablation_plan_carve(ablation_plan *plan, const deberta_model *model, size_t max_tokens, size_t key_panels,
                         arena *memory)
{
    const size_t heads = model->config.heads, d = model->head_size;
    if (plan->given_count == 0) return;
    plan->modes = arena_take(memory, model->config.layers * heads * ABLATION_TERMS, sizeof *plan->modes);
    plan->zeros = arena_take(memory, maximum(model->padded_head, d * PANEL), sizeof *plan->zeros);
    if (takes_mean_of(plan, false))
        plan->mean_queries = arena_take(memory, heads * max_tokens * model->padded_head, sizeof(float));
    if (takes_mean_of(plan, true)) plan->mean_keys = arena_take(memory, key_panels * PANEL * heads * d, sizeof(float));
    if (model->integer_attention) {
        plan->zero_key = integer_panels_take(memory, 1, d);
        if (takes_mean_of(plan, true)) plan->mean_key_integers = integer_panels_take(memory, key_panels * heads, d);
    }
    if (plan->modes) fill_modes(plan, &model->config);
}

/* ------------------------------------------------------------------------------------------------------------ means */

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
