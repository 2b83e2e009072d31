/* What a step of training works with: a model whose weights come from a parameter_set, a session that records its
 * forward passes, transposed weights, and the buffers of the backward pass. All memory is taken once, for max_tokens.
 *
 * Modules, from the bottom up (docs/training.md):
 *     parameters         named tensors and their gradients        bindings       packed matrices back to named tensors
 *     products           products and sums over tokens, threaded  table_rows     sums of rows that were looked up
 *     shard_groups       which shards are in memory               gradient_tree  sums of those that wait for others
 *     backward_*         one piece of the encoder each            head_*         logits, loss and gradient of one head
 *     step               one batch forward and backward           step_batch     what a step reads
 *     pair_records       one way back through two forward passes
 *
 * Letters as in core/model/session.h. "Parts" are the shards of a step: its sequences lie in the order of their shards,
 * and every sum over tokens is cut at their borders (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_LEARNER_H
#define TRAIN_LEARNER_H

#include "core/model/session.h"
#include "train/engine/bindings.h"
#include "train/engine/counters.h"
#include "train/engine/gradient_tree.h"
#include "train/engine/query_run.h"
#include "train/engine/parameters.h"
#include "train/engine/shard_groups.h"
#include "train/engine/stage_clock.h"

enum {
    VOCABULARY_WORDS = 64, /* of the word table that a thread works on at a time */
    VOCABULARY_CHUNK = 256,
    VOCABULARY_PANELS = 24, /* of columns of it */
    QUERY_BLOCK = 128,      /* queries of a block of the backward attention: part of the arithmetic */
    DECODER_PASSES = 2,
    DEFAULT_SHARDS = 16,
};

/* Transposed packed weights of a layer: for gradients of inputs. */
typedef struct transposed_layer {
    packed_matrix qkv, attention_output, intermediate, output, position_key, position_query;
} transposed_layer;

/* What a thread needs in the backward attention. Sizes: carve_attention in learner_memory.c. */
typedef struct attention_scratch {
    worker_scratch forward;            /* for attention_logits: strip, transposed, bias, logits (which become P) */
    float *gradients;                  /* [QUERY_BLOCK][logits_stride]: dP, then dS */
    float *strip;                      /* [max(QUERY_BLOCK, 512)][fold_stride] */
    float *delta;                      /* [QUERY_BLOCK] */
    float *packed_keys, *far_p2c;      /* as an attention_head has them */
    float *packed_values;              /* [ceil(n / 16)][d][16] */
    float *key_columns;                /* [dp / 16][n][16] */
    float *table_keys, *table_queries; /* [2K][dp]: dPK by place, dPQ by row, of one sequence */
} attention_scratch;

typedef struct learner_options {
    size_t threads;
    size_t max_tokens, longest; /* of a step; of a sequence, read with micro_tokens only */
    size_t parts;
    size_t micro_tokens; /* that are in memory at once, whole shards of them; 0: all of a step */
    deberta_isa isa;
    deberta_reference reference;
    size_t memory_limit_bytes; /* 0: none */
    bool moments;              /* an optimiser will hold two more numbers a weight */
    bool decodes;              /* the loss reads the Enhanced Mask Decoder, and nothing reads H[L] */
    bool predicts_words;       /* the loss is that of a masked language model */
    bool drops;                /* a step may have dropout */
    bool recomputes;           /* of the layers only inputs are kept; each runs again before its way back */
    bool pairs_up; /* half of a step's rows go forward before the others (SiFT). Not where memory is saved */
    bool differs;  /* has differences beside the tables that a generator shares: added as zeros where there are none */
    const struct new_head *head; /* in place of the model's own; NULL: as it is. Read while opening */
    bool begins;                 /* the folder has a configuration and no weights: all are new */
    uint32_t seed;               /* of new weights */
} learner_options;

/* One run through a layer, backwards: its record, and the gradients of what lies between its pieces. The decoder runs
 * twice through the last layer, so that both are there when weights are summed up. */
typedef struct layer_pass {
    const layer_record *record;
    size_t rows;
    const size_t *bounds;                             /* [parts + 1] of the rows */
    float *d_output;                                  /* [rows][hidden_stride] */
    float *d_output_sum, *d_attention_sum, *d_normed; /* [rows][normed_stride]: before and behind the norms */
    /* The same before the norms of what is behind dropout; without it these are those. */
    float *d_output_product, *d_attention_product;
    float *dropped[2];          /* [rows][normed_stride]: their own memory */
    float *activated, *d_inner; /* [rows][inner_stride]: act(u), du */
    float *d_context;           /* [rows][context_stride] */
    float *d_queries;           /* of the decoder: [rows][row_stride(A dp)] */
} layer_pass;

/* What a forward pass leaves beside the records of its layers: see forward_record. */
typedef struct embedding_rows {
    float *embedded, *narrow, *convolution, *convolution_sum;
} embedding_rows;

typedef enum pair_half { PAIR_CLEAN, PAIR_MOVED, PAIR_HALVES } pair_half;

/* Of a learner that pairs up (pair_records.h). */
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

/* What any matrix or norm of the model needs for its gradient: that of its weights, that of a vector. */
typedef struct gradient_room {
    size_t weight_floats, vector_floats;
} gradient_room;

typedef enum folded_state { FOLDED_PLAIN, FOLDED_WITH_DROPOUT, NOT_FOLDED } folded_state;

