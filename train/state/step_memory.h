/* The memory that the steps of a learner work in: taken once, for the largest group of shards, and carved from one
 * arena (learner_memory.c). No value in it outlives a step, except what packed tables hold (`folded`).
 *
 * Letters as in core/encode/session.h, strides are the session's. Rows: T tokens of a group of shards.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"
#include "train/state/gradient_tree.h"

enum {
    VOCABULARY_WORDS = 64, /* of the word table that a thread works on at a time */
    VOCABULARY_CHUNK = 256,
    VOCABULARY_PANELS = 24, /* of columns of it */
    QUERY_BLOCK = 128,      /* queries of a block of the backward attention: part of the arithmetic */
    DECODER_PASSES = 2,
};

/* The gradient that layers hand down to each other: a layer reads that of its output, and writes that of its input.
 * Between two layers carried_hand_down makes the second the first, so each array is in turn the one and the other:
 * nobody keeps a pointer to either beyond a layer. */
typedef struct carried_gradient {
    float *output, *input; /* [T][hidden_stride] */
} carried_gradient;

/* The gradient of a layer's input is that of the output of the layer before it. */
static inline void carried_hand_down(carried_gradient *carried)
{
    *carried = (carried_gradient){.output = carried->input, .input = carried->output};
}

/* Consecutive queries of one sequence: `row` is where they are among the rows of a record, `place` in the sequence. */
typedef struct query_run {
    size_t sequence, place, row, count;
} query_run;

/* What a thread needs in the backward attention. Sizes: carve_attention in learner_memory.c. */
typedef struct attention_scratch {
    worker_scratch forward;            /* for attention_logits: strip, transposed, bias, logits (which become P) */
    float *gradients;                  /* [QUERY_BLOCK][scores_stride]: dP, then dS; zeros before, between, behind */
    float *strip;                      /* [max(QUERY_BLOCK, 512)][fold_stride] */
    float *delta;                      /* [QUERY_BLOCK] */
    float *packed_keys, *far_p2c;      /* as an attention_head has them */
    float *packed_values;              /* [ceil(n / 16)][d][16] */
    float *key_columns;                /* [dp / 16][n][16] */
    float *table_keys, *table_queries; /* [2K][dp]: dPK by place, dPQ by row, of one sequence */
} attention_scratch;

/* Matrices of a layer. */
typedef enum layer_matrix {
    MATRIX_QKV,
    MATRIX_ATTENTION_OUTPUT,
    MATRIX_INTERMEDIATE,
    MATRIX_OUTPUT,
    MATRIX_POSITION_KEY,
    MATRIX_POSITION_QUERY,
    LAYER_MATRICES
} layer_matrix;

/* Transposed packed weights of a layer. There is room for one: the way back needs them layer by layer. */
typedef struct transposed_layer {
    packed_matrix matrices[LAYER_MATRICES];
    size_t layers[LAYER_MATRICES]; /* whose weights each one holds, + 1; 0: nobody's */
} transposed_layer;

/* One run through a layer, backwards: its record, and the gradients of what lies between its pieces. The decoder runs
 * twice through the last layer, so that both are there when weights are summed up. */
typedef struct layer_pass {
    const layer_record *record;
    size_t rows;
    const size_t *bounds; /* [parts + 1] of the rows */
    float *d_output;      /* [rows][hidden_stride]: the carried gradient, or memory of the decoder's second pass */
    float *d_output_sum, *d_attention_sum, *d_normed; /* [rows][normed_stride]: before and after the norms */
    /* The gradients of products whose outputs are dropped; without dropout they are those of the sums. */
    float *d_output_product, *d_attention_product;
    float *dropped[2]; /* [rows][normed_stride]: their own memory */
    float *d_inner;    /* [rows][inner_stride] */
    float *d_context;  /* [rows][context_stride] */
    float *d_queries;  /* of the decoder: [rows][row_stride(A dp)] */
} layer_pass;

/* What a forward pass leaves besides the records of its layers: see forward_record. */
typedef struct embedding_rows {
    float *embedded, *narrow, *convolution, *convolution_sum;
} embedding_rows;

