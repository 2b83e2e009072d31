/* The state that lasts for a whole run: a model whose weights come from a parameter_set, a session that records its
 * forward passes, transposed weights, and shapes. step_state.h describes one step; this file also describes the memory
 * that steps write to; docs/design.md has a map.
 *
 * Letters as in core/encode/session.h. "Parts" are the shards of a step: its sequences lie in the order of their
 * shards, and every sum over tokens is cut at their borders (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"
#include "include/deberta_training.h"
#include "train/state/parameters.h"
#include "train/state/shard_groups.h"
#include "train/state/stage_clock.h"

/* Bindings map a packed matrix or vector of the engine back to its named tensors: the loader's plan
 * (core/load/weight_loader.h), walked in reverse, adds a gradient to its tensor. */

typedef struct matrix_binding {
    const packed_matrix *matrix;
    matrix_plan plan;
    parameter *weights[MAX_PARTS], *biases[MAX_PARTS]; /* tensors of the parts; NULL: the part has no bias */
} matrix_binding;

typedef struct vector_binding {
    const float *vector;
    parameter *parameter;
} vector_binding;

typedef struct binding_list {
    parameter_set *set;
    matrix_binding *matrices;
    vector_binding *vectors;
    size_t matrix_count, matrix_capacity, vector_count, vector_capacity;
    bool out_of_memory;
} binding_list;

/* Returns a listener for the loader while it reads; *list has its set, and must not move. */
load_listener bindings_listener(binding_list *list);
void bindings_free(binding_list *list);

/* Adds a gradient of the packed matrix, [outputs][ld] with the columns of its depth, to the gradients of its tensors.
 * bias: [outputs] or NULL. */
void bindings_add_matrix(const binding_list *list, const packed_matrix *matrix, const float *gradient, size_t ld,
                         const float *bias, executor *executor);
/* Adds the gradient of one part of the matrix: qkv has 0 for queries and 1 for keys. */
void bindings_add_part(const binding_list *list, const packed_matrix *matrix, size_t part, const float *gradient,
                       size_t ld, const float *bias, executor *executor);
/* Multiplies gradients of scaled parts, such as the query projection, by their scale: once, after all have been
 * added. */
void bindings_scale(const binding_list *list, executor *executor);

/* Returns the tensor of this vector, or NULL. */
parameter *bindings_vector(const binding_list *list, const float *vector);

/* The working memory of a learner's steps is allocated once, for the largest group of shards, and carved from one arena
 * (learner_memory.c). No value in it outlives a step, except the packed tables (`folded`).
 *
 * Letters as in core/encode/session.h, strides are the session's. Rows: T tokens of a group of shards. */

enum {
    VOCABULARY_WORDS = 64, /* words of the table that a thread processes at a time */
    VOCABULARY_CHUNK = 256,
    VOCABULARY_PANELS = 24, /* panels of its columns */
    QUERY_BLOCK = 128,      /* queries of a block of the backward attention: part of the arithmetic */
    DECODER_PASSES = 2,
};

/* The gradient that layers pass to each other: a layer reads that of its output, and writes that of its input. Between
 * two layers carried_hand_down swaps the arrays, so no code keeps a pointer to either beyond a layer. */
typedef struct carried_gradient {
    float *output, *input; /* [T][hidden_stride] */
} carried_gradient;

/* Swaps the arrays: the gradient of a layer's input is that of the previous layer's output. */
static inline void carried_hand_down(carried_gradient *carried)
{
    *carried = (carried_gradient){.output = carried->input, .input = carried->output};
}

/* Consecutive queries of one sequence: `row` is their first row in a record, `place` their first place in the
 * sequence. */
typedef struct query_run {
    size_t sequence, place, row, count;
} query_run;

