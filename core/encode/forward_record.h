/* Describes what a forward pass of training records for the backward pass: queries, keys, values, softmax statistics
 * and the sums before norms of every layer; and what training changes in it: dropout, embeddings, positions.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/encode/dropout.h"
#include "core/kernels.h"

/* The record of a run through a layer for the backward pass. The session uses queries ... context and normed instead of
 * its own memory, in the same layouts; it fills the other pieces in addition. Rows are tokens, or the rows of a pass of
 * the decoder; strides are the session's. */
typedef struct layer_record {
    size_t layer, pass;   /* pass: number of the decoder's pass */
    const size_t *tokens; /* token of each row; NULL: row i is token i */
    float *input;         /* [rows][hidden_stride]; NULL: not kept */
    float *queries, *context;
    float *keys, *values;           /* in a pass of the decoder, those of the layer, for all tokens */
    float *maximum, *inverse_total; /* [A][tokens]: softmax maximum and inverse sum of each query */
    float *exponentials; /* [A][tokens][exponentials_stride]: exp(s - maximum) of every query; NULL: recomputed */
    size_t exponentials_stride; /* stride of exponentials; longer sequences keep none, nor do sequences of several
                                   chunks of keys */
    float *attention_sum;       /* [rows][normed_stride]: before the norm, */
    float *normed;              /* [rows][normed_stride]: after the norm */
    float *inner;               /* [rows][inner_stride]: before the activation */
    float *output_sum;          /* [rows][hidden_stride]: before the norm */
} layer_record;

/* Returns the exponentials from row `row` of [A][tokens] on, of a sequence of n tokens; NULL where they are not kept.
 */
static inline float *record_exponentials(const layer_record *record, size_t row, size_t n)
{
    const size_t stride = record->exponentials_stride;
    return record->exponentials && n <= stride && n <= KEY_CHUNK ? record->exponentials + row * stride : NULL;
}

/* Replaces the positions that each sequence of a batch reads, for an attribution that follows a path from a baseline to
 * the model's positions (train/attribution/). The caller owns the memory. */
typedef struct position_change {
    void *context;
    /* Fills keys and queries for this layer; called before the layer is run, forward or back. */
    void (*begin_layer)(void *context, size_t layer);
    /* Replacements of a layer's position_keys and position_queries; those of one sequence follow those of the one
     * before it at a distance of `stride` floats. NULL: the model's. */
    float *keys, *queries;
    size_t keys_stride, queries_stride;
    const float *absolute; /* [sequences]: factors of the rows of positions that the Enhanced Mask Decoder adds */
} position_change;

/* The record of a whole encode. */
typedef struct forward_record {
    layer_record *layers;  /* [L] */
    layer_record *decoder; /* [2]: the passes of the Enhanced Mask Decoder */
    bool decoder_only;  /* whether the last layer computes only keys and values, which are all that the decoder needs */
    float *embedded;    /* [tokens][hidden_stride]: before the norm */
    float *narrow;      /* [tokens][normed_stride]: before the projection; NULL if there is none */
    float *convolution; /* [tokens][hidden_stride]: before the activation, */
    float *convolution_sum; /* [tokens][hidden_stride]: before the norm */
    /* Callback that may change rows before the norm of the embeddings, [count][hidden_stride] from token `first` on;
     * NULL: none. Several threads call it. */
    void (*edit_embedded)(void *context, float *rows, size_t first, size_t count);
    void *edit_context;
    /* dropout of the pass; NULL: none. The relative table is dropped where its projections are folded */
    const dropout_plan *dropout;
    const position_change *positions; /* positions of each sequence; NULL: those of the model */
} forward_record;
