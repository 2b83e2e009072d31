/* Entropy and reach are summed up by sentence, head and distance. SPDX-License-Identifier: MIT */
#include "analysis/attention_spread.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/attention_statistics.h"

deberta_status attention_spread_create(attention_spread *spread, const deberta_model_info *model, size_t sentences,
                                       size_t reach, deberta_error *err)
{
    const size_t layers = model->layers;
    size_t numbers, places;
    *spread = (attention_spread){.model = model, .sentences = sentences};
    if (size_multiply(sentences, layers * model->heads * SPREAD_NUMBERS, &numbers) &&
        size_multiply(sentences, layers * SPREAD_PLACES, &places)) {
        spread->numbers = calloc(numbers, sizeof *spread->numbers);
        spread->places = calloc(places, sizeof *spread->places);
        spread->profiles = calloc(layers * DEBERTA_COMPONENT_COUNT, sizeof *spread->profiles);
    }
    if (!spread->numbers || !spread->places || !spread->profiles)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the attention of %zu sentences", sentences);
    for (size_t k = 0; k < layers * DEBERTA_COMPONENT_COUNT; k++)
        DEBERTA_TRY(distance_sample_create(&spread->profiles[k], reach, 1 + k, err));
    return DEBERTA_OK;
}

void attention_spread_free(attention_spread *spread)
{
    for (size_t k = 0; spread->profiles && k < spread->model->layers * DEBERTA_COMPONENT_COUNT; k++)
        distance_sample_free(&spread->profiles[k]);
    free(spread->profiles);
    free(spread->numbers);
    free(spread->places);
    *spread = (attention_spread){0};
}

static double *numbers_of(const attention_spread *spread, size_t sentence, size_t layer, size_t head)
{
    return spread->numbers +
           ((sentence * spread->model->layers + layer) * spread->model->heads + head) * SPREAD_NUMBERS;
}

static double *places_of(const attention_spread *spread, size_t sentence, size_t layer)
{
    return spread->places + (sentence * spread->model->layers + layer) * SPREAD_PLACES;
}

double attention_spread_number(const attention_spread *spread, size_t sentence, size_t layer, size_t head,
                               spread_number number)
{
    return numbers_of(spread, sentence, layer, head)[number];
}

const double *attention_spread_places(const attention_spread *spread, size_t sentence, size_t layer)
{
    return places_of(spread, sentence, layer);
}

const distance_sample *attention_spread_profile(const attention_spread *spread, size_t layer,
                                                deberta_component component)
{
    return &spread->profiles[layer * DEBERTA_COMPONENT_COUNT + component];
}

void attention_spread_place_name(size_t place, char name[SHARE_NAME_BYTES])
{
    if (place == SPREAD_FRAME)
        snprintf(name, SHARE_NAME_BYTES, "[CLS], [SEP]");
    else
        share_distance_name(place, name);
}

static void add_places(double *places, const float *probabilities, size_t tokens, const unsigned char *own)
{
    for (size_t i = 0; i < tokens; i++)
        for (size_t j = 0; j < tokens && own[i]; j++)
            places[own[j] ? share_distance_bin((ptrdiff_t)i - (ptrdiff_t)j) : (size_t)SPREAD_FRAME] +=
                (double)probabilities[i * tokens + j];
}

/* centred [tokens][tokens]: room for the terms. */
static deberta_status add_head(attention_spread *spread, size_t sentence, const capture *captured, size_t layer,
                               size_t head, const unsigned char *own, float *centred, deberta_error *err)
{
    const size_t tokens = captured->tokens;
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        const float *matrix = capture_matrix(captured, layer, head, c, 0);
        if (!matrix) continue;
        if (c != DEBERTA_PROBABILITIES) {
            attention_centre_rows(centred, matrix, tokens, own);
            matrix = centred;
        }
        distance_sample *profile = &spread->profiles[layer * DEBERTA_COMPONENT_COUNT + c];
        DEBERTA_TRY(distance_sample_add(profile, matrix, tokens, own, err));
    }
    const float *probabilities = capture_matrix(captured, layer, head, DEBERTA_PROBABILITIES, 0);
    const attention_summary summary = attention_summarize(probabilities, tokens, NULL, NULL);
    double *numbers = numbers_of(spread, sentence, layer, head);
    numbers[SPREAD_ENTROPY] = summary.entropy * (double)tokens;
    numbers[SPREAD_DISTANCE] = summary.distance * (double)tokens;
    numbers[SPREAD_OFFSET] = summary.offset * (double)tokens;
    add_places(places_of(spread, sentence, layer), probabilities, tokens, own);
    return DEBERTA_OK;
}

deberta_status attention_spread_add(attention_spread *spread, size_t sentence, const capture *captured,
                                    const unsigned char *own, deberta_error *err)
{
    float *centred = malloc(captured->tokens * captured->tokens * sizeof *centred);
    if (!centred) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for a text of %zu tokens", captured->tokens);
    deberta_status status = DEBERTA_OK;
    for (size_t layer = 0; layer < spread->model->layers; layer++)
        for (size_t head = 0; head < spread->model->heads && status == DEBERTA_OK; head++)
            status = add_head(spread, sentence, captured, layer, head, own, centred, err);
    free(centred);
    return status;
}