/* Private memory of a thread in the backward attention. carve_attention in learner_memory.c computes the sizes. */
typedef struct attention_scratch {
    worker_scratch forward; /* for attention_logits: strip, transposed, bias, logits (which become P) */
    float *gradients;       /* [QUERY_BLOCK][scores_stride]: dP, then dS, with zeros around and between the rows */
    float *strip;           /* [max(QUERY_BLOCK, 512)][fold_stride] */
    float *delta;           /* [QUERY_BLOCK] */
    float *packed_keys, *far_p2c;      /* as in an attention_head */
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

/* Transposed packed weights of a layer. There is room for one, because the backward pass needs them layer by layer. */
typedef struct transposed_layer {
    packed_matrix matrices[LAYER_MATRICES];
    size_t layers[LAYER_MATRICES]; /* layer of each matrix, + 1; 0: none */
} transposed_layer;

/* One backward run through a layer: its record, and the gradients between its pieces. The decoder runs twice through
 * the last layer, and both passes are present when weight gradients are summed. */
typedef struct layer_pass {
    const layer_record *record;
    size_t rows;
    const size_t *bounds; /* [parts + 1]: bounds of the rows */
    float *d_output;      /* [rows][hidden_stride]: the carried gradient, or memory of the decoder's second pass */
    float *d_output_sum, *d_attention_sum, *d_normed; /* [rows][normed_stride]: before and after the norms */
    /* The gradients of products whose outputs are dropped; without dropout they are those of the sums. */
    float *d_output_product, *d_attention_product;
    float *dropped[2]; /* [rows][normed_stride]: separate memory for them */
    float *d_inner;    /* [rows][inner_stride] */
    float *d_context;  /* [rows][context_stride] */
    float *d_queries;  /* the decoder's: [rows][row_stride(A dp)] */
} layer_pass;

/* Results of a forward pass besides the records of its layers: see forward_record. */
typedef struct embedding_rows {
    float *embedded, *narrow, *convolution, *convolution_sum;
} embedding_rows;

typedef enum pair_half { PAIR_CLEAN, PAIR_MOVED, PAIR_HALVES } pair_half;

/* Memory of a learner that pairs up (pair_records.h). */
typedef struct pair_memory {
    layer_record *layers; /* [L]: the memory that is halved, */
    embedding_rows rows;
    layer_record *half_layers[PAIR_HALVES]; /* [L] each */
    embedding_rows half_rows[PAIR_HALVES];
    float *hidden[PAIR_HALVES];  /* [T / 2][hidden_stride]: H[L] */
    layer_record *joined_layers; /* [L], all the same memory */
    embedding_rows joined_rows;
    pair_half half;           /* current half */
    size_t kept[PAIR_HALVES]; /* number of tokens that wait in each half; AddressSanitizer poisons their records */
    bool is_joined;
} pair_memory;

/* Tables of projected positions: PK by place, PQ by row. */
enum { TABLE_KEYS, TABLE_QUERIES, POSITION_TABLES };

/* The layers' projections of the relative table; with dropout those of one step. */
typedef struct folded_tables {
    enum { FOLDED_PLAIN, FOLDED_WITH_DROPOUT, NOT_FOLDED } state;
    dropout_plan plan;
} folded_tables;

typedef struct step_memory {
    arena arena;

    /* Results of forward passes. */
    layer_record *records; /* [L], of the current pass; where layers are recomputed, only their inputs have separate
                            * memory */
    layer_record decoder_records[DECODER_PASSES]; /* rows: the labelled tokens */
    arena decoder_arena;                          /* memory of the decoder's passes, which grows with the steps */
    size_t decoder_rows;                          /* R, for a group of shards */
    forward_record forward;                       /* the session's output, which points into these */
    pair_memory pairs;

    /* Gradients of activations. */
    carried_gradient carried;
    float *d_first;                    /* [T][hidden_stride]: direct contributions to H[0] */
    float *head_rows[4];               /* [T][normed_stride]: working rows of heads */
    float *d_qkv;                      /* [T][qkv_stride] */
    layer_pass passes[DECODER_PASSES]; /* an ordinary layer uses the first */
    float *gathered[2];                /* [2 R][..]: rows of both passes of the decoder, part by part */
    float *columns;                    /* [T][width x hidden_stride]: im2col of the convolution, and its gradient */
    float *vocabulary;                 /* [threads][vocabulary_stride]: current words */
    size_t vocabulary_stride;
    float *logits; /* memory that grows with the steps */
    size_t logits_capacity;
    attention_scratch *workers; /* [threads] */
    query_run *runs;            /* [T] */

    transposed_layer transposed;

    /* Gradients of weights, packed. */
    float *weight, *vector;               /* [largest]: for a matrix, and for its bias or the two vectors of a norm */
    float *second_weight, *second_vector; /* the same for position projections */
    float *table_parts;                   /* [2][parts][A][2K][dp]: dPK, dPQ of each shard */
    float *d_table, *table_work, *table_normal; /* [2K][hidden_stride] */
    float *table_columns; /* [2][A][dp / 16][2K][16]: PK by place and PQ by row, for products over rows; where sequences
                           * read separate tables, of each of them */

    /* Dropout. */
    dropout_row *dropout_tokens; /* [T] */
    /* [2K][hidden_stride]: relative table of one layer, and in reverse; memory of a fold */
    float *dropped_table, *dropped_reversed, *fold_workspace;
    folded_tables folded;

    /* Sums over tokens besides the parameters' gradients, and those of groups of shards that wait for others. */
    float *table_sums; /* [L][2][2K][A dp]: dPK, dPQ of each layer */
    float *looked_up;  /* [V][E]: gradient of looked-up words, where groups compute the decoder's gradient of them too;
                        * else NULL */
    gradient_tree tree;

    /* Lists of the current group. */
    size_t *group_starts; /* [T + 1] */
    size_t *positions;    /* [T]: rows that the head reads */
    uint8_t *wanted;      /* [T] */
    double *losses;       /* [T] */
    uint64_t *order;      /* [T] */
    int32_t *row_ids;     /* [T] */
} step_memory;

enum { DEFAULT_SHARDS = 16 };

/* Transposed packed weights, for gradients of inputs, of matrices outside the layers. */
typedef struct transposed_weights {
    packed_matrix convolution, projection, mlm_dense, rtd_dense, rtd_classifier, pooler, classifier, answer;
} transposed_weights;

typedef struct learner_options {
    /* options of the run, as far as they apply to this model; opening sets threads */
    deberta_trainer_options asked;
    size_t max_tokens, longest; /* largest number of tokens of a step; of a sequence, 0: unknown, which micro_tokens and
                                   ranks do not allow */
    size_t memory_limit_bytes;  /* remaining memory limit of the run; 0: none */
    bool decodes;               /* whether the loss reads the Enhanced Mask Decoder, and nothing reads H[L] */
    bool predicts_words;        /* whether the loss is that of a masked language model */
    bool drops;                 /* whether a step may have dropout */
    bool pairs_up; /* whether half of a step's rows go forward before the others (SiFT); not with asked.recompute or
                      micro_tokens */
    bool differs; /* whether it has differences from the tables that a generator shares, added as zeros where missing */
    const struct new_head *head; /* head that replaces the model's own; NULL: unchanged. Read while opening */
    size_t position_tables;      /* sequences of a batch that may read separate tables of positions (position_change);
                                  * 0: all read those of the model */
} learner_options;

/* The floats for the gradient of any matrix or norm of the model: of its weights, of a vector. */
typedef struct gradient_room {
    size_t weight_floats, vector_floats;
} gradient_room;

typedef struct learner {
    parameter_set set;
    char *config; /* text of config.json for saving, with a new head's labels */
    const deberta_model *model;
    /* the same model, which its parameters change; NULL: the model is lent, without parameters */
    deberta_model *own_model;
    deberta_session *session;
    binding_list bindings;
    learner_options options;
    transposed_weights transposed;
    stage_clock *clock; /* clock of the stages; NULL: not measured */

    /* Shapes, from model and session. */
    shard_plan plan;
    size_t tokens_capacity; /* T of a group of shards */
    size_t heads_width;     /* A dp */
    size_t qkv_stride;      /* stride of rows of dq, dk and dv of all heads */
    size_t scores_stride;   /* stride of rows of P and dS: some floats after the keys of a chunk */
    size_t fold_stride;     /* stride of strips of dS */
    bool norms_again; /* whether layers keep no rows that a norm computes from others, and recompute them where they are
                         read */
    size_t exponentials_stride, kept_layers; /* number of first layers that keep exponentials of their softmax */
    gradient_room largest;                   /* floats of weight and vector in the memory */

    step_memory memory;
} learner;

static inline const kernels *learner_kernels(const learner *l) { return &l->session->kernels; }

/* The memory of a learner besides model, session and parameters: the output of a step's passes, carved from one arena
 * for steps of its size, and sums over tokens. */

/* Allocates the memory of a learner that has parameters, model, session and plan. It refuses before any large
 * allocation if the total would exceed options.memory_limit_bytes. */
deberta_status learner_memory_open(learner *learner, deberta_error *err);
/* Reserves `rows` rows of the decoder in `memory`, the learner's; if it has to grow, the passes' content is lost. */
deberta_status learner_decoder_reserve(const learner *learner, step_memory *memory, size_t rows, deberta_error *err);
void learner_memory_free(learner *learner);

/* Returns the bytes of sums over tokens besides the parameters' gradients: those of position tables, and of groups of
 * shards that wait. */
size_t learner_sum_bytes(const learner *learner);
/* Returns all bytes of a learner, including the moments of a planned optimiser. */
size_t learner_bytes(const learner *learner);

/* Opening, repacking and freeing a learner. */

/* Opens a learner. On failure *result is NULL. */
deberta_status learner_open(learner **result, const char *folder, const learner_options *options, deberta_error *err);
/* Opens a learner over an open float32 model, which it does not change, and which must outlive it: it has no
 * parameters, so its steps compute gradients of activations only. Of the options asked.isa, asked.threads,
 * asked.shards, max_tokens, longest, decodes and position_tables apply. */
deberta_status learner_open_lent(learner **result, const deberta_model *model, const learner_options *options,
                                 deberta_error *err);
void learner_free(learner **learner);

/* Packs the parameters again after they have changed, as opening would. */
deberta_status learner_take_parameters(learner *learner, deberta_error *err);
