/* A phrase and its variants are encoded as one batch, and their states and attention are compared token by token.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/position_shift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const size_t position_amounts[POSITION_AMOUNTS] = {1, 16, 64};

enum { SEQUENCES = 1 + POSITION_VARIANTS }; /* of a batch: sequence 0 is the phrase alone */

/* One phrase in all its variants as one batch, and what is observed of it. */
typedef struct shift_work {
    const position_shift_input *input;
    position_shift *shift;
    size_t phrase, length;          /* number, and tokens of it */
    size_t starts[SEQUENCES + 1];   /* of the sequences in the batch */
    size_t phrase_start[SEQUENCES]; /* of the phrase in each sequence */
    int32_t *ids, *positions;       /* [position_shift_tokens] */
    float *probabilities;           /* [sequences][L][A][length][length] */
} shift_work;

size_t position_shift_tokens(size_t longest_phrase)
{
    size_t extra = 0;
    for (size_t k = 0; k < POSITION_AMOUNTS; k++) extra += position_amounts[k];
    return SEQUENCES * (longest_phrase + 2) + 2 * extra;
}

/* -------------------------------------------------------------------------------------------------------- the batch */

static size_t tokens_of(const position_shift_input *input, size_t phrase)
{
    return input->starts[phrase + 1] - input->starts[phrase];
}

static void append(shift_work *work, size_t *at, size_t first_position, size_t from, size_t count)
{
    const position_shift_input *input = work->input;
    const size_t all = input->starts[input->phrases];
    for (size_t k = 0; k < count; k++, ++*at) {
        work->ids[*at] = input->tokens[(from + k) % all];
        work->positions[*at] = (int32_t)(first_position + k);
    }
}

static void append_special(shift_work *work, size_t *at, size_t position, int32_t id)
{
    work->ids[*at] = id;
    work->positions[(*at)++] = (int32_t)position;
}

static void fill_sequence(shift_work *work, size_t sequence, size_t later, size_t before, size_t after)
{
    const size_t *starts = work->input->starts + work->phrase;
    size_t at = work->starts[sequence], position = later;
    append_special(work, &at, position++, work->input->first);
    append(work, &at, position, starts[1], before);
    work->phrase_start[sequence] = 1 + before;
    append(work, &at, position += before, starts[0], work->length);
    append(work, &at, position += work->length, starts[1], after);
    append_special(work, &at, position + after, work->input->last);
    work->starts[sequence + 1] = at;
}

static void fill_batch(shift_work *work)
{
    fill_sequence(work, 0, 0, 0, 0);
    for (size_t variant = 0; variant < POSITION_VARIANTS; variant++) {
        const size_t change = variant / POSITION_AMOUNTS, amount = position_amounts[variant % POSITION_AMOUNTS];
        fill_sequence(work, variant + 1, change == POSITION_IDS_LATER ? amount : 0,
                      change == POSITION_TOKENS_BEFORE ? amount : 0, change == POSITION_TOKENS_AFTER ? amount : 0);
    }
}

/* ------------------------------------------------------------------------------------------------------ observation */

static double squared_distance(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t k = 0; k < count; k++) sum += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
    return sum;
}

static deberta_status on_hidden(void *context, const deberta_hidden_block *block)
{
    shift_work *work = context;
    position_shift *shift = work->shift;
    const size_t n = work->length, h = work->input->model->hidden_size;
    const size_t stride = block->stride, layer = block->layer;
    const float *alone = block->values + work->phrase_start[0] * stride;
    double spread = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) spread += squared_distance(alone + i * stride, alone + j * stride, h);
    shift->spread[layer * shift->phrases + work->phrase] = spread / (0.5 * (double)(n * (n - 1)));
    for (size_t variant = 0; variant < POSITION_VARIANTS; variant++) {
        const float *there = block->values + (work->starts[variant + 1] + work->phrase_start[variant + 1]) * stride;
        double moved = 0;
        for (size_t i = 0; i < n; i++) moved += squared_distance(alone + i * stride, there + i * stride, h);
        shift->moved[(variant * (shift->layers + 1) + layer) * shift->phrases + work->phrase] = moved / (double)n;
    }
    return DEBERTA_OK;
}

static float *probabilities_at(shift_work *work, size_t sequence, size_t layer, size_t head)
{
    const deberta_model_info *model = work->input->model;
    return work->probabilities +
           ((sequence * model->layers + layer) * model->heads + head) * work->length * work->length;
}

static int wants_attention(void *context, size_t layer, size_t head, deberta_component component)
{
    (void)context, (void)layer, (void)head;
    return component == DEBERTA_PROBABILITIES;
}

