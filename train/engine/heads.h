/* Heads in training: logits of the rows that the loss reads, the loss, and its way back to the encoder's output
 * (learner's passes[0].d_output, or the decoder's passes[1].d_output).
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_HEADS_H
#define TRAIN_HEADS_H

#include "train/engine/learner.h"
#include "train/engine/step_batch.h"

typedef enum step_task { STEP_MLM, STEP_RTD, STEP_SEQUENCE, STEP_CHOICE, STEP_TOKEN, STEP_ANSWER } step_task;

enum { LOSS_ENDS = 2 }; /* of an answer; other losses have one */

/* What a loss is a mean over, of the whole step: known before the forward pass (step_counts.h). */
typedef struct head_counts {
    size_t labelled[LOSS_ENDS];
    size_t pairs; /* clean rows and their moved copies; else 0 */
} head_counts;

/* What the heads of a step, one for each group of shards, read and add to. */
typedef struct head_result {
    head_counts counts;
    double losses[LOSS_ENDS][MAX_ROW_PARTS]; /* sums by shard */
    double distance;                         /* of pairs, summed up; else 0 */
    /* Of a choice, whose questions may have sequences in several groups: by number in the step the scores of sequences
     * and of their moved copies, gradients of these once all are known. */
    float *scores[2];
    size_t scored; /* so many are known */
    bool compared;
} head_result;

/* Sums of learner->losses by shard; bounds: in places of theirs. */
void head_add_losses(const learner *learner, size_t end, const size_t *bounds, head_result *result);

/* Rows that a head reads, with the parts that they lie in. */
typedef struct head_rows {
    size_t *tokens; /* [count], ascending; the learner's */
    size_t count, bounds[MAX_ROW_PARTS + 1];
} head_rows;

/* Tokens for which wanted[t] is not 0; NULL: those that are no holes. */
head_rows head_rows_of(learner *learner, const uint8_t *wanted);
/* First tokens of sequences for which wanted[sequence] is not 0. */
head_rows head_rows_of_sequences(learner *learner, const uint8_t *wanted);

/* Rows of H[L] -> to [count][normed_stride], and back: added to passes[0].d_output. */
void head_gather(const learner *learner, const head_rows *rows, float *to);
void head_scatter(learner *learner, const head_rows *rows, const float *from, size_t ld);

/* At least that many floats in learner->logits. */
deberta_status head_reserve(learner *learner, size_t rows, size_t stride, deberta_error *err);

deberta_status head_mlm(learner *learner, const step_batch *batch, bool decodes, head_result *result,
                        deberta_error *err);
deberta_status head_rtd(learner *learner, const step_batch *batch, float weight, head_result *result,
                        deberta_error *err);

/* Heads with a few classes: sequence, choice, token, question answering. */
typedef enum class_task { CLASSES_OF_SEQUENCE, CLASSES_OF_CHOICE, CLASSES_OF_TOKEN, CLASSES_OF_ANSWER } class_task;

/* While a pair is compared: its logits, which gradients overwrite, and in the ascent a copy of the clean row to
 * overwrite. */
enum { PAIR_ROW_CLEAN, PAIR_ROW_MOVED, PAIR_ROW_COPY, PAIR_ROWS };
/* Logits of a row with its last panel, or scores of a question. */
size_t pair_row_floats(const learner *learner, const step_batch *batch);

/* Pairs of rows, inside each part the clean ones and then their moved copies (SiFT). */
typedef enum class_pairs {
    NO_PAIRS,
    PAIRS_CLEAN,  /* clean rows alone: their logits for the listener, and nothing else */
    PAIRS_ASCENT, /* moved rows alone: the gradient of their distance to clean logits, summed, and nothing else */
    PAIRS_FINAL   /* the loss of the clean rows, and weight times the mean distance both ways */
} class_pairs;

/* Told of the logits before they become gradients: [rows->count][stride], row i of token rows->tokens[i]. */
typedef struct logit_listener {
    void *context;
    void (*on_logits)(void *context, const step_batch *batch, const head_rows *rows, const float *logits,
                      size_t stride);
} logit_listener;

typedef struct class_options {
    class_task task;
    class_pairs pairs;
    float weight;
    const float *clean;             /* of PAIRS_ASCENT: [tokens of the step][classes], at rows that the head reads */
    float *compared[PAIR_ROWS];     /* of PAIRS_ASCENT and PAIRS_FINAL: rows at work, [pair_row_floats] each */
    const logit_listener *listener; /* NULL: nobody asks */
} class_options;

deberta_status head_classes(learner *learner, const step_batch *batch, const class_options *options,
                            head_result *result, deberta_error *err);

#endif
