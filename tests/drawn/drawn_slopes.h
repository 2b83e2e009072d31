/* Computes the loss of a drawn case in float64, and its slope along a random direction in each tensor.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tests/drawn/drawn_case.h"
#include "train/run/trainer.h"

typedef struct drawn_slope {
    const parameter *tensor;
    const parameter_set *set;
    double slope, nearer; /* central differences over a step, and over a hundredth of it: those differ at a kink */
    double terms;         /* of the slope, where it is a sum over choices: their sizes added up; else 0 */
    double found;         /* what the trainer's gradient gives */
    double rounding;      /* how far `found` moves with the last bits of the weights; 0 where that was not asked for */
} drawn_slope;

typedef struct drawn_slopes {
    double loss;
    drawn_slope *items;
    size_t count;
} drawn_slopes;

/* Finds slopes at the trainer's weights. Where a loss takes long, some tensors are left out. */
deberta_status drawn_slopes_find(drawn_slopes *slopes, const drawn_case *drawn, const deberta_trainer *trainer,
                                 deberta_error *err);
void drawn_slopes_free(drawn_slopes *slopes);

/* The slope that the tensor's gradient gives along the same direction, and the gradient's norm. */
double drawn_slope_of(const drawn_case *drawn, const parameter *tensor, double *norm);
/* The norm over the gradients of all tensors. */
double drawn_norm_of_all(const parameter_set *set);
