/* Products of a step of training are counted by stage, from the shape of the model and of the batch.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/training_cost.h"

#include <stdlib.h>

#include "output/scope.h"

const char *training_stage_name(training_stage stage)
{
    static const char *const names[TRAINING_STAGES] = {
        [TRAINING_BATCH] = "batch",
        [TRAINING_CLEAR] = "clear gradients",
        [TRAINING_FORWARD] = "forward",
        [TRAINING_DECODER] = "decoder",
        [TRAINING_HEAD] = "head",
        [TRAINING_HEAD_BACKWARD] = "head backward",
        [TRAINING_ATTENTION_BACKWARD] = "attention backward",
        [TRAINING_INPUT_GRADIENTS] = "input gradients",
        [TRAINING_WEIGHT_GRADIENTS] = "weight gradients",
        [TRAINING_TABLE_GRADIENTS] = "table gradients",
        [TRAINING_EMBEDDING_GRADIENTS] = "embedding gradients",
        [TRAINING_NORM] = "norm",
        [TRAINING_UPDATE] = "update",
        [TRAINING_PACK] = "packing",
    };
    return (unsigned)stage < TRAINING_STAGES ? names[stage] : "unknown";
}

/* Multiply-adds of the pieces of a forward pass, times two. */
typedef struct forward_work {
    double linear, attention; /* of the ordinary layers */
    double projection, convolution;
    double decoder_linear, decoder_attention;
    double table, head;
} forward_work;

static deberta_status add_layers(forward_work *work, const deberta_model_info *m, deberta_reference reference,
                                 const training_shape *shape, double *rows)
{
    cost layers = {0};
    size_t *lengths = memory_take(shape->sequences, sizeof *lengths);
    for (size_t i = 0; i < shape->sequences; i++) lengths[i] = shape->tokens;
    const cost_point point = {.lengths = lengths, .sequences = shape->sequences, .layers = m->layers - shape->decodes};
    cost_model_compute(&layers, m, reference, &point);
    free(lengths);
    work->linear = layers.stage[PROFILE_QKV].flops + layers.stage[PROFILE_ATTENTION_OUTPUT].flops +
                   layers.stage[PROFILE_FEED_FORWARD].flops;
    work->attention = layers.stage[PROFILE_ATTENTION].flops;
    work->projection = layers.stage[PROFILE_EMBED].flops;
    work->convolution = layers.stage[PROFILE_CONVOLUTION].flops;
    *rows = layers.table_rows;
    return DEBERTA_OK;
}

/* Two passes of the labelled rows; keys and values of all tokens. A pair's position terms are two dot products, or
 * strips where these are less. */
static void add_decoder(forward_work *work, const deberta_model_info *m, const training_shape *shape, double rows)
{
    const double h = (double)m->hidden_size, f = (double)m->intermediate_size, n = (double)shape->tokens;
    const double tokens = n * (double)shape->sequences, labelled = (double)shape->labelled;
    const double reached = rows < n ? rows : n, terms = (double)m->has_c2p + (double)m->has_p2c;
    work->decoder_linear = 2 * tokens * 2 * h * h + 2 * 2 * labelled * (2 * h * h + 2 * h * f);
    work->decoder_attention = 2 * labelled * (4 * n * h + terms * 2 * reached * h);
}

deberta_status training_cost_compute(training_cost *result, const deberta_model_info *m, deberta_reference reference,
                                     const training_shape *shape)
{
    forward_work work = {0};
    double rows = 0;
    const double h = (double)m->hidden_size, e = (double)m->embedding_size;
    *result = (training_cost){0};
    DEBERTA_TRY(add_layers(&work, m, reference, shape, &rows));
    if (shape->decodes) add_decoder(&work, m, shape, rows);
    work.table = (double)m->layers * ((double)m->has_c2p + (double)m->has_p2c) * 2 * rows * h * h;
    work.head = 2 * (double)shape->labelled * (h * e + e * (double)m->vocabulary_size);
    const double linear = work.linear + work.convolution + work.decoder_linear;
    double *flops = result->flops;
    flops[TRAINING_FORWARD] = work.linear + work.convolution + work.attention + work.projection;
    flops[TRAINING_DECODER] = work.decoder_linear + work.decoder_attention;
    flops[TRAINING_HEAD] = work.head;
    flops[TRAINING_HEAD_BACKWARD] = 2 * work.head;
    flops[TRAINING_ATTENTION_BACKWARD] = 2 * (work.attention + work.decoder_attention);
    flops[TRAINING_INPUT_GRADIENTS] = flops[TRAINING_WEIGHT_GRADIENTS] = linear;
    flops[TRAINING_TABLE_GRADIENTS] = 2 * work.table;
    flops[TRAINING_EMBEDDING_GRADIENTS] = 2 * work.projection;
    flops[TRAINING_PACK] = work.table;
    for (size_t stage = 0; stage < TRAINING_STAGES; stage++) result->total += flops[stage];
    return DEBERTA_OK;
}
