/* The loss of a drawn case in float64, and its slope along a random direction in each tensor.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_DRAWN_SLOPES_H
#define CHECK_DRAWN_SLOPES_H

#include "check/drawn_case.h"
#include "train/trainer.h"

typedef struct drawn_slope {
    const parameter *tensor;
    const parameter_set *set;
    double slope, nearer; /* central differences over a step, and over a hundredth of it: those differ at a kink */
} drawn_slope;

typedef struct drawn_slopes {
    double loss;
    drawn_slope *items;
    size_t count;
} drawn_slopes;

/* Of the trainer's weights as they are. Where a loss takes long, of some tensors only. */
deberta_status drawn_slopes_find(drawn_slopes *slopes, const drawn_case *drawn, const deberta_trainer *trainer,
                                 deberta_error *err);
void drawn_slopes_free(drawn_slopes *slopes);

/* 1 or -1: the direction of a tensor. */
double drawn_direction(const drawn_case *drawn, const parameter *tensor, size_t element);

#endif
