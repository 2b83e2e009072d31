/* Tokens are chosen and hidden by a seed; the head's loss is measured at them, batch by batch.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/masked_texts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/logits.h"
#include "core/base/random.h"
#include "core/model/session_internal_options.h"

/* ----------------------------------------------------------------------------------------------------------- making */

static void hide(masked_texts *texts, size_t token, int32_t mask_id)
{
    const size_t mask = texts->mask_starts[texts->count]++;
    texts->places[mask] = token;
    texts->targets[mask] = texts->ids[token];
    texts->ids[token] = mask_id;
}

/* The k-th maskable token of a sentence. */
static size_t find_maskable(const uint8_t *maskable, size_t first, size_t k)
{
    for (;; first++)
        if (maskable[first] && k-- == 0) return first;
}

static void hide_some(masked_texts *texts, const uint8_t *maskable, size_t sentence, int32_t mask_id, double rate,
                      uint64_t *random)
{
    const size_t before = texts->mask_starts[texts->count];
    size_t candidates = 0;
    for (size_t t = texts->starts[sentence]; t < texts->starts[sentence + 1]; t++) {
        if (!maskable[t]) continue;
        candidates++;
        if (random_fraction(random) < rate) hide(texts, t, mask_id);
    }
    if (candidates && texts->mask_starts[texts->count] == before)
        hide(texts, find_maskable(maskable, texts->starts[sentence], random_below(random, candidates)), mask_id);
}

deberta_status masked_texts_make(masked_texts *texts, const int32_t *ids, const uint8_t *maskable, const size_t *starts,
                                 size_t count, int32_t mask_id, double rate, uint64_t seed, deberta_error *err)
{
    const size_t tokens = starts[count];
    *texts = (masked_texts){.count = count, .starts = starts};
    texts->ids = malloc((tokens + 1) * sizeof *texts->ids);
    texts->places = malloc((tokens + 1) * sizeof *texts->places);
    texts->targets = malloc((tokens + 1) * sizeof *texts->targets);
    texts->mask_starts = calloc(count + 1, sizeof *texts->mask_starts);
    if (!texts->ids || !texts->places || !texts->targets || !texts->mask_starts)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu tokens", tokens);
    memcpy(texts->ids, ids, tokens * sizeof *ids);
    uint64_t random = seed;
    for (size_t k = 0; k < count; k++) { /* the last entry counts meanwhile */
        texts->mask_starts[k] = texts->mask_starts[count];
        hide_some(texts, maskable, k, mask_id, rate, &random);
    }
    return DEBERTA_OK;
}

void masked_texts_free(masked_texts *texts)
{
    free(texts->ids);
    free(texts->places);
    free(texts->targets);
    free(texts->mask_starts);
    *texts = (masked_texts){0};
}

size_t texts_batch_end(const size_t *starts, size_t count, size_t first, size_t tokens)
{
    size_t end = first + 1;
    while (end < count && starts[end + 1] - starts[first] <= tokens) end++;
    return end;
}

void masked_texts_largest_batch(const masked_texts *texts, size_t batch_tokens, size_t *tokens, size_t *masks)
{
    *tokens = *masks = 0;
    for (size_t first = 0, end; first < texts->count; first = end) {
        end = masked_texts_batch_end(texts, first, batch_tokens);
        const size_t t = texts->starts[end] - texts->starts[first], m = masked_texts_masks(texts, first, end);
        if (t > *tokens) *tokens = t;
        if (m > *masks) *masks = m;
    }
}

/* ---------------------------------------------------------------------------------------------------------- reading */

deberta_status masked_texts_head(deberta_task *head, const deberta_model *model, masked_decoder decoder,
                                 deberta_error *err)
{
    const deberta_model_info info = *deberta_model_describe(model);
    const bool has_emd = info.tasks_present & 1u << DEBERTA_TASK_MLM_EMD;
    *head = decoder != MASKED_DECODER_PLAIN && has_emd ? DEBERTA_TASK_MLM_EMD : DEBERTA_TASK_MLM;
    if (decoder == MASKED_DECODER_EMD && !has_emd)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no Enhanced Mask Decoder", info.name);
    if (info.tasks_present & 1u << *head) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no masked-LM head, so there is no loss to measure", info.name);
}

deberta_status masked_texts_read(const masked_texts *texts, const masked_reader *reader, size_t first, size_t end,
                                 float *logits, deberta_error *err)
{
    const size_t base = texts->starts[first], mask = texts->mask_starts[first];
    const size_t masks = masked_texts_masks(texts, first, end);
    size_t *starts = malloc((end - first + 1) * sizeof *starts), *places = malloc((masks + 1) * sizeof *places);
    deberta_status status = starts && places ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK) {
        for (size_t k = first; k <= end; k++) starts[k - first] = texts->starts[k] - base;
        for (size_t k = 0; k < masks; k++) places[k] = texts->places[mask + k] - base;
        const deberta_batch batch = {.struct_size = sizeof batch,
                                     .ids = texts->ids + base,
                                     .sequence_starts = starts,
                                     .sequences = end - first,
                                     .observer = reader->observer};
        deberta_outputs outputs = {.struct_size = sizeof outputs};
        status = deberta_encode(reader->session, &batch, &outputs, err);
    }
    if (status == DEBERTA_OK)
        status = deberta_task_logits(reader->session, reader->head, places, masks, logits, reader->width, err);
    free(starts);
    free(places);
    return status;
}

void masked_texts_loss(const masked_texts *texts, const float *logits, size_t width, size_t first, size_t end,
                       double *loss)
{
    for (size_t k = first; k < end; k++) {
        loss[k] = 0;
        for (size_t mask = texts->mask_starts[k]; mask < texts->mask_starts[k + 1]; mask++) {
            const float *row = logits + (mask - texts->mask_starts[first]) * width;
            loss[k] += logits_log_sum(row, width) - (double)row[texts->targets[mask]];
        }
    }
}

deberta_status masked_texts_measure(const masked_texts *texts, const deberta_model *model,
                                    const deberta_session_options *given, const float *row_bias, size_t batch_tokens,
                                    double *loss, deberta_error *err)
{
    const session_internal_options internal = {.interventions.changes.row_bias = row_bias};
    deberta_session_options options = *given;
    masked_reader reader = {0};
    size_t masks, floats = 0;
    masked_texts_largest_batch(texts, batch_tokens, &options.max_tokens, &masks);
    DEBERTA_TRY(masked_texts_head(&reader.head, model, MASKED_DECODER_TRAINED, err));
    reader.width = deberta_task_width(model, reader.head);
    if (reader.head == DEBERTA_TASK_MLM_EMD) options.features |= DEBERTA_KEEP_DECODER_INPUT;
    float *logits = size_multiply(masks, reader.width, &floats) ? malloc((floats + 1) * sizeof *logits) : NULL;
    deberta_status status =
        logits ? session_create_within(&reader.session, model, &options, &internal, floats * sizeof *logits, err)
               : status_fail(err, DEBERTA_E_MEMORY, "no memory for the logits");
    for (size_t first = 0, end; status == DEBERTA_OK && first < texts->count; first = end) {
        end = masked_texts_batch_end(texts, first, batch_tokens);
        status = masked_texts_read(texts, &reader, first, end, logits, err);
        if (status == DEBERTA_OK) masked_texts_loss(texts, logits, reader.width, first, end, loss);
    }
    deberta_session_free(&reader.session);
    free(logits);
    return status;
}