/* Keeps the phrase's queries over the phrase's keys. */
static deberta_status on_attention(void *context, const deberta_attention_block *block)
{
    shift_work *work = context;
    const size_t n = work->length, start = work->phrase_start[block->sequence];
    float *kept = probabilities_at(work, block->sequence, block->layer, block->head);
    for (size_t i = 0; i < n; i++) {
        const size_t query = start + i;
        if (query < block->first_query || query >= block->first_query + block->rows) continue;
        memcpy(kept + i * n, block->values + (query - block->first_query) * block->stride + start, n * sizeof *kept);
    }
    return DEBERTA_OK;
}

/* Half the sum of |p - q| after both are made to sum to 1. */
static double total_variation(const float *p, const float *q, size_t count)
{
    double p_sum = 0, q_sum = 0, sum = 0;
    for (size_t j = 0; j < count; j++) {
        p_sum += (double)p[j];
        q_sum += (double)q[j];
    }
    if (!(p_sum > 0 && q_sum > 0)) return 0; /* nothing to compare: the queries look outside the phrase alone */
    for (size_t j = 0; j < count; j++) sum += fabs((double)p[j] / p_sum - (double)q[j] / q_sum);
    return 0.5 * sum;
}

static void compare_attention(shift_work *work)
{
    position_shift *shift = work->shift;
    const size_t n = work->length, heads = work->input->model->heads;
    for (size_t variant = 0; variant < POSITION_VARIANTS; variant++) {
        for (size_t layer = 0; layer < shift->layers; layer++) {
            double sum = 0;
            for (size_t head = 0; head < heads; head++) {
                const float *alone = probabilities_at(work, 0, layer, head);
                const float *there = probabilities_at(work, variant + 1, layer, head);
                for (size_t i = 0; i < n; i++) sum += total_variation(alone + i * n, there + i * n, n);
            }
            shift->attention[(variant * shift->layers + layer) * shift->phrases + work->phrase] =
                sum / (double)(heads * n);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------- the run */

static deberta_status create(shift_work *work, deberta_error *err)
{
    const position_shift_input *input = work->input;
    position_shift *shift = work->shift;
    const size_t layers = input->model->layers, phrases = input->phrases;
    size_t longest = 0;
    for (size_t k = 0; k < phrases; k++)
        if (tokens_of(input, k) > longest) longest = tokens_of(input, k);
    *shift = (position_shift){.phrases = phrases, .layers = layers};
    shift->moved = calloc(POSITION_VARIANTS * (layers + 1) * phrases, sizeof *shift->moved);
    shift->spread = calloc((layers + 1) * phrases, sizeof *shift->spread);
    shift->attention = calloc(POSITION_VARIANTS * layers * phrases, sizeof *shift->attention);
    work->ids = calloc(position_shift_tokens(longest), sizeof *work->ids);
    work->positions = calloc(position_shift_tokens(longest), sizeof *work->positions);
    work->probabilities = calloc(SEQUENCES * layers * input->model->heads, longest * longest * sizeof(float));
    if (!shift->moved || !shift->spread || !shift->attention || !work->ids || !work->positions || !work->probabilities)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu phrases", phrases);
    return DEBERTA_OK;
}

static deberta_status measure_phrase(shift_work *work, deberta_error *err)
{
    fill_batch(work);
    const deberta_observer observer = {.struct_size = sizeof observer,
                                       .context = work,
                                       .on_hidden = on_hidden,
                                       .wants_attention = wants_attention,
                                       .on_attention = on_attention};
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = work->ids,
                                 .sequence_starts = work->starts,
                                 .sequences = SEQUENCES,
                                 .position_ids = work->positions,
                                 .observer = &observer};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(deberta_encode(work->input->session, &batch, &outputs, err));
    compare_attention(work);
    return DEBERTA_OK;
}

deberta_status position_shift_measure(position_shift *shift, const position_shift_input *input, deberta_error *err)
{
    shift_work work = {.input = input, .shift = shift};
    deberta_status status = create(&work, err);
    for (work.phrase = 0; status == DEBERTA_OK && work.phrase < input->phrases; work.phrase++) {
        work.length = tokens_of(input, work.phrase);
        status = measure_phrase(&work, err);
        if (status == DEBERTA_OK && input->progress) input->progress(input->context, work.phrase + 1);
    }
    free(work.ids);
    free(work.positions);
    free(work.probabilities);
    if (status != DEBERTA_OK) position_shift_free(shift);
    return status;
}

void position_shift_free(position_shift *shift)
{
    free(shift->moved);
    free(shift->spread);
    free(shift->attention);
    *shift = (position_shift){0};
}
