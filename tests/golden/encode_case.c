/* Padding is cut, the batch is encoded with an observer, and what it shows is collected.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/golden/encode_case.h"

#include "core/encode/session.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ batch */

/* Columns [*first, *end) between the first and the last real token of a row; all of them if there is none. */
static void real_range(const double *mask, size_t columns, size_t *first, size_t *end)
{
    *first = 0;
    *end = columns;
    while (*first < columns && mask[*first] == 0) ++*first;
    while (*end > *first && mask[*end - 1] == 0) --*end;
    if (*first == *end) {
        *first = 0;
        *end = columns;
    }
}

deberta_status ragged_create(ragged_batch *batch, size_t rows, size_t columns, const double *ids, const double *mask,
                             const double *types, deberta_error *err)
{
    size_t capacity = rows * columns;
    *batch = (ragged_batch){.sequences = rows,
                            .starts = calloc(rows + 1, sizeof *batch->starts),
                            .first_column = calloc(rows, sizeof *batch->first_column),
                            .ids = calloc(capacity, sizeof *batch->ids),
                            .types = calloc(capacity, sizeof *batch->types),
                            .positions = calloc(capacity, sizeof *batch->positions),
                            .mask = calloc(capacity, sizeof *batch->mask)};
    if (!batch->starts || !batch->first_column || !batch->ids || !batch->types || !batch->positions || !batch->mask) {
        ragged_free(batch);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a batch of %zu tokens", capacity);
    }
    for (size_t row = 0; row < rows; row++) {
        size_t first, end;
        real_range(mask + row * columns, columns, &first, &end);
        batch->first_column[row] = first;
        for (size_t column = first; column < end; column++) {
            size_t from = row * columns + column, to = batch->tokens++;
            batch->ids[to] = (int32_t)ids[from];
            batch->types[to] = (int32_t)types[from];
            batch->positions[to] = (int32_t)column;
            batch->mask[to] = mask[from] != 0;
            batch->has_holes = batch->has_holes || mask[from] == 0;
        }
        batch->starts[row + 1] = batch->tokens;
        if (end - first > batch->longest) batch->longest = end - first;
    }
    return DEBERTA_OK;
}

void ragged_free(ragged_batch *batch)
{
    free(batch->starts);
    free(batch->first_column);
    free(batch->ids);
    free(batch->types);
    free(batch->positions);
    free(batch->mask);
    *batch = (ragged_batch){0};
}

deberta_batch ragged_view(const ragged_batch *batch)
{
    bool shifted = false; /* the default positions are right unless a row was padded on the left */
    for (size_t row = 0; row < batch->sequences; row++) shifted = shifted || batch->first_column[row] > 0;
    return (deberta_batch){.struct_size = sizeof(deberta_batch),
                           .ids = batch->ids,
                           .sequence_starts = batch->starts,
                           .sequences = batch->sequences,
                           .token_types = batch->types,
                           .position_ids = shifted ? batch->positions : NULL,
                           .mask = batch->has_holes ? batch->mask : NULL};
}

/* ---------------------------------------------------------------------------------------------------------- collect */

static float **attention_slot(const collected *r, size_t layer, deberta_component component, size_t sequence)
{
    return &r->attention[(layer * DEBERTA_COMPONENT_COUNT + (size_t)component) * r->sequences + sequence];
}

float *collected_attention(const collected *r, size_t layer, deberta_component component, size_t sequence)
{
    return r->attention ? *attention_slot(r, layer, component, sequence) : NULL;
}

typedef struct collector {
    collected *result;
    const collect_wish *wish;
} collector;

static deberta_status take_hidden(void *context, const deberta_hidden_block *block)
{
    collected *r = ((collector *)context)->result;
    size_t h = r->info.hidden_size;
    if (block->layer > r->info.layers || block->tokens != r->tokens || block->columns != h || block->stride < h) {
        r->bad_block = true;
        return DEBERTA_OK;
    }
    float *to = block->layer == r->info.layers ? r->last_observed : r->hidden + block->layer * r->tokens * h;
    for (size_t t = 0; t < r->tokens; t++) memcpy(to + t * h, block->values + t * block->stride, h * sizeof *to);
    return DEBERTA_OK;
}

static int ask_wish(void *context, size_t layer, size_t head, deberta_component component)
{
    const collect_wish *wish = ((collector *)context)->wish;
    return wish->wants(wish->context, layer, head, component);
}

static deberta_status take_attention(void *context, const deberta_attention_block *block)
{
    collected *r = ((collector *)context)->result;
    bool inside = block->layer < r->info.layers && block->head < r->info.heads && block->sequence < r->sequences &&
                  (unsigned)block->component < DEBERTA_COMPONENT_COUNT;
    size_t n = inside ? r->starts[block->sequence + 1] - r->starts[block->sequence] : 0;
    if (!inside || block->keys != n || block->stride < n || block->first_query + block->rows > n) {
        r->bad_block = true;
        return DEBERTA_OK;
    }
    float **slot = attention_slot(r, block->layer, block->component, block->sequence);
    if (!*slot) *slot = calloc(r->info.heads * n * n, sizeof **slot);
    if (!*slot) {
        r->bad_block = true;
        return DEBERTA_OK;
    }
    float *to = *slot + (block->head * n + block->first_query) * n;
    for (size_t i = 0; i < block->rows; i++) memcpy(to + i * n, block->values + i * block->stride, n * sizeof *to);
    return DEBERTA_OK;
}

