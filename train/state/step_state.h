/* The state of one step: its batch and options, the group of shards that is in memory, and the results so far. It lives
 * as long as step_run; each piece of the backward pass receives it, reads the learner, which is constant, and writes to
 * the memory.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/state/learner.h"
#include "train/state/step_batch.h"

typedef struct step_state step_state;

/* Pairs of rows: inside each part the clean ones, then their moved copies (SiFT). */
typedef enum class_pairs {
    NO_PAIRS,
    PAIRS_CLEAN,  /* has clean rows alone, and only passes their logits to the listener */
    PAIRS_ASCENT, /* has moved rows alone, and computes only the gradient of their summed distance to clean logits */
    PAIRS_FINAL   /* computes the loss of the clean rows, plus weight times the mean distance both ways */
} class_pairs;

/* Rows for comparing a pair: its logits, which gradients overwrite, and in the ascent a copy of the clean row to
 * overwrite. */
enum { PAIR_ROW_CLEAN, PAIR_ROW_MOVED, PAIR_ROW_COPY, PAIR_ROWS };

enum { LOSS_ENDS = 2 }; /* number of losses of an answer; other tasks have one */

/* Rows that a head reads, with the bounds of their parts. */
typedef struct head_rows {
    size_t *tokens; /* [count], ascending; owned by the memory */
    size_t count, bounds[MAX_ROW_PARTS + 1];
} head_rows;

/* Receives the logits before they become gradients: [rows->count][stride], row i of token rows->tokens[i]. */
typedef struct logit_listener {
    void *context;
    void (*on_logits)(void *context, const step_state *step, const step_batch *group, const head_rows *rows,
                      const float *logits, size_t stride);
} logit_listener;

/* Replaces the forward pass of a group of shards: it must leave the same results. */
typedef struct step_forward_pass {
    void *context;
    deberta_status (*run)(void *context, step_state *step, const step_batch *group, deberta_error *err);
} step_forward_pass;

/* Replaces a head's loss, row by row: turns the logits of a token's row, [n], into gradients of a value, and returns
 * the value. Several threads call it. */
typedef struct row_value {
    void *context;
    double (*run)(void *context, const step_state *step, size_t token, float *logits, size_t n);
} row_value;

/* Changes embeddings before their norm, [count][hidden_stride] from token `first` of the group on, and the gradients of
 * all of them, [T][ld], in the backward pass. */
typedef struct embedding_edit {
    void *context;
    void (*forward)(void *context, const step_state *step, float *rows, size_t first, size_t count);
    void (*backward)(void *context, const step_state *step, float *d_rows, size_t ld);
    /* Receives the gradients of the rows of positions that the Enhanced Mask Decoder has added at rows->tokens,
     * [rows->count][ld]; NULL: not needed. */
    void (*decoded)(void *context, const step_state *step, const head_rows *rows, const float *d_rows, size_t ld);
} embedding_edit;

typedef struct step_options {
    deberta_training_task task;
    bool decodes;       /* whether a masked language model reads the Enhanced Mask Decoder */
    float rtd_weight;   /* weight of the discriminator's loss */
    bool reads_sampled; /* whether replaced-token detection reads the ids that a generator has sampled */
    /* [tokens of the step]: receives the ids that a generator draws at labelled places; NULL: none */
    int32_t *drawn_ids;
    bool loss_only;        /* whether the encoder gets no gradients */
    bool activations_only; /* whether only activations get gradients (SiFT's ascent), and weights none */
    class_pairs pairs;
    float sift_weight, sift_step;
    double sift_start;                /* deviation of the ascent's start */
    const float *clean;               /* for PAIRS_ASCENT: [tokens of the step][classes], at rows that the head reads */
    float *compared[PAIR_ROWS];       /* for PAIRS_ASCENT and PAIRS_FINAL: [pair_row_floats] each */
    bool perturbs_raw;                /* whether SiFT's step moves embeddings without normalisation, as a control */
    const step_forward_pass *pass;    /* NULL: step_forward */
    const embedding_edit *edit;       /* NULL: none */
    const logit_listener *listener;   /* for heads with classes or words; NULL: no listener */
    const row_value *value;           /* NULL: the loss of the task */
    const position_change *positions; /* NULL: the model's. Else the tables' gradients are summed (step_table_sums) */
    dropout_rates dropout;            /* not used where only the loss is computed */
    uint32_t seed;
    size_t number;     /* number of the step, from 0 */
    bool is_generator; /* whether the model is a generator, whose random numbers differ from the discriminator's */
} step_options;

