/* Computes losses of training in float64, from the reference model and the formulas of docs/training.md. The results of
 * `train` are compared with them; the two share no code.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/reference/reference.h"

enum { EXACT_NOT_LABELLED = -100 };

typedef enum exact_task {
    EXACT_WORDS,         /* cross entropy, mean over labelled tokens */
    EXACT_WORDS_DECODED, /* the same after the Enhanced Mask Decoder */
    EXACT_REPLACED,      /* binary cross entropy, mean over tokens that are no holes */
    EXACT_SEQUENCES,     /* cross entropy, mean over labelled sequences */
    EXACT_VALUES,        /* of one output: squared error, mean over sequences */
    EXACT_CHOICES,       /* softmax over the choices of a question, mean over questions */
    EXACT_TOKENS,        /* cross entropy, mean over labelled tokens */
    EXACT_ANSWERS, /* softmax over the tokens of a sequence: half of the mean over starts + half of that over ends */
} exact_task;

/* Labels are of tokens; else of sequences, questions or answers. */
bool exact_labels_tokens(exact_task task);

/* A step as a file of batches has it: rows of `columns` tokens. Members that a task does not need are NULL. */
typedef struct exact_batch {
    exact_task task;
    size_t sequences, columns, choices;     /* choices: sequences of a question, else 1 */
    const int64_t *ids, *types, *positions; /* [sequences][columns]; types and positions may be NULL */
    const uint8_t *mask;                    /* [sequences][columns]; what follows the last 1 is padding */
    const int64_t *labels;                  /* of tokens, of sequences or of questions */
    const float *targets;                   /* [sequences] of EXACT_VALUES */
    const int64_t *starts, *ends;           /* [sequences] */
    double sift_weight, sift_step;          /* weight 0: no SiFT */
    bool moves_raw;                         /* SiFT moves embeddings as they are, not normalised */
    const float *delta;                     /* [sequences][columns][h]: where the ascent begins */
} exact_batch;

/* Tokens of a sequence: up to the last that is no hole. */
size_t exact_length(const exact_batch *batch, size_t sequence);

reference_input exact_input(const exact_batch *batch, size_t sequence);
/* Columns of the head that the task reads. */
size_t exact_width(const exact_batch *batch, const reference_model *model);
/* The logits of one sequence: [tokens][width]; a sequence's head has [1][width]. */
deberta_status exact_logits(const exact_batch *batch, const reference_model *model, const reference_input *input,
                            double *logits, deberta_error *err);
/* log(sum exp) of logits, `stride` apart. */
double exact_log_sum(const double *logits, size_t count, size_t stride);
/* The loss without SiFT, from the logits of each sequence. */
void exact_own_loss(const exact_batch *batch, size_t width, double *const *logits, double *loss);

/* Steps of training in float64: a loss at any weights, and what it holds fixed (docs/training.md, "SiFT"). */
typedef struct exact_step exact_step;

/* Takes the constants of the loss from this model: with SiFT the moved embeddings and both probabilities. The batch
 * must outlive the step. */
deberta_status exact_step_begin(exact_step **step, const exact_batch *batch, const reference_model *model,
                                deberta_error *err);
/* Returns the loss that the step reports. */
double exact_step_value(const exact_step *step);
/* Computes the function whose gradients the step takes, at another model's weights; up to constants it equals the
 * value. */
deberta_status exact_step_loss(const exact_step *step, const reference_model *model, double *loss, deberta_error *err);
/* The sizes of what each sequence adds to the difference of two models' own losses, added up: where a softmax goes over
 * sequences, their terms cancel. */
deberta_status exact_step_terms(const exact_step *step, const reference_model *const models[2], double *terms,
                                deberta_error *err);
void exact_step_free(exact_step **step);