static deberta_status collect_head(collected *r, deberta_session *session, const deberta_model *model,
                                   deberta_task head, deberta_error *err)
{
    size_t count = head == DEBERTA_TASK_SEQUENCE ? r->sequences : r->tokens;
    r->width[head] = deberta_task_width(model, head);
    if (r->width[head] == 0) return DEBERTA_OK;
    size_t *positions = calloc(count, sizeof *positions);
    r->logits[head] = calloc(count * r->width[head], sizeof(float));
    deberta_status status = positions && r->logits[head] ? DEBERTA_OK : DEBERTA_E_MEMORY;
    for (size_t i = 0; positions && i < count; i++) positions[i] = i;
    if (status == DEBERTA_OK)
        status = deberta_task_logits(session, head, positions, count, r->logits[head], r->width[head], err);
    free(positions);
    return status;
}

static deberta_status allocate_result(collected *r, const deberta_model *model, const deberta_batch *batch,
                                      const encode_request *request, deberta_error *err)
{
    *r = (collected){.sequences = batch->sequences, .tokens = batch->sequence_starts[batch->sequences]};
    r->info = *deberta_model_describe(model);
    size_t h = r->info.hidden_size, slots = r->info.layers * DEBERTA_COMPONENT_COUNT * r->sequences;
    r->starts = calloc(r->sequences + 1, sizeof *r->starts);
    r->hidden = calloc((r->info.layers + 1) * r->tokens * h, sizeof *r->hidden);
    r->last_observed = calloc(r->tokens * h, sizeof *r->last_observed);
    r->attention = request->attention.wants ? calloc(slots + 1, sizeof *r->attention) : NULL;
    if (!r->starts || !r->hidden || !r->last_observed || (request->attention.wants && !r->attention))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the results of %zu tokens", r->tokens);
    memcpy(r->starts, batch->sequence_starts, (r->sequences + 1) * sizeof *r->starts);
    return DEBERTA_OK;
}

deberta_status encode_session(deberta_session **session, const deberta_model *model, size_t max_tokens,
                              const encode_request *request, deberta_error *err)
{
    deberta_session_options options = {
        .struct_size = sizeof options, .isa = request->isa, .max_tokens = max_tokens, .threads = request->threads};
    if (request->observe_hidden) options.features |= DEBERTA_OBSERVE_HIDDEN;
    if (request->attention.wants) options.features |= DEBERTA_OBSERVE_ATTENTION;
    if (request->heads & 1u << DEBERTA_TASK_MLM_EMD) options.features |= DEBERTA_KEEP_DECODER_INPUT;
    DEBERTA_TRY(deberta_session_create(session, model, &options, err));
    if (request->replace) request->replace(&(*session)->kernels);
    return DEBERTA_OK;
}

deberta_status encode_with(deberta_session *session, collected *r, const deberta_model *model,
                           const deberta_batch *batch, const encode_request *request, deberta_error *err)
{
    deberta_status status;
    collector context = {r, &request->attention};
    deberta_observer observer = {.struct_size = sizeof observer,
                                 .context = &context,
                                 .on_hidden = request->observe_hidden ? take_hidden : NULL,
                                 .wants_attention = request->attention.wants ? ask_wish : NULL,
                                 .on_attention = request->attention.wants ? take_attention : NULL};
    bool observing = request->observe_hidden || request->attention.wants;
    deberta_batch observed = *batch;
    if (observing) observed.observer = &observer;
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY_OR_FAIL(status, allocate_result(r, model, batch, request, err));
    DEBERTA_TRY_OR_FAIL(status, deberta_encode(session, &observed, &outputs, err));
    size_t h = r->info.hidden_size;
    float *last = r->hidden + r->info.layers * r->tokens * h;
    for (size_t t = 0; t < r->tokens; t++)
        memcpy(last + t * h, outputs.hidden + t * outputs.hidden_stride, h * sizeof *last);
    for (size_t head = 0; head < DEBERTA_TASK_COUNT; head++) {
        if (request->heads & 1u << head)
            DEBERTA_TRY_OR_FAIL(status, collect_head(r, session, model, (deberta_task)head, err));
    }
    return DEBERTA_OK;
fail:
    collected_free(r);
    return status;
}

deberta_status encode_and_collect(collected *r, const deberta_model *model, const ragged_batch *batch,
                                  const encode_request *request, deberta_error *err)
{
    deberta_session *session = NULL;
    deberta_batch view = ragged_view(batch);
    *r = (collected){0};
    DEBERTA_TRY(encode_session(&session, model, batch->tokens, request, err));
    deberta_status status = encode_with(session, r, model, &view, request, err);
    deberta_session_free(&session);
    return status;
}

void collected_free(collected *r)
{
    size_t slots = r->attention ? r->info.layers * DEBERTA_COMPONENT_COUNT * r->sequences : 0;
    for (size_t i = 0; i < slots; i++) free(r->attention[i]);
    for (size_t head = 0; head < DEBERTA_TASK_COUNT; head++) free(r->logits[head]);
    free(r->attention);
    free(r->starts);
    free(r->hidden);
    free(r->last_observed);
    *r = (collected){0};
}