/* The denominators of a loss's mean, for the whole step: known before the forward pass. */
typedef struct head_counts {
    size_t labelled[LOSS_ENDS];
    size_t pairs; /* number of clean rows and their moved copies; else 0 */
} head_counts;

/* Inputs and sums of the heads of a step, one for each group of shards. */
typedef struct head_result {
    head_counts counts;
    double losses[LOSS_ENDS][MAX_ROW_PARTS]; /* sums by shard */
    double distance;                         /* sum over pairs; else 0 */
    double *distances;                       /* distance of each pair of rows, by the clean one's token in the step;
                                              * else NULL */
    /* Questions of a choice may have sequences in several groups. So the scores of all sequences and of their moved
     * copies are kept by number in the step; they become gradients once all are known. */
    float *scores[2];
    size_t scored; /* the number of known scores */
    bool compared;
} head_result;

/* Rows of a table. */
typedef struct table_range {
    size_t first, end;
} table_range;

struct step_state {
    const learner *learner;
    step_memory *memory;
    const step_batch *batch; /* batch of the whole step */
    const step_options *options;
    head_result head;
    dropout_plan dropout;                 /* memory->forward.dropout is this plan, or NULL */
    table_range reached[POSITION_TABLES]; /* rows that the step's distances read; others have no gradient */

    /* The shards that are in memory. */
    shard_group group;
    size_t part_bounds[MAX_ROW_PARTS + 1];     /* bounds of the group's shards, in its tokens */
    size_t sequence_bounds[MAX_ROW_PARTS + 1]; /* bounds in the group's sequences */
    const int32_t *ids;                        /* [T]: ids that the encoder reads */
};

static inline bool step_wants_weights(const step_state *step) { return !step->options->activations_only; }

static inline bool step_wants_tables(const step_state *step)
{
    return step_wants_weights(step) || step->options->positions;
}

/* Returns the columns of both tables of a layer that a sequence reads (table_columns). */
static inline float *step_table_columns(const step_state *step, size_t sequence)
{
    const learner *l = step->learner;
    const size_t which = step->options->positions ? sequence : 0;
    return step->memory->table_columns + which * POSITION_TABLES * l->model->relative_rows * l->heads_width;
}

/* Returns a part's gradient of a head's table of positions, [2K][dp]. */
static inline float *table_part(const step_state *step, size_t which, size_t part, size_t head)
{
    const learner *l = step->learner;
    const size_t floats = l->model->relative_rows * l->model->padded_head;
    return step->memory->table_parts +
           ((which * l->options.asked.shards + part) * l->model->config.heads + head) * floats;
}

/* Returns dPK and dPQ of a layer, the sums of the current shards. */
static inline float *step_table_sums(const step_state *step, size_t layer)
{
    const learner *l = step->learner;
    return step->memory->table_sums + layer * POSITION_TABLES * l->model->relative_rows * l->heads_width;
}

/* Transposed packed weights turn gradients of outputs into gradients of inputs. */

#ifndef TRAIN_LEARNER_TRANSPOSED_H
#define TRAIN_LEARNER_TRANSPOSED_H

/* Carves them; returns the room that gradients of the model's matrices and norms need. */
gradient_room learner_transposed_carve(learner *learner, arena *memory);
/* Fills them after every change of the weights. */
void learner_transposed_fill(learner *learner);
/* Returns a matrix of a layer, valid until the same matrix of another layer is requested. Not inside a parallel
 * loop. */
const packed_matrix *transposed_of_layer(const step_state *step, size_t layer, layer_matrix which);

#endif