typedef enum pair_half { PAIR_CLEAN, PAIR_MOVED, PAIR_HALVES } pair_half;

/* Memory of a learner that pairs up (pair_records.h). */
typedef struct pair_memory {
    layer_record *layers; /* [L]: what the halves are halves of, */
    embedding_rows rows;
    layer_record *half_layers[PAIR_HALVES]; /* [L] each */
    embedding_rows half_rows[PAIR_HALVES];
    float *hidden[PAIR_HALVES];  /* [T / 2][hidden_stride]: H[L] */
    layer_record *joined_layers; /* [L], all the same memory */
    embedding_rows joined_rows;
    pair_half half;           /* at hand */
    size_t kept[PAIR_HALVES]; /* tokens that wait in each; under AddressSanitizer nobody may touch their records */
    bool is_joined;
} pair_memory;

/* Tables of projected positions: PK by place, PQ by row. */
enum { TABLE_KEYS, TABLE_QUERIES, POSITION_TABLES };

/* What the layers have as projections of the relative table; with dropout those of one step. */
typedef struct folded_tables {
    enum { FOLDED_PLAIN, FOLDED_WITH_DROPOUT, NOT_FOLDED } state;
    dropout_plan plan;
} folded_tables;

typedef struct step_memory {
    arena arena;

    /* What forward passes leave. */
    layer_record *records; /* [L], of the pass at hand; where layers run again only their inputs have own memory */
    layer_record decoder_records[DECODER_PASSES]; /* rows: the labelled tokens */
    arena decoder_arena;                          /* of the decoder's passes, which grows to what the steps need: */
    size_t decoder_rows;                          /* R, of a group of shards */
    forward_record forward;                       /* what the session writes to: points into these */
    pair_memory pairs;

    /* Gradients of activations. */
    carried_gradient carried;
    float *d_first;                    /* [T][hidden_stride]: what reaches H[0] besides */
    float *head_rows[4];               /* [T][normed_stride]: what heads work with */
    float *d_qkv;                      /* [T][qkv_stride] */
    layer_pass passes[DECODER_PASSES]; /* an ordinary layer uses the first */
    float *gathered[2];                /* [2 R][..]: rows of both passes of the decoder, part by part */
    float *columns;                    /* [T][width x hidden_stride]: im2col of the convolution, and its gradient */
    float *vocabulary;                 /* [threads][vocabulary_stride]: words at work */
    size_t vocabulary_stride;
    float *logits; /* grows to what the steps need */
    size_t logits_capacity;
    attention_scratch *workers; /* [threads] */
    query_run *runs;            /* [T] */

    transposed_layer transposed;

    /* Gradients of weights, packed. */
    float *weight, *vector; /* [largest]: that of a matrix, and that of its bias or of the two vectors of a norm */
    float *second_weight, *second_vector;       /* of position projections */
    float *table_parts;                         /* [2][parts][A][2K][dp]: dPK, dPQ of each shard */
    float *d_table, *table_work, *table_normal; /* [2K][hidden_stride] */
    float *table_columns; /* [2][A][dp / 16][2K][16]: PK by place and PQ by row, for products over rows */

    /* Dropout. */
    dropout_row *dropout_tokens;                              /* [T] */
    float *dropped_table, *dropped_reversed, *fold_workspace; /* of one layer: [2K][hidden_stride]; of a fold */
    folded_tables folded;

    /* Sums over tokens besides the parameters' gradients, and those of groups of shards that wait for others. */
    float *table_sums; /* [L][2][2K][A dp]: dPK, dPQ of each layer */
    float *looked_up;  /* [V][E]: of words looked up, where groups make the decoder's gradient of them too; else NULL */
    gradient_tree tree;

    /* Lists of the group at hand. */
    size_t *group_starts; /* [T + 1] */
    size_t *positions;    /* [T]: rows that the head reads */
    uint8_t *wanted;      /* [T] */
    double *losses;       /* [T] */
    uint64_t *order;      /* [T] */
    int32_t *row_ids;     /* [T] */
} step_memory;
