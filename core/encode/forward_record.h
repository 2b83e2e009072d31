/* What a forward pass leaves for a backward pass (train/).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/kernels.h"
#include "core/encode/dropout.h"

/* What a run through a layer leaves for the way back. The session works in queries ... context and in normed instead of
 * in memory of its own, in the same layouts; the other pieces are filled beside. Rows: tokens, or those of a pass of
 * the decoder. Strides are the session's. */
typedef struct layer_record {
    size_t layer, pass;   /* pass: of the decoder */
    const size_t *tokens; /* of each row; NULL: row i is token i */
    float *input;         /* [rows][hidden_stride]; NULL: is not kept */
    float *queries, *context;
    float *keys, *values;           /* in a pass of the decoder those of the layer */
    float *maximum, *inverse_total; /* [A][tokens]: of the softmax of every query, */
    float *exponentials;            /* [A][tokens][exponentials_stride]: and exp(s - maximum); NULL: made again */
    size_t exponentials_stride;     /* longer sequences keep none, nor do those of several chunks of keys */
    float *attention_sum;           /* [rows][normed_stride]: before the norm, */
    float *normed;                  /* and after it */
    float *inner;                   /* [rows][inner_stride]: before the activation */
    float *output_sum;              /* [rows][hidden_stride]: before the norm */
} layer_record;

/* Those of query `row`, head by head, of a sequence of n tokens; NULL where they are not kept. */
static inline float *record_exponentials(const layer_record *record, size_t row, size_t n)
{
    const size_t stride = record->exponentials_stride;
    return record->exponentials && n <= stride && n <= KEY_CHUNK ? record->exponentials + row * stride : NULL;
}

/* What a whole encode records. */
typedef struct forward_record {
    layer_record *layers;   /* [L] */
    layer_record *decoder;  /* [2]: the passes of the Enhanced Mask Decoder */
    bool decoder_only;      /* the last layer makes keys and values alone, which are all that the decoder needs */
    float *embedded;        /* [tokens][hidden_stride]: before the norm */
    float *narrow;          /* [tokens][normed_stride]: before the projection; NULL if there is none */
    float *convolution;     /* [tokens][hidden_stride]: before the activation, */
    float *convolution_sum; /* and before the norm */
    /* May change rows before the norm of the embeddings, [count][hidden_stride] from token `first` on; NULL: no. Called
     * from several threads. */
    void (*edit_embedded)(void *context, float *rows, size_t first, size_t count);
    void *edit_context;
    const dropout_plan *dropout; /* NULL: none. The relative table is dropped where its projections are folded */
} forward_record;