/* Tables of projected positions: PK by place, PQ by row. */
enum { TABLE_KEYS, TABLE_QUERIES, POSITION_TABLES };

typedef struct table_range {
    size_t first, end;
} table_range;

typedef struct learner {
    parameter_set set;
    char *config; /* the text of config.json, as it is saved: of a new head, with its labels */
    deberta_model *model;
    deberta_session *session;
    binding_list bindings;
    learner_options options;
    arena arena;

    /* Shapes, from model and session. Rows of activations: those of a group of shards. */
    shard_plan plan;
    size_t tokens_capacity, heads_width; /* A dp */
    size_t qkv_stride;                   /* of rows that hold dq, dk and dv of all heads */
    gradient_room largest;               /* what weight and vector have room for */
    size_t fold_stride;                  /* of strips of dS */

    transposed_layer *transposed; /* [L] */
    packed_matrix transposed_convolution, transposed_projection, transposed_mlm_dense, transposed_rtd_dense,
        transposed_rtd_classifier, transposed_pooler, transposed_classifier, transposed_answer;

    /* What forward passes leave. */
    /* [L], of the pass at hand; with options.recomputes only their inputs are memory of their own. */
    layer_record *records;
    layer_record decoder_records[DECODER_PASSES]; /* rows: the labelled tokens */
    forward_record forward;                       /* what the session writes to: points into these */
    pair_memory pairs;

    /* Gradients of activations. Rows: tokens; strides of the session. */
    float *d_input,
        *d_first;        /* [T][hidden_stride]: before a layer (behind it: passes), and what reaches H[0] besides */
    float *head_rows[4]; /* [T][normed_stride]: what heads work with */
    float *d_qkv;        /* [T][qkv_stride] */
    layer_pass passes[DECODER_PASSES]; /* an ordinary layer uses the first */
    float *gathered[2];                /* [2 T][..]: rows of both passes of the decoder, part by part */
    float *columns;                    /* [T][width x hidden_stride]: im2col of the convolution, and its gradient */
    float *vocabulary;                 /* [threads][vocabulary_stride]: words at work */
    size_t vocabulary_stride;
    float *logits; /* grows to what the steps need */
    size_t logits_capacity;
    float *second_weight, *second_vector; /* of position projections */
    float *weight, *vector; /* [largest]: a packed gradient, and that of its bias or of the two vectors of a norm */
    float *table_parts;     /* [2][parts][A][2K][dp]: dPK, dPQ of each shard */
    float *d_table, *table_work, *table_normal; /* [2K][hidden_stride] */
    table_range reached[POSITION_TABLES];       /* what the step's distances read, so that others have no gradient */
    float *table_columns;       /* [2][A][dp / 16][2K][16]: PK by place and PQ by row, for products over rows */
    query_run *runs;            /* [T] */
    attention_scratch *workers; /* [threads] */

    /* Dropout of the step at hand: forward.dropout is this plan, or NULL. */
    dropout_plan dropout;
    dropout_row *dropout_tokens;                              /* [T] */
    float *dropped_table, *dropped_reversed, *fold_workspace; /* of one layer: [2K][hidden_stride]; of a fold */
    folded_state folded;                                      /* what the layers have as projections of the table */

    /* Sums over tokens besides the parameters' gradients, and those of groups of shards that wait for others. */
    float *table_sums; /* [L][2][2K][A dp]: dPK, dPQ of each layer */
    float *looked_up;  /* [V][E]: of words looked up, where groups make the decoder's gradient of them too; else NULL */
    gradient_tree tree;

    /* The step at hand, and the shards of it that are in memory. */
    shard_group group;
    size_t *group_starts;                      /* [T + 1] */
    size_t part_bounds[MAX_ROW_PARTS + 1];     /* of the group's shards, in its tokens */
    size_t sequence_bounds[MAX_ROW_PARTS + 1]; /* in its sequences */
    const int32_t *ids;                        /* [T]: what the encoder reads */
    int32_t *drawn_ids;  /* of the whole step: a generator draws what it puts at labelled places; NULL: no */
    counter_key drawing; /* with these numbers */
    size_t *positions;   /* [T]: rows that the head reads */
    uint8_t *wanted;     /* [T] */
    double *losses;      /* [T] */
    uint64_t *order;     /* [T] */
    int32_t *row_ids;    /* [T] */
    /* May change the gradient of what enters the norm of the embeddings, [T][ld]; NULL: no. */
    void (*edit_backward)(void *context, float *d_rows, size_t ld);
    void *edit_context;
    bool weights_wanted; /* false: gradients of activations only (SiFT's ascent) */
    stage_clock *clock;  /* NULL: nobody asks */
} learner;

/* A part's gradient of a head's table of positions, [2K][dp]. */
static inline float *table_part(const learner *l, size_t which, size_t part, size_t head)
{
    const size_t floats = l->model->relative_rows * l->model->padded_head;
    return l->table_parts + ((which * l->options.parts + part) * l->model->config.heads + head) * floats;
}

static inline float *learner_table_sums(const learner *l, size_t layer)
{
    return l->table_sums + layer * POSITION_TABLES * l->model->relative_rows * l->heads_width;
}

static inline const kernels *learner_kernels(const learner *l) { return &l->session->kernels; }

#endif
